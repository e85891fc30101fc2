//! Encoding and decoding of all types, and compatibility with other ORBs.

mod anys;
mod bounds;
mod dynamic;
mod fixed;
mod omniorb;
mod proportion;
mod round_trip;
mod stack;
mod text;
mod type_codes;
mod value_types;
mod values;
