//! See [`chronorb_fuzz::context_requests`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::context_requests(data));
