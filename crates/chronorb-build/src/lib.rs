//! Compilation of IDL to Rust for chronorb, to be called from `build.rs`.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), chronorb_build::BuildError> {
//!     chronorb_build::configure()
//!         .include("idl")
//!         .compile(&["idl/quoter.idl", "idl/market.idl"])
//! }
//! ```
//!
//! The program includes each of them with `chronorb::include_idl!("quoter")`.
//!
//! # Mapping
//!
//! | IDL | Rust |
//! |---|---|
//! | module `Market` | `mod market` |
//! | struct `Quote` | `Quote<'a>`, a `Copy` view into the message, and `QuoteBuf`, which owns; one `Copy` struct where the size is fixed |
//! | exception | as a struct, and an error |
//! | union | an enum with data, and an owned twin where it borrows |
//! | enum, constant, typedef | enum, `const`, `type` |
//! | bitmask, bitset | an integer with constants, or with a getter and a setter for each field |
//! | sequence, map | `&[T]`, `&[(K, V)]`; owned `Vec<T>`, `BTreeMap<K, V>` |
//! | `any`, `TypeCode`, `fixed` | `Any`, `TypeCode`, `Fixed` of the crate `chronorb` |
//! | struct that extends another, `@optional` member | its members behind those of the base, `Option` |
//! | interface `Quoter` | `Quoter`, the object reference; `QuoterServant`, the trait to implement; `QuoterSkeleton`, which dispatches to it; `mod quoter` for what is defined inside |
//! | operation that raises | `Result` with an enum, `GetQuoteError` |
//! | result of variable size | owned from `get_quote`, borrowed from `get_quote_in` |
//!
//! Names take the case that Rust expects. Where two become the same, the later one gets an
//! underscore, with a warning. `@rust::name("x")` gives another name, and [`Builder::rename`] does
//! so from outside.

mod builder;
mod files;
mod generate;
mod markdown;
mod names;
mod operation_demux;
mod perfect_hash;
mod ranges;
mod reach;
mod realtime;
mod recursion;
mod renames;
mod shape;

pub use builder::{BuildError, Builder, compile, configure};
pub use chronorb_idl::SourceEncoding;
pub use generate::{
    ExampleSources, GenerateError, GenerateOptions, GeneratedFile, generate, generate_files,
    second_names,
};
pub use names::{Place, SecondName};
pub use operation_demux::OperationDemux;
pub use perfect_hash::{PerfectHash, perfect_hash};
pub use realtime::real_time_annotations;
pub use renames::rename_files;
