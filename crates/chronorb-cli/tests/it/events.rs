//! `chronorb events`, as an operator runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output};
use std::sync::mpsc;
use std::thread;

use chronorb_orb::poa::Poa;
use chronorb_orb::{Any, Call, Interface, Orb, OrbConfig, SystemException, SystemExceptionKind};
use chronorb_rtec::idl::chronorb_events::{ChannelStatisticsBuf, MonitoredChannel};
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    AppendObserverError, ConnectPushConsumerError, ConsumerAdmin, ConsumerAdminOwnedServant,
    ConsumerAdminSkeleton, ConsumerQOS, EventChannelOwnedServant, EventChannelSkeleton, Observer,
    ObserverHandle, ProxyPushConsumer, ProxyPushSupplier, ProxyPushSupplierOwnedServant,
    ProxyPushSupplierSkeleton, Publication, RemoveObserverError, SupplierAdmin, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushSupplierOwnedServant, RtecEventData,
};
use chronorb_sched_service::idl::rtec_base::DependencyTypeT::OneWayCall;
use chronorb_sched_service::idl::rtec_scheduler::{
    CriticalityT, ImportanceT, InfoTypeT, Scheduler,
};
use serde_json::Value;

use crate::support::{Server, chronorb, spawn_tap, stderr, stdout};

/// A channel, and a client of it.
struct Channel {
    server: Server,
    orb: Orb,
    client: MonitoredChannel,
}

impl Channel {
    fn start(options: &[&str]) -> Self {
        let server = Server::start(&[&["events", "serve"], options].concat());
        let orb = Orb::with_config(OrbConfig::default()).unwrap();
        let object = orb.string_to_object(&server.reference).unwrap();
        let client = MonitoredChannel::narrow(&object).unwrap();
        Self {
            client: client.expect("the interface"),
            server,
            orb,
        }
    }

    /// Runs `chronorb events` with this channel.
    fn events(&self, arguments: &[&str]) -> Output {
        let channel = ["--channel", &self.server.reference];
        chronorb(Path::new("."), &[&["events"], arguments, &channel].concat())
    }

    /// Pushes an event of source 1 with a payload.
    fn push(&self, event_type: &str, payload: &str) {
        let output = self.events(&["push", "--type", event_type, "--payload", payload]);
        assert_eq!(stdout(&output), "1 pushed\n", "{}", stderr(&output));
    }

    /// Starts `chronorb events tap`, and waits until it is connected.
    fn tap(&self, arguments: &[&str]) -> Tap {
        let before = self.consumers();
        let mut tap = self.tap_at_once(arguments);
        while self.consumers() == before {
            assert!(tap.process.try_wait().expect("its state").is_none());
            thread::yield_now();
        }
        tap
    }

    /// Starts `chronorb events tap`.
    fn tap_at_once(&self, arguments: &[&str]) -> Tap {
        let channel = ["--channel", &self.server.reference];
        let process = spawn_tap(&[&channel, arguments].concat());
        Tap { process }
    }

    /// The number of connected consumers.
    fn consumers(&self) -> usize {
        let consumers = self.statistics().consumers;
        let connected = consumers.iter().filter(|it| !it.subscription.is_empty());
        connected.count()
    }

    fn statistics(&self) -> ChannelStatisticsBuf {
        self.client.statistics().unwrap()
    }

    fn end(self) {
        self.orb.shutdown(true).unwrap();
        assert_eq!(self.server.end(), Some(0));
    }
}

/// A command that prints events.
struct Tap {
    process: Child,
}

impl Tap {
    /// Waits for the end, and returns the status, and what it has written.
    fn finish(self) -> (Option<i32>, String, String) {
        let output = self.process.wait_with_output().expect("it ends");
        let (out, error) = (stdout(&output).to_owned(), stderr(&output).to_owned());
        (output.status.code(), out, error)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, signal).expect("it runs");
    }
}

