//! The limits of a name server, and the failures of its journal.

use std::error::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_naming::idl::cos_naming::{BindErrorBuf, NameComponent, RebindErrorBuf};
use chronorb_naming::{Limits, NameServer, Tree, bind_for_life};

use crate::support::{FailingJournal, Fixture, n};

#[track_caller]
fn exception<T: std::fmt::Debug>(result: Result<T, BindErrorBuf>) -> SystemExceptionKind {
    match result {
        Err(BindErrorBuf::System(exception)) => exception.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_exceeds_a_limit_is_refused() {
    let limits = Limits {
        contexts: 2,
        bindings: 3,
        components: 4,
        component_octets: 5,
        reference_octets: 100,
        ..Limits::default()
    };
    let f = Fixture::new(NameServer::new().limits(limits));
    let root = f.root();
    root.bind_new_context(&n(["a"])).unwrap();
    let refused = exception(root.bind_new_context(&n(["b"])));
    assert_eq!(refused, SystemExceptionKind::NoResources);
    root.bind(&n(["b"]), None).unwrap();
    root.bind(&n(["a", "a"]), None).unwrap();
    root.bind(&n(["c"]), None).unwrap();
    let refused = exception(root.bind(&n(["d"]), None));
    assert_eq!(refused, SystemExceptionKind::NoResources);
    root.rebind(&n(["c"]), Some(&f.object(0))).unwrap();
    let long = ["a"; 5];
    assert_eq!(
        exception(root.bind(&n(long), None)),
        SystemExceptionKind::ImpLimit
    );
    let long = [NameComponent {
        id: "abc",
        kind: "def",
    }];
    assert_eq!(
        exception(root.bind(&long, None)),
        SystemExceptionKind::ImpLimit
    );
    let url = format!("corbaloc::127.0.0.1:1/{}", "k".repeat(100));
    let long = f.client.string_to_object(&url).unwrap();
    root.unbind(&n(["c"])).unwrap();
    let refused = exception(root.bind(&n(["c"]), Some(&long)));
    assert_eq!(refused, SystemExceptionKind::ImpLimit);
}

#[test]
fn a_reply_has_a_bounded_number_of_bindings() {
    let limits = Limits {
        listed: 2,
        ..Limits::default()
    };
    let f = Fixture::new(NameServer::new().limits(limits));
    let root = f.root();
    for id in ["a", "b", "c", "d", "e"] {
        root.bind(&n([id]), None).unwrap();
    }
    let (list, iterator) = root.list(u32::MAX).unwrap();
    let iterator = iterator.unwrap();
    let (_, next) = iterator.next_n(u32::MAX).unwrap();
    let (_, last) = iterator.next_n(u32::MAX).unwrap();
    assert_eq!((list.len(), next.len(), last.len()), (2, 2, 1));
}

#[test]
fn an_iterator_too_many_ends_the_one_that_was_not_used_for_longest() {
    let limits = Limits {
        iterators: 2,
        iterators_per_origin: Some(2),
        ..Limits::default()
    };
    let f = Fixture::new(NameServer::new().limits(limits));
    let root = f.root();
    root.bind(&n(["a"]), None).unwrap();
    let open = || root.list(0).unwrap().1.unwrap();
    let (first, second) = (open(), open());
    first.next_one().unwrap();
    let third = open();
    let ended = second.next_one().unwrap_err();
    assert_eq!(ended.kind, SystemExceptionKind::ObjectNotExist);
    first.next_one().unwrap();
    third.next_one().unwrap();
}

#[test]
fn a_change_that_cannot_be_kept_is_refused_and_changes_nothing() {
    let journal = FailingJournal::default();
    let fails = journal.0.clone();
    let server = NameServer::new().state(Tree::new(1), journal);
    let f = Fixture::new(server);
    let root = f.root();
    root.bind(&n(["a"]), None).unwrap();
    fails.store(true, Ordering::SeqCst);
    let refused = exception(root.bind(&n(["b"]), None));
    assert_eq!(refused, SystemExceptionKind::PersistStore);
    exception(root.bind_new_context(&n(["b"])));
    assert!(matches!(
        root.unbind(&n(["a"])),
        Err(RebindErrorBuf::System(_))
    ));
    assert_eq!(
        root.new_context().unwrap_err().kind,
        SystemExceptionKind::PersistStore
    );
    let cause = f.service.last_journal_failure().unwrap();
    assert!(cause.contains("no space left"), "{cause}");
    fails.store(false, Ordering::SeqCst);
    assert_eq!(root.list(9).unwrap().0.len(), 1);
    assert_eq!(f.service.context_count(), 1);
    root.bind_new_context(&n(["b"])).unwrap();
}

#[test]
fn a_guard_binds_for_its_life_and_replaces_what_an_earlier_run_left() -> Result<(), Box<dyn Error>>
{
    let f = Fixture::new(NameServer::new());
    let root = f.root();
    root.bind(&n(["o"]), Some(&f.object(1)))?;
    let names = f.seen(f.service.root());
    let time_to_live = Duration::from_secs(3600);
    let guard = bind_for_life(&names, "o", &f.object(2), time_to_live)?;
    assert!(guard.is_bound());
    assert_eq!(root.resolve(&n(["o"]))?, Some(f.object(2)));
    drop(guard);
    assert!(matches!(
        root.resolve(&n(["o"])),
        Err(RebindErrorBuf::NotFound(_))
    ));
    // A guard does not remove the binding of another one.
    let old = bind_for_life(&names, "o", &f.object(1), time_to_live)?;
    let new = bind_for_life(&names, "o", &f.object(2), time_to_live)?;
    drop(old);
    assert_eq!(root.resolve(&n(["o"]))?, Some(f.object(2)));
    drop(new);
    let refused = bind_for_life(&names, "x/o", &f.object(1), time_to_live).unwrap_err();
    let expected = "the name cannot be bound: MissingNode at component \"x\"";
    assert_eq!(refused.to_string(), expected);
    assert!(bind_for_life(&names, "", &f.object(1), time_to_live).is_err());
    // A server that is not there yet is no error.
    let absent = bind_for_life(&f.object(9), "o", &f.object(1), time_to_live)?;
    assert!(!absent.is_bound());
    Ok(())
}
