#![allow(
    clippy::disallowed_methods,
    reason = "who wants to own a value has it allocated"
)]
use std::fmt;
use std::sync::Arc;

use super::{StructMember, TypeCode, UnionMember, ValueMember};
use crate::memory::OwnTypeCode;
use crate::{Arena, Cdr, CdrError, Encoder};

/// A type code that owns what it is made of: the twin of [`TypeCode`]. Clones are cheap.
#[derive(Clone)]
pub struct TypeCodeBuf(Form);

#[derive(Clone)]
enum Form {
    Constant(&'static TypeCode<'static>),
    Own(Arc<OwnTypeCode>),
}

impl TypeCodeBuf {
    /// That of a type that was compiled; nothing is copied.
    pub const fn from_static(type_code: &'static TypeCode<'static>) -> Self {
        Self(Form::Constant(type_code))
    }

    /// The borrowed form.
    pub fn as_view(&self) -> &TypeCode<'_> {
        match &self.0 {
            Form::Constant(type_code) => type_code,
            Form::Own(own) => own.get(),
        }
    }

    /// As [`as_view`](Self::as_view): it needs no arena.
    ///
    /// # Errors
    /// None.
    pub fn as_view_in<'a>(&'a self, _: &'a Arena) -> Result<TypeCode<'a>, CdrError> {
        Ok(*self.as_view())
    }

    /// Writes it, as its borrowed form is written.
    ///
    /// # Errors
    /// As [`TypeCode`]'s.
    pub fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.as_view().encode(e)
    }
}

impl TypeCode<'_> {
    /// The twin that owns what it is made of.
    #[allow(clippy::should_implement_trait)]
    pub fn to_owned(&self) -> TypeCodeBuf {
        TypeCodeBuf::from(self)
    }

    /// A copy whose parts are all in the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub fn copy_in<'b>(&self, arena: &'b Arena) -> Result<TypeCode<'b>, CdrError> {
        macro_rules! named {
            ($kind:ident, $id:expr, $name:expr $(, $field:ident: $value:expr)*) => {
                TypeCode::$kind {
                    id: arena.copy_str($id)?,
                    name: arena.copy_str($name)?,
                    $($field: $value,)*
                }
            };
        }
        Ok(match *self {
            Self::Null => TypeCode::Null,
            Self::Void => TypeCode::Void,
            Self::Short => TypeCode::Short,
            Self::Long => TypeCode::Long,
            Self::UShort => TypeCode::UShort,
            Self::ULong => TypeCode::ULong,
            Self::Float => TypeCode::Float,
            Self::Double => TypeCode::Double,
            Self::Boolean => TypeCode::Boolean,
            Self::Char => TypeCode::Char,
            Self::Octet => TypeCode::Octet,
            Self::Any => TypeCode::Any,
            Self::TypeCode => TypeCode::TypeCode,
            Self::Principal => TypeCode::Principal,
            Self::LongLong => TypeCode::LongLong,
            Self::ULongLong => TypeCode::ULongLong,
            Self::LongDouble => TypeCode::LongDouble,
            Self::WChar => TypeCode::WChar,
            Self::String { bound } => TypeCode::String { bound },
            Self::WString { bound } => TypeCode::WString { bound },
            Self::Fixed { digits, scale } => TypeCode::Fixed { digits, scale },
            Self::Sequence { element, bound } => TypeCode::Sequence {
                element: arena.alloc(element.copy_in(arena)?)?,
                bound,
            },
            Self::Array { element, length } => TypeCode::Array {
                element: arena.alloc(element.copy_in(arena)?)?,
                length,
            },
            Self::ObjRef { id, name } => named!(ObjRef, id, name),
            Self::Native { id, name } => named!(Native, id, name),
            Self::AbstractInterface { id, name } => named!(AbstractInterface, id, name),
            Self::LocalInterface { id, name } => named!(LocalInterface, id, name),
            Self::Component { id, name } => named!(Component, id, name),
            Self::Home { id, name } => named!(Home, id, name),
            Self::Struct { id, name, members } => {
                named!(Struct, id, name, members: fields(members, arena)?)
            }
            Self::Except { id, name, members } => {
                named!(Except, id, name, members: fields(members, arena)?)
            }
            Self::Enum { id, name, members } => named!(
                Enum, id, name,
                members: arena.fill(members.len(), |i| arena.copy_str(members[i]))?
            ),
            Self::Union {
                id,
                name,
                discriminator,
                default_index,
                members,
            } => named!(
                Union, id, name,
                discriminator: arena.alloc(discriminator.copy_in(arena)?)?,
                default_index: default_index,
                members: arena.fill(members.len(), |i| Ok(UnionMember {
                    label: members[i].label,
                    name: arena.copy_str(members[i].name)?,
                    type_code: members[i].type_code.copy_in(arena)?,
                }))?
            ),
            Self::Alias { id, name, target } => {
                named!(Alias, id, name, target: arena.alloc(target.copy_in(arena)?)?)
            }
            Self::ValueBox { id, name, target } => {
                named!(ValueBox, id, name, target: arena.alloc(target.copy_in(arena)?)?)
            }
            Self::Value {
                id,
                name,
                modifier,
                base,
                members,
            } => named!(
                Value, id, name,
                modifier: modifier,
                base: copy_base(base, arena)?,
                members: state(members, arena)?
            ),
            Self::Event {
                id,
                name,
                modifier,
                base,
                members,
            } => named!(
                Event, id, name,
                modifier: modifier,
                base: copy_base(base, arena)?,
                members: state(members, arena)?
            ),
            Self::Recursive { id } => TypeCode::Recursive {
                id: arena.copy_str(id)?,
            },
        })
    }
}

fn fields<'b>(
    members: &[StructMember<'_>],
    arena: &'b Arena,
) -> Result<&'b [StructMember<'b>], CdrError> {
    arena.fill(members.len(), |i| {
        Ok(StructMember {
            name: arena.copy_str(members[i].name)?,
            type_code: members[i].type_code.copy_in(arena)?,
        })
    })
}

fn state<'b>(
    members: &[ValueMember<'_>],
    arena: &'b Arena,
) -> Result<&'b [ValueMember<'b>], CdrError> {
    arena.fill(members.len(), |i| {
        Ok(ValueMember {
            name: arena.copy_str(members[i].name)?,
            type_code: members[i].type_code.copy_in(arena)?,
            is_public: members[i].is_public,
        })
    })
}

fn copy_base<'b>(
    base: Option<&TypeCode<'_>>,
    arena: &'b Arena,
) -> Result<Option<&'b TypeCode<'b>>, CdrError> {
    base.map(|base| arena.alloc(base.copy_in(arena)?))
        .transpose()
}

impl From<&TypeCode<'_>> for TypeCodeBuf {
    fn from(type_code: &TypeCode<'_>) -> Self {
        Self(Form::Own(Arc::new(OwnTypeCode::copy(type_code))))
    }
}

impl From<TypeCode<'_>> for TypeCodeBuf {
    fn from(type_code: TypeCode<'_>) -> Self {
        Self::from(&type_code)
    }
}

impl Default for TypeCodeBuf {
    fn default() -> Self {
        Self::from_static(&TypeCode::Null)
    }
}

impl PartialEq for TypeCodeBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_view() == other.as_view()
    }
}

impl Eq for TypeCodeBuf {}

impl fmt::Debug for TypeCodeBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

impl fmt::Display for TypeCodeBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_view(), f)
    }
}
