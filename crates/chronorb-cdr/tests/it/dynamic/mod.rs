//! Types and values of them at random, with their type codes and with a plain way to write and read
//! them.

use chronorb_cdr::{
    Any, Arena, Cdr, CdrError, Char, CharSet, Decoder, Encoder, Endian, Fixed, Frame, LongDouble,
    StructMember, TextForm, TypeCode, UnionMember, WideForm,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A type.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Basic(TypeCode<'static>),
    Fixed,
    Enum(u32),
    Struct(Vec<Self>),
    Exception(Vec<Self>),
    /// Over `long`, labels from 0 on; the last arm may be the default.
    Union(Vec<Self>, bool),
    Sequence(Box<Self>),
    Array(Box<Self>, u32),
    Alias(Box<Self>),
    Reference,
}

/// A value, which says how it is written and read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Nothing,
    Bool(bool),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    LongDouble([u8; 16]),
    Char(u8),
    WChar(char),
    Str(String),
    WStr(String),
    Fixed(i128),
    Enum(u32),
    Struct(Vec<Self>),
    Exception(Vec<Self>),
    Union(i32, Box<Self>),
    Sequence(Vec<Self>),
    Array(Vec<Self>),
    Any(TypedData),
    TypeCode(ComparableShape),
    Reference(String, Vec<(u32, Vec<u8>)>),
}

/// A type without a notion of equality.
#[derive(Clone, Debug)]
pub(crate) struct ComparableShape(pub(crate) Shape);

impl PartialEq for ComparableShape {
    fn eq(&self, other: &Self) -> bool {
        let arena = Arena::new(1 << 16);
        self.0.type_code(&arena) == other.0.type_code(&arena)
    }
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypedData {
    pub(crate) shape: ComparableShape,
    pub(crate) data: Box<Data>,
}

impl Shape {
    /// The type code.
    pub(crate) fn type_code<'a>(&self, arena: &'a Arena) -> TypeCode<'a> {
        let member = |shape: &Self| StructMember {
            name: "member",
            type_code: shape.type_code(arena),
        };
        let members = |shapes: &[Self]| {
            let members: Vec<_> = shapes.iter().map(member).collect();
            arena.copy_slice(&members).unwrap()
        };
        let inner = |shape: &Self| arena.alloc(shape.type_code(arena)).unwrap();
        match self {
            Self::Basic(basic) => *basic,
            Self::Fixed => TypeCode::Fixed {
                digits: 9,
                scale: 2,
            },
            Self::Enum(n) => TypeCode::Enum {
                id: "IDL:E:1.0",
                name: "E",
                members: arena.copy_slice(&vec!["A"; *n as usize]).unwrap(),
            },
            Self::Struct(shapes) => TypeCode::Struct {
                id: "IDL:S:1.0",
                name: "S",
                members: members(shapes),
            },
            Self::Exception(shapes) => TypeCode::Except {
                id: "IDL:X:1.0",
                name: "X",
                members: members(shapes),
            },
            Self::Union(shapes, has_default) => {
                let arms: Vec<_> = (0..)
                    .zip(shapes)
                    .map(|(label, shape)| UnionMember {
                        label,
                        name: "arm",
                        type_code: shape.type_code(arena),
                    })
                    .collect();
                TypeCode::Union {
                    id: "IDL:U:1.0",
                    name: "U",
                    discriminator: &TypeCode::Long,
                    default_index: has_default.then(|| arms.len() as u32 - 1),
                    members: arena.copy_slice(&arms).unwrap(),
                }
            }
            Self::Sequence(shape) => TypeCode::Sequence {
                element: inner(shape),
                bound: 0,
            },
            Self::Array(shape, length) => TypeCode::Array {
                element: inner(shape),
                length: *length,
            },
            Self::Alias(shape) => TypeCode::Alias {
                id: "IDL:A:1.0",
                name: "A",
                target: inner(shape),
            },
            Self::Reference => TypeCode::ObjRef {
                id: "IDL:I:1.0",
                name: "I",
            },
        }
    }

    /// Values of this type.
    pub(crate) fn values(&self, depth: u32) -> BoxedStrategy<Data> {
        let all = |shapes: &[Self]| {
            let values: Vec<_> = shapes.iter().map(|shape| shape.values(depth)).collect();
            values.boxed()
        };
        match self {
            Self::Basic(basic) => basics(basic, depth),
            Self::Fixed => (-999_999_999..=999_999_999_i128)
                .prop_map(Data::Fixed)
                .boxed(),
            Self::Enum(n) => (0..*n).prop_map(Data::Enum).boxed(),
            Self::Struct(shapes) => all(shapes).prop_map(Data::Struct).boxed(),
            Self::Exception(shapes) => all(shapes).prop_map(Data::Exception).boxed(),
            Self::Union(shapes, has_default) => {
                let (last, has_default) = (shapes.len() as i32 - 1, *has_default);
                let arms: Vec<_> = shapes.iter().map(|shape| shape.values(depth)).collect();
                (-1..=last + 1, arms)
                    .prop_map(move |(label, mut arms)| {
                        let data = match usize::try_from(label) {
                            Ok(arm) if arm < arms.len() => arms.swap_remove(arm),
                            _ if has_default => arms.swap_remove(last as usize),
                            _ => Data::Nothing,
                        };
                        Data::Union(label, Box::new(data))
                    })
                    .boxed()
            }
            Self::Sequence(shape) => vec(shape.values(depth), 0..4)
                .prop_map(Data::Sequence)
                .boxed(),
            Self::Array(shape, length) => vec(shape.values(depth), *length as usize)
                .prop_map(Data::Array)
                .boxed(),
            Self::Alias(shape) => shape.values(depth),
            Self::Reference => (
                "[ -~]{0,9}",
                vec((any::<u32>(), vec(any::<u8>(), 0..9)), 0..3),
            )
                .prop_map(|(id, profiles)| Data::Reference(id, profiles))
                .boxed(),
        }
    }
}

