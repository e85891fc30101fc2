//! Visits each part of a value by its type code alone, and brings it in place into the byte order
//! of this machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::decoder::utf16_units;
use crate::fixed::bcd;
use crate::limits::steps_of_text;
use crate::value::decode_words;
use crate::{CdrError, CharSet, Decoder, TypeCode, WideForm, memory, stack};

/// The properties of a value's octets that decide whether they can be copied unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// The alignment of the first part.
    pub(super) first_align: usize,
    /// The greatest alignment.
    pub(super) align: usize,
    /// Whether the octets can be moved at all.
    pub(super) is_movable: bool,
    /// Whether there are narrow characters beyond ASCII.
    pub(super) has_narrow: bool,
    /// Whether there are wide characters.
    pub(super) has_wide: bool,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            first_align: 1,
            align: 1,
            is_movable: true,
            has_narrow: false,
            has_wide: false,
        }
    }
}

/// Visits all parts of a value of that type.
///
/// # Errors
/// Whatever makes it no value of its type; [`CdrError::OpaqueValue`].
pub(crate) fn walk(type_code: &TypeCode<'_>, d: &mut Decoder<'_>) -> Result<Traits, CdrError> {
    let mut walk = Walk {
        traits: Traits::default(),
        is_first: true,
        arms: Arms::default(),
    };
    walk.value(type_code, d, None)?;
    Ok(walk.traits)
}

/// The types that enclose the visited one.
pub(super) struct Scope<'s> {
    pub(super) type_code: &'s TypeCode<'s>,
    pub(super) outer: Option<&'s Self>,
}

impl<'s> Scope<'s> {
    /// Returns the nearest type with that repository identifier, and its scope.
    pub(super) fn find(
        this: Option<&'s Self>,
        id: &str,
        d: &mut Decoder<'_>,
    ) -> Result<&'s Self, CdrError> {
        let mut steps = 0;
        let found = std::iter::successors(this, |scope| scope.outer).find(|scope| {
            steps += 1;
            let Some(other) = scope.type_code.id().filter(|other| other.len() == id.len()) else {
                return false;
            };
            // A decoded type code shares the same text.
            if std::ptr::eq(other, id) {
                return true;
            }
            steps += steps_of_text(id.len());
            other == id
        });
        d.charge(steps)?;
        found.ok_or(CdrError::InvalidTypeCode)
    }
}

struct Walk {
    traits: Traits,
    is_first: bool,
    arms: Arms,
}

impl Walk {
    fn value(
        &mut self,
        type_code: &TypeCode<'_>,
        d: &mut Decoder<'_>,
        outer: Option<&Scope<'_>>,
    ) -> Result<(), CdrError> {
        // Not every part of a value has octets.
        d.charge(1)?;
        let here = &Scope { type_code, outer };
        match type_code {
            TypeCode::Null | TypeCode::Void => Ok(()),
            TypeCode::Boolean => {
                self.align(1);
                memory::normalize_bools(d.read_octets_mut(1)?);
                Ok(())
            }
            TypeCode::Char => self.chars(1, d),
            TypeCode::WChar => self.wchar(d),
            TypeCode::String { bound } => self.string(*bound, d),
            TypeCode::WString { bound } => self.wstring(*bound, d),
            TypeCode::Fixed { digits, .. } => {
                let digits = u8::try_from(*digits).map_err(|_| CdrError::InvalidFixed)?;
                self.align(1);
                if bcd::is_valid(d.read_octets(bcd::size(digits))?, digits) {
                    Ok(())
                } else {
                    Err(CdrError::InvalidFixed)
                }
            }
            TypeCode::Enum { members, .. } => match self.word(d)? as usize {
                number if number < members.len() => Ok(()),
                _ => Err(CdrError::InvalidEnum),
            },
            TypeCode::Struct { members, .. } => {
                d.enter()?;
                for member in *members {
                    self.value(&member.type_code, d, Some(here))?;
                }
                d.leave();
                Ok(())
            }
            TypeCode::Except { id, members, .. } => {
                if begins_with_id(type_code, d) {
                    self.string(0, d)?;
                } else {
                    // A copy of the value contains the identifier.
                    d.charge(id.len())?;
                }
                d.enter()?;
                for member in *members {
                    self.value(&member.type_code, d, Some(here))?;
                }
                d.leave();
                Ok(())
            }
            TypeCode::Union { discriminator, .. } => {
                let label = self.discriminator(discriminator.unaliased(), d)?;
                let Some(arm) = self.arms.find(type_code, label, d)? else {
                    return Ok(());
                };
                d.enter()?;
                self.value(arm, d, Some(here))?;
                d.leave();
                Ok(())
            }
            TypeCode::Sequence { element, bound } => {
                let n = self.word(d)?;
                if *bound != 0 && n > *bound {
                    return Err(CdrError::BoundExceeded);
                }
                if n as usize > d.remaining() && !is_empty(element) {
                    return Err(CdrError::LengthOverflow);
                }
                self.elements(element, n, d, here)
            }
            TypeCode::Array { element, length } => self.elements(element, *length, d, here),
            // Every other recursion enters a level of the decoder, which also checks the stack.
            TypeCode::Alias { target, .. } => {
                d.stack_limit().check(stack::Room::NONE)?;
                self.value(target, d, Some(here))
            }
            TypeCode::Recursive { id } => {
                d.stack_limit().check(stack::Room::NONE)?;
                let scope = Scope::find(outer, id, d)?;
                self.value(scope.type_code, d, scope.outer)
            }
            TypeCode::ObjRef { .. } | TypeCode::Component { .. } | TypeCode::Home { .. } => {
                self.reference(d)
            }
            TypeCode::AbstractInterface { .. } => {
                self.align(1);
                match memory::normalize_bools(d.read_octets_mut(1)?) {
                    [true] => self.reference(d),
                    _ => self.null_value(d),
                }
            }
            TypeCode::Value { .. } | TypeCode::ValueBox { .. } | TypeCode::Event { .. } => {
                self.null_value(d)
            }
            TypeCode::TypeCode => {
                self.type_code(d)?;
                Ok(())
            }
            TypeCode::Any => {
                d.enter()?;
                let inner = self.type_code(d)?;
                self.value(&inner, d, None)?;
                d.leave();
                Ok(())
            }
            TypeCode::Principal | TypeCode::Native { .. } | TypeCode::LocalInterface { .. } => {
                Err(CdrError::OpaqueValue)
            }
            number => match width(number) {
                2 => self.words::<2>(1, d),
                4 => self.words::<4>(1, d),
                8 => self.words::<8>(1, d),
                16 => self.words::<16>(1, d),
                _ => self.words::<1>(1, d),
            },
        }
    }

