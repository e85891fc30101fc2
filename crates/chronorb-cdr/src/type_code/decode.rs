//! Decoding of type codes, within bounds of depth and size.

use std::cell::RefCell;

use super::encode::INDIRECTION;
use super::{StructMember, TypeCode, UnionMember, ValueMember, ValueModifier};
use crate::limits::{Limits, steps_of_text};
use crate::memory::plain_str;
use crate::{Arena, Bounds, Cdr, CdrError, Decoder, Encoder, Endian, MAX_DEPTH, WideForm, stack};

/// The least number of octets of a type code on the wire.
pub(super) const MIN_SIZE: usize = 4;

impl<'a> Cdr<'a> for TypeCode<'a> {
    const MIN_SIZE: usize = MIN_SIZE;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        super::encode::encode(self, e, None)
    }

    /// Reads a type code. Names borrow from the frame; all other parts are in the arena. An
    /// indirection is replaced by a copy of its target, so the size of the arena bounds the type
    /// code.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Self::decode_in_place(d)
    }
}

impl<'a> TypeCode<'a> {
    /// Reads as `decode` does, and leaves everything outside of encapsulations in this machine's
    /// byte order.
    pub(crate) fn decode_in_place(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        let kind = u32::from_ne_bytes(d.native_word()?);
        if let Some(basic) = basic(kind) {
            return Ok(basic);
        }
        match kind {
            18 => Ok(Self::String {
                bound: u32::from_ne_bytes(d.native_word()?),
            }),
            27 => Ok(Self::WString {
                bound: u32::from_ne_bytes(d.native_word()?),
            }),
            28 => {
                let digits = u16::from_ne_bytes(d.native_word()?);
                fixed(digits, i16::from_ne_bytes(d.native_word()?))
            }
            14..=36 => {
                let n = u32::from_ne_bytes(d.native_word()?) as usize;
                if n > d.remaining() {
                    return Err(CdrError::LengthOverflow);
                }
                let whole = Whole {
                    octets: d.read_octets(n)?,
                    wide: d.text().wide,
                    arena: d.arena(),
                    limits: RefCell::new(d.limits()),
                };
                let this = Ancestors {
                    position: START,
                    id: None,
                    is_alias: false,
                    depth: 0,
                    outer: None,
                };
                let reader = Reader::of_encapsulation(whole.octets, 0, whole.arena.bounds())?;
                let type_code = whole.complex(kind, reader, &this);
                d.set_limits(whole.limits.into_inner());
                type_code
            }
            _ => Err(CdrError::InvalidTypeCode),
        }
    }
}

/// The octets of a type code that take a step to be read again: the least that a part has.
const OCTETS_PER_STEP: usize = 4;

/// The start of the outermost type code, relative to the first octet of its parameters.
const START: i64 = -8;

/// The parameters of the outermost type code, which indirections go about within.
struct Whole<'a> {
    octets: &'a [u8],
    wide: WideForm,
    arena: &'a Arena,
    limits: RefCell<Limits>,
}

/// The types that enclose the type code being read.
struct Ancestors<'a, 's> {
    position: i64,
    /// The repository id, once it has been read.
    id: Option<&'a str>,
    /// Whether it is an alias, or an indirection: another name of the type within it.
    is_alias: bool,
    depth: u8,
    outer: Option<&'s Self>,
}

impl<'a> Ancestors<'a, '_> {
    /// Returns the type at `position` as a recursive reference; `None` if no enclosing type begins
    /// there.
    fn recursion(
        &self,
        position: i64,
        whole: &Whole<'a>,
    ) -> Result<Option<TypeCode<'a>>, CdrError> {
        let mut this = self;
        let mut are_aliases = this.is_alias;
        while this.position != position {
            let Some(outer) = this.outer else {
                return Ok(None);
            };
            this = outer;
            are_aliases &= this.is_alias;
        }
        // Another name of itself would have no end.
        if are_aliases {
            return Err(CdrError::InvalidTypeCode);
        }
        let id = this.id.ok_or(CdrError::InvalidTypeCode)?;
        // A type is found again by its id, which the nearest one has to be the only one to have.
        let mut nearest = self;
        while nearest.position != position {
            if let Some(other) = nearest.id {
                whole.charge(steps_of_text(other.len()))?;
                if other == id {
                    return Err(CdrError::InvalidTypeCode);
                }
            }
            nearest = nearest.outer.ok_or(CdrError::InvalidTypeCode)?;
        }
        Ok(Some(TypeCode::Recursive { id }))
    }
}

