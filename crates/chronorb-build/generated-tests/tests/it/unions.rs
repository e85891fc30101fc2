//! Unions: their variants, their encoding, and calls with them.

use chronorb::SystemExceptionKind;
use chronorb::data::{Arena, Char, LongDouble};
use chronorb::prelude::*;
use chronorb_cdr::{Cdr, CdrError, Decoder, Endian};
use chronorb_generated_tests::unions::choice::{
    All, AllBuf, Content, ContentBuf, Flag, FlagBuf, Greatest, Inside, InsideBuf, Kind, Least,
    Letter, Named, NamedBuf, Never, PassContentError, PassContentErrorBuf, Precise, Refused,
    RefusedBuf, Relay, RelayServant, RelaySkeleton, Several, SeveralBuf, Small, Wide, inside,
};

use crate::ways::{in_each_way_and_owned, octets, there_and_back};

#[test]
fn a_case_with_one_label_is_a_variant_with_the_member() {
    let number = Small::Number(5);
    assert_eq!(number.discriminator(), 1);
    assert_eq!(Small::Ratio(0.5).discriminator(), -2);
    let octets = octets(Endian::Big, |e| number.encode(e)).expect("written");
    assert_eq!(octets, [0, 1, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn other_labels_select_nothing_where_there_is_no_default() {
    let other = Small::Other(3);
    assert_eq!(other.discriminator(), 3);
    assert_eq!(octets(Endian::Big, |e| other.encode(e)), Ok(vec![0, 3]));
    there_and_back(&other, |d| {
        assert_eq!(Small::decode(d)?, other);
        Ok(())
    });
}

#[test]
fn a_default_and_a_case_with_several_labels_keep_the_discriminator() {
    let text = Content::Text {
        discriminator: Kind::Nothing,
        value: "x",
    };
    assert_eq!(text.discriminator(), Kind::Nothing);
    there_and_back(&text, |d| {
        assert_eq!(Content::decode(d)?, text);
        Ok(())
    });
    for discriminator in [1, 2, 3] {
        let low = Several::Low {
            discriminator,
            value: "low",
        };
        there_and_back(&low, |d| {
            let read = Several::decode(d)?;
            assert!(
                matches!(read, Several::Low { discriminator: label, .. } if label == discriminator)
            );
            Ok(())
        });
    }
}

#[test]
fn a_discriminator_of_another_member_cannot_be_written() {
    let refused = Err(CdrError::InvalidDiscriminator);
    let written = |value: &dyn Fn(&mut chronorb_cdr::Encoder<'_>) -> Result<(), CdrError>| {
        octets(Endian::Big, |e| value(e)).map(|_| ())
    };
    let low = Several::Low {
        discriminator: 4,
        value: "",
    };
    assert_eq!(written(&|e| low.encode(e)), refused);
    let target = Several::Target {
        discriminator: 10,
        value: None,
    };
    assert_eq!(written(&|e| target.encode(e)), refused);
    let text = ContentBuf::Text {
        discriminator: Kind::Number,
        value: String::new(),
    };
    assert_eq!(written(&|e| text.encode(e)), refused);
    assert_eq!(written(&|e| Small::Other(7).encode(e)), refused);
}

#[test]
fn labels_are_of_every_type() {
    let letter = Letter::Last(Kind::Text);
    assert_eq!(letter.discriminator(), Char(0xff));
    assert_eq!(Letter::First(Small::Number(1)).discriminator(), Char(b'a'));
    assert_eq!(Wide::Amount(1.0).discriminator(), '\u{20ac}');
    assert_eq!(Least::Fewest(true).discriminator(), i64::MIN);
    assert_eq!(Least::Most(Char(b'x')).discriminator(), i64::MAX);
    assert_eq!(Greatest::Last('x').discriminator(), u64::MAX);
    assert_eq!(
        Precise::Exact(LongDouble::from_f64(1.0)).discriminator(),
        255
    );
    there_and_back(&letter, |d| {
        assert_eq!(Letter::decode(d)?, letter);
        Ok(())
    });
    there_and_back(&Greatest::Last('\u{e4}'), |d| {
        assert_eq!(Greatest::decode(d)?, Greatest::Last('\u{e4}'));
        Ok(())
    });
}

#[test]
fn where_labels_name_all_values_there_is_no_other_variant() {
    let flag = |flag: &Flag<'_>| match flag {
        Flag::Name(name) => name.len(),
        Flag::Reason(reason) => reason.len(),
    };
    assert_eq!(flag(&Flag::Name("abc")), 3);
    assert!(Flag::Reason("x") != Flag::Name("x"));
    let long = octets(Endian::Big, |e| Flag::Name("123456789").encode(e));
    assert_eq!(long, Err(CdrError::BoundExceeded));
    assert_eq!(
        octets(Endian::Big, |e| FlagBuf::Reason("12345".to_owned())
            .encode(e)),
        Err(CdrError::BoundExceeded)
    );
}

#[test]
fn the_default_is_the_first_member() {
    assert_eq!(Small::default(), Small::Number(0));
    assert_eq!(ContentBuf::default(), ContentBuf::Count(0));
    let several = SeveralBuf::Low {
        discriminator: 1,
        value: String::new(),
    };
    assert_eq!(SeveralBuf::default(), several);
}

#[test]
fn members_may_be_called_as_generated_code_is() {
    let names = [
        Named::Other(1),
        Named::Other2("x"),
        Named::Self_(2),
        Named::Value(true),
        Named::Discriminator(4),
        Named::ToOwned("y"),
        Named::None_("z"),
        Named::Ok_(5),
        Named::Arena(&["a"]),
        Named::Items(&[&["b"], &[]]),
        Named::Other3(77),
    ];
    let arena = Arena::new(4096);
    for (label, name) in names.into_iter().enumerate() {
        if label < 10 {
            assert_eq!(name.discriminator() as usize, label);
        }
        let owned = name.to_owned();
        assert_eq!(owned.as_view_in(&arena), Ok(name));
        assert_eq!(
            octets(Endian::Little, |e| owned.encode(e)),
            octets(Endian::Little, |e| name.encode(e))
        );
    }
}

#[test]
fn an_unknown_discriminator_is_refused_where_it_selects_nothing() {
    let arena = Arena::new(64);
    let mut octets = [0, 0, 0, 9, 0, 0, 0, 0];
    let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
    // The enum has three enumerators; the default covers only the remaining ones.
    assert_eq!(Content::decode(&mut d), Err(CdrError::InvalidEnum));
}

fn all() -> AllBuf {
    AllBuf {
        a: Small::Octets([1, 2, 3]),
        b: ContentBuf::Count(-5),
        c: SeveralBuf::Contents(vec![
            ContentBuf::Count(1),
            ContentBuf::Text {
                discriminator: Kind::Text,
                value: "text".to_owned(),
            },
        ]),
        d: FlagBuf::Reason("why?".to_owned()),
        e: Letter::First(Small::Ratio(0.25)),
        f: InsideBuf::Where(inside::Point { x: 1, y: -1 }),
        g: NamedBuf::Items(vec![vec!["deep".to_owned()], vec![]]),
        many: [
            ContentBuf::Count(3),
            ContentBuf::Text {
                discriminator: Kind::Nothing,
                value: String::new(),
            },
        ],
        smalls: vec![Small::Number(1), Small::Other(9), Small::Ratio(2.0)],
    }
}

/// A servant that returns its arguments.
struct Echo;

impl RelayServant for Echo {
    fn pass_small(
        &self,
        _: &Call<'_>,
        a: &Small,
        b: &mut Small,
    ) -> Result<(Small, Small), SystemException> {
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn pass_content<'a>(
        &self,
        call: &Call<'a>,
        a: &Content<'a>,
        b: &mut Content<'a>,
    ) -> Result<(Content<'a>, Content<'a>), PassContentError<'a>> {
        match a {
            Content::Count(0) => Err(Refused { why: *b }.into()),
            Content::Count(1) => Err(Never {
                what: Small::Other(5),
            }
            .into()),
            // A discriminator of another member.
            Content::Count(2) => Ok((
                *a,
                Content::Text {
                    discriminator: Kind::Number,
                    value: call.keep(String::new()),
                },
            )),
            _ => Ok((*a, std::mem::replace(b, *a))),
        }
    }

    fn pass_several<'a>(
        &self,
        _: &Call<'a>,
        a: &Several<'a>,
        b: &mut Several<'a>,
    ) -> Result<Several<'a>, SystemException> {
        Ok(std::mem::replace(b, *a))
    }

    fn pass_all<'a>(&self, _: &Call<'a>, a: &All<'a>) -> Result<All<'a>, SystemException> {
        Ok(*a)
    }

    fn pass_flag<'a>(&self, _: &Call<'a>, a: &Flag<'a>) -> Result<Flag<'a>, SystemException> {
        Ok(*a)
    }

    fn sign(&self, _: &Call<'_>) -> Result<Letter, SystemException> {
        Ok(Letter::Other(Char(b'z')))
    }

    fn set_sign(&self, _: &Call<'_>, value: &Letter) -> Result<(), SystemException> {
        match value {
            Letter::First(_) => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::BadParam, 0)),
        }
    }
}