fn basics(type_code: &TypeCode<'_>, depth: u32) -> BoxedStrategy<Data> {
    let wide = || prop_oneof![any::<char>(), Just('\u{feff}'), Just('ä'), Just('z')];
    match type_code {
        TypeCode::Boolean => any::<bool>().prop_map(Data::Bool).boxed(),
        TypeCode::Octet => any::<u8>().prop_map(Data::U8).boxed(),
        TypeCode::UShort => any::<u16>().prop_map(Data::U16).boxed(),
        TypeCode::ULong => any::<u32>().prop_map(Data::U32).boxed(),
        TypeCode::Double => any::<u64>().prop_map(Data::U64).boxed(),
        TypeCode::LongDouble => any::<[u8; 16]>().prop_map(Data::LongDouble).boxed(),
        TypeCode::Char => (0..0x80_u8).prop_map(Data::Char).boxed(),
        TypeCode::WChar => wide()
            .prop_filter("not in one unit", |c| u32::from(*c) < 0x1_0000)
            .prop_map(Data::WChar)
            .boxed(),
        TypeCode::String { .. } => vec(1..=0xff_u8, 0..6)
            .prop_map(|codes| Data::Str(codes.into_iter().map(char::from).collect()))
            .boxed(),
        TypeCode::WString { .. } => vec(wide(), 0..6)
            .prop_map(|text| Data::WStr(text.into_iter().filter(|c| *c != '\0').collect()))
            .boxed(),
        TypeCode::TypeCode => shapes(depth + 1)
            .prop_map(|shape| Data::TypeCode(ComparableShape(shape)))
            .boxed(),
        TypeCode::Any => typed(depth + 1).prop_map(Data::Any).boxed(),
        _ => Just(Data::Nothing).boxed(),
    }
}