impl<'a> Whole<'a> {
    /// Reads a type code within another.
    fn inner(
        &self,
        r: &mut Reader<'a>,
        outer: &Ancestors<'a, '_>,
    ) -> Result<TypeCode<'a>, CdrError> {
        r.align(4);
        let this = Ancestors {
            position: r.at as i64,
            id: None,
            is_alias: true,
            depth: outer.depth + 1,
            outer: Some(outer),
        };
        if this.depth > MAX_DEPTH {
            return Err(CdrError::TooDeep);
        }
        let kind = r.u32()?;
        if let Some(basic) = basic(kind) {
            return Ok(basic);
        }
        match kind {
            18 => Ok(TypeCode::String { bound: r.u32()? }),
            27 => Ok(TypeCode::WString { bound: r.u32()? }),
            28 => fixed(r.u16()?, r.u16()?.cast_signed()),
            14..=36 => {
                self.check_stack()?;
                let n = r.u32()? as usize;
                let start = r.at;
                let octets = r.octets(n)?;
                let reader = Reader::of_encapsulation(octets, start, r.bounds)?;
                self.complex(kind, reader, &this)
            }
            INDIRECTION => {
                self.check_stack()?;
                self.indirection(r, &this)
            }
            _ => Err(CdrError::InvalidTypeCode),
        }
    }

    fn check_stack(&self) -> Result<(), CdrError> {
        self.limits
            .borrow_mut()
            .stack()
            .check(stack::Room::of::<TypeCode<'_>>())
    }

    fn charge(&self, steps: usize) -> Result<(), CdrError> {
        self.limits.borrow().charge(steps, self.arena)
    }

    /// Reads the type code at the target of an indirection.
    fn indirection(
        &self,
        r: &mut Reader<'a>,
        this: &Ancestors<'a, '_>,
    ) -> Result<TypeCode<'a>, CdrError> {
        let at = r.at as i64;
        let target = at + i64::from(r.u32()?.cast_signed());
        if target >= this.position {
            return Err(CdrError::InvalidTypeCode);
        }
        if let Some(recursive) = this.recursion(target, self)? {
            return Ok(recursive);
        }
        // The target is not known to be a type code; octets that cannot be read as one are refused.
        let target = usize::try_from(target).map_err(|_| CdrError::InvalidTypeCode)?;
        let mut earlier = Reader {
            octets: self.octets,
            start: 0,
            at: target,
            origin: target,
            endian: r.endian,
            bounds: r.bounds,
        };
        let type_code = self.inner(&mut earlier, this)?;
        // Its parts and names were looked at once more.
        self.charge((earlier.at - target) / OCTETS_PER_STEP)?;
        Ok(type_code)
    }

    /// Reads the parameters of a type code that are an encapsulation.
    fn complex(
        &self,
        kind: u32,
        mut r: Reader<'a>,
        this: &Ancestors<'a, '_>,
    ) -> Result<TypeCode<'a>, CdrError> {
        let r = &mut r;
        let this = &Ancestors {
            is_alias: kind == 21,
            ..*this
        };
        if let 19 | 20 = kind {
            let element = self.arena.alloc(self.inner(r, this)?)?;
            let number = r.u32()?;
            return Ok(if kind == 19 {
                TypeCode::Sequence {
                    element,
                    bound: number,
                }
            } else {
                TypeCode::Array {
                    element,
                    length: number,
                }
            });
        }
        let (id, name) = (r.str()?, r.str()?);
        let this = &Ancestors {
            id: Some(id),
            ..*this
        };
        Ok(match kind {
            14 => TypeCode::ObjRef { id, name },
            15 | 22 => {
                let n = r.len(4 + MIN_SIZE)?;
                let members = self.arena.fill(n, |_| {
                    Ok(StructMember {
                        name: r.str()?,
                        type_code: self.inner(r, this)?,
                    })
                })?;
                if kind == 15 {
                    TypeCode::Struct { id, name, members }
                } else {
                    TypeCode::Except { id, name, members }
                }
            }
            16 => self.union(id, name, r, this)?,
            17 => {
                let n = r.len(4)?;
                let members = self.arena.fill(n, |_| r.str())?;
                TypeCode::Enum { id, name, members }
            }
            21 => TypeCode::Alias {
                id,
                name,
                target: self.arena.alloc(self.inner(r, this)?)?,
            },
            29 | 36 => self.value(kind, id, name, r, this)?,
            30 => TypeCode::ValueBox {
                id,
                name,
                target: self.arena.alloc(self.inner(r, this)?)?,
            },
            31 => TypeCode::Native { id, name },
            32 => TypeCode::AbstractInterface { id, name },
            33 => TypeCode::LocalInterface { id, name },
            34 => TypeCode::Component { id, name },
            35 => TypeCode::Home { id, name },
            _ => return Err(CdrError::InvalidTypeCode),
        })
    }

    fn union(
        &self,
        id: &'a str,
        name: &'a str,
        r: &mut Reader<'a>,
        this: &Ancestors<'a, '_>,
    ) -> Result<TypeCode<'a>, CdrError> {
        let discriminator = self.arena.alloc(self.inner(r, this)?)?;
        let default = r.u32()?.cast_signed();
        // An octet for the label and four for the length of the name.
        let n = r.len(5 + MIN_SIZE)?;
        let default_index = match u32::try_from(default) {
            Ok(index) if (index as usize) < n => Some(index),
            // The index is -1 in CORBA; omniORB writes -2 if not all values have a label.
            Err(_) => None,
            _ => return Err(CdrError::InvalidTypeCode),
        };
        let plain = discriminator.unaliased();
        let members = self.arena.fill(n, |_| {
            Ok(UnionMember {
                label: self.label(plain, r)?,
                name: r.str()?,
                type_code: self.inner(r, this)?,
            })
        })?;
        Ok(TypeCode::Union {
            id,
            name,
            discriminator,
            default_index,
            members,
        })
    }

    fn label(&self, discriminator: &TypeCode<'_>, r: &mut Reader<'a>) -> Result<i64, CdrError> {
        Ok(match discriminator {
            TypeCode::Boolean => i64::from(r.u8()? != 0),
            TypeCode::Octet | TypeCode::Char => r.u8()?.into(),
            TypeCode::Short => r.u16()?.cast_signed().into(),
            TypeCode::UShort => r.u16()?.into(),
            TypeCode::Long => r.u32()?.cast_signed().into(),
            TypeCode::ULong | TypeCode::Enum { .. } => r.u32()?.into(),
            TypeCode::LongLong | TypeCode::ULongLong => r.u64()?.cast_signed(),
            TypeCode::WChar if self.wide == WideForm::Utf16 => {
                let n = r.u8()?;
                match r.octets(n.into())? {
                    [high, low] | [0xfe, 0xff, high, low] | [0xff, 0xfe, low, high] => {
                        u16::from_be_bytes([*high, *low]).into()
                    }
                    _ => return Err(CdrError::InvalidWideChar),
                }
            }
            TypeCode::WChar => r.u16()?.into(),
            _ => return Err(CdrError::InvalidTypeCode),
        })
    }

    fn value(
        &self,
        kind: u32,
        id: &'a str,
        name: &'a str,
        r: &mut Reader<'a>,
        this: &Ancestors<'a, '_>,
    ) -> Result<TypeCode<'a>, CdrError> {
        let modifier = match r.u16()? {
            0 => ValueModifier::None,
            1 => ValueModifier::Custom,
            2 => ValueModifier::Abstract,
            3 => ValueModifier::Truncatable,
            _ => return Err(CdrError::InvalidTypeCode),
        };
        let base = match self.inner(r, this)? {
            TypeCode::Null => None,
            base => Some(self.arena.alloc(base)?),
        };
        let n = r.len(4 + MIN_SIZE + 2)?;
        let members = self.arena.fill(n, |_| {
            Ok(ValueMember {
                name: r.str()?,
                type_code: self.inner(r, this)?,
                is_public: r.u16()? != 0,
            })
        })?;
        Ok(if kind == 29 {
            TypeCode::Value {
                id,
                name,
                modifier,
                base,
                members,
            }
        } else {
            TypeCode::Event {
                id,
                name,
                modifier,
                base,
                members,
            }
        })
    }
}

