//! Type codes: on the wire, compared, and as text.

use std::collections::BTreeMap;

use chronorb_cdr::{
    Any, AnyBuf, Arena, Cdr, CdrError, Char, Decoder, Encoder, Endian, Fixed, LongDouble,
    MAX_DEPTH, StructMember, TextForm, TypeCode, TypeCodeBuf, Typed, UnionMember, ValueMember,
    ValueModifier, WideForm, WideStr,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::dynamic::{Form, forms, shapes};

const BIG: Form = Form {
    endian: Endian::Big,
    text: TextForm {
        narrow: chronorb_cdr::CharSet::Latin1,
        wide: WideForm::Utf16,
    },
    before: 0,
};

const fn member<'a>(name: &'a str, type_code: TypeCode<'a>) -> StructMember<'a> {
    StructMember { name, type_code }
}

fn structure<'a>(id: &'a str, members: &'a [StructMember<'a>]) -> TypeCode<'a> {
    TypeCode::Struct {
        id,
        name: "S",
        members,
    }
}

fn octets(type_code: &TypeCode<'_>) -> Result<Vec<u8>, CdrError> {
    let frame = BIG.write(|e| type_code.encode(e))?;
    Ok(frame.as_slice().to_vec())
}

/// Reads a type code of big-endian octets.
fn read(octets: &[u8]) -> Result<TypeCodeBuf, CdrError> {
    let mut octets = octets.to_vec();
    let arena = Arena::new(1 << 16);
    let type_code = TypeCode::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena))?;
    Ok(type_code.to_owned())
}

/// The parameters of a type code as an encapsulation, behind its kind.
fn complex(kind: u8, write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>) -> Vec<u8> {
    let frame = BIG.write(|e| {
        e.write_u32(kind.into())?;
        e.write_encapsulation(write)
    });
    frame.unwrap().as_slice().to_vec()
}

#[test]
fn a_struct_is_an_encapsulation_of_its_id_its_name_and_its_members() {
    let expected = [
        &[0, 0, 0, 15, 0, 0, 0, 40, 0, 0, 0, 0][..],
        b"\0\0\0\x0aIDL:S:1.0\0\0\0",
        b"\0\0\0\x02S\0\0\0",
        b"\0\0\0\x01",
        b"\0\0\0\x02x\0\0\0",
        &[0, 0, 0, 3],
    ]
    .concat();
    let members = [member("x", TypeCode::Long)];
    let type_code = structure("IDL:S:1.0", &members);
    let mut expected = expected;
    expected[7] = (expected.len() - 8) as u8;
    assert_eq!(octets(&type_code), Ok(expected.clone()));
    assert_eq!(read(&expected), Ok(TypeCodeBuf::from(type_code)));
}

#[test]
fn a_type_that_holds_itself_refers_to_where_it_began() {
    let id = "IDL:Node:1.0";
    let children = TypeCode::Sequence {
        element: &TypeCode::Recursive { id },
        bound: 0,
    };
    let members = [member("children", children)];
    let node = structure(id, &members);
    for form in [BIG, Form { before: 7, ..BIG }] {
        let mut frame = form.write(|e| node.encode(e)).unwrap();
        let written = frame.as_slice();
        let at = written
            .windows(4)
            .position(|word| word == [0xff; 4])
            .unwrap();
        let offset = i32::from_be_bytes(*written[at + 4..].first_chunk().unwrap());
        let start = form.before.next_multiple_of(4);
        assert_eq!(at as i32 + 4 + offset, start as i32);
        let arena = Arena::new(1 << 12);
        assert_eq!(form.read(&mut frame, &arena, TypeCode::decode), Ok(node));
    }
}

