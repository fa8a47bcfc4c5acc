//! The head of a request.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hapax_broker::fuzz::header(bytes));
