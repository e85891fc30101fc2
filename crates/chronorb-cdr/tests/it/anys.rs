//! Anys: what is put into one comes out of it, whatever it is, and however it travels.

use chronorb_cdr::{
    Any, AnyBuf, Arena, Cdr, CdrError, Char, CharSet, Decoder, Encoder, Endian, Frame,
    StructMember, TextForm, TypeCode, Typed as _, UnionMember, ValueModifier, WideForm, WideStr,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::dynamic::{Form, Ref, forms, typed};

const BIG: Form = Form {
    endian: Endian::Big,
    text: TextForm {
        narrow: CharSet::Latin1,
        wide: WideForm::Utf16,
    },
    before: 0,
};

/// Returns the error of reading an any of these octets.
fn error(octets: &[u8]) -> Option<CdrError> {
    let mut octets = octets.to_vec();
    let arena = Arena::new(1 << 12);
    Any::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena)).err()
}

/// The octets of a type code and what stands behind it.
fn octets(type_code: &TypeCode<'_>, body: &[u8]) -> Vec<u8> {
    let frame = BIG.write(|e| {
        type_code.encode(e)?;
        e.align(4)?;
        e.write_octets(body)
    });
    frame.unwrap().as_slice().to_vec()
}

/// `struct Node { long number; sequence<Node> children; };`
const NODE: TypeCode<'static> = TypeCode::Struct {
    id: "IDL:Node:1.0",
    name: "Node",
    members: &[
        StructMember {
            name: "number",
            type_code: TypeCode::Long,
        },
        StructMember {
            name: "children",
            type_code: TypeCode::Sequence {
                element: &TypeCode::Recursive { id: "IDL:Node:1.0" },
                bound: 0,
            },
        },
    ],
};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node<'a> {
    number: i32,
    children: &'a [Self],
}

impl chronorb_cdr::Typed for Node<'_> {
    const TYPE_CODE: TypeCode<'static> = NODE;
}

impl<'a> Cdr<'a> for Node<'a> {
    const MIN_SIZE: usize = 8;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_i32(self.number)?;
        e.write_seq(self.children)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            number: d.read_i32()?,
            children: d.read_seq()?,
        })
    }
}

#[test]
fn a_value_can_be_extracted_as_often_as_there_is_room() {
    let mut frame = BIG
        .write(|e| Any::of(&[1_u16, 2].as_slice()).encode(e))
        .unwrap();
    let arena = Arena::new(512);
    let any = BIG.read(&mut frame, &arena, Any::decode).unwrap();
    assert!(any.holds::<Vec<u16>>() && !any.holds::<Vec<i16>>());
    let mut times = 0;
    while any.extract::<&[u16]>() == Ok(&[1, 2]) {
        times += 1;
    }
    assert!(times > 3);
    assert_eq!(any.extract::<&[u16]>(), Err(CdrError::ArenaFull));
}

#[test]
fn a_value_of_another_type_is_not_there() {
    let arena = Arena::new(512);
    let any = Any::new(&7_u32, &arena).unwrap();
    assert_eq!(any.extract::<u32>(), Ok(7));
    assert_eq!(any.extract::<i32>(), Err(CdrError::WrongType));
    assert_eq!(any.extract::<&str>(), Err(CdrError::WrongType));
    assert_eq!(Any::NULL.extract::<()>(), Err(CdrError::WrongType));
}

#[test]
fn an_any_that_is_only_to_be_sent_says_that_it_has_no_arena() {
    let own = AnyBuf::new(&7_i16).unwrap();
    for any in [own.as_view(), Any::of(&7_i16)] {
        let refused = any.extract::<i16>().expect_err("it has none");
        assert_eq!(refused, CdrError::NoArena);
        let text = refused.to_string();
        assert!(text.contains("AnyBuf::with_view"), "{text}");
        assert_eq!(any.extract::<i32>(), Err(CdrError::WrongType));
    }
    assert_eq!(own.extract::<i16>(), Ok(7));
    assert_eq!(own.with_view(|any| any.extract::<i16>()), Ok(7));
}

