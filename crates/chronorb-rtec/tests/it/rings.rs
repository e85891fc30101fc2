//! Rings of shared memory as consumers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb::transport::shm::fan_out::{FanOutOptions, ReaderLimits};
use chronorb_rt::Deadline;
use chronorb_rtec::{EventRing, EventRingReader, Filter, RingDelivery, RingError, RingOptions};

use crate::support::{Clients, Fixture, LONG, dispatchings, event};

/// A path that no other test has.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("chronorb-{name}-{}", std::process::id()))
}

fn options(slots: u32, octets: u32) -> RingOptions {
    RingOptions {
        size: FanOutOptions { slots, octets },
        ..RingOptions::default()
    }
}

/// Takes the next delivery, as text.
fn next(reader: &mut EventRingReader) -> String {
    let mut text = None;
    let outcome = reader.next_with(LONG, |delivery| {
        text = Some(match delivery {
            RingDelivery::Set(set) => {
                let each = set.iter().map(|event| {
                    let header = &event.header;
                    let octets = event.data.payload.len();
                    format!("{}:{} {octets}", header.source, header.r#type)
                });
                each.collect::<Vec<_>>().join(" + ")
            }
            RingDelivery::LostEvents(number) => format!("{number} events"),
            RingDelivery::LostSets(number) => format!("{number} sets"),
            _ => "another".to_owned(),
        });
    });
    match outcome {
        Ok(_) => text.unwrap_or_else(|| "nothing".to_owned()),
        Err(error) => error.to_string(),
    }
}

const ENDED: &str = "the publisher of the ring has ended";

fn open(fixture: &Fixture, filter: &Filter, path: &Path, options: &RingOptions) -> EventRing {
    let root = fixture.client.root_poa().unwrap();
    EventRing::open(&root, &fixture.channel, filter, path, options).unwrap()
}

/// Waits until so many sets are published, which a reader may see before they are counted.
fn wait_for_sets(ring: &EventRing, sets: u64) {
    let deadline = Deadline::after(LONG);
    while ring.status().sets < sets {
        assert!(!deadline.has_passed(), "a set was not published");
        thread::yield_now();
    }
}

#[test]
fn all_cursors_read_what_passes_the_filter() {
    let path = path("all");
    for clients in [Clients::Collocated, Clients::Remote] {
        for dispatching in dispatchings() {
            let fixture = Fixture::new(clients, dispatching);
            let ring = open(&fixture, &Filter::of_type(20), &path, &options(64, 256));
            let mut first = EventRingReader::join(&path).unwrap();
            let mut other = EventRingReader::join(&path).unwrap();
            let mut third = other.clone();
            let supplier = fixture.supplier(&[(0, 0)]);
            fixture.push(&supplier, &[(1, 20), (1, 21), (2, 20)]);
            for reader in [&mut first, &mut other, &mut third] {
                assert_eq!(next(reader), "1:20 0");
                assert_eq!(next(reader), "2:20 0");
                assert!(!reader.next_with(Duration::ZERO, |_| {}).unwrap());
            }
            wait_for_sets(&ring, 2);
            assert_eq!(ring.status().processes, 2);
            let consumers = fixture.service.statistics().consumers;
            assert_eq!((consumers.len(), consumers[0].lost), (1, 0));
            drop(ring);
            assert_eq!(next(&mut first), ENDED);
            assert!(matches!(
                EventRingReader::join(&path),
                Err(RingError::Socket(_))
            ));
            assert_eq!(fixture.service.statistics().consumers.len(), 0);
        }
    }
}

#[test]
fn losses_are_told_in_their_places() {
    let fixture = Fixture::new(Clients::Collocated, dispatchings()[0].clone());
    let path = path("losses");
    let ring = open(&fixture, &Filter::Everything, &path, &options(4, 128));
    let mut reader = EventRingReader::join(&path).unwrap();
    let supplier = fixture.supplier(&[(0, 0)]);
    let mut long = event(1, 21);
    let payload = [7; 200];
    long.data.payload = &payload;
    supplier
        .proxy
        .push(&[event(1, 20), long, event(1, 22)])
        .unwrap();
    assert_eq!(next(&mut reader), "1:20 0");
    assert_eq!(next(&mut reader), "1 events");
    assert_eq!(next(&mut reader), "1:22 0");
    wait_for_sets(&ring, 2);
    assert_eq!((ring.status().sets, ring.status().lost), (2, 1));
    // It is lapped: half a ring is left.
    supplier.proxy.push(&[event(1, 23); 10]).unwrap();
    wait_for_sets(&ring, 12);
    assert_eq!(next(&mut reader), "8 sets");
    assert_eq!(next(&mut reader), "1:23 0");
    assert_eq!(next(&mut reader), "1:23 0");
    assert!(!reader.next_with(Duration::ZERO, |_| {}).unwrap());
}

#[test]
fn a_ring_is_refused_as_any_consumer() {
    let fixture = Fixture::new(Clients::Remote, dispatchings()[0].clone());
    let root = fixture.client.root_poa().unwrap();
    let refused = |filter: &Filter, path: &Path, options: &RingOptions| {
        let opened = EventRing::open(&root, &fixture.channel, filter, path, options);
        opened.unwrap_err()
    };
    let path = path("refused");
    let without_time = Filter::each(Duration::ZERO);
    let error = refused(&without_time, &path, &options(4, 128));
    assert!(matches!(error, RingError::Channel(_)), "{error}");
    let error = refused(&Filter::Everything, &path, &options(3, 128));
    assert!(matches!(error, RingError::Ring(_)), "{error}");
    // Nothing is left of them.
    let _ring = open(&fixture, &Filter::Everything, &path, &options(4, 128));
    let error = refused(&Filter::Everything, &path, &options(4, 128));
    assert!(matches!(error, RingError::Socket(_)), "{error}");
    let connected = fixture.service.statistics().consumers;
    let connected = connected.iter().filter(|of| !of.subscription.is_empty());
    assert_eq!(connected.count(), 1);
}

/// Readers beyond the bound are refused, and those that have gone make room.
#[test]
fn processes_are_bounded() {
    let fixture = Fixture::new(Clients::Collocated, dispatchings()[0].clone());
    let path = path("bounded");
    let options = RingOptions {
        processes: 1,
        ..options(4, 128)
    };
    let _ring = open(&fixture, &Filter::Everything, &path, &options);
    let first = EventRingReader::join(&path).unwrap();
    let refused = EventRingReader::join(&path).unwrap_err();
    assert!(matches!(refused, RingError::Ring(_)), "{refused}");
    drop(first);
    assert!(EventRingReader::join(&path).is_ok());
}

/// As the socket of an endpoint: only its user may connect, and a socket that a killed process has
/// left behind is replaced.
#[test]
fn the_socket_of_a_ring_is_for_its_user_alone() {
    let fixture = Fixture::new(Clients::Collocated, dispatchings()[0].clone());
    let path = path("mode");
    drop(UnixListener::bind(&path).unwrap());
    let ring = open(&fixture, &Filter::Everything, &path, &options(4, 128));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(ring);
    assert!(!path.exists());
}

#[test]
fn a_ring_ends_when_another_file_has_its_path() {
    let fixture = Fixture::new(Clients::Collocated, dispatchings()[0].clone());
    let path = path("replaced");
    let ring = open(&fixture, &Filter::Everything, &path, &options(4, 128));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "of another").unwrap();
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        drop(ring);
        ended.send(()).unwrap();
    });
    assert_eq!(end.recv_timeout(LONG), Ok(()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "of another");
    fs::remove_file(&path).unwrap();
}

/// A publisher that accepts, and sends nothing.
#[test]
fn a_silent_publisher_is_given_up() {
    let path = path("silent");
    let _silent = UnixListener::bind(&path).unwrap();
    let limits = ReaderLimits {
        patience: Duration::from_millis(10),
        ..ReaderLimits::default()
    };
    let error = EventRingReader::join_within(&path, &limits).unwrap_err();
    let silent = "the publisher of the ring has sent nothing in time";
    assert_eq!(error.to_string(), silent);
    fs::remove_file(&path).unwrap();
}
