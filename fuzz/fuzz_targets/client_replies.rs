//! See [`chronorb_fuzz::client_replies`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::client_replies(data));