#[test]
fn an_alias_is_taken_for_what_it_stands_for() {
    let price = TypeCode::Alias {
        id: "IDL:Price:1.0",
        name: "Price",
        target: &TypeCode::Double,
    };
    let any = AnyBuf::with_type(price, &0.25).unwrap();
    let arena = Arena::new(512);
    assert_eq!(any.as_view_in(&arena).unwrap().extract::<f64>(), Ok(0.25));
    assert_eq!(any.type_code().name(), Some("Price"));
    assert_ne!(any, AnyBuf::new(&0.25).unwrap());
}

#[test]
fn an_any_that_owns_its_value_checks_that_it_is_of_its_type() {
    let flags = TypeCode::Sequence {
        element: &TypeCode::Boolean,
        bound: 2,
    };
    let of = |flags: &[bool]| AnyBuf::with_type(BOUNDED, &flags).err();
    assert_eq!(of(&[true, false]), None);
    assert_eq!(of(&[true; 3]), Some(CdrError::BoundExceeded));
    assert_eq!(
        AnyBuf::with_type(flags, &1_u64).err(),
        Some(CdrError::WrongType)
    );
    assert_eq!(
        AnyBuf::with_type(TypeCode::Double, &1_u8).err(),
        Some(CdrError::EndOfData)
    );
    assert_eq!(AnyBuf::new(&"a\0b").err(), Some(CdrError::EmbeddedNul));
}

const BOUNDED: TypeCode<'static> = TypeCode::Sequence {
    element: &TypeCode::Boolean,
    bound: 2,
};

#[test]
fn what_could_not_be_written_fails_where_it_is_used() {
    let any = Any::of(&"a\0b").to_owned();
    let mut frame = Frame::new(64, 64);
    let mut e = Encoder::new(&mut frame, Endian::Big);
    assert_eq!(any.encode(&mut e), Err(CdrError::EmbeddedNul));
    let arena = Arena::new(512);
    let view = any.as_view_in(&arena).unwrap();
    assert_eq!(view.extract::<&str>(), Err(CdrError::EmbeddedNul));
    assert_eq!(view.encode(&mut e), Err(CdrError::EmbeddedNul));
}

#[test]
fn what_has_no_room_in_the_arena_of_its_message_can_still_be_owned() {
    let text = "ä".repeat(600);
    let mut frame = BIG.write(|e| Any::of(&text.as_str()).encode(e)).unwrap();
    let arena = Arena::new(400);
    let any = BIG.read(&mut frame, &arena, Any::decode).unwrap();
    assert_eq!(any.extract::<&str>(), Err(CdrError::ArenaFull));
    assert_eq!(any.to_owned(), AnyBuf::new(&text.as_str()).unwrap());
}

