//! Bit masks and bit sets, enums with numbers, and the effects of annotations on members.

use std::collections::HashSet;

use chronorb::SystemExceptionKind;
use chronorb::data::{Arena, Char, TypeCode, Typed};
use chronorb::prelude::*;
use chronorb_cdr::{Cdr, CdrError, Decoder, Endian};
use chronorb_generated_tests::marked::marks::{
    Access, ByOpen, ByTiny, ByTinyBuf, Extended, Header, Key, Named, Open, Panel, PanelServant,
    PanelSkeleton, Partial, PartialBuf, Plain, Settings, SettingsBuf, Tagged, Tiny, Wide, Widest,
};

use crate::ways::{in_each_way, octets, there_and_back};

fn read<'a, T: Cdr<'a>>(octets: &'a mut [u8], arena: &'a Arena) -> Result<T, CdrError> {
    T::decode(&mut Decoder::new(octets, 0, Endian::Big, arena))
}

#[test]
fn a_bit_mask_is_an_integer_with_names() {
    let both = Access::READ | Access::ADMIN;
    assert_eq!(both.bits(), 0b100_0001);
    assert!(both.contains(Access::READ) && !both.contains(Access::WRITE));
    assert_eq!(both.to_string(), "READ | ADMIN");
    assert_eq!(both & !Access::READ, Access::ADMIN);
    assert!(Access::default().is_empty());
    assert_eq!(Wide::TOP.bits(), 1 << 31);
    assert_eq!(Widest::LAST.bits(), 1 << 63);
    const READ_WRITE: Access = Access::READ.union(Access::WRITE);
    assert_eq!(READ_WRITE, Access::READ | Access::WRITE);

    assert_eq!(
        octets(Endian::Big, |e| both.encode(e)),
        Ok(vec![0b100_0001])
    );
    let octets = octets(Endian::Big, |e| Widest::FIRST.encode(e));
    assert_eq!(octets, Ok(vec![0, 0, 0, 0, 0, 0, 0, 1]));
}

#[test]
fn bits_without_a_name_are_kept() {
    let arena = Arena::new(64);
    let access: Access = read(&mut [0b1000_0001], &arena).expect("read");
    assert_eq!(access, Access::READ | Access::from_bits(0b1000_0000));
    assert_eq!(access.to_string(), "READ | 0x80");
}

#[test]
fn a_bit_set_has_a_getter_and_a_setter_for_each_field() {
    let header = Header::default()
        .with_version(5)
        .with_urgent(true)
        .with_offset(-2)
        .with_last(true);
    assert_eq!(header.version(), 5);
    assert!(header.urgent() && header.last());
    assert_eq!(header.offset(), -2);
    assert_eq!(header.bits(), 0b111_1111_1110_0000_1101);
    assert_eq!(header.with_version(0xff).version(), 7, "three bits");
    let extended = Extended::from_bits(header.bits().into()).with_sequence_number(0xf_ffff);
    assert_eq!(extended.version(), 5);
    assert_eq!(extended.bits() >> 19, 0xf_ffff);
    assert_eq!(
        octets(Endian::Big, |e| header.encode(e)),
        Ok(vec![0, 7, 0xfe, 0x0d])
    );
    assert_eq!(
        octets(Endian::Big, |e| extended.encode(e)).map(|o| o.len()),
        Ok(8)
    );
}

#[test]
fn enumerators_have_the_numbers_and_the_width_that_annotations_give() {
    assert_eq!(Tiny::default(), Tiny::Many);
    assert_eq!(Tiny::Six as u32, 6);
    assert_eq!(octets(Endian::Big, |e| Tiny::Many.encode(e)), Ok(vec![200]));
    let arena = Arena::new(64);
    assert_eq!(read::<Tiny>(&mut [1], &arena), Err(CdrError::InvalidEnum));
    assert_eq!(read::<Tiny>(&mut [5], &arena), Ok(Tiny::Five));
}

