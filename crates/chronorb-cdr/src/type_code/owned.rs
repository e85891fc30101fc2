//! A type code that owns its memory.

#![allow(clippy::disallowed_methods, reason = "an owned value is allocated")]
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{StructMember, TypeCode, UnionMember, ValueMember};
use crate::memory::OwnTypeCode;
use crate::{Arena, Cdr, CdrError, Encoder};

/// A type code that owns its parts; the owning form of [`TypeCode`]. Clones are cheap.
#[derive(Clone)]
pub struct TypeCodeBuf(Form);

#[derive(Clone)]
enum Form {
    Constant(&'static TypeCode<'static>),
    Own(Arc<OwnTypeCode>),
}

impl TypeCodeBuf {
    /// Wraps the type code of a compiled type; nothing is copied.
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

    /// The borrowed form, by the signature that generated code expects of every owned type. Does
    /// not use the arena.
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

/// The arena of a copy, and the texts that are there already. Indirections of a received type code
/// refer to one text many times.
struct Copies<'b> {
    arena: &'b Arena,
    /// By address and length.
    texts: RefCell<BTreeMap<(usize, usize), &'b str>>,
}

impl<'b> Copies<'b> {
    fn text(&self, text: &str) -> Result<&'b str, CdrError> {
        if text.len() < GREAT_TEXT {
            return self.arena.copy_str(text);
        }
        let place = (text.as_ptr().addr(), text.len());
        if let Some(copy) = self.texts.borrow().get(&place) {
            return Ok(copy);
        }
        let copy = self.arena.copy_str(text)?;
        self.texts.borrow_mut().insert(place, copy);
        Ok(copy)
    }
}

/// The least length of a text that takes more memory than the reference to it.
const GREAT_TEXT: usize = 32;

/// A type code of a kind with an identifier and a name, which are copied.
macro_rules! named {
    ($kind:ident, $to:ident, $id:expr, $name:expr $(, $field:ident: $value:expr)*) => {
        TypeCode::$kind {
            id: $to.text($id)?,
            name: $to.text($name)?,
            $($field: $value,)*
        }
    };
}