#[test]
fn a_recursive_type_is_equal_to_one_that_was_unrolled() {
    let id = "IDL:Node:1.0";
    let itself = TypeCode::Recursive { id };
    let children = |element| TypeCode::Sequence { element, bound: 0 };
    let node_of = |element| {
        [
            member("n", TypeCode::Long),
            member("children", children(element)),
        ]
    };
    let members = node_of(&itself);
    let node = structure(id, &members);
    let members = node_of(&node);
    let once = structure(id, &members);
    let members = node_of(&once);
    let twice = structure(id, &members);
    for unrolled in [once, twice] {
        assert!(node.equal(&unrolled) && unrolled.equal(&node));
        assert_ne!(node, unrolled);
    }
    assert!(once.equal(&twice));

    let members = [
        member("n", TypeCode::Short),
        member("children", children(&node)),
    ];
    assert!(!node.equal(&structure(id, &members)), "another member");
    let bounded = TypeCode::Sequence {
        element: &node,
        bound: 3,
    };
    let members = [member("n", TypeCode::Long), member("children", bounded)];
    assert!(!node.equal(&structure(id, &members)), "another bound");
    let members = [member("n", TypeCode::Long), member("kids", children(&node))];
    assert!(!node.equal(&structure(id, &members)), "another name");
    assert!(!itself.equal(&node), "within nothing");
}

#[test]
fn types_that_hold_each_other_refer_to_the_right_one() {
    let of = |id| TypeCode::Recursive { id };
    let sequence = |element| TypeCode::Sequence { element, bound: 0 };
    let (to_a, to_b) = (of("IDL:A:1.0"), of("IDL:B:1.0"));
    let inner = [member("a", sequence(&to_a)), member("b", sequence(&to_b))];
    let b = structure("IDL:B:1.0", &inner);
    let outer = [member("b", sequence(&b)), member("a", sequence(&to_a))];
    let a = structure("IDL:A:1.0", &outer);
    assert_eq!(read(&octets(&a).unwrap()), Ok(TypeCodeBuf::from(a)));
    assert_eq!(
        octets(&b),
        Err(CdrError::InvalidTypeCode),
        "A is not around it"
    );
}

#[test]
fn an_indirection_to_an_earlier_type_is_that_type() {
    let long_name = "IDL:Point:1.0";
    let encoded = complex(15, |e| {
        e.write_str("IDL:Line:1.0")?;
        e.write_str("Line")?;
        e.write_u32(2)?;
        e.write_str("from")?;
        e.align(4)?;
        let point = e.position();
        e.write_u32(15)?;
        e.write_encapsulation(|e| {
            e.write_str(long_name)?;
            e.write_str("Point")?;
            e.write_u32(1)?;
            e.write_str("x")?;
            e.write_u32(7)
        })?;
        e.write_str("to")?;
        e.write_u32(u32::MAX)?;
        let here = e.position();
        e.write_i32(point as i32 - here as i32)
    });
    let x = [member("x", TypeCode::Double)];
    let point = TypeCode::Struct {
        id: long_name,
        name: "Point",
        members: &x,
    };
    let ends = [member("from", point), member("to", point)];
    let line = TypeCode::Struct {
        id: "IDL:Line:1.0",
        name: "Line",
        members: &ends,
    };
    assert_eq!(read(&encoded), Ok(TypeCodeBuf::from(line)));
}

#[test]
fn an_indirection_that_leads_nowhere_is_refused() {
    for offset in [0, 4, -4, 1000, -1000, -12, i32::MIN, i32::MAX] {
        let sequence = complex(19, |e| {
            e.write_u32(u32::MAX)?;
            e.write_i32(offset)?;
            e.write_u32(0)
        });
        assert!(read(&sequence).is_err(), "{offset}");
    }
    let outermost = [[0xff; 4], (-4_i32).to_be_bytes()].concat();
    assert_eq!(read(&outermost), Err(CdrError::InvalidTypeCode));
}

#[test]
fn indirections_cannot_make_more_of_a_type_code_than_the_arena_holds() {
    // Each struct has the one before it twice, so that the last has two to the power of thirty.
    let encoded = complex(15, |e| {
        e.write_str("")?;
        e.write_str("")?;
        e.write_u32(31)?;
        let mut before = None;
        for _ in 0..31 {
            e.write_str("")?;
            e.align(4)?;
            let start = e.position();
            e.write_u32(15)?;
            // The positions of the inner encapsulation are relative to its own start.
            let base = start + 8;
            e.write_encapsulation(|e| {
                e.write_str("")?;
                e.write_str("")?;
                match before {
                    None => e.write_u32(0),
                    Some(before) => {
                        e.write_u32(2)?;
                        for _ in 0..2 {
                            e.write_str("")?;
                            e.write_u32(u32::MAX)?;
                            let here = base + e.position();
                            e.write_i32(before as i32 - here as i32)?;
                        }
                        Ok(())
                    }
                }
            })?;
            before = Some(start);
        }
        Ok(())
    });
    assert_eq!(read(&encoded), Err(CdrError::ArenaFull));
}

