//! See [`chronorb_fuzz::monitor_lines`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::monitor_lines(data));
