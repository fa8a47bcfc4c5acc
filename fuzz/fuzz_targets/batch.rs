//! A record batch.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hapax_broker::fuzz::batch(bytes));