/// A kind without parameters.
fn basic<'a>(kind: u32) -> Option<TypeCode<'a>> {
    Some(match kind {
        0 => TypeCode::Null,
        1 => TypeCode::Void,
        2 => TypeCode::Short,
        3 => TypeCode::Long,
        4 => TypeCode::UShort,
        5 => TypeCode::ULong,
        6 => TypeCode::Float,
        7 => TypeCode::Double,
        8 => TypeCode::Boolean,
        9 => TypeCode::Char,
        10 => TypeCode::Octet,
        11 => TypeCode::Any,
        12 => TypeCode::TypeCode,
        13 => TypeCode::Principal,
        23 => TypeCode::LongLong,
        24 => TypeCode::ULongLong,
        25 => TypeCode::LongDouble,
        26 => TypeCode::WChar,
        _ => return None,
    })
}

fn fixed<'a>(digits: u16, scale: i16) -> Result<TypeCode<'a>, CdrError> {
    if digits == 0 || digits > 31 {
        return Err(CdrError::InvalidTypeCode);
    }
    Ok(TypeCode::Fixed { digits, scale })
}

/// Reads values of an encapsulation, any number of times.
struct Reader<'a> {
    octets: &'a [u8],
    /// The position of the first of the octets, relative to the whole.
    start: usize,
    /// The position of the next octet, relative to the whole.
    at: usize,
    /// The position that alignment is relative to.
    origin: usize,
    endian: Endian,
    bounds: &'a Bounds,
}

