//! See [`chronorb_fuzz::rio_frame`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::rio_frame(data));