#[test]
fn a_type_code_can_be_nested_only_so_deep() {
    let nested = |depth: u8| {
        let arena = Arena::new(1 << 16);
        let mut type_code = TypeCode::Long;
        for _ in 0..depth {
            type_code = TypeCode::Sequence {
                element: arena.alloc(type_code).unwrap(),
                bound: 0,
            };
        }
        octets(&type_code)
    };
    let deepest = nested(MAX_DEPTH).unwrap();
    assert!(read(&deepest).is_ok());
    assert_eq!(nested(MAX_DEPTH + 1), Err(CdrError::TooDeep));
    // One level more around it.
    let too_deep = complex(19, |e| {
        e.align(4)?;
        // Its offsets are relative, its numbers aligned to 4 at most.
        e.write_octets(&deepest)?;
        e.write_u32(0)
    });
    assert_eq!(read(&too_deep), Err(CdrError::TooDeep));
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert_eq!(read(&[0, 0, 0, 37]), Err(CdrError::InvalidTypeCode));
    assert_eq!(
        read(&[0, 0, 0, 28, 0, 32, 0, 0]),
        Err(CdrError::InvalidTypeCode),
        "32 digits"
    );
    let union = |discriminator: u32, default: i32| {
        complex(16, |e| {
            e.write_str("IDL:U:1.0")?;
            e.write_str("U")?;
            e.write_u32(discriminator)?;
            e.write_i32(default)?;
            e.write_u32(1)?;
            e.write_u32(7)?;
            e.write_str("arm")?;
            e.write_u32(2)
        })
    };
    assert!(read(&union(3, -1)).is_ok());
    assert!(read(&union(3, 0)).is_ok());
    assert_eq!(
        read(&union(3, 1)),
        Err(CdrError::InvalidTypeCode),
        "there is one arm"
    );
    assert_eq!(
        read(&union(3, -2)),
        read(&union(3, -1)),
        "as omniORB writes it"
    );
    assert_eq!(
        read(&union(7, -1)),
        Err(CdrError::InvalidTypeCode),
        "a double"
    );
    let value = complex(29, |e| {
        e.write_str("IDL:V:1.0")?;
        e.write_str("V")?;
        e.write_i16(9)
    });
    assert_eq!(read(&value), Err(CdrError::InvalidTypeCode));
    let much = complex(15, |e| {
        e.write_str("")?;
        e.write_str("")?;
        e.write_u32(u32::MAX)
    });
    assert_eq!(read(&much), Err(CdrError::LengthOverflow));
}

