//! Asynchronous calls of generated handles. Results are taken by waiting, by polling, by a handler
//! and by a future.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use chronorb::config::{Collocation, OrbConfig};
use chronorb::minor;
use chronorb::prelude::*;
use chronorb_generated_tests::queue::post::{
    CountError, CountErrorBuf, ExchangeReply, Letter, LetterBuf, Office, OfficeReplyHandler,
    OfficeServant, Shut, Sorter, SorterReplyHandler, SorterServant, SorterSkeleton, Unknown,
    UnknownBuf,
};

/// Longer than any operation takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Clerk {
    rung: AtomicBool,
}

impl OfficeServant for Clerk {
    fn count<'a>(&self, _: &Call<'a>, name: &'a str) -> Result<i32, CountError<'a>> {
        match name {
            "closed" => Err(Shut.into()),
            "" => Err(Unknown { name }.into()),
            name => Ok(name.len() as i32),
        }
    }

    fn motto<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("in time")
    }

    fn set_motto<'a>(&self, _: &Call<'a>, value: &'a str) -> Result<(), SystemException> {
        match value {
            "in time" => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::NoPermission, 0)),
        }
    }

    fn sweep(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    fn ring(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.rung.store(true, Ordering::Release);
        Ok(())
    }
}

impl SorterServant for Clerk {
    fn sort<'a>(
        &self,
        _: &Call<'a>,
        one: &Letter<'a>,
        others: &'a [Letter<'a>],
    ) -> Result<Letter<'a>, SystemException> {
        Ok(*others.first().unwrap_or(one))
    }

    fn exchange<'a>(
        &self,
        _: &Call<'a>,
        mine: &mut Letter<'a>,
        stamps: &mut i32,
    ) -> Result<(i32, Letter<'a>, &'a str), SystemException> {
        let yours = *mine;
        mine.text = "changed";
        *stamps += 1;
        Ok((*stamps * 10, yours, "thanks"))
    }

    fn swap<'a>(
        &self,
        _: &Call<'a>,
        a: &mut &'a str,
        b: &mut &'a str,
    ) -> Result<(), SystemException> {
        std::mem::swap(a, b);
        Ok(())
    }

    fn visit(
        &self,
        _: &Call<'_>,
        visitor: Option<&Office>,
    ) -> Result<Option<Office>, SystemException> {
        Ok(visitor.cloned())
    }

    fn wait(&self, _: &Call<'_>) -> Result<(), SystemException> {
        let began = Instant::now();
        while !self.rung.swap(false, Ordering::AcqRel) && began.elapsed() < PATIENCE {
            thread::yield_now();
        }
        Ok(())
    }
}

/// A sorter from its client's point of view.
struct ServedSorter {
    orbs: Vec<Orb>,
    sorter: Sorter,
}

impl ServedSorter {
    /// Returns, one after the other, a sorter of another ORB, ones of the client's own, and one of
    /// another ORB with owned results.
    fn in_each_way() -> impl Iterator<Item = Self> {
        let own = [Collocation::ThroughPoa, Collocation::Direct];
        let own = own
            .into_iter()
            .map(|way| Self::by(vec![orb(way)], SorterSkeleton::new(Clerk::default())));
        let other = [()].into_iter().map(|()| Self::elsewhere());
        let pair = || vec![orb(Collocation::Off), orb(Collocation::Off)];
        let owned = [()].into_iter();
        let owned = owned.map(move |()| Self::by(pair(), crate::owned::sorter()));
        other.chain(own).chain(owned)
    }

    fn elsewhere() -> Self {
        let orbs = vec![orb(Collocation::Off), orb(Collocation::Off)];
        Self::by(orbs, SorterSkeleton::new(Clerk::default()))
    }

    fn by(orbs: Vec<Orb>, skeleton: impl chronorb::Skeleton) -> Self {
        let (server, client) = (&orbs[0], &orbs[orbs.len() - 1]);
        let root = server.root_poa().expect("a root POA");
        let object = root.serve(skeleton).expect("served");
        root.manager().activate().expect("active");
        let object = client
            .string_to_object(&server.object_to_string(&object))
            .expect("a reference");
        let sorter = Sorter::unchecked_narrow(&object);
        Self { orbs, sorter }
    }
}

impl Drop for ServedSorter {
    fn drop(&mut self) {
        for orb in self.orbs.iter().rev() {
            orb.shutdown(true).expect("shut down");
        }
    }
}

fn orb(collocation: Collocation) -> Orb {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.collocation = collocation;
    Orb::with_config(config).expect("an ORB")
}

/// Runs a future on a minimal executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(PATIENCE);
    }
}

/// A reply that a handler received.
#[derive(Debug, PartialEq)]
enum SorterReply {
    Count(Result<i32, CountErrorBuf>),
    Motto(Result<String, SystemException>),
    SetMotto(Result<(), SystemException>),
    Sorted(Result<LetterBuf, SystemException>),
}

/// A handler that records its replies.
struct Teller(Sender<SorterReply>);

impl Teller {
    fn new() -> (Arc<Self>, Receiver<SorterReply>) {
        let (sender, receiver) = channel();
        (Arc::new(Self(sender)), receiver)
    }

    fn tell(&self, told: SorterReply) {
        self.0.send(told).expect("the test is there");
    }
}

impl OfficeReplyHandler for Teller {
    fn count(&self, reply: Result<i32, CountErrorBuf>) {
        self.tell(SorterReply::Count(reply));
    }

