//! See [`chronorb_fuzz::reference_text`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::reference_text(data));
