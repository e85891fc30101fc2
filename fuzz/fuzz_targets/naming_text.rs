//! See [`chronorb_fuzz::naming_text`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::naming_text(data));
