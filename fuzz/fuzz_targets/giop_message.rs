//! See [`chronorb_fuzz::giop_message`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::giop_message(data));
