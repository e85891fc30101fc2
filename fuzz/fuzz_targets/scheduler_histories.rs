//! See [`chronorb_fuzz::scheduler_histories`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::scheduler_histories(data));
