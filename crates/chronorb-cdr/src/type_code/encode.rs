//! Encoding of type codes, with indirections for recursive types.

use super::{TypeCode, ValueMember, ValueModifier};
use crate::{CdrError, CharSet, Encoder, MAX_DEPTH, TextForm, WideForm, stack};

/// The marker in place of a kind before an indirection.
pub(super) const INDIRECTION: u32 = u32::MAX;

impl TypeCode<'_> {
    /// The number of its kind, as CORBA's `TCKind` has it.
    pub const fn kind(&self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Void => 1,
            Self::Short => 2,
            Self::Long => 3,
            Self::UShort => 4,
            Self::ULong => 5,
            Self::Float => 6,
            Self::Double => 7,
            Self::Boolean => 8,
            Self::Char => 9,
            Self::Octet => 10,
            Self::Any => 11,
            Self::TypeCode => 12,
            Self::Principal => 13,
            Self::ObjRef { .. } => 14,
            Self::Struct { .. } => 15,
            Self::Union { .. } => 16,
            Self::Enum { .. } => 17,
            Self::String { .. } => 18,
            Self::Sequence { .. } => 19,
            Self::Array { .. } => 20,
            Self::Alias { .. } => 21,
            Self::Except { .. } => 22,
            Self::LongLong => 23,
            Self::ULongLong => 24,
            Self::LongDouble => 25,
            Self::WChar => 26,
            Self::WString { .. } => 27,
            Self::Fixed { .. } => 28,
            Self::Value { .. } => 29,
            Self::ValueBox { .. } => 30,
            Self::Native { .. } => 31,
            Self::AbstractInterface { .. } => 32,
            Self::LocalInterface { .. } => 33,
            Self::Component { .. } => 34,
            Self::Home { .. } => 35,
            Self::Event { .. } => 36,
            Self::Recursive { .. } => INDIRECTION,
        }
    }
}

/// The types that enclose the type code being written.
pub(super) struct Ancestors<'s> {
    id: Option<&'s str>,
    /// The offset of its kind in the frame.
    start: usize,
    depth: u8,
    outer: Option<&'s Self>,
}

/// Writes a type code; where it holds itself, an indirection.
pub(super) fn encode(
    type_code: &TypeCode<'_>,
    e: &mut Encoder<'_>,
    outer: Option<&Ancestors<'_>>,
) -> Result<(), CdrError> {
    let depth = outer.map_or(0, |outer| outer.depth + 1);
    if depth > MAX_DEPTH {
        return Err(CdrError::TooDeep);
    }
    let kind = type_code.kind();
    e.write_u32(kind)?;
    let this = Ancestors {
        id: type_code.id(),
        start: e.frame().len() - size_of_val(&kind),
        depth,
        outer,
    };
    match type_code {
        TypeCode::Recursive { id } => {
            let target = outer
                .and_then(|outer| outer.start_of(id))
                .ok_or(CdrError::InvalidTypeCode)?;
            let back = e.frame().len() - target;
            let back = i32::try_from(back).map_err(|_| CdrError::LengthOverflow)?;
            e.write_i32(-back)
        }
        TypeCode::String { bound } | TypeCode::WString { bound } => e.write_u32(*bound),
        TypeCode::Fixed { digits, scale } => {
            e.write_u16(*digits)?;
            e.write_i16(*scale)
        }
        complex if complex.is_complex() => {
            if outer.is_some() {
                e.stack_limit().check(stack::Room::NONE)?;
            }
            let text = TextForm {
                narrow: CharSet::Utf8,
                ..e.text()
            };
            e.write_encapsulation(|e| {
                e.set_text(text);
                parameters(complex, e, &this)
            })
        }
        _ => Ok(()),
    }
}

impl TypeCode<'_> {
    /// Whether its parameters are an encapsulation.
    const fn is_complex(&self) -> bool {
        matches!(self.kind(), 14..=17 | 19..=22 | 29..=36)
    }
}