fn relays() -> impl Iterator<Item = (crate::ways::ServedObject, Relay)> {
    in_each_way_and_owned(|| RelaySkeleton::new(Echo), crate::owned::relay).map(|served| {
        let relay = Relay::narrow(&served.object).expect("asked").expect("one");
        (served, relay)
    })
}

#[test]
fn unions_are_called_with_in_all_directions() {
    for (served, relay) in relays() {
        let mut b = Small::Number(1);
        let result = relay.pass_small(&Small::Ratio(0.5), &mut b);
        assert_eq!(result, Ok((Small::Ratio(0.5), Small::Number(1))));
        assert_eq!(b, Small::Ratio(0.5));

        let mut b = ContentBuf::Count(9);
        let text = Content::Text {
            discriminator: Kind::Text,
            value: "text",
        };
        let result = relay.pass_content(&text, &mut b).expect("called");
        assert_eq!(result, (text.to_owned(), ContentBuf::Count(9)));
        assert_eq!(b, text.to_owned());

        let target = Several::Target {
            discriminator: 99,
            value: Some(&served.object),
        };
        let mut b = SeveralBuf::default();
        let result = relay.pass_several(&target, &mut b).expect("called");
        assert_eq!(result, SeveralBuf::default());
        assert!(matches!(
            b,
            SeveralBuf::Target {
                discriminator: 99,
                value: Some(_)
            }
        ));

        assert_eq!(relay.sign(), Ok(Letter::Other(Char(b'z'))));
        assert_eq!(relay.set_sign(&Letter::First(Small::Other(4))), Ok(()));
    }
}

