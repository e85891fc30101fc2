//! What is encoded is decoded to the same, and as others do it.

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
