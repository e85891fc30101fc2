//! See [`chronorb_fuzz::server_requests`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::server_requests(data));
