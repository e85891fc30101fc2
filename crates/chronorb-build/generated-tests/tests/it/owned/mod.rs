//! Servants whose results are owned values. The servants stand in for the borrowing ones in the
//! tests of each subject; these are the tests of what is special about them.

mod any;
mod chef;
mod clerk;
mod desk;
mod maps;
mod pages;
mod unions;
mod values;

use chronorb::config::Collocation;
use chronorb::prelude::*;
use chronorb_generated_tests::owned::queue::post::{Letter, Sorter, SorterSkeleton};
use chronorb_generated_tests::owned::types::house::{
    Busy, Failing, FailingServant, FailingSkeleton, FirstError, Kitchen, KitchenOwnedServant,
    KitchenServant, KitchenSkeleton, Level, NotFound, Numbered, SecondError, ThirdError,
    ThirdErrorBuf,
};

pub(crate) use any::store;
pub(crate) use chef::kitchen;
pub(crate) use clerk::sorter;
pub(crate) use desk::desk;
pub(crate) use maps::shelf;
pub(crate) use unions::relay;

use crate::ways::{ServedObject, in_each_way, orb};

/// A servant that borrows beside those that do not.
struct BorrowingServant;

impl FailingServant for BorrowingServant {
    fn first(&self, _: &Call<'_>) -> Result<(), FirstError> {
        Err(Busy.into())
    }

    fn second(&self, _: &Call<'_>) -> Result<(), SecondError> {
        Err(Numbered { number: 5 }.into())
    }

    fn third<'a>(&self, _: &Call<'a>, what: &'a str) -> Result<(), ThirdError<'a>> {
        let r#where = Level::default();
        Err(NotFound { what, r#where }.into())
    }
}

#[test]
fn both_kinds_of_servants_serve_the_same_interface() {
    for served in in_each_way(|| FailingSkeleton::new(BorrowingServant)) {
        let failing = Failing::narrow(&served.object).expect("asked");
        let error = failing.expect("one").third("x").expect_err("raised");
        assert!(matches!(error, ThirdErrorBuf::NotFound(not_found) if not_found.what == "x"));
    }
    for served in in_each_way(|| KitchenSkeleton::new(chef::Chef::default())) {
        let kitchen = Kitchen::narrow(&served.object)
            .expect("asked")
            .expect("one");
        let mut e = "inout".to_owned();
        let out = kitchen.many("in", &mut e).expect("called");
        assert_eq!((out.result.as_str(), out.b.as_str()), ("result", "inout"));
        assert_eq!(e, "in");
        let error = kitchen.third("x").expect_err("raised");
        assert!(matches!(error, ThirdErrorBuf::NotFound(not_found) if not_found.what == "x"));
        assert_eq!(kitchen.label().expect("called"), "label");
    }
}

#[test]
fn a_servant_with_owned_results_is_one_that_borrows() {
    fn borrowing<T: KitchenServant>(servant: T) -> impl KitchenServant {
        servant
    }
    fn owned<T: KitchenOwnedServant>(servant: T) -> impl KitchenServant {
        borrowing(servant)
    }
    let orbs = vec![orb(Collocation::Off), orb(Collocation::Off)];
    let skeleton = KitchenSkeleton::new(owned(chef::Chef::default()));
    let served = ServedObject::by(orbs, skeleton);
    let kitchen = Kitchen::narrow(&served.object)
        .expect("asked")
        .expect("one");
    assert_eq!(kitchen.four().expect("called").z, 4);
}

#[test]
fn one_servant_answers_many_calls() {
    let orbs = vec![orb(Collocation::Off), orb(Collocation::Off)];
    let skeleton = SorterSkeleton::new(clerk::Clerk::default());
    let served = ServedObject::by(orbs, skeleton);
    let sorter = Sorter::unchecked_narrow(&served.object);
    // More octets than the arena of a call has: what a call keeps is freed with its reply.
    let text = "x".repeat(100_000);
    let letter = Letter {
        text: &text,
        stamps: &[1, 2],
    };
    for _ in 0..50 {
        let sorted = sorter.sort(&letter, &[]).expect("called");
        assert_eq!(sorted.text.len(), 100_000);
    }
}
