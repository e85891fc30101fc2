//! See [`chronorb_fuzz::schedule_file`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::schedule_file(data));