/// Generates types for property tests, simpler ones at greater depth.
pub(crate) fn shapes(depth: u32) -> BoxedStrategy<Shape> {
    let mut basics = vec![
        TypeCode::Null,
        TypeCode::Boolean,
        TypeCode::Octet,
        TypeCode::UShort,
        TypeCode::ULong,
        TypeCode::Double,
        TypeCode::LongDouble,
        TypeCode::Char,
        TypeCode::WChar,
        TypeCode::String { bound: 0 },
        TypeCode::String { bound: 12 },
        TypeCode::WString { bound: 0 },
    ];
    if depth < 2 {
        basics.extend([TypeCode::TypeCode, TypeCode::Any]);
    }
    let basics = proptest::sample::select(basics).prop_map(Shape::Basic);
    let leaf = prop_oneof![
        8 => basics,
        1 => Just(Shape::Fixed),
        1 => (1..9_u32).prop_map(Shape::Enum),
        1 => Just(Shape::Reference),
    ];
    let levels = 3_u32.saturating_sub(depth);
    let type_of_members = leaf.prop_recursive(levels, 12, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Shape::Struct),
            1 => (vec(inner.clone(), 1..4), any::<bool>())
                .prop_map(|(arms, has_default)| Shape::Union(arms, has_default)),
            2 => inner.clone().prop_map(|shape| Shape::Sequence(shape.into())),
            1 => (inner.clone(), 0..4_u32)
                .prop_map(|(shape, length)| Shape::Array(shape.into(), length)),
            1 => inner.prop_map(|shape| Shape::Alias(shape.into())),
        ]
    });
    prop_oneof![
        9 => type_of_members.clone(),
        1 => vec(type_of_members, 0..3).prop_map(Shape::Exception),
    ]
    .boxed()
}

/// Values with their types.
pub(crate) fn typed(depth: u32) -> BoxedStrategy<TypedData> {
    shapes(depth)
        .prop_flat_map(move |shape| {
            let data = shape.values(depth);
            (Just(shape), data)
        })
        .prop_map(|(shape, data)| TypedData {
            shape: ComparableShape(shape),
            data: Box::new(data),
        })
        .boxed()
}

/// A value that can be put into an any.
#[derive(Clone, Copy)]
pub(crate) struct Ref<'d>(pub(crate) &'d Data);

impl<'a> Cdr<'a> for Ref<'_> {
    const MIN_SIZE: usize = 0;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        // The id of an exception is the any's own matter.
        match self.0 {
            Data::Exception(members) => members.iter().try_for_each(|member| member.encode(e)),
            data => data.encode(e),
        }
    }

    fn decode(_: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Err(CdrError::WrongType)
    }
}