#[test]
fn unions_are_parts_of_structs_and_exceptions() {
    let arena = Arena::new(1 << 16);
    for (_served, relay) in relays() {
        let all = all();
        let view = all.as_view_in(&arena).expect("room");
        assert_eq!(relay.pass_all(&view).as_ref(), Ok(&all));

        let mut b = ContentBuf::Text {
            discriminator: Kind::Text,
            value: "why".to_owned(),
        };
        let why = b.clone();
        assert_eq!(
            relay.pass_content(&Content::Count(0), &mut b),
            Err(PassContentErrorBuf::Refused(RefusedBuf { why }))
        );
        let what = Small::Other(5);
        assert_eq!(
            relay.pass_content(&Content::Count(1), &mut b),
            Err(PassContentErrorBuf::Never(Never { what }))
        );
    }
}

#[test]
fn what_cannot_be_written_is_refused_whatever_the_way() {
    for (_served, relay) in relays() {
        let wrong = Content::Text {
            discriminator: Kind::Number,
            value: "",
        };
        let kind = |error: SystemException| error.kind;
        let refused = relay.pass_content(&wrong, &mut ContentBuf::default());
        let Err(PassContentErrorBuf::System(exception)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(kind(exception), SystemExceptionKind::Marshal);
        let refused = relay.pass_content(&Content::Count(2), &mut ContentBuf::default());
        let Err(PassContentErrorBuf::System(exception)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(kind(exception), SystemExceptionKind::Marshal);
        let long = relay.pass_flag(&Flag::Name("123456789")).map_err(kind);
        assert_eq!(long, Err(SystemExceptionKind::Marshal));
    }
}

#[test]
fn types_inside_a_union_stand_in_a_module_of_its_name() {
    let inside = Inside::Where(inside::Point { x: 1, y: 2 });
    assert_eq!(inside.discriminator(), inside::Which::First);
    there_and_back(&inside, |d| {
        assert_eq!(Inside::decode(d)?, inside);
        Ok(())
    });
}