#[test]
fn what_is_pushed_is_printed_by_those_that_subscribed() {
    let channel = Channel::start(&[]);
    assert!(channel.server.reference.ends_with("/EventService"));
    let all = channel.tap(&["--count", "2"]);
    let some = channel.tap(&["--filter", "1:21", "--count", "1"]);
    channel.push("20", "first");
    channel.push("21", "second");
    let expected = "1:20 \"first\"\n1:21 \"second\"\n".to_owned();
    assert_eq!(all.finish(), (Some(0), expected, String::new()));
    let expected = "1:21 \"second\"\n".to_owned();
    assert_eq!(some.finish(), (Some(0), expected, String::new()));
    // Both have disconnected themselves.
    assert_eq!(channel.statistics().consumers.len(), 0);
    assert_eq!(channel.statistics().evicted, 0);
    channel.end();
}

#[test]
fn top_shows_the_queues_and_losses_of_a_channel() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("monitor.sock");
    let socket = socket.to_str().expect("UTF-8");
    let channel = Channel::start(&["-ORBMonitor", socket]);
    let tap = channel.tap(&["--filter", "1:20", "--count", "1"]);
    let top = |options: &[&str]| {
        let arguments = [&["top", socket, "--once", "--interval", "100"], options].concat();
        let output = chronorb(Path::new("."), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let table = top(&[]);
    assert!(table.contains("EventService (0 to 1) "), "{table}");
    let object: Value = serde_json::from_str(&top(&["--json"])).expect("JSON");
    let queue = &object["channels"][0]["queues"][0];
    assert_eq!(
        (&queue["subscription"], &queue["lost"]),
        (&"1:20".into(), &0.into())
    );
    channel.push("20", "");
    assert_eq!(tap.finish().0, Some(0));
    let object: Value = serde_json::from_str(&top(&["--json"])).expect("JSON");
    let shown = &object["channels"][0];
    assert_eq!(
        (&shown["consumers"], &shown["lost"]),
        (&0.into(), &0.into())
    );
    channel.end();
}

#[test]
fn a_group_is_printed_as_one_line_and_json_has_all_of_an_event() {
    let channel = Channel::start(&[]);
    let text = channel.tap(&["--filter", "20 + 21", "--count", "1"]);
    let json = channel.tap(&["--filter", "20 + 21", "--count", "1", "--json"]);
    channel.push("21", "");
    channel.push("20", "a\nb");
    let expected = "1:21 + 1:20 3 octets 610a62\n".to_owned();
    assert_eq!(text.finish(), (Some(0), expected, String::new()));
    let (_, line, _) = json.finish();
    let set: Value = serde_json::from_str(&line).unwrap();
    let event = &set["events"][1];
    assert_eq!((&event["source"], &event["type"]), (&1.into(), &20.into()));
    assert_eq!(
        (&event["payload"], &event["ttl"]),
        (&"610a62".into(), &1.into())
    );
    assert_eq!(
        (&event["text"], &event["value_type"]),
        (&Value::Null, &Value::Null)
    );
    channel.end();
}

#[test]
fn lanes_and_outboxes_deliver_the_same() {
    let options = ["--lane", "100", "--lane", "0", "--outbox", "8"];
    let channel = Channel::start(&options);
    let first = channel.tap(&["--lane", "1", "--count", "1"]);
    let queued = channel.tap(&["--queue", "2", "--overflow", "latest", "--count", "1"]);
    let last = channel.tap(&["--filter", "20 + 21", "--count", "1"]);
    channel.push("21", "");
    channel.push("20", "");
    for tap in [first, queued] {
        assert_eq!(tap.finish(), (Some(0), "1:21\n".into(), String::new()));
    }
    assert_eq!(
        last.finish(),
        (Some(0), "1:21 + 1:20\n".into(), String::new())
    );
    channel.end();
}

#[test]
fn timers_fire_without_a_supplier() {
    let channel = Channel::start(&[]);
    let tap = channel.tap_at_once(&["--filter", "every 1ms", "--count", "3"]);
    assert_eq!(tap.finish(), (Some(0), "0:5\n".repeat(3), String::new()));
    channel.end();
}

#[test]
fn the_statistics_name_consumers_and_suppliers() {
    let channel = Channel::start(&["--strict-publications"]);
    let tap = channel.tap(&["--filter", "20 | 21"]);
    let pushed = channel.events(&["push", "--type", "20", "--count", "3", "--json"]);
    assert_eq!(stdout(&pushed), "{\"pushed\":3,\"version\":1}\n");
    let text = channel.events(&["stats"]);
    let lines: Vec<_> = stdout(&text).lines().collect();
    assert!(
        lines[0]
            .ends_with("3 events received, 3 delivered, 0 lost; 0 clients evicted, 0 observers")
    );
    assert!(lines[3].ends_with("  20 | 21"), "{lines:?}");
    let json = channel.events(&["stats", "--json"]);
    let json: Value = serde_json::from_str(stdout(&json)).unwrap();
    assert_eq!(json["consumers"][0]["events"], 3);
    assert_eq!(json["suppliers"], Value::Array(Vec::new()));
    tap.signal(rustix::process::Signal::TERM);
    assert_eq!(tap.finish().0, Some(0));
    assert_eq!(channel.statistics().consumers.len(), 0);
    channel.end();
}

#[test]
fn a_consumer_that_is_killed_is_disconnected() {
    let channel = Channel::start(&["--failures", "1", "--check-period", "1"]);
    let tap = channel.tap(&[]);
    tap.signal(rustix::process::Signal::KILL);
    assert_eq!(tap.finish().0, None);
    while channel.statistics().evicted == 0 {
        channel.push("20", "");
    }
    assert_eq!(channel.consumers(), 0);
    channel.end();
}

#[test]
fn a_destroyed_channel_ends_its_server_and_its_consumers() {
    let channel = Channel::start(&[]);
    let tap = channel.tap(&[]);
    channel.client.destroy().unwrap();
    let (status, _, error) = tap.finish();
    assert_eq!(status, Some(1));
    assert_eq!(
        error,
        "chronorb: the channel has disconnected this consumer\n"
    );
    channel.orb.shutdown(true).unwrap();
    assert_eq!(channel.server.wait(), Some(0));
}

#[test]
fn a_channel_that_is_bound_is_found_by_its_name() {
    let names = Server::start(&["ns", "serve", "--listen", "iiop://127.0.0.1:0"]);
    let at = ["--ns", &names.reference];
    let run = |arguments: &[&str]| chronorb(Path::new("."), &[arguments, &at].concat());
    let before = run(&["events", "stats"]);
    assert_eq!(before.status.code(), Some(1));
    assert!(
        stderr(&before).contains("EventService: the name is not bound"),
        "{}",
        stderr(&before)
    );

    let channel = Server::start(&[&["events", "serve", "--bind"], &at[..]].concat());
    let pushed = run(&["events", "push", "--type", "20"]);
    assert_eq!(stdout(&pushed), "1 pushed\n", "{}", stderr(&pushed));
    let list = run(&["ns", "list"]);
    assert!(stdout(&list).contains("EventService"), "{}", stdout(&list));
    assert_eq!(channel.end(), Some(0));
    let list = run(&["ns", "list"]);
    assert!(!stdout(&list).contains("EventService"), "{}", stdout(&list));
    assert_eq!(names.end(), Some(0));
}

#[test]
fn mistakes_are_named() {
    let names = Server::start(&["ns", "serve", "--listen", "iiop://127.0.0.1:0"]);
    let other = ["events", "stats", "--channel", &names.reference];
    let output = chronorb(Path::new("."), &other);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("the object is no event channel"),
        "{}",
        stderr(&output)
    );
    assert_eq!(names.end(), Some(0));

    let output = chronorb(Path::new("."), &["events", "tap", "--filter", "20 +"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "the filter has no number of 32 bits at character 5";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn a_tap_ends_in_order_when_its_reader_has_gone() {
    let channel = Channel::start(&[]);
    let mut tap = channel.tap(&[]);
    channel.push("20", "");
    let mut line = String::new();
    let output = tap.process.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "1:20\n");
    // The pipe is closed now, which the next line finds out.
    while channel.consumers() > 0 {
        channel.push("20", "");
    }
    assert_eq!(tap.finish().0, Some(0));
    channel.end();
}

#[test]
fn a_scheduling_service_decides_on_the_admission_of_consumers() {
    let scheduling = Server::start(&["sched", "serve"]);
    let channel = Channel::start(&["--scheduler", &scheduling.reference, "--lane", "0"]);
    let object = channel.orb.string_to_object(&scheduling.reference).unwrap();
    let scheduler = Scheduler::narrow(&object).unwrap().unwrap();
    // In units of 100 ns: a supplier of 10 ms, and consumers of 4 and of 12 ms.
    let operations = [
        ("radar", 1, 100_000),
        ("track", 40_000, 0),
        ("map", 120_000, 0),
    ];
    for (name, cost, period) in operations {
        let handle = scheduler.create(name).unwrap();
        let (criticality, importance) = (CriticalityT::LowCriticality, ImportanceT::LowImportance);
        let kind = InfoTypeT::Operation;
        let set = scheduler.set(
            handle,
            criticality,
            cost,
            cost,
            cost,
            period,
            importance,
            0,
            0,
            kind,
        );
        set.unwrap();
    }
    let admin = channel.client.for_suppliers().unwrap().unwrap();
    let radar = admin.obtain_push_consumer().unwrap().unwrap();
    publish(&radar, 20, 1);
    let track = channel.tap(&["--filter", "20", "--rt-info", "2", "--count", "1"]);
    let refused = channel.events(&["tap", "--filter", "20", "--rt-info", "3"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    let expected = "refuses the connection: the processor is overloaded";
    assert!(text.contains(expected), "{text}");
    channel.push("20", "plot");
    let printed = (Some(0), "1:20 \"plot\"\n".to_owned(), String::new());
    assert_eq!(track.finish(), printed);
    channel.end();
}

#[test]
fn the_period_of_the_suppliers_of_a_consumer_is_no_budget() {
    let scheduling = Server::start(&["sched", "serve"]);
    let channel = Channel::start(&["--scheduler", &scheduling.reference, "--lane", "0"]);
    let object = channel.orb.string_to_object(&scheduling.reference).unwrap();
    let scheduler = Scheduler::narrow(&object).unwrap().unwrap();
    // A supplier of 200 s, and a consumer of 100 ns for each of its events.
    for (name, period) in [("radar", 2_000_000_000), ("track", 0)] {
        let handle = scheduler.create(name).unwrap();
        let (criticality, importance) = (CriticalityT::LowCriticality, ImportanceT::LowImportance);
        let kind = InfoTypeT::Operation;
        let set = scheduler.set(handle, criticality, 1, 1, 1, period, importance, 0, 0, kind);
        set.unwrap();
    }
    scheduler.add_dependency(2, 1, 1, OneWayCall).unwrap();
    assert_eq!(scheduler.recompute_scheduling(1, 98).unwrap(), []);
    assert_eq!(scheduler.get(2).unwrap().period, 2_000_000_000);
    let track = channel.tap(&["--filter", "20", "--rt-info", "2", "--count", "3"]);
    for _ in 0..3 {
        channel.push("20", "");
    }
    let printed = (Some(0), "1:20\n".repeat(3), String::new());
    assert_eq!(track.finish(), printed);
    channel.end();
}

/// A channel of another make, which takes any subscription and pushes nothing.
#[derive(Clone)]
struct OtherChannel {
    poa: Poa,
    subscriptions: mpsc::Sender<Vec<(i32, i32)>>,
}

const ABSENT: SystemException = SystemException::no(SystemExceptionKind::NoImplement, 0);

impl EventChannelOwnedServant for OtherChannel {
    fn for_consumers(&self, _: &Call<'_>) -> Result<Option<ConsumerAdmin>, SystemException> {
        let admin = self.poa.serve(ConsumerAdminSkeleton::new(self.clone()));
        Ok(Some(ConsumerAdmin::from_object(
            admin.expect("it is active"),
        )))
    }

    fn for_suppliers(&self, _: &Call<'_>) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(None)
    }

    fn destroy(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Err(ABSENT)
    }

    fn append_observer(
        &self,
        _: &Call<'_>,
        _: Option<&Observer>,
    ) -> Result<ObserverHandle, AppendObserverError> {
        Err(ABSENT.into())
    }

    fn remove_observer(&self, _: &Call<'_>, _: ObserverHandle) -> Result<(), RemoveObserverError> {
        Err(ABSENT.into())
    }
}

impl ConsumerAdminOwnedServant for OtherChannel {
    fn obtain_push_supplier(
        &self,
        _: &Call<'_>,
    ) -> Result<Option<ProxyPushSupplier>, SystemException> {
        let proxy = self.poa.serve(ProxyPushSupplierSkeleton::new(self.clone()));
        Ok(Some(ProxyPushSupplier::from_object(
            proxy.expect("it is active"),
        )))
    }
}

impl PushSupplierOwnedServant for OtherChannel {
    fn disconnect_push_supplier(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

impl ProxyPushSupplierOwnedServant for OtherChannel {
    fn connect_push_consumer(
        &self,
        _: &Call<'_>,
        _: Option<&PushConsumer>,
        qos: &ConsumerQOS<'_>,
    ) -> Result<(), ConnectPushConsumerError> {
        let headers = qos.dependencies.iter().map(|one| one.event.header);
        let entries = headers.map(|it| (it.source, it.r#type)).collect();
        self.subscriptions.send(entries).expect("the test waits");
        Ok(())
    }

    fn suspend_connection(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Err(ABSENT)
    }

    fn resume_connection(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Err(ABSENT)
    }
}

#[test]
fn tap_warns_of_nested_groups_at_a_channel_whose_notation_it_does_not_know() {
    let mut config = OrbConfig::default();
    let endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0");
    config.listen_endpoints = endpoints.expect("an endpoint");
    let orb = Orb::with_config(config).expect("an ORB");
    let poa = orb.root_poa().expect("the ORB runs");
    poa.manager().activate().expect("it was not deactivated");
    let (subscriptions, received) = mpsc::channel();
    let other = OtherChannel {
        poa: poa.clone(),
        subscriptions,
    };
    let object = poa
        .serve(EventChannelSkeleton::new(other))
        .expect("it is active");
    let reference = orb.object_to_string(&object);
    let tap = |arguments: &[&str]| {
        let process = spawn_tap(&[&["--channel", &reference], arguments].concat());
        let tap = Tap { process };
        let entries = received.recv().expect("a subscription");
        tap.signal(rustix::process::Signal::TERM);
        let (status, _, error) = tap.finish();
        assert_eq!(status, Some(0), "{error}");
        (entries, error)
    };
    let nested = ["--filter", "20 + 21 | 22"];
    let (entries, error) = tap(&nested);
    assert_eq!(entries, [(2, 9), (2, 8), (0, 20), (0, 21), (0, 22)]);
    assert!(
        error.contains("warning: the channel is not chronorb's"),
        "{error}"
    );
    assert!(error.contains("--notation prefix"), "{error}");
    assert_eq!(
        tap(&[&nested[..], &["--notation", "prefix"]].concat()).1,
        ""
    );
    // One group is the same in both notations.
    for options in [&[][..], &["--notation", "basic"]] {
        let (entries, error) = tap(&[&["--filter", "20 | 21"], options].concat());
        assert_eq!(entries, [(2, 9), (0, 20), (0, 21)]);
        assert_eq!(error, "");
    }
    let refused = [
        "events",
        "tap",
        "--channel",
        &reference,
        "--notation",
        "basic",
    ];
    let output = chronorb(Path::new("."), &[&refused[..], &nested].concat());
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("the basic notation has no nested groups"),
        "{error}"
    );
    orb.shutdown(true).expect("it runs");
}

#[test]
fn tap_subscribes_with_nested_groups_at_a_channel_of_chronorb_whatever_its_notation() {
    for notation in ["prefix", "basic"] {
        let channel = Channel::start(&["--notation", notation]);
        let tap = channel.tap(&["--filter", "20 + 21 | 22", "--count", "2"]);
        channel.push("20", "");
        channel.push("22", "");
        channel.push("21", "");
        let printed = "1:22\n1:20 + 1:21\n".to_owned();
        assert_eq!(tap.finish(), (Some(0), printed, String::new()));
        channel.end();
    }
}

/// Connects a supplier of an event type, with the handle of its operation.
fn publish(proxy: &ProxyPushConsumer, event_type: i32, rt_info: i32) {
    let publication = Publication {
        event: Event {
            header: EventHeader {
                r#type: event_type,
                source: 1,
                ..EventHeader::default()
            },
            data: RtecEventData {
                pad1: 0,
                payload: &[],
                any_value: Any::default(),
            },
        },
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    };
    let qos = SupplierQOS {
        publications: &[publication],
        is_gateway: false,
    };
    proxy.connect_push_supplier(None, &qos).unwrap();
}
