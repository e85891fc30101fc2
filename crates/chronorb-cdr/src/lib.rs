//! CDR, the Common Data Representation of CORBA: the encoding of values in the body of a GIOP
//! message.
//!
//! * [`Frame`]: the memory of one message, aligned and bounded.
//! * [`Encoder`]: appends values to a frame.
//! * [`Decoder`]: hands out the bytes of a received frame, each byte once.
//!   Numbers that arrive in the other byte order are swapped where they lie,
//!   so that a sequence of numbers is a slice of the frame in both byte orders.
//! * [`Arena`]: a bounded piece of memory for values that cannot stay in the frame, such as decoded
//!   structs and converted strings.
//! * [`Flat`]: a type whose values all have the same layout, so that sequences
//!   of them are read and written in one go.
//! * [`Value`]: a value of a value type, behind an `Arc`, with the name of its type.
//! * [`TypeCode`], [`Any`], [`Fixed`]: the values of CORBA that Rust has no type for.
//!   [`TypeCodeBuf`] and [`AnyBuf`] are the owning forms.
//! * [`Cdr`]: a type that has a CDR form. The basic types are here; the
//!   IDL compiler writes the implementations for all others.
//!
//! ```
//! use chronorb_cdr::{Arena, Decoder, Encoder, Endian, Frame};
//!
//! # fn main() -> Result<(), chronorb_cdr::CdrError> {
//! let mut frame = Frame::new(256, 1024);
//! let mut encoder = Encoder::new(&mut frame, Endian::Big);
//! encoder.write_str("ACME")?;
//! encoder.write_seq(&[0.25, 1.0])?;
//!
//! let arena = Arena::new(1024);
//! let mut decoder = Decoder::new(frame.as_mut_slice(), 0, Endian::Big, &arena);
//! assert_eq!(decoder.read_str()?, "ACME");
//! assert_eq!(decoder.read_seq::<f64>()?, [0.25, 1.0]);
//! assert_eq!(arena.used(), 0, "both are views of the frame");
//! # Ok(())
//! # }
//! ```
//!
//! Nothing that arrives can make a decoder panic, loop for long or take more
//! memory than its arena has. The source of the rules is CORBA 3.3 part 2,
//! clause 9.3 (CDR transfer syntax).

#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod any;
mod bounds;
mod context;
mod copied;
mod decoder;
mod encoder;
mod endian;
mod error;
mod fixed;
mod flags;
mod flat;
mod frame;
mod inline_str;
mod lazy;
mod limits;
mod long_double;
mod memory;
mod reference;
mod stack;
mod text;
mod type_code;
mod typed;
mod value;
mod values;

pub use any::{Any, AnyBuf, WideStr};
pub use bounds::Bounds;
pub use context::{decode_context, encode_context, select_context};
pub use copied::octets_copied;
pub use decoder::{Decoder, MAX_DEPTH};
pub use encoder::{Encoder, Gather};
pub use endian::Endian;
pub use error::CdrError;
pub use fixed::{Fixed, FixedError};
pub use flags::display_flags;
pub use flat::{Flat, FlatReader, FlatWriter, Layout};
pub use frame::Frame;
pub use inline_str::InlineStr;
pub use lazy::{Lazy, LazyIter};
pub use long_double::LongDouble;
pub use memory::Arena;
pub use reference::Reference;
pub use stack::{StackLimit, set_stack_limits};
pub use text::{Char, CharSet, NotLatin1, TextForm, WideForm};
pub use type_code::{StructMember, TypeCode, TypeCodeBuf, UnionMember, ValueMember, ValueModifier};
pub use typed::Typed;
pub use value::Cdr;
pub use values::{
    Abstract, AbstractType, ByArc, DataInput, DataOutput, DuplicateRegistration, MAX_VALUE_DEPTH,
    MAX_VALUES, Narrow, ReadState, Value, ValueInfo, ValueType, narrow_abstract, narrow_value,
    register_value_factory,
};

/// A value of an IDL `native` type. It does not leave the process.
pub type Native = std::sync::Arc<dyn std::any::Any + Send + Sync>;
