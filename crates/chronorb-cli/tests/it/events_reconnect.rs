//! Consumers of an event channel that is killed, and started again.

use std::io::{BufRead, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use chronorb_orb::Orb;
use chronorb_rtec::idl::rtec_event_channel_admin::EventChannel;
use chronorb_rtec::idl::rtec_event_comm::EventSet;
use chronorb_rtec::{
    ChannelChange, ConsumerGroup, ConsumerOptions, EventRing, EventRingReader, Filter,
    GroupCallback, GroupConsumer, Reconnect, RingDelivery, RingOptions, WatchOptions,
};

use crate::support::{Server, chronorb, spawn_tap, stderr, stdout};

/// Returns an endpoint of this test, for a server that is started more than once. The host is the
/// test's own, so no other test takes the port meanwhile.
fn endpoint(host: &str) -> String {
    let listener = TcpListener::bind((host, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    format!("iiop://{host}:{port}")
}

/// Starts a channel at an endpoint. Dropping it kills it.
fn start(endpoint: &str) -> Server {
    Server::start(&["events", "serve", "--listen", endpoint])
}

/// Pushes an event of source 1 and type 20.
fn push(channel: &[&str], payload: &str) {
    let arguments = ["events", "push", "--type", "20", "--payload", payload];
    let output = chronorb(Path::new("."), &[&arguments, channel].concat());
    assert_eq!(stdout(&output), "1 pushed\n", "{}", stderr(&output));
}

/// A command that prints events, and its lines.
struct Tap {
    process: Child,
    out: Lines<BufReader<ChildStdout>>,
    error: Lines<BufReader<ChildStderr>>,
}

impl Tap {
    /// Starts the command, and waits for the first event of the timer that it subscribes to also.
    fn start(arguments: &[&str]) -> Self {
        let filter = ["--filter", "20 | after 1ms"];
        let mut process = spawn_tap(&[&filter, arguments].concat());
        let out = process.stdout.take().expect("a pipe");
        let error = process.stderr.take().expect("a pipe");
        let mut this = Self {
            process,
            out: BufReader::new(out).lines(),
            error: BufReader::new(error).lines(),
        };
        this.expect_connected();
        this
    }

    /// Waits for the timer of a new subscription.
    fn expect_connected(&mut self) {
        assert_eq!(self.line().as_deref(), Some("0:4"));
    }

    fn line(&mut self) -> Option<String> {
        self.out.next().transpose().expect("text")
    }

    /// Reads messages up to the one with this text, and returns it.
    fn message(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        for line in &mut self.error {
            let line = line.expect("text");
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("no {text:?} in {seen:#?}");
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_tap_ends_with_a_message_when_its_channel_is_killed() {
    let channel = start("iiop://127.0.0.1:0");
    let reference = channel.reference.clone();
    let mut tap = Tap::start(&["--channel", &reference]);
    drop(channel);
    tap.message("chronorb: the channel does not answer: ");
    tap.message("With --reconnect the command subscribes again.");
    assert_eq!(tap.line(), None);
    assert_eq!(tap.process.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_tap_that_reconnects_prints_the_events_of_a_channel_that_was_killed_and_started_again() {
    let endpoint = endpoint("127.43.7.1");
    let channel = start(&endpoint);
    let reference = channel.reference.clone();
    let at = ["--channel", &reference];
    let mut tap = Tap::start(&[&at[..], &["--reconnect", "--count", "4"]].concat());
    push(&at, "first");
    assert_eq!(tap.line().as_deref(), Some("1:20 \"first\""));
    drop(channel);
    tap.message("the channel does not answer: ");
    tap.message("not subscribed yet: ");
    let channel = start(&endpoint);
    assert_eq!(channel.reference, reference);
    tap.message("the consumer has subscribed again");
    tap.expect_connected();
    push(&at, "second");
    assert_eq!(tap.line().as_deref(), Some("1:20 \"second\""));
    assert_eq!(tap.process.wait().expect("it ends").code(), Some(0));
    assert_eq!(channel.end(), Some(0));
}

#[test]
fn a_tap_that_reconnects_finds_a_channel_by_its_name_at_another_address() {
    let names = Server::start(&["ns", "serve", "--listen", "iiop://127.0.0.1:0"]);
    let at = ["--ns", &names.reference];
    let serve = || Server::start(&[&["events", "serve", "--bind"], &at[..]].concat());
    let first = serve();
    let mut tap = Tap::start(&[&at[..], &["--reconnect", "--count", "3"]].concat());
    let before = first.reference.clone();
    // In its order, so the name is unbound meanwhile.
    assert_eq!(first.end(), Some(0));
    tap.message("the channel does not answer: ");
    tap.message("not subscribed yet: ");
    let second = serve();
    assert_ne!(second.reference, before);
    tap.message("the consumer has subscribed again");
    tap.expect_connected();
    push(&at, "");
    assert_eq!(tap.line().as_deref(), Some("1:20"));
    assert_eq!(tap.process.wait().expect("it ends").code(), Some(0));
}

/// A consumer that tells everything that it learns.
struct Teller(SyncSender<String>);

impl GroupCallback for Teller {
    fn push(&self, events: EventSet<'_>) {
        let types: Vec<_> = events.iter().map(|it| it.header.r#type).collect();
        let _ = self.0.send(format!("{types:?}"));
    }

    fn channel_changed(&self, change: &ChannelChange) {
        let _ = self.0.send(change.to_string());
    }
}

/// A group with a consumer, and what the consumer learns.
struct WatchedGroup {
    group: ConsumerGroup,
    _consumer: GroupConsumer,
    told: Receiver<String>,
}

/// The options of a watch that finds a loss soon.
fn watch(reconnect: Reconnect) -> WatchOptions {
    WatchOptions {
        period: Duration::from_millis(20),
        timeout: LONG,
        reconnect,
    }
}

fn watched_group(orb: &Orb, channel: &EventChannel, reconnect: Reconnect) -> WatchedGroup {
    let group = ConsumerGroup::open(&orb.root_poa().unwrap(), channel).unwrap();
    let (teller, told) = sync_channel(64);
    let filter = Filter::of_type(20);
    let consumer = group.subscribe(&filter, &ConsumerOptions::default(), Teller(teller));
    group.watch(watch(reconnect)).unwrap();
    WatchedGroup {
        group,
        _consumer: consumer.unwrap(),
        told,
    }
}

#[test]
fn consumers_of_the_library_are_told_of_a_killed_channel_and_subscribe_again() {
    let endpoint = endpoint("127.43.7.2");
    let server = start(&endpoint);
    let reference = server.reference.clone();
    let options = ["program", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let orb = Orb::init(&mut options.map(str::to_owned).to_vec()).unwrap();
    orb.root_poa().unwrap().manager().activate().unwrap();
    let object = orb.string_to_object(&reference).unwrap();
    let channel = EventChannel::narrow(&object).unwrap().unwrap();

    let finder = {
        let channel = channel.clone();
        Reconnect::Found(Arc::new(move || Ok(channel.clone())))
    };
    let by_reference = watched_group(&orb, &channel, Reconnect::Same);
    let by_finder = watched_group(&orb, &channel, finder);
    let told_only = watched_group(&orb, &channel, Reconnect::No);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    let filter = Filter::of_type(20);
    let poa = orb.root_poa().unwrap();
    let ring = EventRing::open(&poa, &channel, &filter, &path, &RingOptions::default()).unwrap();
    ring.watch(watch(Reconnect::Same)).unwrap();
    let mut reader = EventRingReader::join(&path).unwrap();
    let mut next_of_ring = || {
        let mut types = Vec::new();
        let read = reader.next_with(LONG, |delivery| {
            if let RingDelivery::Set(events) = delivery {
                types = events.iter().map(|it| it.header.r#type).collect();
            }
        });
        assert!(read.unwrap());
        types
    };

    push(&["--channel", &reference], "");
    let all = [&by_reference, &by_finder, &told_only];
    for it in all {
        assert_eq!(it.told.recv_timeout(LONG).unwrap(), "[20]");
    }
    assert_eq!(next_of_ring(), [20]);
    assert!(!ring.status().is_channel_lost);

    drop(server);
    for it in all {
        let told = it.told.recv_timeout(LONG).unwrap();
        assert!(told.starts_with("the channel does not answer: "), "{told}");
    }
    let deadline = chronorb_rt::Deadline::after(LONG);
    while !ring.status().is_channel_lost {
        assert!(!deadline.has_passed());
        std::thread::yield_now();
    }

    let server = start(&endpoint);
    let forgotten = "the channel does not have the consumer any more";
    for it in [&by_reference, &by_finder] {
        // An attempt may reach the new channel before it is asked for the consumer.
        let mut told = it.told.recv_timeout(LONG).unwrap();
        if told == forgotten {
            told = it.told.recv_timeout(LONG).unwrap();
        }
        assert_eq!(told, "the consumer has subscribed again");
    }
    assert_eq!(told_only.told.recv_timeout(LONG).unwrap(), forgotten);
    while ring.status().is_channel_lost {
        assert!(!deadline.has_passed());
        std::thread::yield_now();
    }
    assert_eq!(ring.status().resubscriptions, 1);

    push(&["--channel", &reference], "");
    for it in [&by_reference, &by_finder] {
        assert_eq!(it.told.recv_timeout(LONG).unwrap(), "[20]");
    }
    assert_eq!(next_of_ring(), [20]);
    assert!(told_only.told.try_recv().is_err());
    assert_eq!(told_only.group.consumers(), 1);
    drop(by_reference);
    drop(by_finder);
    drop(ring);
    orb.shutdown(true).unwrap();
    assert_eq!(server.end(), Some(0));
}

/// A limit for what happens at once unless something is broken.
const LONG: Duration = Duration::from_secs(60);