#[test]
fn an_appendable_enum_keeps_numbers_that_it_does_not_know() {
    let arena = Arena::new(64);
    assert_eq!(read::<Open>(&mut [1, 44], &arena), Ok(Open::Second));
    let unknown: Open = read(&mut [0, 1], &arena).expect("read");
    assert_eq!(unknown, Open::Unknown(1));
    assert_eq!(unknown.number(), 1);
    assert_eq!(octets(Endian::Big, |e| unknown.encode(e)), Ok(vec![0, 1]));
    let unknown: Named = read(&mut [0, 0, 0, 9], &arena).expect("read");
    assert_eq!(
        unknown,
        Named::Unknown2(9),
        "the first has an enumerator's name"
    );
    // It selects no member if all known enumerators have a label.
    let by: ByOpen = read(&mut [0, 1], &arena).expect("read");
    assert_eq!(
        by,
        ByOpen::Other2(Open::Unknown(1)),
        "the first has a member's name"
    );
}

#[test]
fn members_have_the_defaults_that_annotations_give() {
    let settings = Settings::default();
    assert_eq!(settings.volume, 50);
    assert_eq!((settings.balance, settings.count), (0.25, 7));
    assert_eq!((settings.speed, settings.level), ("none", Tiny::Many));
    assert_eq!((settings.on, settings.mark), (true, Char(b'x')));
    assert_eq!(SettingsBuf::default(), settings.to_owned());
}

#[test]
fn values_out_of_range_are_neither_written_nor_read() {
    let refused = |settings: Settings<'_>| octets(Endian::Big, |e| settings.encode(e)).map(|_| ());
    let settings = Settings::default();
    assert_eq!(refused(settings), Ok(()));
    let out_of_range = [
        Settings {
            volume: 101,
            ..settings
        },
        Settings {
            volume: -1,
            ..settings
        },
        Settings {
            balance: -1.6,
            ..settings
        },
        Settings {
            balance: f64::NAN,
            ..settings
        },
        Settings {
            count: 0,
            ..settings
        },
    ];
    for settings in out_of_range {
        assert_eq!(refused(settings), Err(CdrError::OutOfRange), "{settings:?}");
    }
    let mut octets = octets(Endian::Big, |e| settings.encode(e)).expect("written");
    octets[3] = 101;
    let arena = Arena::new(64);
    let read = read::<Settings<'_>>(&mut octets, &arena);
    assert_eq!(read, Err(CdrError::OutOfRange));
}

#[test]
fn what_is_optional_may_be_missing() {
    let arena = Arena::new(1 << 12);
    let nothing = PartialBuf::default();
    assert_eq!(octets(Endian::Big, |e| nothing.encode(e)), Ok(vec![0; 7]));
    let all = PartialBuf {
        number: Some(-1),
        text: Some("text".to_owned()),
        inner: Some(SettingsBuf::default()),
        names: Some(vec!["a".to_owned(), String::new()]),
        rights: Some(Access::WRITE),
        few: Some(3),
        target: None,
    };
    let view = all.as_view_in(&arena).expect("room");
    assert_eq!(view.number, Some(-1));
    assert_eq!(view.to_owned(), all);
    there_and_back(&view, |d| {
        assert_eq!(Partial::decode(d)?.to_owned(), all);
        Ok(())
    });
    let few = Partial {
        few: Some(4),
        ..view
    };
    assert_eq!(
        octets(Endian::Big, |e| few.encode(e)),
        Err(CdrError::OutOfRange)
    );
}

#[test]
fn annotations_add_to_the_rust_code() {
    assert!(Settings::default() <= Settings::default());
    let key = |n| Key {
        n,
        rights: Access::READ,
    };
    assert!(HashSet::from([key(1), key(2)]).contains(&key(2)));
    assert_eq!(Tagged { n: 4, kind_: 0 }.twice(), 8);
}

#[test]
fn type_codes_tell_what_corba_has_no_kind_for_by_what_carries_it() {
    let target = |type_code: TypeCode<'static>| match type_code {
        TypeCode::Alias { target, .. } => *target,
        other => other,
    };
    assert_eq!(target(Access::TYPE_CODE), TypeCode::Octet);
    assert_eq!(target(Extended::TYPE_CODE), TypeCode::ULongLong);
    assert_eq!(target(Tiny::TYPE_CODE), TypeCode::Octet);
    assert_eq!(target(Open::TYPE_CODE), TypeCode::UShort);
}