    fn align(&mut self, n: usize) {
        if self.is_first {
            self.is_first = false;
            self.traits.first_align = n;
        }
        self.traits.align = self.traits.align.max(n);
    }

    /// The elements of a sequence or an array.
    fn elements(
        &mut self,
        element: &TypeCode<'_>,
        n: u32,
        d: &mut Decoder<'_>,
        here: &Scope<'_>,
    ) -> Result<(), CdrError> {
        let n_elements = n as usize;
        let element = element.unaliased();
        match (element, width(element)) {
            _ if n == 0 => return Ok(()),
            (TypeCode::Boolean, _) => {
                self.align(1);
                memory::normalize_bools(d.read_octets_mut(n_elements)?);
                return Ok(());
            }
            (TypeCode::Char, _) => return self.chars(n_elements, d),
            (_, 1) => return self.words::<1>(n_elements, d),
            (_, 2) => return self.words::<2>(n_elements, d),
            (_, 4) => return self.words::<4>(n_elements, d),
            (_, 8) => return self.words::<8>(n_elements, d),
            (_, 16) => return self.words::<16>(n_elements, d),
            _ => {}
        }
        d.enter()?;
        for _ in 0..n {
            let before = d.position();
            self.value(element, d, Some(here))?;
            // Elements without octets are all equal.
            if d.position() == before && is_empty(element) {
                break;
            }
        }
        d.leave();
        Ok(())
    }

    /// Numbers of `W` octets, side by side.
    fn words<const W: usize>(&mut self, n: usize, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.align(W.min(8));
        if n == 1 {
            d.native_word::<W>()?;
        } else {
            decode_words::<W>(d, n, d.endian().is_native())?;
        }
        Ok(())
    }

    /// An `unsigned long`, and its value.
    fn word(&mut self, d: &mut Decoder<'_>) -> Result<u32, CdrError> {
        self.align(4);
        d.native_word().map(u32::from_ne_bytes)
    }

    fn chars(&mut self, n: usize, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.align(1);
        let octets = d.read_octets(n)?;
        if !octets.is_ascii() {
            self.traits.has_narrow = true;
            if d.text().narrow == CharSet::Utf8 {
                return Err(CdrError::UnmappableChar);
            }
        }
        Ok(())
    }

    fn wchar(&mut self, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.traits.has_wide = true;
        match d.text().wide {
            WideForm::Illegal => Err(CdrError::WideNotAllowedRead),
            WideForm::Ucs2 => self.unit(d).map(drop),
            WideForm::Utf16 => {
                self.align(1);
                d.read_wchar().map(drop)
            }
        }
    }