impl Ancestors<'_> {
    fn start_of(&self, id: &str) -> Option<usize> {
        let mut this = self;
        loop {
            if this.id == Some(id) {
                return Some(this.start);
            }
            this = this.outer?;
        }
    }
}

fn parameters(
    type_code: &TypeCode<'_>,
    e: &mut Encoder<'_>,
    this: &Ancestors<'_>,
) -> Result<(), CdrError> {
    if let (Some(id), Some(name)) = (type_code.id(), type_code.name()) {
        e.write_str(id)?;
        e.write_str(name)?;
    }
    match type_code {
        TypeCode::Struct { members, .. } | TypeCode::Except { members, .. } => {
            e.write_len(members.len())?;
            members.iter().try_for_each(|member| {
                e.write_str(member.name)?;
                encode(&member.type_code, e, Some(this))
            })
        }
        TypeCode::Union {
            discriminator,
            default_index,
            members,
            ..
        } => {
            encode(discriminator, e, Some(this))?;
            let plain = discriminator.unaliased();
            let default = default_index.map(i32::try_from).transpose();
            e.write_i32(
                default
                    .map_err(|_| CdrError::InvalidTypeCode)?
                    .unwrap_or(-1),
            )?;
            e.write_len(members.len())?;
            members.iter().try_for_each(|member| {
                label(plain, member.label, e)?;
                e.write_str(member.name)?;
                encode(&member.type_code, e, Some(this))
            })
        }
        TypeCode::Enum { members, .. } => e.write_seq(members),
        TypeCode::Sequence {
            element,
            bound: number,
        }
        | TypeCode::Array {
            element,
            length: number,
        } => {
            encode(element, e, Some(this))?;
            e.write_u32(*number)
        }
        TypeCode::Alias { target, .. } | TypeCode::ValueBox { target, .. } => {
            encode(target, e, Some(this))
        }
        TypeCode::Value {
            modifier,
            base,
            members,
            ..
        }
        | TypeCode::Event {
            modifier,
            base,
            members,
            ..
        } => state(*modifier, *base, members, e, this),
        _ => Ok(()),
    }
}

fn state(
    modifier: ValueModifier,
    base: Option<&TypeCode<'_>>,
    members: &[ValueMember<'_>],
    e: &mut Encoder<'_>,
    this: &Ancestors<'_>,
) -> Result<(), CdrError> {
    e.write_i16(modifier as i16)?;
    encode(base.unwrap_or(&TypeCode::Null), e, Some(this))?;
    e.write_len(members.len())?;
    members.iter().try_for_each(|member| {
        e.write_str(member.name)?;
        encode(&member.type_code, e, Some(this))?;
        e.write_i16(i16::from(member.is_public))
    })
}

/// Writes the label of a member as a value of the discriminator's type.
fn label(discriminator: &TypeCode<'_>, label: i64, e: &mut Encoder<'_>) -> Result<(), CdrError> {
    fn number<T: TryFrom<i64>>(label: i64) -> Result<T, CdrError> {
        T::try_from(label).map_err(|_| CdrError::InvalidTypeCode)
    }
    match discriminator {
        TypeCode::Octet if label < 0 => e.write_i8(number(label)?),
        TypeCode::Boolean | TypeCode::Octet | TypeCode::Char => e.write_u8(number(label)?),
        TypeCode::Short => e.write_i16(number(label)?),
        TypeCode::UShort => e.write_u16(number(label)?),
        TypeCode::Long => e.write_i32(number(label)?),
        TypeCode::ULong | TypeCode::Enum { .. } => e.write_u32(number(label)?),
        TypeCode::LongLong | TypeCode::ULongLong => e.write_i64(label),
        TypeCode::WChar if e.text().wide == WideForm::Utf16 => {
            e.write_u8(2)?;
            e.write_octets(&number::<u16>(label)?.to_be_bytes())
        }
        TypeCode::WChar => e.write_u16(number(label)?),
        _ => Err(CdrError::InvalidTypeCode),
    }
}
