//! Implementation and calls of definitions whose names Rust uses itself.

use chronorb::Skeleton;
use chronorb::prelude::*;
use chronorb_generated_tests::names::lib;

use crate::ways::in_one_orb;

struct Converter;

impl lib::FromServant for Converter {
    fn convert<'a>(
        &self,
        _: &Call<'a>,
        a: &lib::Box<'a>,
        b: &mut lib::Iterator<'a>,
    ) -> Result<(lib::Result<'a>, lib::Send), lib::ConvertError<'a>> {
        match b.rest.len() {
            0 => Err(lib::Ok_.into()),
            1 => Err(lib::Err_ {
                text: b.rest[0].text,
            }
            .into()),
            2 => Err(lib::System { n: 2 }.into()),
            _ => Ok((a.inside, lib::Send::default())),
        }
    }

    fn keep<'a>(&self, _: &Call<'a>, text: &lib::S<'a>) -> Result<lib::S<'a>, SystemException> {
        Ok(*text)
    }

    fn clone(&self, _: &Call<'_>, d: lib::Default) -> Result<lib::Default, SystemException> {
        Ok(d)
    }

    fn r#gen(&self, _: &Call<'_>, _: i32, _: i32, _: i32, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn locals<'a>(
        &self,
        _: &Call<'a>,
        scope: &'a str,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> Result<&'a str, SystemException> {
        Ok(scope)
    }

    fn more<'a>(
        &self,
        _: &Call<'a>,
        encode: &mut &'a str,
        _: &mut &'a str,
        _: &mut &'a str,
    ) -> Result<(&'a str, &'a str), SystemException> {
        Ok((encode, "result"))
    }

    fn same<'a>(
        &self,
        call: &Call<'a>,
        arena: &mut &'a [&'a str],
        owned: &mut &'a [&'a str],
        servant: &'a str,
        answer: &'a str,
        value: &mut &'a str,
        error: &'a str,
    ) -> Result<&'a str, lib::SameError<'a>> {
        if arena.len() != owned.len() {
            return Err(lib::Err_ { text: error }.into());
        }
        std::mem::swap(arena, owned);
        *owned = call.slice(&[servant, answer])?;
        Ok(std::mem::replace(value, answer))
    }

    fn renamed(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn types_named_like_those_of_the_library_are_told_from_them() {
    let skeleton = lib::FromSkeleton::new(Converter);
    assert!(Skeleton::is_a(&skeleton, lib::From::REPOSITORY_ID));
    assert_eq!(lib::From::REPOSITORY_ID, "IDL:lib/From:1.0");
    assert_eq!(lib::Err_ { text: "why" }.to_string(), "err (text: \"why\")");
    let error: lib::ConvertError<'_> = lib::System { n: 4 }.into();
    assert_eq!(error.to_string(), "system (n: 4)");
}

struct Difference;

impl lib::BesideServant for Difference {
    fn difference(&self, _: &Call<'_>, level: i32, level_: i16) -> Result<i32, SystemException> {
        Ok(level - i32::from(level_))
    }
}

#[test]
fn escaped_names_beside_plain_ones_end_with_an_underscore() {
    let _ = lib::BesideSkeleton::new(Difference);
    let twins = lib::Twins {
        level: 5,
        level_: 3,
    };
    assert_eq!(twins.level - i32::from(twins.level_), 2);
    assert_ne!(lib::Twin::Level(5), lib::Twin::Level_(5));
}

#[test]
fn parameters_named_like_what_the_generated_code_uses_are_passed() {
    in_one_orb(|root| {
        let skeleton = lib::FromSkeleton::new(Converter);
        let from = lib::From::unchecked_narrow(&root.serve(skeleton).expect("served"));

        let strings = |items: &[&str]| items.iter().map(|&s| s.into()).collect::<Vec<String>>();
        let (mut arena, mut owned) = (strings(&["a"]), strings(&["o"]));
        let mut value = "value".to_owned();
        let result = from.same(&mut arena, &mut owned, "servant", "answer", &mut value, "");
        assert_eq!(result.expect("called"), "value");
        assert_eq!((arena, value.as_str()), (strings(&["o"]), "answer"));
        assert_eq!(owned, ["servant", "answer"]);

        let error = from.same(&mut vec![], &mut owned, "", "", &mut value, "lengths");
        let error = error.expect_err("an exception");
        assert_eq!(error.to_string(), "err (text: \"lengths\")");
        assert_eq!(from.clone(lib::Default::Clone), Ok(lib::Default::Clone));
    });
}