/// A type of each kind.
fn one_of_each_kind(check: impl Fn(&TypeCode<'_>)) {
    let (id, name) = ("IDL:m/T:1.0", "T");
    let members = [member("x", TypeCode::Long), member("y", TypeCode::Any)];
    let state = [
        ValueMember {
            name: "hidden",
            type_code: TypeCode::Octet,
            is_public: false,
        },
        ValueMember {
            name: "seen",
            type_code: TypeCode::WString { bound: 7 },
            is_public: true,
        },
    ];
    let arms = [0x41, 0x42].map(|label| UnionMember {
        label,
        name: "arm",
        type_code: TypeCode::Short,
    });
    let base = TypeCode::Value {
        id: "IDL:m/B:1.0",
        name: "B",
        modifier: ValueModifier::Truncatable,
        base: None,
        members: &state,
    };
    let colors = TypeCode::Enum {
        id: "IDL:Color:1.0",
        name: "Color",
        members: &["red", "green"],
    };
    for basic in [
        TypeCode::Null,
        TypeCode::Void,
        TypeCode::Short,
        TypeCode::Long,
        TypeCode::UShort,
        TypeCode::ULong,
        TypeCode::Float,
        TypeCode::Double,
        TypeCode::Boolean,
        TypeCode::Char,
        TypeCode::Octet,
        TypeCode::Any,
        TypeCode::TypeCode,
        TypeCode::Principal,
        TypeCode::LongLong,
        TypeCode::ULongLong,
        TypeCode::LongDouble,
        TypeCode::WChar,
        TypeCode::String { bound: 0 },
        TypeCode::WString { bound: 9 },
        TypeCode::Fixed {
            digits: 31,
            scale: -2,
        },
        TypeCode::ObjRef { id, name },
        TypeCode::Native { id, name },
        TypeCode::AbstractInterface { id, name },
        TypeCode::LocalInterface { id, name },
        TypeCode::Component { id, name },
        TypeCode::Home { id, name },
        TypeCode::Struct {
            id,
            name,
            members: &members,
        },
        TypeCode::Except {
            id,
            name,
            members: &[],
        },
        colors,
        TypeCode::Sequence {
            element: &colors,
            bound: 3,
        },
        TypeCode::Array {
            element: &colors,
            length: 3,
        },
        TypeCode::Alias {
            id,
            name,
            target: &colors,
        },
        TypeCode::ValueBox {
            id,
            name,
            target: &colors,
        },
        base,
        TypeCode::Event {
            id,
            name,
            modifier: ValueModifier::Custom,
            base: Some(&base),
            members: &[],
        },
    ] {
        check(&basic);
    }
    for discriminator in [
        TypeCode::Boolean,
        TypeCode::Char,
        TypeCode::WChar,
        TypeCode::Octet,
        TypeCode::Short,
        TypeCode::UShort,
        TypeCode::Long,
        TypeCode::ULong,
        TypeCode::LongLong,
        TypeCode::ULongLong,
        colors,
    ] {
        let mut arms = arms;
        if matches!(discriminator, TypeCode::Boolean | TypeCode::Enum { .. }) {
            arms[0].label = 0;
            arms[1].label = 1;
        }
        for default_index in [None, Some(1)] {
            check(&TypeCode::Union {
                id,
                name,
                discriminator: &discriminator,
                default_index,
                members: &arms,
            });
        }
    }
}

#[test]
fn each_kind_is_read_as_it_was_written() {
    one_of_each_kind(|type_code| {
        for endian in [Endian::Big, Endian::Little] {
            for wide in [WideForm::Utf16, WideForm::Ucs2, WideForm::Illegal] {
                let text = TextForm {
                    wide,
                    ..TextForm::default()
                };
                let form = Form {
                    endian,
                    text,
                    before: 3,
                };
                let mut frame = form.write(|e| type_code.encode(e)).unwrap();
                let arena = Arena::new(1 << 12);
                let read = form.read(&mut frame, &arena, TypeCode::decode);
                assert_eq!(read.as_ref(), Ok(type_code));
            }
        }
        let own = type_code.to_owned();
        assert_eq!(own.as_view(), type_code);
        assert_eq!(own.clone(), own);
        assert!(own.as_view().equivalent(type_code) && type_code.equal(own.as_view()));
        assert!(!type_code.to_string().is_empty());
    });
}

#[test]
fn kinds_are_equivalent_only_to_themselves() {
    one_of_each_kind(|a| {
        one_of_each_kind(|b| {
            let same_kind = a.unaliased().kind() == b.unaliased().kind();
            assert!(!a.equivalent(b) || same_kind, "{a} and {b}");
            assert_eq!(a.equivalent(b), b.equivalent(a));
        });
    });
}

/// omniORB writes -32768 for the `default` of a `short`, and 255 for that of a `char`, where this
/// ORB writes 0.
#[test]
fn the_label_of_a_default_member_is_not_compared() {
    use std::hash::{BuildHasher, RandomState};
    let hasher = RandomState::new();
    let union = |discriminator: &'static TypeCode<'static>, labels: [i64; 2], default| {
        let [one, other] = labels;
        let member = |label, name, type_code| UnionMember {
            label,
            name,
            type_code,
        };
        let members = [
            member(one, "a", TypeCode::Long),
            member(other, "c", TypeCode::Octet),
        ];
        TypeCodeBuf::from(TypeCode::Union {
            id: "IDL:U:1.0",
            name: "U",
            discriminator,
            default_index: default,
            members: &members,
        })
    };
    for (discriminator, label) in [(&TypeCode::Short, -32768), (&TypeCode::Char, 255)] {
        let ours = union(discriminator, [1, 0], Some(1));
        let theirs = union(discriminator, [1, label], Some(1));
        let outer = |inner: &TypeCodeBuf| {
            let members = [member("u", *inner.as_view())];
            TypeCodeBuf::from(structure("IDL:S:1.0", &members))
        };
        let exception = |inner: &TypeCodeBuf| {
            let members = [member("u", *inner.as_view())];
            TypeCodeBuf::from(TypeCode::Except {
                id: "IDL:X:1.0",
                name: "X",
                members: &members,
            })
        };
        for (one, other) in [
            (ours.clone(), theirs.clone()),
            (outer(&ours), outer(&theirs)),
            (exception(&ours), exception(&theirs)),
        ] {
            assert_eq!(one, other);
            assert!(one.as_view().equal(other.as_view()) && one.as_view() == other.as_view());
            assert!(one.as_view().equivalent(other.as_view()));
            assert_eq!(
                hasher.hash_one(one.as_view()),
                hasher.hash_one(other.as_view())
            );
        }
        // All other labels count.
        for different in [
            union(discriminator, [2, label], Some(1)),
            union(discriminator, [1, label], None),
            union(discriminator, [1, label], Some(0)),
        ] {
            assert_ne!(ours, different);
            assert!(!ours.as_view().equal(different.as_view()));
        }
    }
    // The value of a union that went through omniORB, in the branch of the default.
    let sent = |type_code: TypeCodeBuf| AnyBuf::with_type(type_code, &Default(7, 9)).unwrap();
    let ours = sent(union(&TypeCode::Short, [1, 0], Some(1)));
    assert_eq!(ours, sent(union(&TypeCode::Short, [1, -32768], Some(1))));
    assert_ne!(ours, sent(union(&TypeCode::Short, [2, 0], Some(1))));
}

/// The `default` of `union U switch (short) { case 1: long a; default: octet c; }`.
#[derive(Clone, Copy)]
struct Default(i16, u8);

impl<'a> Cdr<'a> for Default {
    const MIN_SIZE: usize = 3;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_i16(self.0)?;
        e.write_u8(self.1)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self(d.read_i16()?, d.read_u8()?))
    }
}

