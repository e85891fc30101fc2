//! See [`chronorb_fuzz::typed_values`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::typed_values(data));