#[test]
fn a_type_that_holds_itself_is_walked_as_deep_as_it_goes() {
    let leaves = [1, 2].map(|number| Node {
        number,
        children: &[],
    });
    let inner = [Node {
        number: 3,
        children: &leaves,
    }];
    let root = Node {
        number: 4,
        children: &inner,
    };
    for endian in [Endian::Big, Endian::Little] {
        let form = Form { endian, ..BIG };
        let mut frame = form.write(|e| Any::of(&root).encode(e)).unwrap();
        let arena = Arena::new(1 << 12);
        let any = form.read(&mut frame, &arena, Any::decode).unwrap();
        assert_eq!(*any.type_code(), NODE);
        assert_eq!(any.extract::<Node<'_>>(), Ok(root));
        assert_eq!(any.to_owned(), AnyBuf::new(&root).unwrap());
    }
    let deep = octets(&NODE, &[[0, 0, 0, 9], [0, 0, 0, 1]].concat().repeat(100));
    assert_eq!(error(&deep), Some(CdrError::TooDeep));
}

#[test]
fn a_wide_string_is_told_apart_from_a_narrow_one() {
    let any = AnyBuf::new(&WideStr("Δx")).unwrap();
    let arena = Arena::new(512);
    let view = any.as_view_in(&arena).unwrap();
    assert_eq!(view.extract(), Ok(WideStr("Δx")));
    assert_eq!(view.extract::<&str>(), Err(CdrError::WrongType));
    let old = TextForm {
        wide: WideForm::Illegal,
        ..TextForm::default()
    };
    let form = Form { text: old, ..BIG };
    let written = form.write(|e| view.encode(e)).err();
    assert_eq!(written, Some(CdrError::WideNotAllowedWrite));
}

#[test]
fn characters_beyond_ascii_are_owned_and_travel_on() {
    let arena = Arena::new(1 << 10);
    let mut frame = BIG.write(|e| Any::of(&Char(0xe4)).encode(e)).unwrap();
    let any = BIG.read(&mut frame, &arena, Any::decode).unwrap();
    let own = any.to_owned();
    assert_eq!(own, AnyBuf::new(&Char(0xe4)).unwrap());
    let view = own.as_view_in(&arena).unwrap();
    assert_eq!(view.extract(), Ok(Char(0xe4)));
    let written = BIG.write(|e| own.encode(e)).unwrap();
    assert_eq!(written.as_slice(), [0, 0, 0, 9, 0xe4]);
    let utf8 = TextForm {
        narrow: CharSet::Utf8,
        ..TextForm::default()
    };
    let form = Form { text: utf8, ..BIG };
    assert_eq!(
        form.write(|e| own.encode(e)).err(),
        Some(CdrError::UnmappableChar)
    );
}

#[test]
fn a_bounded_string_that_was_received_can_be_owned() {
    let arena = Arena::new(1 << 10);
    let bounded = TypeCode::String { bound: 3 };
    let octets = octets(&bounded, &[0, 0, 0, 4, 0xe4, 0xf6, 0xfc, 0]);
    let mut frame = BIG.write(|e| e.write_octets(&octets)).unwrap();
    let any = BIG.read(&mut frame, &arena, Any::decode).unwrap();
    let written = BIG.write(|e| any.to_owned().encode(e)).unwrap();
    assert_eq!(written.as_slice(), octets);
    assert_eq!(
        AnyBuf::with_type(bounded, &"abcd").err(),
        Some(CdrError::BoundExceeded)
    );
}

#[test]
fn what_the_other_code_set_lacks_is_an_error() {
    let any = AnyBuf::new(&"Δ").unwrap();
    assert_eq!(
        BIG.write(|e| any.encode(e)).err(),
        Some(CdrError::UnmappableChar)
    );
    let utf8 = TextForm {
        narrow: CharSet::Utf8,
        ..TextForm::default()
    };
    let form = Form { text: utf8, ..BIG };
    let mut frame = form.write(|e| any.encode(e)).unwrap();
    let arena = Arena::new(512);
    let any = form.read(&mut frame, &arena, Any::decode).unwrap();
    assert_eq!(any.extract::<&str>(), Ok("Δ"));
}

#[test]
fn valuetypes_are_null_or_refused() {
    let value = TypeCode::Value {
        id: "IDL:V:1.0",
        name: "V",
        modifier: ValueModifier::None,
        base: None,
        members: &[],
    };
    assert_eq!(error(&octets(&value, &[0; 4])), None);
    assert_eq!(
        error(&octets(&value, &[0x7f, 0xff, 0xff, 2])),
        Some(CdrError::OpaqueValue)
    );
    let native = TypeCode::Native {
        id: "IDL:N:1.0",
        name: "N",
    };
    assert_eq!(
        error(&octets(&native, &[0; 4])),
        Some(CdrError::OpaqueValue)
    );
    assert_eq!(
        error(&octets(&TypeCode::Principal, &[0; 4])),
        Some(CdrError::OpaqueValue)
    );
}

#[test]
fn a_value_that_is_not_of_its_type_is_refused() {
    let string = TypeCode::String { bound: 3 };
    assert_eq!(error(&octets(&string, b"\0\0\0\x04abc\0")), None);
    assert_eq!(
        error(&octets(&string, b"\0\0\0\x05abcd\0")),
        Some(CdrError::BoundExceeded)
    );
    assert_eq!(
        error(&octets(&string, b"\0\0\0\x03abc")),
        Some(CdrError::UnterminatedString)
    );
    assert_eq!(
        error(&octets(&string, b"\0\0\0\x03a\0\0")),
        Some(CdrError::EmbeddedNul)
    );
    assert_eq!(
        error(&octets(&string, b"\xff\xff\xff\xff")),
        Some(CdrError::LengthOverflow)
    );
    assert_eq!(
        error(&octets(&TypeCode::ULong, &[0; 3])),
        Some(CdrError::EndOfData)
    );
    let wide = TypeCode::WString { bound: 1 };
    assert_eq!(error(&octets(&wide, b"\0\0\0\x02\0a")), None);
    assert_eq!(
        error(&octets(&wide, b"\0\0\0\x04\xfe\xff\0a")),
        None,
        "the mark does not count"
    );
    assert_eq!(
        error(&octets(&wide, b"\0\0\0\x04\0a\0b")),
        Some(CdrError::BoundExceeded)
    );
    assert_eq!(
        error(&octets(&wide, b"\0\0\0\x02\xd8\0")),
        Some(CdrError::UnmappableChar)
    );
    assert_eq!(
        error(&octets(&wide, b"\0\0\0\x01a")),
        Some(CdrError::InvalidWideChar)
    );
    let color = TypeCode::Enum {
        id: "IDL:Color:1.0",
        name: "Color",
        members: &["red", "green"],
    };
    assert_eq!(error(&octets(&color, &[0, 0, 0, 1])), None);
    assert_eq!(
        error(&octets(&color, &[0, 0, 0, 2])),
        Some(CdrError::InvalidEnum)
    );
    let fixed = TypeCode::Fixed {
        digits: 5,
        scale: 2,
    };
    assert_eq!(error(&octets(&fixed, &[0x12, 0x34, 0x5c])), None);
    assert_eq!(
        error(&octets(&fixed, &[0x12, 0x34, 0x56])),
        Some(CdrError::InvalidFixed)
    );
}

#[test]
fn a_union_without_an_arm_for_its_discriminator_has_no_more_than_that() {
    let union = TypeCode::Union {
        id: "IDL:U:1.0",
        name: "U",
        discriminator: &TypeCode::Boolean,
        default_index: None,
        members: &[UnionMember {
            label: 1,
            name: "value",
            type_code: TypeCode::ULong,
        }],
    };
    let frame = BIG.write(|e| {
        union.encode(e)?;
        e.write_bool(false)
    });
    assert_eq!(error(frame.unwrap().as_slice()), None);
    let frame = BIG.write(|e| {
        union.encode(e)?;
        e.write_bool(true)
    });
    assert_eq!(error(frame.unwrap().as_slice()), Some(CdrError::EndOfData));
}

#[test]
fn values_without_octets_cost_no_time() {
    let nothing = TypeCode::Struct {
        id: "IDL:Nothing:1.0",
        name: "Nothing",
        members: &[],
    };
    let array = TypeCode::Array {
        element: &nothing,
        length: u32::MAX,
    };
    let arrays = TypeCode::Sequence {
        element: &array,
        bound: 0,
    };
    let sequences = TypeCode::Sequence {
        element: &arrays,
        bound: 0,
    };
    assert_eq!(error(&octets(&array, &[])), None);
    let body = [[0, 0, 0, 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
    assert_eq!(error(&octets(&sequences, &body)), None);
    let none = [StructMember {
        name: "",
        type_code: nothing,
    }; 100];
    let nested = TypeCode::Struct {
        id: "IDL:Nested:1.0",
        name: "Nested",
        members: &[
            StructMember {
                name: "octet",
                type_code: TypeCode::Octet,
            },
            StructMember {
                name: "nothing",
                type_code: TypeCode::Struct {
                    id: "IDL:Much:1.0",
                    name: "Much",
                    members: &none,
                },
            },
        ],
    };
    let many = TypeCode::Sequence {
        element: &nested,
        bound: 0,
    };
    let frame = BIG.write(|e| {
        many.encode(e)?;
        e.write_seq(&[0_u8; 5000])
    });
    let arena = Arena::new(1 << 20);
    let mut frame = frame.unwrap();
    let read = BIG.read(&mut frame, &arena, Any::decode);
    assert_eq!(
        read.err(),
        Some(CdrError::TooMuchWork),
        "a hundred steps for an octet"
    );
}

#[test]
fn a_value_in_fragments_of_giop_1_1_is_walked_and_extracted_and_passed_on() {
    let parts = TypeCode::Struct {
        id: "IDL:Parts:1.0",
        name: "Parts",
        members: &[TypeCode::ULong, TypeCode::Double, TypeCode::ULong].map(|type_code| {
            StructMember {
                name: "part",
                type_code,
            }
        }),
    };
    // The header of a fragment is 12 octets long, so that 4 of padding stand before a double.
    let (first, double, last) = ([0, 0, 0, 1], 1.5_f64.to_be_bytes(), [0, 0, 0, 2]);
    for endian in [Endian::Big, Endian::Little] {
        let form = Form { endian, ..BIG };
        let head = form.write(|e| {
            parts.encode(e)?;
            e.write_u32(1)
        });
        let tail = Form { before: 12, ..form }.write(|e| {
            e.write_f64(1.5)?;
            e.write_u32(2)
        });
        let mut frame = head.unwrap();
        frame.join(&tail.unwrap().as_slice()[12..]).unwrap();
        let arena = Arena::new(1 << 12);
        let any = Any::decode(&mut frame.decoder(0, endian, &arena)).unwrap();
        let read = any.extract_with(&parts, |d| {
            Ok((d.read_u32()?, d.read_f64()?, d.read_u32()?))
        });
        assert_eq!(read, Ok((1, 1.5, 2)));
        let whole = BIG.write(|e| any.encode(e)).unwrap();
        let body = [&first[..], &[0; 4], &double, &last].concat();
        assert!(whole.as_slice().ends_with(&body) || whole.as_slice().ends_with(&body[8..]));
        let again = any.to_owned();
        assert_eq!(again.as_view_in(&arena).unwrap().to_owned(), again);
    }
}

#[test]
fn a_string_and_a_number_cost_their_octets() {
    let form = Form {
        endian: Endian::NATIVE,
        ..BIG
    };
    let any = AnyBuf::new(&"ACME").unwrap();
    let frame = form.write(|e| any.encode(e)).unwrap();
    assert_eq!(frame.len(), 4 + 4 + 4 + 5);
    let any = AnyBuf::new(&7_u64).unwrap();
    let frame = form.write(|e| any.encode(e)).unwrap();
    assert_eq!(frame.len(), 4 + 4 + 8);
    assert_eq!(u64::TYPE_CODE, *any.type_code());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_value_goes_from_any_form_to_any_other(
        value in typed(0),
        from in forms(),
        to in forms(),
    ) {
        let arena = Arena::new(1 << 16);
        let type_code = value.shape.0.type_code(&arena);
        let data = Ref(&value.data);
        let given = Any::with_type(&type_code, &data);
        let mut frame = from.write(|e| value.encode(e)).unwrap();
        let inserted = from.write(|e| given.encode(e)).unwrap();
        prop_assert_eq!(inserted.as_slice(), frame.as_slice());

        let message = Arena::new(1 << 18);
        let any = from.read(&mut frame, &message, Any::decode).unwrap();
        value.expect(&any);
        value.expect(&any);
        let expected = to.write(|e| value.encode(e)).unwrap();
        // A type code within it may stay in the byte order that it came in.
        let mut passed_on = to.write(|e| any.encode(e)).unwrap();
        prop_assert_eq!(passed_on.len(), expected.len());
        value.expect(&to.read(&mut passed_on, &message, Any::decode).unwrap());

        let own = any.to_owned();
        prop_assert_eq!(&own, &AnyBuf::with_type(type_code, &data).unwrap());
        prop_assert_eq!(&own, &given.to_owned());
        let written = to.write(|e| own.encode(e)).unwrap();
        prop_assert_eq!(written.as_slice(), expected.as_slice());
        value.expect(&own.as_view_in(&message).unwrap());
    }

    #[test]
    fn octets_that_were_changed_are_an_any_or_an_error(
        value in typed(0),
        form in forms(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut frame = form.write(|e| value.encode(e)).unwrap();
        let n = frame.len();
        if n > form.before {
            for (index, octet) in changes {
                let at = form.before + index.index(n - form.before);
                frame.as_mut_slice()[at] = octet;
            }
            frame.truncate(n - cut.index(4).min(n - form.before));
        }
        let arena = Arena::new(1 << 16);
        if let Ok(any) = form.read(&mut frame, &arena, Any::decode) {
            let own = any.to_owned();
            let again = own.as_view_in(&arena).map(|any| any.to_owned());
            prop_assert!(again.is_err() || again.as_ref() == Ok(&own));
            let _ = format!("{any:?}");
        }
    }

    #[test]
    fn arbitrary_octets_are_an_any_or_an_error(
        octets in vec(any::<u8>(), 0..64),
        kind in 0..40_u8,
    ) {
        let octets = [vec![0, 0, 0, kind], octets].concat();
        let _ = error(&octets);
    }
}

#[test]
fn a_discriminator_of_half_a_character_is_refused_as_a_char_is() {
    let union = TypeCode::Union {
        id: "IDL:U:1.0",
        name: "U",
        discriminator: &TypeCode::Char,
        default_index: None,
        members: &[],
    };
    for (narrow, expected) in [
        (CharSet::Latin1, None),
        (CharSet::Utf8, Some(CdrError::UnmappableChar)),
    ] {
        let text = TextForm { narrow, ..BIG.text };
        for type_code in [union, TypeCode::Char] {
            let mut octets = octets(&type_code, &[0xe9]);
            let arena = Arena::new(1 << 12);
            let d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
            let read = Any::decode(&mut d.with_text(text));
            assert_eq!(read.err(), expected);
        }
    }
}

#[test]
fn an_owned_any_needs_no_arena() {
    const fn travels<T: Send + Sync + 'static>(_: &T) {}

    let number = AnyBuf::new(&7_i32).unwrap();
    travels(&number);
    assert_eq!(number.extract::<i32>(), Ok(7));
    assert_eq!(number.extract::<u32>(), Err(CdrError::WrongType));
    let text = AnyBuf::new(&"text").unwrap();
    let owned = text.with_view(|any| any.extract::<&str>().map(str::to_owned));
    assert_eq!(owned.as_deref(), Ok("text"));
    assert_eq!(AnyBuf::default().extract::<()>(), Err(CdrError::WrongType));

    // More room than the octets have is found for values that need it.
    let leaves = [Node {
        number: 1,
        children: &[],
    }; 1000];
    let root = Node {
        number: 2,
        children: &leaves,
    };
    let tree = AnyBuf::new(&root).unwrap();
    let count = tree.with_view(|any| Ok(any.extract::<Node<'_>>()?.children.len()));
    assert_eq!(count, Ok(1000));
    // What never has room is given up.
    let full = tree.with_view(|_| Err::<(), _>(CdrError::ArenaFull));
    assert_eq!(full, Err(CdrError::ArenaFull));
}

#[test]
fn an_owned_any_is_sent_by_its_view() {
    let tree = AnyBuf::new(&Node {
        number: 3,
        children: &[],
    });
    for any in [
        tree.unwrap(),
        AnyBuf::new(&"text").unwrap(),
        AnyBuf::default(),
    ] {
        let view = any.as_view();
        assert_eq!(view.type_code(), any.type_code());
        assert_eq!(view.to_owned(), any);
        assert_eq!(view, any.as_view());
        for form in [
            BIG,
            Form {
                endian: Endian::Little,
                ..BIG
            },
        ] {
            let written = form.write(|e| view.encode(e)).unwrap();
            let expected = form.write(|e| any.encode(e)).unwrap();
            assert_eq!(written.as_slice(), expected.as_slice());
        }
        // As an any of a value, it has no room to extract into.
        assert!(view.extract::<&str>().is_err());
    }
}

#[test]
fn an_owned_any_is_made_by_a_function_that_writes() {
    let made = AnyBuf::encoded::<String>(|e| e.write_str("text"));
    assert_eq!(made, AnyBuf::new(&"text"));
    let short = AnyBuf::encoded::<u32>(|e| e.write_u16(1));
    assert!(short.is_err(), "{short:?}");
    let long = AnyBuf::encoded::<u16>(|e| e.write_u32(1));
    assert_eq!(long, Err(CdrError::WrongType));
}
