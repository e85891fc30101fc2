//! See [`chronorb_fuzz::idl_source`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::idl_source(data));
