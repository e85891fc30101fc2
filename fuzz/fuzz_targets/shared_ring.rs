//! See [`chronorb_fuzz::shared_ring`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::shared_ring(data));
