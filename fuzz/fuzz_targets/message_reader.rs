//! See [`chronorb_fuzz::message_reader`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::message_reader(data));
