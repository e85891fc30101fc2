//! See [`chronorb_fuzz::idl_grammar`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chronorb_fuzz::idl_grammar(data));
