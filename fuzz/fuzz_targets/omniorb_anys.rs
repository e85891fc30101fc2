//! See [`chronorb_fuzz::omniorb_anys`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::omniorb_anys(data));
