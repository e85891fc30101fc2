//! See [`chronorb_fuzz::service_contexts`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::service_contexts(data));
