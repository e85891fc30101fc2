//! The properties of a client that an operation's `context` clause names.
//!
//! They follow the arguments of such an operation as a sequence of strings, alternating name and
//! value (CORBA 3.3 part 2, clause 9.3.5.4). Generated code calls these functions.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::{Arena, CdrError, Decoder, Encoder};

/// Writes those of the properties that the clause names.
///
/// # Errors
/// Those of [`Encoder::write_str`].
#[doc(hidden)]
pub fn encode_context(
    properties: &[(&str, &str)],
    clause: &[&str],
    e: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    let selected = || properties.iter().filter(|(name, _)| is_named(name, clause));
    e.write_len(selected().count().saturating_mul(2))?;
    for (name, value) in selected() {
        e.write_str(name)?;
        e.write_str(value)?;
    }
    Ok(())
}

/// Reads properties.
///
/// # Errors
/// [`CdrError::EndOfData`] where a name has no value, and those of [`Decoder::read_str`].
#[doc(hidden)]
pub fn decode_context<'a>(d: &mut Decoder<'a>) -> Result<&'a [(&'a str, &'a str)], CdrError> {
    let len = d.read_len(4)?;
    if len % 2 != 0 {
        return Err(CdrError::EndOfData);
    }
    d.arena()
        .fill(len / 2, |_| Ok((d.read_str()?, d.read_str()?)))
}

/// Returns the properties that the clause names, for a call that is not marshalled.
///
/// # Errors
/// [`CdrError::ArenaFull`]
#[doc(hidden)]
pub fn select_context<'a>(
    properties: &'a [(&'a str, &'a str)],
    clause: &[&str],
    arena: &'a Arena,
) -> Result<&'a [(&'a str, &'a str)], CdrError> {
    let selected = || properties.iter().filter(|(name, _)| is_named(name, clause));
    let mut next = selected();
    arena.fill(selected().count(), |_| {
        next.next().copied().ok_or(CdrError::ArenaFull)
    })
}

/// Whether the clause selects the property. A name that ends in `*` selects all names with that
/// prefix.
fn is_named(name: &str, clause: &[&str]) -> bool {
    clause
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        })
}
