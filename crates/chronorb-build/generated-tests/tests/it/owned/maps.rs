//! A shelf whose results are owned, with the behaviour of the borrowing one.

use chronorb::prelude::*;
use chronorb_generated_tests::owned::extended::later::{
    Base, Choice, ChoiceBuf, CountsBuf, Derived, DerivedBuf, Maps, MapsBuf, Nothing,
    ShelfOwnedServant, ShelfSkeleton,
};

type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of a servant that returns its arguments.
pub(crate) fn shelf() -> ShelfSkeleton<impl ShelfOwnedServant> {
    ShelfSkeleton::new(Echo)
}

struct Echo;

impl ShelfOwnedServant for Echo {
    fn sort(&self, _: &Call<'_>, a: &Maps<'_>, b: &mut CountsBuf) -> Returns<MapsBuf> {
        let a = a.to_owned();
        b.clone_from(&a.few);
        Ok(a)
    }

    fn change(
        &self,
        _: &Call<'_>,
        a: &Derived<'_>,
        b: &mut Base,
    ) -> Returns<(DerivedBuf, Vec<Nothing>)> {
        *b = a.into();
        Ok((a.to_owned(), vec![]))
    }

    fn choose(&self, _: &Call<'_>, a: &Choice<'_>) -> Returns<ChoiceBuf> {
        Ok(a.to_owned())
    }

    fn small(&self, _: &Call<'_>, a: i8, b: &mut Vec<u8>) -> Returns<(u8, Vec<i8>)> {
        b.remove(0);
        Ok((a.unsigned_abs(), vec![-1, 1]))
    }
}