    /// A character of one unit.
    fn unit(&mut self, d: &mut Decoder<'_>) -> Result<u16, CdrError> {
        self.align(2);
        let unit = u16::from_ne_bytes(d.native_word()?);
        match char::from_u32(unit.into()) {
            Some(_) => Ok(unit),
            None => Err(CdrError::UnmappableChar),
        }
    }

    fn string(&mut self, bound: u32, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        let n = self.word(d)? as usize;
        if n == 0 {
            return Ok(());
        }
        if n > d.remaining() {
            return Err(CdrError::LengthOverflow);
        }
        let octets = d.read_octets(n)?;
        if bound != 0 && d.text().narrow.exceeds(&octets[..n - 1], bound) {
            return Err(CdrError::BoundExceeded);
        }
        let Some((0, text)) = octets.split_last() else {
            return Err(CdrError::UnterminatedString);
        };
        if text.contains(&0) {
            return Err(CdrError::EmbeddedNul);
        }
        if !text.is_ascii() {
            self.traits.has_narrow = true;
            if d.text().narrow != CharSet::Latin1 && str::from_utf8(text).is_err() {
                return Err(CdrError::InvalidUtf8);
            }
        }
        Ok(())
    }

    fn wstring(&mut self, bound: u32, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.traits.has_wide = true;
        match d.text().wide {
            WideForm::Illegal => Err(CdrError::WideNotAllowedRead),
            WideForm::Ucs2 => {
                let n = self.word(d)? as usize;
                if n > d.remaining() / 2 {
                    return Err(CdrError::LengthOverflow);
                }
                if n == 0 {
                    return Ok(());
                }
                let octets = decode_words::<2>(d, n, d.endian().is_native())?;
                let units = octets.as_chunks().0.iter();
                let mut units = units.map(|unit| u16::from_ne_bytes(*unit));
                match units.next_back() {
                    Some(0) => check_units(units, bound),
                    _ => Err(CdrError::UnterminatedString),
                }
            }
            WideForm::Utf16 => {
                let n = self.word(d)? as usize;
                if n > d.remaining() {
                    return Err(CdrError::LengthOverflow);
                }
                check_units(utf16_units(d.read_octets(n)?)?, bound)
            }
        }
    }

    fn discriminator(
        &mut self,
        type_code: &TypeCode<'_>,
        d: &mut Decoder<'_>,
    ) -> Result<i64, CdrError> {
        Ok(match type_code {
            TypeCode::Boolean => {
                self.align(1);
                let value = memory::normalize_bools(d.read_octets_mut(1)?);
                i64::from(value == [true])
            }
            TypeCode::Char | TypeCode::Octet => {
                self.align(1);
                let octet = d.read_octets(1)?[0];
                if matches!(type_code, TypeCode::Char) && octet > 0x7f {
                    self.traits.has_narrow = true;
                    if d.text().narrow == CharSet::Utf8 {
                        return Err(CdrError::UnmappableChar);
                    }
                }
                octet.into()
            }
            TypeCode::Short | TypeCode::UShort => {
                self.align(2);
                let value = u16::from_ne_bytes(d.native_word()?);
                match type_code {
                    TypeCode::Short => value.cast_signed().into(),
                    _ => value.into(),
                }
            }
            TypeCode::Long => self.word(d)?.cast_signed().into(),
            TypeCode::ULong => self.word(d)?.into(),
            TypeCode::Enum { members, .. } => {
                let number = self.word(d)?;
                if number as usize >= members.len() {
                    return Err(CdrError::InvalidEnum);
                }
                number.into()
            }
            TypeCode::LongLong | TypeCode::ULongLong => {
                self.align(8);
                i64::from_ne_bytes(d.native_word()?)
            }
            TypeCode::WChar => {
                self.traits.has_wide = true;
                match d.text().wide {
                    WideForm::Ucs2 => self.unit(d)?.into(),
                    _ => {
                        self.align(1);
                        u32::from(d.read_wchar()?).into()
                    }
                }
            }
            _ => return Err(CdrError::InvalidTypeCode),
        })
    }

    /// An interoperable object reference: a repository id and profiles.
    fn reference(&mut self, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.octets(d)?;
        let n = self.word(d)?;
        if n as usize > d.remaining() / 8 {
            return Err(CdrError::LengthOverflow);
        }
        for _ in 0..n {
            self.word(d)?;
            self.octets(d)?;
        }
        Ok(())
    }

    /// Visits a sequence of octets, or a string that is not checked.
    fn octets(&mut self, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        let n = self.word(d)? as usize;
        if n > d.remaining() {
            return Err(CdrError::LengthOverflow);
        }
        d.read_octets(n).map(drop)
    }