impl TypeCode<'_> {
    /// Returns the owning form.
    #[allow(clippy::should_implement_trait)]
    pub fn to_owned(&self) -> TypeCodeBuf {
        TypeCodeBuf::from(self)
    }

    /// A copy whose parts are all in the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub fn copy_in<'b>(&self, arena: &'b Arena) -> Result<TypeCode<'b>, CdrError> {
        self.copy_to(&Copies {
            arena,
            texts: RefCell::new(BTreeMap::new()),
        })
    }

    fn copy_to<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
        // Each kind that recurses has a function of its own, so that a level takes no more of the
        // stack than its kind needs.
        match self {
            Self::Sequence { element, bound } => copy_sequence(element, *bound, to),
            Self::Array { element, length } => copy_array(element, *length, to),
            Self::Alias { .. } | Self::ValueBox { .. } => self.copy_alias(to),
            Self::Struct { .. } | Self::Except { .. } => self.copy_struct(to),
            Self::Union { .. } => self.copy_union(to),
            Self::Value { .. } | Self::Event { .. } => self.copy_value(to),
            _ => self.copy_leaf(to),
        }
    }

    #[inline(never)]
    fn copy_leaf<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
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
            Self::ObjRef { id, name } => named!(ObjRef, to, id, name),
            Self::Native { id, name } => named!(Native, to, id, name),
            Self::AbstractInterface { id, name } => named!(AbstractInterface, to, id, name),
            Self::LocalInterface { id, name } => named!(LocalInterface, to, id, name),
            Self::Component { id, name } => named!(Component, to, id, name),
            Self::Home { id, name } => named!(Home, to, id, name),
            Self::Enum { id, name, members } => named!(
                Enum, to, id, name,
                members: to.arena.fill(members.len(), |i| to.text(members[i]))?
            ),
            Self::Recursive { id } => TypeCode::Recursive { id: to.text(id)? },
            _ => unreachable!("kinds with parts have functions of their own"),
        })
    }

    #[inline(never)]
    fn copy_alias<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
        Ok(match *self {
            Self::Alias { id, name, target } => {
                named!(Alias, to, id, name, target: copy_part(target, to)?)
            }
            Self::ValueBox { id, name, target } => {
                named!(ValueBox, to, id, name, target: copy_part(target, to)?)
            }
            _ => unreachable!("the caller has looked at the kind"),
        })
    }

    #[inline(never)]
    fn copy_struct<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
        Ok(match *self {
            Self::Struct { id, name, members } => {
                named!(Struct, to, id, name, members: fields(members, to)?)
            }
            Self::Except { id, name, members } => {
                named!(Except, to, id, name, members: fields(members, to)?)
            }
            _ => unreachable!("the caller has looked at the kind"),
        })
    }

    #[inline(never)]
    fn copy_union<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
        let Self::Union {
            id,
            name,
            discriminator,
            default_index,
            members,
        } = *self
        else {
            unreachable!("the caller has looked at the kind");
        };
        Ok(named!(
            Union, to, id, name,
            discriminator: copy_part(discriminator, to)?,
            default_index: default_index,
            members: to.arena.fill(members.len(), |i| Ok(UnionMember {
                label: members[i].label,
                name: to.text(members[i].name)?,
                type_code: members[i].type_code.copy_to(to)?,
            }))?
        ))
    }

    #[inline(never)]
    fn copy_value<'b>(&self, to: &Copies<'b>) -> Result<TypeCode<'b>, CdrError> {
        Ok(match *self {
            Self::Value {
                id,
                name,
                modifier,
                base,
                members,
            } => named!(
                Value, to, id, name,
                modifier: modifier,
                base: copy_base(base, to)?,
                members: state(members, to)?
            ),
            Self::Event {
                id,
                name,
                modifier,
                base,
                members,
            } => named!(
                Event, to, id, name,
                modifier: modifier,
                base: copy_base(base, to)?,
                members: state(members, to)?
            ),
            _ => unreachable!("the caller has looked at the kind"),
        })
    }
}

#[inline(never)]
fn copy_sequence<'b>(
    element: &TypeCode<'_>,
    bound: u32,
    to: &Copies<'b>,
) -> Result<TypeCode<'b>, CdrError> {
    Ok(TypeCode::Sequence {
        element: copy_part(element, to)?,
        bound,
    })
}

#[inline(never)]
fn copy_array<'b>(
    element: &TypeCode<'_>,
    length: u32,
    to: &Copies<'b>,
) -> Result<TypeCode<'b>, CdrError> {
    Ok(TypeCode::Array {
        element: copy_part(element, to)?,
        length,
    })
}

/// A copy of a part, behind a reference.
fn copy_part<'b>(part: &TypeCode<'_>, to: &Copies<'b>) -> Result<&'b TypeCode<'b>, CdrError> {
    to.arena.alloc(part.copy_to(to)?)
}

fn fields<'b>(
    members: &[StructMember<'_>],
    to: &Copies<'b>,
) -> Result<&'b [StructMember<'b>], CdrError> {
    to.arena.fill(members.len(), |i| {
        Ok(StructMember {
            name: to.text(members[i].name)?,
            type_code: members[i].type_code.copy_to(to)?,
        })
    })
}

fn state<'b>(
    members: &[ValueMember<'_>],
    to: &Copies<'b>,
) -> Result<&'b [ValueMember<'b>], CdrError> {
    to.arena.fill(members.len(), |i| {
        Ok(ValueMember {
            name: to.text(members[i].name)?,
            type_code: members[i].type_code.copy_to(to)?,
            is_public: members[i].is_public,
        })
    })
}

fn copy_base<'b>(
    base: Option<&TypeCode<'_>>,
    to: &Copies<'b>,
) -> Result<Option<&'b TypeCode<'b>>, CdrError> {
    base.map(|base| to.arena.alloc(base.copy_to(to)?))
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
