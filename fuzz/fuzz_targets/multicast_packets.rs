//! See [`chronorb_fuzz::multicast_packets`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::multicast_packets(data));
