//! See [`chronorb_fuzz::object_keys`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::object_keys(data));
