//! See [`chronorb_fuzz::event_channel`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::event_channel(data));
