//! Names that Rust uses itself can be implemented and called.

use chronorb::Skeleton;
use chronorb::prelude::*;
use chronorb_generated_tests::names::lib;

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
