//! The type code of each Rust type that an `any` can contain.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Any, AnyBuf, Char, LongDouble, StructMember, TypeCode, TypeCodeBuf};

/// A type that has a type code, so that its values can be put into an [`Any`](crate::Any).
///
/// The IDL compiler writes the implementations for the types of IDL files: for views and for
/// their owned twins.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no type code, and so cannot be in an `any`",
    label = "not a type of IDL",
    note = "numbers, text, sequences and the types that are generated from IDL have a type code"
)]
pub trait Typed {
    /// The type code.
    const TYPE_CODE: TypeCode<'static>;
}

macro_rules! basic {
    ($($t:ty => $kind:ident;)*) => {$(
        impl Typed for $t {
            const TYPE_CODE: TypeCode<'static> = TypeCode::$kind;
        }
    )*};
}

basic! {
    () => Void;
    bool => Boolean;
    Char => Char;
    char => WChar;
    u8 => Octet;
    i8 => Octet;
    i16 => Short;
    u16 => UShort;
    i32 => Long;
    u32 => ULong;
    i64 => LongLong;
    u64 => ULongLong;
    f32 => Float;
    f64 => Double;
    LongDouble => LongDouble;
    TypeCode<'_> => TypeCode;
    TypeCodeBuf => TypeCode;
    Any<'_> => Any;
    AnyBuf => Any;
}

/// A `string` without a bound.
impl Typed for str {
    const TYPE_CODE: TypeCode<'static> = TypeCode::String { bound: 0 };
}

/// A `string` without a bound.
impl Typed for String {
    const TYPE_CODE: TypeCode<'static> = str::TYPE_CODE;
}

/// A sequence without a bound.
impl<T: Typed> Typed for [T] {
    const TYPE_CODE: TypeCode<'static> = TypeCode::Sequence {
        element: &T::TYPE_CODE,
        bound: 0,
    };
}

/// A sequence without a bound.
impl<T: Typed> Typed for Vec<T> {
    const TYPE_CODE: TypeCode<'static> = <[T]>::TYPE_CODE;
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    const TYPE_CODE: TypeCode<'static> = TypeCode::Array {
        element: &T::TYPE_CODE,
        length: N as u32,
    };
}

impl<T: Typed + ?Sized> Typed for &T {
    const TYPE_CODE: TypeCode<'static> = T::TYPE_CODE;
}

/// A reference that may be nil.
impl<T: Typed> Typed for Option<T> {
    const TYPE_CODE: TypeCode<'static> = T::TYPE_CODE;
}

impl<T: Typed + ?Sized> Typed for Arc<T> {
    const TYPE_CODE: TypeCode<'static> = T::TYPE_CODE;
}

/// An entry of a map: CORBA has no kind for it, and so no name.
impl<K: Typed, V: Typed> Typed for (K, V) {
    const TYPE_CODE: TypeCode<'static> = TypeCode::Struct {
        id: "",
        name: "",
        members: &[
            StructMember {
                name: "key",
                type_code: K::TYPE_CODE,
            },
            StructMember {
                name: "value",
                type_code: V::TYPE_CODE,
            },
        ],
    };
}

/// A map.
impl<K: Typed, V: Typed> Typed for BTreeMap<K, V> {
    const TYPE_CODE: TypeCode<'static> = <[(K, V)]>::TYPE_CODE;
}