/// A servant that returns its arguments.
struct Echo;

impl PanelServant for Echo {
    fn set<'a>(&self, _: &Call<'a>, a: &Settings<'a>) -> Result<Settings<'a>, SystemException> {
        let volume = if a.volume == 99 { 101 } else { a.volume };
        Ok(Settings { volume, ..*a })
    }

    fn fill<'a>(
        &self,
        _: &Call<'a>,
        a: &Partial<'a>,
        b: &mut Partial<'a>,
    ) -> Result<Partial<'a>, SystemException> {
        Ok(std::mem::replace(b, *a))
    }

    fn many<'a>(&self, _: &Call<'a>, a: &'a [Plain]) -> Result<&'a [Plain], SystemException> {
        Ok(a)
    }

    fn grant(
        &self,
        _: &Call<'_>,
        a: Access,
        b: &mut Wide,
    ) -> Result<(Access, Widest), SystemException> {
        *b = !*b;
        Ok((a, Widest::LAST))
    }

    fn by<'a>(
        &self,
        _: &Call<'a>,
        a: &ByTiny<'a>,
        b: &mut ByOpen,
    ) -> Result<ByTiny<'a>, SystemException> {
        *b = ByOpen::Other2(Open::Unknown(9));
        Ok(*a)
    }

    fn head(&self, _: &Call<'_>, a: Header) -> Result<(Header, Extended), SystemException> {
        Ok((a, Extended::from_bits(a.bits().into())))
    }

    fn tiny_of(&self, _: &Call<'_>, a: Open) -> Result<(Tiny, Named), SystemException> {
        Ok((Tiny::Six, Named::Unknown2(a.number().into())))
    }
}

#[test]
fn they_are_called_with_in_all_directions() {
    let plain = |n: i64| Plain {
        rights: Access::ADMIN,
        bits: Extended::default().with_last(true),
        small: Tiny::Five,
        state: Open::Unknown(7),
        n,
    };
    for served in in_each_way(|| PanelSkeleton::new(Echo)) {
        let panel = Panel::narrow(&served.object).expect("asked").expect("one");
        let settings = Settings::default();
        assert_eq!(panel.set(&settings), Ok(settings.to_owned()));
        for volume in [99, 101] {
            let settings = Settings { volume, ..settings };
            let refused = panel.set(&settings).map_err(|e| e.kind);
            assert_eq!(refused, Err(SystemExceptionKind::BadParam));
        }

        let mut b = PartialBuf::default();
        let partial = Partial {
            text: Some("text"),
            names: Some(&["name"]),
            ..Partial::default()
        };
        assert_eq!(panel.fill(&partial, &mut b), Ok(PartialBuf::default()));
        assert_eq!(b, partial.to_owned());

        let many = [plain(1), plain(2), plain(3)];
        assert_eq!(panel.many(&many).as_deref(), Ok(&many[..]));

        let mut b = Wide::TOP;
        assert_eq!(
            panel.grant(Access::READ, &mut b),
            Ok((Access::READ, Widest::LAST))
        );
        assert_eq!(b.bits(), 0x7fff_ffff);

        let mut b = ByOpen::One(1);
        let some = ByTiny::Some_ {
            discriminator: Tiny::Six,
            value: "six",
        };
        let same = ByTinyBuf::Some_ {
            discriminator: Tiny::Six,
            value: "six".to_owned(),
        };
        assert_eq!(panel.by(&some, &mut b), Ok(same));
        assert_eq!(b, ByOpen::Other2(Open::Unknown(9)));

        let header = Header::default().with_offset(-1);
        let extended = Extended::default().with_offset(-1);
        assert_eq!(panel.head(header), Ok((header, extended)));
        let named = Named::Unknown2(300);
        assert_eq!(panel.tiny_of(Open::Second), Ok((Tiny::Six, named)));
    }
}
