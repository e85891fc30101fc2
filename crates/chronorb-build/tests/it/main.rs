//! Tests of the text of generated Rust.

mod ami;
mod build;
mod built_in;
mod limits;
mod names;
mod operation_table;
mod owned_servants;
mod pages;
mod snapshots;