impl<'a> Reader<'a> {
    fn of_encapsulation(
        octets: &'a [u8],
        start: usize,
        bounds: &'a Bounds,
    ) -> Result<Self, CdrError> {
        let mut reader = Self {
            octets,
            start,
            at: start,
            origin: start,
            endian: Endian::Big,
            bounds,
        };
        reader.endian = Endian::from_flag(reader.u8()? != 0);
        Ok(reader)
    }

    fn align(&mut self, n: usize) {
        self.at += (self.at - self.origin).wrapping_neg() & (n - 1);
    }

    fn octets(&mut self, n: usize) -> Result<&'a [u8], CdrError> {
        let rest = self.octets.get(self.at - self.start..);
        let octets = rest.and_then(|rest| rest.get(..n));
        self.at += n;
        octets.ok_or(CdrError::EndOfData)
    }

    fn word<const W: usize>(&mut self) -> Result<[u8; W], CdrError> {
        self.align(W);
        let mut word = [0; W];
        word.copy_from_slice(self.octets(W)?);
        if self.endian.is_little() {
            word.reverse();
        }
        Ok(word)
    }

    fn u8(&mut self) -> Result<u8, CdrError> {
        self.word().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, CdrError> {
        self.word().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, CdrError> {
        self.word().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, CdrError> {
        self.word().map(u64::from_be_bytes)
    }

    /// Reads how many members follow, each of which has so many octets at least.
    fn len(&mut self, min_size: usize) -> Result<usize, CdrError> {
        let n = self.u32()? as usize;
        let left = self.octets.len().saturating_sub(self.at - self.start);
        if n > left / min_size {
            return Err(CdrError::LengthOverflow);
        }
        if n > self.bounds.type_members as usize {
            return Err(CdrError::BoundExceeded);
        }
        Ok(n)
    }

    /// Reads a name or a repository id. In IDL both are ASCII.
    fn str(&mut self) -> Result<&'a str, CdrError> {
        let n = self.u32()? as usize;
        if n == 0 {
            return Ok("");
        }
        if n > self.bounds.type_name_octets as usize {
            return Err(CdrError::BoundExceeded);
        }
        let Some((0, text)) = self.octets(n)?.split_last() else {
            return Err(CdrError::UnterminatedString);
        };
        if let Some(text) = plain_str(text) {
            return Ok(text);
        }
        if text.contains(&0) {
            return Err(CdrError::EmbeddedNul);
        }
        str::from_utf8(text).map_err(|_| CdrError::InvalidUtf8)
    }
}
