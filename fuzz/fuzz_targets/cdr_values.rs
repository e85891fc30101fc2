//! See [`chronorb_fuzz::cdr_values`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::cdr_values(data));
