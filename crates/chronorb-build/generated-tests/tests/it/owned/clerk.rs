//! A sorter whose results are owned, with the behaviour of the borrowing one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chronorb::prelude::*;
use chronorb_generated_tests::owned::queue::post::{
    CountErrorBuf, Letter, LetterBuf, Office, OfficeOwnedServant, Shut, SorterOwnedServant,
    SorterSkeleton, UnknownBuf,
};

type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of the servant.
pub(crate) fn sorter() -> SorterSkeleton<impl SorterOwnedServant> {
    SorterSkeleton::new(Clerk::default())
}

#[derive(Default)]
pub(super) struct Clerk {
    rung: AtomicBool,
}

impl OfficeOwnedServant for Clerk {
    fn count(&self, _: &Call<'_>, name: &str) -> Result<i32, CountErrorBuf> {
        match name {
            "closed" => Err(Shut.into()),
            "" => Err(UnknownBuf::default().into()),
            name => Ok(name.len() as i32),
        }
    }

    fn motto(&self, _: &Call<'_>) -> Returns<String> {
        Ok("in time".to_owned())
    }

    fn set_motto(&self, _: &Call<'_>, value: &str) -> Returns<()> {
        match value {
            "in time" => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::NoPermission, 0)),
        }
    }

    fn sweep(&self, _: &Call<'_>) -> Returns<()> {
        Ok(())
    }

    fn ring(&self, _: &Call<'_>) -> Returns<()> {
        self.rung.store(true, Ordering::Release);
        Ok(())
    }
}

impl SorterOwnedServant for Clerk {
    fn sort(&self, _: &Call<'_>, one: &Letter<'_>, others: &[Letter<'_>]) -> Returns<LetterBuf> {
        Ok(others.first().unwrap_or(one).to_owned())
    }

    fn exchange(
        &self,
        _: &Call<'_>,
        mine: &mut LetterBuf,
        stamps: &mut i32,
    ) -> Returns<(i32, LetterBuf, String)> {
        let yours = mine.clone();
        mine.text = "changed".to_owned();
        *stamps += 1;
        Ok((*stamps * 10, yours, "thanks".to_owned()))
    }

    fn swap(&self, _: &Call<'_>, a: &mut String, b: &mut String) -> Returns<()> {
        std::mem::swap(a, b);
        Ok(())
    }

    fn visit(&self, _: &Call<'_>, visitor: Option<&Office>) -> Returns<Option<Office>> {
        Ok(visitor.cloned())
    }

    fn wait(&self, _: &Call<'_>) -> Returns<()> {
        while !self.rung.swap(false, Ordering::AcqRel) {
            thread::yield_now();
        }
        Ok(())
    }
}
