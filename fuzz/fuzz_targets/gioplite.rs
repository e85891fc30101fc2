//! See [`chronorb_fuzz::gioplite`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::gioplite(data));