impl Data {
    /// Writes the value.
    pub(crate) fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Bool(v) => e.write_bool(*v),
            Self::U8(v) => e.write_u8(*v),
            Self::U16(v) => e.write_u16(*v),
            Self::U32(v) | Self::Enum(v) => e.write_u32(*v),
            Self::U64(v) => e.write_u64(*v),
            Self::LongDouble(v) => e.write_long_double(LongDouble(*v)),
            Self::Char(v) => e.write_char(Char(*v)),
            Self::WChar(v) => e.write_wchar(*v),
            Self::Str(v) => e.write_str(v),
            Self::WStr(v) => e.write_wstr(v),
            Self::Fixed(v) => Fixed::<9, 2>::from_unscaled(*v).unwrap().encode(e),
            Self::Struct(values) | Self::Array(values) => {
                values.iter().try_for_each(|value| value.encode(e))
            }
            Self::Exception(values) => {
                e.write_str("IDL:X:1.0")?;
                values.iter().try_for_each(|value| value.encode(e))
            }
            Self::Union(label, value) => {
                e.write_i32(*label)?;
                value.encode(e)
            }
            Self::Sequence(values) => {
                e.write_len(values.len())?;
                values.iter().try_for_each(|value| value.encode(e))
            }
            Self::Any(typed) => typed.encode(e),
            Self::TypeCode(ComparableShape(shape)) => {
                let arena = Arena::new(1 << 16);
                shape.type_code(&arena).encode(e)
            }
            Self::Reference(id, profiles) => {
                e.write_str(id)?;
                e.write_len(profiles.len())?;
                profiles.iter().try_for_each(|(tag, data)| {
                    e.write_u32(*tag)?;
                    e.write_octet_seq(data)
                })
            }
        }
    }

    /// Reads a value of the same type, and checks that it is the same.
    pub(crate) fn expect(&self, d: &mut Decoder<'_>) -> Result<(), CdrError> {
        macro_rules! expect {
            ($value:expr, $read:expr) => {
                assert_eq!($value, $read)
            };
        }
        match self {
            Self::Nothing => {}
            Self::Bool(v) => expect!(*v, d.read_bool()?),
            Self::U8(v) => expect!(*v, d.read_u8()?),
            Self::U16(v) => expect!(*v, d.read_u16()?),
            Self::U32(v) | Self::Enum(v) => expect!(*v, d.read_u32()?),
            Self::U64(v) => expect!(*v, d.read_u64()?),
            Self::LongDouble(v) => expect!(*v, d.read_long_double()?.0),
            Self::Char(v) => expect!(*v, d.read_char()?.0),
            Self::WChar(v) => expect!(*v, d.read_wchar()?),
            Self::Str(v) => expect!(*v, d.read_str()?),
            Self::WStr(v) => expect!(*v, d.read_wstr()?),
            Self::Fixed(v) => expect!(*v, Fixed::<9, 2>::decode(d)?.unscaled()),
            Self::Struct(values) | Self::Array(values) | Self::Exception(values) => {
                // The any has read the id of an exception.
                return values.iter().try_for_each(|value| value.expect(d));
            }
            Self::Union(label, value) => {
                expect!(*label, d.read_i32()?);
                return value.expect(d);
            }
            Self::Sequence(values) => {
                expect!(values.len(), d.read_u32()? as usize);
                return values.iter().try_for_each(|value| value.expect(d));
            }
            Self::Any(typed) => typed.expect(&Any::decode(d)?),
            Self::TypeCode(ComparableShape(shape)) => {
                let arena = Arena::new(1 << 16);
                expect!(shape.type_code(&arena), TypeCode::decode(d)?);
            }
            Self::Reference(id, profiles) => {
                expect!(*id, d.read_str()?);
                expect!(profiles.len(), d.read_u32()? as usize);
                for (tag, data) in profiles {
                    expect!(*tag, d.read_u32()?);
                    expect!(*data, d.read_octet_seq()?);
                }
            }
        }
        Ok(())
    }
}

impl TypedData {
    /// Writes an any of it.
    pub(crate) fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let arena = Arena::new(1 << 16);
        self.shape.0.type_code(&arena).encode(e)?;
        self.data.encode(e)
    }

    /// Checks that an any is one of it.
    pub(crate) fn expect(&self, any: &Any<'_>) {
        let arena = Arena::new(1 << 16);
        let type_code = self.shape.0.type_code(&arena);
        assert_eq!(*any.type_code(), type_code);
        any.extract_with(&type_code, |d| self.data.expect(d))
            .unwrap();
    }
}

/// The form of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) endian: Endian,
    pub(crate) text: TextForm,
    /// The number of octets before the value under test.
    pub(crate) before: usize,
}

/// All forms that a message can have.
pub(crate) fn forms() -> impl Strategy<Value = Form> {
    (any::<[bool; 3]>(), 0..16_usize).prop_map(|([little, utf8, utf16], before)| Form {
        endian: Endian::from_flag(little),
        text: TextForm {
            narrow: if utf8 { CharSet::Utf8 } else { CharSet::Latin1 },
            wide: if utf16 {
                WideForm::Utf16
            } else {
                WideForm::Ucs2
            },
        },
        before,
    })
}

impl Form {
    /// Returns the octets that `write` writes in this form.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Frame, CdrError> {
        let mut frame = Frame::new(256, 1 << 20);
        let mut e = Encoder::new(&mut frame, self.endian).with_text(self.text);
        e.write_octets(&vec![0xaa; self.before])?;
        write(&mut e)?;
        Ok(frame)
    }

    /// Reads what was written in this form.
    pub(crate) fn read<'a, T>(
        &self,
        frame: &'a mut Frame,
        arena: &'a Arena,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let mut d = Decoder::new(frame.as_mut_slice(), 0, self.endian, arena).with_text(self.text);
        d.read_octets(self.before)?;
        read(&mut d)
    }
}