    fn motto(&self, reply: Result<String, SystemException>) {
        self.tell(SorterReply::Motto(reply));
    }

    fn set_motto(&self, reply: Result<(), SystemException>) {
        self.tell(SorterReply::SetMotto(reply));
    }
}

impl SorterReplyHandler for Teller {
    fn sort(&self, reply: Result<LetterBuf, SystemException>) {
        self.tell(SorterReply::Sorted(reply));
    }

    fn exchange(&self, _: Result<ExchangeReply, SystemException>) {}

    fn swap(&self, _: Result<(String, String), SystemException>) {}

    fn visit(&self, _: Result<Option<Office>, SystemException>) {}

    fn wait(&self, _: Result<(), SystemException>) {}
}

#[test]
fn results_and_exceptions_are_taken_after_the_calls_have_begun() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let known = sorter.begin_count("four").expect("it begins");
        let closed = sorter.begin_count("closed").expect("it begins");
        let unknown = sorter.begin_count("").expect("it begins");
        let name = String::new();
        assert_eq!(
            unknown.wait(),
            Err(CountErrorBuf::Unknown(UnknownBuf { name }))
        );
        assert_eq!(closed.wait(), Err(Shut.into()));
        assert_eq!(known.wait(), Ok(4));
    }
}

#[test]
fn attributes_are_read_and_set() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let motto = sorter.begin_motto().expect("it begins");
        let set = sorter.begin_set_motto("in time").expect("it begins");
        let refused = sorter.begin_set_motto("late").expect("it begins");
        assert_eq!(motto.wait().as_deref(), Ok("in time"));
        assert_eq!(set.wait(), Ok(()));
        let exception = refused.wait().expect_err("it is refused");
        assert_eq!(exception.kind, SystemExceptionKind::NoPermission);
    }
}

#[test]
fn what_a_call_changes_comes_back_as_a_value() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let mine = Letter {
            text: "mine",
            stamps: &[1, 2],
        };
        let exchange = sorter.begin_exchange(&mine, 4).expect("it begins");
        let swap = sorter.begin_swap("a", "b").expect("it begins");
        let reply = exchange.wait().expect("it was served");
        let changed = LetterBuf {
            text: "changed".to_owned(),
            stamps: vec![1, 2],
        };
        let expected = ExchangeReply {
            result: 50,
            mine: changed,
            yours: mine.to_owned(),
            stamps: 5,
            thanks: "thanks".to_owned(),
        };
        assert_eq!(reply, expected);
        assert_eq!(swap.wait(), Ok(("b".to_owned(), "a".to_owned())));
    }
}

#[test]
fn structs_and_references_go_there_and_back() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let letter = |text| LetterBuf {
            text,
            stamps: vec![7; 3],
        };
        let letters = ["one", "two"].map(|text| letter(text.to_owned()));
        let views = letters.each_ref().map(LetterBuf::as_view);
        let sorted = sorter
            .begin_sort(&views[0], &views[1..])
            .expect("it begins");
        let visited = sorter.begin_visit(Some(&sorter.clone().into()));
        let visited = visited.expect("it begins").wait().expect("it was served");
        let visited = visited.expect("not nil");
        assert_eq!(visited.count("abc").expect("it was served"), 3);
        assert_eq!(sorted.wait().as_ref(), Ok(&letters[1]));
    }
}

#[test]
fn handlers_are_told_by_the_methods_of_their_operations() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let (teller, told) = Teller::new();
        let next = || told.recv_timeout(PATIENCE).expect("the handler is told");
        sorter
            .send_count(teller.clone(), "four")
            .expect("it begins");
        assert_eq!(next(), SorterReply::Count(Ok(4)));
        sorter
            .send_count(teller.clone(), "closed")
            .expect("it begins");
        assert_eq!(next(), SorterReply::Count(Err(Shut.into())));
        sorter.send_motto(teller.clone()).expect("it begins");
        assert_eq!(next(), SorterReply::Motto(Ok("in time".to_owned())));
        sorter
            .send_set_motto(teller.clone(), "in time")
            .expect("it begins");
        assert_eq!(next(), SorterReply::SetMotto(Ok(())));
        let letter = Letter {
            text: "text",
            stamps: &[],
        };
        sorter.send_sort(teller, &letter, &[]).expect("it begins");
        assert_eq!(next(), SorterReply::Sorted(Ok(letter.to_owned())));
    }
}

#[test]
fn calls_can_be_awaited() {
    for served in ServedSorter::in_each_way() {
        let sorter = &served.sorter;
        let sum = async {
            let first = sorter.begin_count("a")?;
            let second = sorter.begin_count("bc")?;
            Ok::<_, CountErrorBuf>(first.await? + second.await?)
        };
        assert_eq!(block_on(sum), Ok(3));
    }
}

#[test]
fn a_call_is_under_way_while_others_are_made() {
    let served = ServedSorter::elsewhere();
    let sorter = &served.sorter;
    let mut waiting = sorter.begin_wait().expect("it begins");
    let exception = waiting.wait_until(Instant::now() + Duration::from_millis(1));
    let exception = exception.expect_err("the bell has not rung");
    assert_eq!(exception.minor, minor::TIMEOUT_POLLER);
    assert_eq!(sorter.count("abc"), Ok(3));
    assert!(waiting.try_get().is_none());
    sorter.ring().expect("it is sent");
    assert_eq!(waiting.wait_until(Instant::now() + PATIENCE), Ok(()));
}
