//! A relay of unions whose results are owned, with the behaviour of the borrowing one.

use chronorb::data::Char;
use chronorb::prelude::*;
use chronorb_generated_tests::owned::unions::choice::{
    All, AllBuf, Content, ContentBuf, Flag, FlagBuf, Kind, Letter, Never, PassContentErrorBuf,
    RefusedBuf, RelayOwnedServant, RelaySkeleton, Several, SeveralBuf, Small,
};

type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of a servant that returns its arguments.
pub(crate) fn relay() -> RelaySkeleton<impl RelayOwnedServant> {
    RelaySkeleton::new(Echo)
}

struct Echo;

impl RelayOwnedServant for Echo {
    fn pass_small(&self, _: &Call<'_>, a: &Small, b: &mut Small) -> Returns<(Small, Small)> {
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn pass_content(
        &self,
        _: &Call<'_>,
        a: &Content<'_>,
        b: &mut ContentBuf,
    ) -> Result<(ContentBuf, ContentBuf), PassContentErrorBuf> {
        let what = Small::Other(5);
        match *a {
            Content::Count(0) => Err(RefusedBuf { why: b.clone() }.into()),
            Content::Count(1) => Err(Never { what }.into()),
            // A discriminator of another member.
            Content::Count(2) => {
                let wrong = ContentBuf::Text {
                    discriminator: Kind::Number,
                    value: String::new(),
                };
                Ok((a.to_owned(), wrong))
            }
            _ => Ok((a.to_owned(), std::mem::replace(b, a.to_owned()))),
        }
    }

    fn pass_several(
        &self,
        _: &Call<'_>,
        a: &Several<'_>,
        b: &mut SeveralBuf,
    ) -> Returns<SeveralBuf> {
        Ok(std::mem::replace(b, a.to_owned()))
    }

    fn pass_all(&self, _: &Call<'_>, a: &All<'_>) -> Returns<AllBuf> {
        Ok(a.to_owned())
    }

    fn pass_flag(&self, _: &Call<'_>, a: &Flag<'_>) -> Returns<FlagBuf> {
        Ok(a.to_owned())
    }

    fn sign(&self, _: &Call<'_>) -> Returns<Letter> {
        Ok(Letter::Other(Char(b'z')))
    }

    fn set_sign(&self, _: &Call<'_>, value: &Letter) -> Returns<()> {
        match value {
            Letter::First(_) => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::BadParam, 0)),
        }
    }
}
