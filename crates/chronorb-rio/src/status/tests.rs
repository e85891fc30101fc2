//! Tests of status pages: what was written is read back, and arbitrary words are read safely.

use std::fs::File;
use std::process;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::class::ClassId;
use crate::plan::{Policy, Processing, Reservation};

#[test]
fn what_was_counted_is_read_by_whoever_finds_the_page() {
    let page = Page::create("eth7").expect("a page");
    let counters = page.open(class(3), &video());
    counters.add(Count::PacketsIn, 7);
    counters.add(Count::PacketsIn, 1);
    counters.put(Count::QueueFull, 9);
    counters.put(Count::QueueFull, 10);
    counters.set(Level::Queue, 5);
    counters.set(Level::Queue, 2);
    for nanos in [0, 1, 1000, 1023, u64::MAX] {
        counters.delivered_after(Duration::from_nanos(nanos), 1);
    }
    let snapshot = own("eth7").expect("it is found");
    let [seen] = &snapshot.classes[..] else {
        panic!("one class is open: {snapshot:?}");
    };
    assert_eq!((seen.class, seen.opening), (class(3), 1));
    assert_eq!(seen.name, "video");
    assert_eq!(
        (seen.mode, seen.policy, seen.priority),
        (Mode::Periodic, Policy::Fifo, 70)
    );
    assert_eq!(seen.bound, Some((8, Duration::from_millis(10))));
    assert_eq!((seen.cpu, seen.queue), (Some(0), 256));
    assert_eq!(seen.count(Count::PacketsIn), 8);
    assert_eq!(seen.count(Count::QueueFull), 10);
    assert_eq!(seen.drops(), 10);
    assert_eq!(seen.level(Level::Queue), LevelSnapshot { now: 2, most: 5 });
    let latencies = seen.latencies;
    assert_eq!(latencies.count(), 5);
    assert_eq!(latencies.quantile(0.2), Some(Duration::from_nanos(1)));
    assert_eq!(latencies.quantile(0.8), Some(Duration::from_nanos(1024)));
    assert_eq!(latencies.longest, Duration::from_nanos(u64::MAX));
}

#[test]
fn a_class_that_is_closed_is_gone_and_begins_at_0_when_it_comes_again() {
    let page = Page::create("eth8").expect("a page");
    let counters = page.open(class(0), &video());
    counters.add(Count::PacketsOut, 1);
    drop(counters);
    assert_eq!(own("eth8").expect("found").classes, []);
    let counters = page.open(class(0), &Reservation::default());
    let again = own("eth8").expect("found").classes.remove(0);
    assert_eq!((again.opening, again.count(Count::PacketsOut)), (2, 0));
    assert_eq!(
        (again.mode, again.bound, again.cpu),
        (Mode::OnDemand, None, None)
    );
    drop((page, counters));
    assert_eq!(own("eth8"), None);
}

#[test]
fn every_class_has_room_of_its_own() {
    let page = Page::create("eth9").expect("a page");
    let all: Vec<_> = (0..crate::class::MAX_CLASSES)
        .map(|number| page.open(class(number), &video()))
        .collect();
    for (number, counters) in all.iter().enumerate() {
        for count in Count::ALL {
            counters.add(count, 1000 * number as u64 + count as u64);
        }
        for level in Level::ALL {
            counters.set(level, number as u64);
        }
        counters.delivered_after(Duration::from_nanos(number as u64), 1);
    }
    let snapshot = own("eth9").expect("found");
    assert_eq!(snapshot.classes.len(), all.len());
    for (number, seen) in snapshot.classes.iter().enumerate() {
        for count in Count::ALL {
            assert_eq!(seen.count(count), 1000 * number as u64 + count as u64);
        }
        for level in Level::ALL {
            assert_eq!(seen.level(level).most, number as u64);
        }
        assert_eq!(seen.latencies.longest, Duration::from_nanos(number as u64));
    }
}

#[test]
fn what_is_no_page_is_not_read_as_one() {
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let pipe: File = std::os::fd::OwnedFd::from(reader).into();
    assert!(matches!(Snapshot::read(&pipe), Err(SnapshotError::NoPage)));
    let program = File::open("/proc/self/exe").expect("there is one");
    assert!(matches!(
        Snapshot::read(&program),
        Err(SnapshotError::NoPage)
    ));
    let short = chronorb_rt::PublishedWords::create(Page::NAME, 8).expect("words");
    short[0].store(layout::MAGIC, std::sync::atomic::Ordering::Relaxed);
    let found = find(Some(process::id())).expect("this process is there");
    let pages = found.found.iter().flat_map(|found| &found.pages);
    let refused =
        pages.filter(|page| matches!(Snapshot::read(&page.file), Err(SnapshotError::NoPage)));
    assert!(refused.count() >= 1);
}

#[test]
fn another_version_is_told() {
    let mut words = words();
    words[layout::VERSION_AT] = 77;
    let error = Snapshot::of(&words).expect_err("it is another");
    assert!(matches!(error, SnapshotError::Version(77)));
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    assert!(find(Some(u32::MAX)).is_err());
}

proptest! {
    #[test]
    fn a_page_with_any_words_is_read_or_refused(
        changes in vec((8..layout::PAGE, any::<u64>()), 0..200),
        kinds in vec(0..4_u64, 64),
    ) {
        let mut words = words();
        for (at, value) in changes {
            words[at] = value;
        }
        // Processing and policy are often valid, so that the rest is read.
        for (class, kind) in words[layout::HEAD..].chunks_exact_mut(layout::CLASS).zip(kinds) {
            class[layout::MODE] = kind;
            class[layout::POLICY] = kind;
        }
        if let Ok(snapshot) = Snapshot::of(&words) {
            for class in snapshot.classes {
                class.drops();
                let quantile = class.latencies.quantile(0.99);
                prop_assert!(quantile <= Some(class.latencies.longest) || quantile.is_none());
                prop_assert!(!class.name.contains(char::is_control));
                prop_assert_eq!(class.latencies.since(&class.latencies).count(), 0);
            }
        }
    }

    #[test]
    fn any_words_of_any_length_are_read_or_refused(words in vec(any::<u64>(), 0..64)) {
        prop_assert!(Snapshot::of(&words).is_err());
    }
}

/// Reads this process's page of an interface.
fn own(interface: &str) -> Option<Snapshot> {
    let looked = find(Some(process::id())).expect("this process is there");
    let pages = looked.found.iter().flat_map(|found| &found.pages);
    pages
        .filter_map(|page| Snapshot::read(&page.file).ok())
        .find(|snapshot| snapshot.interface == interface)
}

/// Returns an empty page.
fn words() -> Vec<u64> {
    let mut words = vec![0; layout::PAGE];
    words[layout::MAGIC_AT] = layout::MAGIC;
    words[layout::VERSION_AT] = layout::VERSION;
    words
}

fn video() -> Reservation {
    Reservation {
        name: "video".to_owned(),
        policy: Policy::Fifo,
        priority: 70,
        processing: Processing::Periodic {
            period: Duration::from_millis(10),
            budget: 8,
        },
        queue: 256,
        cpu: Some(0),
        ..Reservation::default()
    }
}

fn class(number: usize) -> ClassId {
    ClassId::new(number).expect("there are as many")
}
