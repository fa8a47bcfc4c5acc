//! A request, by the decoder of its API and version.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hapax_broker::fuzz::request(bytes));