    fn null_value(&mut self, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        match self.word(d)? {
            0 => Ok(()),
            _ => Err(CdrError::OpaqueValue),
        }
    }

    /// Visits a type code, whose outermost words are brought into this byte order too.
    fn type_code<'d>(&mut self, d: &mut Decoder<'d>) -> Result<TypeCode<'d>, CdrError> {
        self.align(4);
        // Labels within it may be wide characters.
        self.traits.has_wide = true;
        TypeCode::decode_in_place(d)
    }
}

/// Whether an exception begins with its repository identifier, as CORBA requires; omniORB omits it.
pub(super) fn begins_with_id(type_code: &TypeCode<'_>, d: &mut Decoder<'_>) -> bool {
    let id = type_code.unaliased().id().unwrap_or_default();
    // A longer string is not read, since it could precede any number of exceptions.
    let is_short = |ahead: &Decoder<'_>| Ok(ahead.peek_u32()? as usize <= id.len() + 1);
    let text =
        d.look_ahead(|ahead| Ok(id.is_empty() || is_short(ahead)? && ahead.read_str()? == id));
    matches!(text, Ok((true, ..)))
}

/// Checks the characters of a wide string.
fn check_units(units: impl ExactSizeIterator<Item = u16>, bound: u32) -> Result<(), CdrError> {
    if bound != 0 && units.len() > bound as usize {
        return Err(CdrError::BoundExceeded);
    }
    char::decode_utf16(units).try_for_each(|c| match c {
        Ok('\0') => Err(CdrError::EmbeddedNul),
        Ok(_) => Ok(()),
        Err(_) => Err(CdrError::UnmappableChar),
    })
}

/// The labels of large unions that a walk has met, sorted, so that finding an arm is a binary
/// search.
#[derive(Default)]
pub(super) struct Arms {
    /// By the address of the members. Most walks meet no large union.
    sorted: Option<BTreeMap<usize, Labels>>,
}

/// Labels with the indexes of their members, in order.
type Labels = Box<[(i64, u32)]>;

impl Arms {
    /// Returns the type of the arm of a union for that discriminator; `None` if there is none.
    pub(super) fn find<'t>(
        &mut self,
        union: &TypeCode<'t>,
        label: i64,
        d: &mut Decoder<'_>,
    ) -> Result<Option<&'t TypeCode<'t>>, CdrError> {
        let TypeCode::Union {
            default_index,
            members,
            ..
        } = union
        else {
            return Ok(None);
        };
        let labels = || {
            (0..)
                .zip(*members)
                .map(|(index, member)| (member.label, index))
        };
        let labels = || labels().filter(|(_, index)| Some(*index) != *default_index);
        let index = if members.len() <= FEW_ARMS {
            labels().find(|(other, _)| *other == label)
        } else {
            let sorted = match self
                .sorted
                .get_or_insert_default()
                .entry(members.as_ptr().addr())
            {
                Entry::Occupied(sorted) => sorted.into_mut(),
                Entry::Vacant(place) => {
                    d.charge(members.len())?;
                    let mut sorted: Labels = labels().collect();
                    sorted.sort_unstable();
                    place.insert(sorted)
                }
            };
            // The first of those that have the same label.
            let first = sorted.partition_point(|(other, _)| *other < label);
            sorted
                .get(first)
                .copied()
                .filter(|(other, _)| *other == label)
        };
        let index = index.map(|(_, index)| index).or(*default_index);
        let member = index.and_then(|index| members.get(index as usize));
        Ok(member.map(|member| &member.type_code))
    }
}

/// Arms that are searched one after the other.
const FEW_ARMS: usize = 16;

/// Returns the number of octets of a number type; 0 for other types.
pub(super) fn width(type_code: &TypeCode<'_>) -> usize {
    match type_code {
        TypeCode::Octet => 1,
        TypeCode::Short | TypeCode::UShort => 2,
        TypeCode::Long | TypeCode::ULong | TypeCode::Float => 4,
        TypeCode::LongLong | TypeCode::ULongLong | TypeCode::Double => 8,
        TypeCode::LongDouble => 16,
        _ => 0,
    }
}

/// Whether values of the type never have octets.
pub(super) fn is_empty(type_code: &TypeCode<'_>) -> bool {
    match type_code.unaliased() {
        TypeCode::Null | TypeCode::Void => true,
        TypeCode::Struct { members, .. } => {
            members.iter().all(|member| is_empty(&member.type_code))
        }
        TypeCode::Array { element, length } => *length == 0 || is_empty(element),
        _ => false,
    }
}