#[test]
fn names_and_aliases_count_for_equality_and_not_for_equivalence() {
    let of = |id: &'static str, members: &'static [StructMember<'static>]| structure(id, members);
    const X: &[StructMember<'static>] = &[member("x", TypeCode::Long)];
    const Y: &[StructMember<'static>] = &[member("y", TypeCode::Long)];
    const DOUBLE: &[StructMember<'static>] = &[member("x", TypeCode::Double)];
    assert!(of("", X).equivalent(&of("", Y)) && !of("", X).equal(&of("", Y)));
    assert!(!of("", X).equivalent(&of("", DOUBLE)));
    assert!(
        of("", X).equivalent(&of("IDL:S:1.0", Y)),
        "one of them has no id"
    );
    assert!(!of("IDL:T:1.0", X).equivalent(&of("IDL:S:1.0", X)));
    assert!(
        of("IDL:S:1.0", X).equivalent(&of("IDL:S:1.0", DOUBLE)),
        "the id decides"
    );
    assert!(of("IDL:S:1.0", X).equivalent(&TypeCode::Recursive { id: "IDL:S:1.0" }));
}

#[test]
fn types_of_rust_have_the_type_codes_of_idl() {
    assert_eq!(<&[&str]>::TYPE_CODE, Vec::<String>::TYPE_CODE);
    assert_eq!(<[[i16; 3]; 2]>::TYPE_CODE.to_string(), "short[2][3]");
    assert_eq!(<&[Any<'_>]>::TYPE_CODE.to_string(), "sequence<any>");
    assert_eq!(
        Vec::<[AnyBuf; 2]>::TYPE_CODE.to_string(),
        "sequence<any[2]>"
    );
    assert_eq!(Option::<TypeCodeBuf>::TYPE_CODE, TypeCode::TypeCode);
    assert_eq!(WideStr::TYPE_CODE.to_string(), "wstring");
    assert_eq!(Fixed::<9, 2>::TYPE_CODE.to_string(), "fixed<9, 2>");
    assert_eq!(
        <(Char, char, i8, LongDouble)>::default_kinds(),
        [9, 26, 10, 25]
    );
    let TypeCode::Sequence { element, .. } = BTreeMap::<String, f64>::TYPE_CODE else {
        panic!("a map is a sequence");
    };
    assert_eq!(element.to_string(), "struct  { string key; double value; }");
}

/// The kinds of several types.
trait Kinds {
    fn default_kinds() -> [u32; 4];
}

impl<A: Typed, B: Typed, C: Typed, D: Typed> Kinds for (A, B, C, D) {
    fn default_kinds() -> [u32; 4] {
        [A::TYPE_CODE, B::TYPE_CODE, C::TYPE_CODE, D::TYPE_CODE].map(|type_code| type_code.kind())
    }
}

#[test]
fn the_text_of_a_type_is_idl() {
    let mut texts = Vec::new();
    let texts_of = std::cell::RefCell::new(&mut texts);
    one_of_each_kind(|type_code| texts_of.borrow_mut().push(type_code.to_string()));
    for expected in [
        "unsigned long long",
        "wstring<9>",
        "fixed<31, -2>",
        "interface T",
        "abstract interface T",
        "struct T { long x; any y; }",
        "exception T { }",
        "enum Color { red, green }",
        "sequence<Color, 3>",
        "Color[3]",
        "typedef Color T",
        "valuetype T Color",
        "valuetype B { private octet hidden; public wstring<7> seen; }",
        "eventtype T : B { }",
        "union T switch (boolean) { case FALSE: short arm; default: short arm; }",
        "union T switch (char) { case 'A': short arm; case 'B': short arm; }",
        "union T switch (Color) { case red: short arm; case green: short arm; }",
    ] {
        assert!(texts.iter().any(|text| text == expected), "{expected}");
    }
}

#[test]
fn a_type_code_that_owns_its_parts_can_go_to_another_thread() {
    let members = [member("x", TypeCode::Long)];
    let own = structure("IDL:S:1.0", &members).to_owned();
    let there = own.clone();
    let text = std::thread::spawn(move || there.to_string())
        .join()
        .unwrap();
    assert_eq!(text, own.to_string());
    assert_eq!(TypeCodeBuf::default().as_view(), &TypeCode::Null);
}

proptest! {
    #[test]
    fn any_type_is_read_as_it_was_written(shape in shapes(0), form in forms()) {
        let arena = Arena::new(1 << 18);
        let type_code = shape.type_code(&arena);
        let mut frame = form.write(|e| type_code.encode(e)).unwrap();
        let read = form.read(&mut frame, &arena, TypeCode::decode);
        prop_assert_eq!(read.as_ref(), Ok(&type_code));
        let own = type_code.to_owned();
        prop_assert_eq!(own.as_view(), &type_code);
        prop_assert!(type_code.equivalent(own.as_view()));
    }

    #[test]
    fn octets_that_were_changed_are_a_type_or_an_error(
        shape in shapes(0),
        form in forms(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let arena = Arena::new(1 << 18);
        let type_code = shape.type_code(&arena);
        let mut frame = form.write(|e| type_code.encode(e)).unwrap();
        let n = frame.len() - form.before;
        for (index, octet) in changes {
            frame.as_mut_slice()[form.before + index.index(n)] = octet;
        }
        if let Ok(read) = form.read(&mut frame, &arena, TypeCode::decode) {
            let own = read.to_owned();
            prop_assert!(own.as_view().equal(&read) && read.equivalent(own.as_view()));
            let _ = (read.equivalent(&type_code), read.to_string());
        }
    }

    #[test]
    fn arbitrary_octets_are_a_type_or_an_error(
        octets in vec(any::<u8>(), 0..64),
        kind in 0..40_u8,
    ) {
        let _ = read(&[vec![0, 0, 0, kind], octets].concat());
    }
}
