//! A store whose results are owned, with the behaviour of the borrowing one.

use chronorb::data::{Any, AnyBuf, TypeCodeBuf, Typed};
use chronorb::prelude::*;
use chronorb_generated_tests::owned::dynamic::live::{
    Bag, BagBuf, Either, EitherBuf, Level, MistakenBuf, Money, PutErrorBuf, Reading,
    StoreOwnedServant, StoreSkeleton,
};

type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of a servant that returns its arguments; strings are refused.
pub(crate) fn store() -> StoreSkeleton<impl StoreOwnedServant> {
    StoreSkeleton::new(Shelf)
}

struct Shelf;

impl StoreOwnedServant for Shelf {
    fn put(
        &self,
        _: &Call<'_>,
        a: &Any<'_>,
        b: &mut AnyBuf,
    ) -> Result<(AnyBuf, AnyBuf), PutErrorBuf> {
        if a.holds::<&str>() {
            let expected = TypeCodeBuf::from_static(&Reading::TYPE_CODE);
            let found = a.to_owned();
            return Err(MistakenBuf { expected, found }.into());
        }
        Ok((a.to_owned(), std::mem::replace(b, a.to_owned())))
    }

    fn type_of(&self, _: &Call<'_>, a: &Any<'_>, b: &mut TypeCodeBuf) -> Returns<TypeCodeBuf> {
        Ok(std::mem::replace(b, TypeCodeBuf::from(a.type_code())))
    }

    fn fill(&self, _: &Call<'_>, a: &Bag<'_>) -> Returns<BagBuf> {
        Ok(a.to_owned())
    }

    fn sum(&self, _: &Call<'_>, a: Money, b: &mut Money) -> Returns<(Money, Money)> {
        let overflow = SystemException::no(SystemExceptionKind::DataConversion, 0);
        let sum = a.checked_add(*b).ok_or(overflow)?;
        Ok((sum, std::mem::replace(b, a)))
    }

    fn choose(&self, _: &Call<'_>, a: &Either<'_>) -> Returns<EitherBuf> {
        Ok(a.to_owned())
    }

    fn content(&self, _: &Call<'_>) -> Returns<AnyBuf> {
        Ok(AnyBuf::new(&7_i32)?)
    }

    fn set_content(&self, _: &Call<'_>, value: &Any<'_>) -> Returns<()> {
        match value.extract::<Reading<'_>>() {
            Ok(reading) if reading.how == Level::High => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::BadParam, 0)),
        }
    }

    fn greet(&self, _: &Call<'_>, guest: &str, context: &[(&str, &str)]) -> Returns<String> {
        let context = context
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let context: Vec<_> = context.collect();
        Ok(format!("{guest}: {}", context.join(" ")))
    }
}
