//! Copies a value whose type is known by its type code alone, between any two byte orders,
//! alignments and forms of text.

use super::walk::{Arms, Scope, begins_with_id, is_empty};
use crate::{Cdr, CdrError, Char, Decoder, Encoder, LongDouble, TypeCode, stack};

/// Copies a value of that type, which has been walked over before.
///
/// # Errors
/// [`CdrError::ArenaFull`], [`CdrError::FrameFull`], [`CdrError::TooDeep`], and
/// [`CdrError::UnmappableChar`] for a character that the other form of text lacks.
pub(super) fn copy(
    type_code: &TypeCode<'_>,
    d: &mut Decoder<'_>,
    e: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    value(type_code, d, e, None, &mut Arms::default())
}

fn value(
    type_code: &TypeCode<'_>,
    d: &mut Decoder<'_>,
    e: &mut Encoder<'_>,
    outer: Option<&Scope<'_>>,
    arms: &mut Arms,
) -> Result<(), CdrError> {
    d.stack_limit().check(stack::Room::NONE)?;
    let here = &Scope { type_code, outer };
    match type_code {
        TypeCode::Null | TypeCode::Void => Ok(()),
        TypeCode::String { .. } => e.write_str(d.read_str()?),
        TypeCode::WString { bound: 0 } => e.write_wstr(d.read_wstr()?),
        TypeCode::WString { bound } => e.write_wstr_bounded(d.read_wstr_bounded(*bound)?, *bound),
        TypeCode::WChar => e.write_wchar(d.read_wchar()?),
        TypeCode::Fixed { digits, .. } => {
            let n = usize::from(*digits) / 2 + 1;
            e.write_octets(d.read_octets(n)?)
        }
        TypeCode::Enum { .. } => e.write_u32(d.read_u32()?),
        TypeCode::Struct { members, .. } => members
            .iter()
            .try_for_each(|member| value(&member.type_code, d, e, Some(here), arms)),
        TypeCode::Except { id, members, .. } => {
            if begins_with_id(type_code, d) {
                d.read_str()?;
            }
            e.write_str(id)?;
            members
                .iter()
                .try_for_each(|member| value(&member.type_code, d, e, Some(here), arms))
        }
        TypeCode::Union { discriminator, .. } => {
            let label = label(discriminator.unaliased(), d, e)?;
            match arms.find(type_code, label, d)? {
                Some(arm) => value(arm, d, e, Some(here), arms),
                None => Ok(()),
            }
        }
        TypeCode::Sequence { element, .. } => {
            let n = d.read_u32()?;
            e.write_u32(n)?;
            elements(element, n as usize, d, e, here, arms)
        }
        TypeCode::Array { element, length } => {
            elements(element, *length as usize, d, e, here, arms)
        }
        TypeCode::Alias { target, .. } => value(target, d, e, Some(here), arms),
        TypeCode::Recursive { id } => {
            let scope = Scope::find(outer, id, d)?;
            value(scope.type_code, d, e, scope.outer, arms)
        }
        TypeCode::ObjRef { .. } | TypeCode::Component { .. } | TypeCode::Home { .. } => {
            reference(d, e)
        }
        TypeCode::AbstractInterface { .. } => {
            let is_reference = d.read_bool()?;
            e.write_bool(is_reference)?;
            if is_reference {
                reference(d, e)
            } else {
                e.write_u32(d.read_u32()?)
            }
        }
        // These have been found to be null.
        TypeCode::Value { .. } | TypeCode::ValueBox { .. } | TypeCode::Event { .. } => {
            e.write_u32(d.read_u32()?)
        }
        TypeCode::TypeCode => TypeCode::decode(d)?.encode(e),
        TypeCode::Any => {
            let inner = TypeCode::decode(d)?;
            inner.encode(e)?;
            value(&inner, d, e, None, arms)
        }
        TypeCode::Principal | TypeCode::Native { .. } | TypeCode::LocalInterface { .. } => {
            Err(CdrError::OpaqueValue)
        }
        basic => basics(basic, 1, d, e).map(drop),
    }
}

fn elements(
    element: &TypeCode<'_>,
    n: usize,
    d: &mut Decoder<'_>,
    e: &mut Encoder<'_>,
    here: &Scope<'_>,
    arms: &mut Arms,
) -> Result<(), CdrError> {
    if n == 0 || is_empty(element) || basics(element.unaliased(), n, d, e)? {
        return Ok(());
    }
    (0..n).try_for_each(|_| value(element, d, e, Some(here), arms))
}

/// Copies consecutive basic values; returns `false` for other types.
fn basics(
    type_code: &TypeCode<'_>,
    n: usize,
    d: &mut Decoder<'_>,
    e: &mut Encoder<'_>,
) -> Result<bool, CdrError> {
    fn all<'d, T: Cdr<'d> + 'd>(
        n: usize,
        d: &mut Decoder<'d>,
        e: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        match n {
            1 => T::decode(d)?.encode(e),
            _ => T::encode_slice(T::decode_slice(d, n)?, e),
        }
    }
    match type_code {
        TypeCode::Boolean => all::<bool>(n, d, e),
        TypeCode::Char => all::<Char>(n, d, e),
        TypeCode::Octet => all::<u8>(n, d, e),
        TypeCode::Short | TypeCode::UShort => all::<u16>(n, d, e),
        TypeCode::Long | TypeCode::ULong | TypeCode::Float => all::<u32>(n, d, e),
        TypeCode::LongLong | TypeCode::ULongLong | TypeCode::Double => all::<u64>(n, d, e),
        TypeCode::LongDouble => all::<LongDouble>(n, d, e),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Copies a discriminator, and returns it.
fn label(
    discriminator: &TypeCode<'_>,
    d: &mut Decoder<'_>,
    e: &mut Encoder<'_>,
) -> Result<i64, CdrError> {
    macro_rules! copy {
        ($read:ident, $write:ident) => {{
            let label = d.$read()?;
            e.$write(label)?;
            i64::from(label)
        }};
    }
    Ok(match discriminator {
        TypeCode::Boolean => copy!(read_bool, write_bool),
        TypeCode::Octet => copy!(read_u8, write_u8),
        TypeCode::Short => copy!(read_i16, write_i16),
        TypeCode::UShort => copy!(read_u16, write_u16),
        TypeCode::Long => copy!(read_i32, write_i32),
        TypeCode::ULong | TypeCode::Enum { .. } => copy!(read_u32, write_u32),
        TypeCode::LongLong | TypeCode::ULongLong => copy!(read_i64, write_i64),
        TypeCode::Char => {
            let label = d.read_char()?;
            e.write_char(label)?;
            label.0.into()
        }
        TypeCode::WChar => {
            let label = d.read_wchar()?;
            e.write_wchar(label)?;
            u32::from(label).into()
        }
        _ => return Err(CdrError::InvalidTypeCode),
    })
}

/// Copies an interoperable object reference, whose profiles are self-contained.
fn reference(d: &mut Decoder<'_>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
    e.write_octet_seq(d.read_octet_seq()?)?;
    let n = d.read_len(8)?;
    e.write_len(n)?;
    for _ in 0..n {
        e.write_u32(d.read_u32()?)?;
        e.write_octet_seq(d.read_octet_seq()?)?;
    }
    Ok(())
}
