//! Classes of real-time I/O from a schedule, between two hosts, and schedules that disagree with
//! other settings.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use chronorb_orb::rtcorba::MappingKind;
use chronorb_orb::{ConfigError, InitError, Orb, OrbConfig, parse_endpoints};
use chronorb_rio::plan::Policy;
use chronorb_rio::status::{self, Snapshot};
use chronorb_schedule::{LockFile, Schedule};
use chronorb_testnet::{Host, INTERFACE};
use tempfile::TempDir;

use super::riop::network;
use crate::support::{Probe, ProbeSkeleton, add};

/// A desk that calls a probe over a link, and a map that is drawn locally.
const SCHEDULE: &str = r#"
    [[node]]
    name = "server"
    [[node]]
    name = "client"
    [[link]]
    name = "lan"
    rate = "100 Mbit"
    interface = "rio0"

    [[lane]]
    name = "fast"
    node = "server"
    [[lane]]
    name = "slow"
    node = "server"

    [[operation]]
    name = "Test::Probe::add"
    lane = "fast"
    wcet = "1 ms"
    [[operation]]
    name = "Map::draw"
    lane = "slow"
    wcet = "10 ms"
    period = "1 Hz"
    [[operation]]
    name = "Desk::update"
    node = "client"
    wcet = "1 ms"
    period = "20 Hz"
    calls = { operation = "Test::Probe::add", request = 200, reply = 2000 }
"#;

/// The schedule with its lock file.
struct Files {
    folder: TempDir,
    lock: LockFile,
}

impl Files {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let schedule = Schedule::parse("x.toml", text, &mut |_| Err("none".into()));
        let schedule = schedule.expect("the schedule is sound");
        let lock = schedule
            .assign()
            .expect("it is assigned")
            .lock_file(&schedule);
        fs::write(folder.path().join("x.toml"), text).expect("written");
        fs::write(folder.path().join("x.rt.lock"), lock.to_string()).expect("written");
        Self { folder, lock }
    }

    fn config(&self, node: &str) -> OrbConfig {
        let mut config = OrbConfig::default();
        config.schedule = Some(self.folder.path().join("x.toml"));
        config.schedule_node = Some(node.to_owned());
        config.priority_mapping = MappingKind::Linear;
        config
    }

    fn plan(&self, text: &str) -> PathBuf {
        let file = self.folder.path().join("plan.toml");
        fs::write(&file, text).expect("written");
        file
    }

    /// Returns the name of the class of an operation's node and priority.
    fn class_of(&self, operation: &str) -> String {
        let mut operations = self.lock.operations.iter();
        let found = operations.find(|it| it.name == operation);
        format!("lan-{}", found.expect("it is there").priority)
    }
}

/// Returns the names of this process's open classes of real time with their bounds in packets.
fn open_classes() -> Vec<(String, Option<u64>)> {
    let pages = status::find(Some(std::process::id()))
        .expect("it can be read")
        .found;
    let pages = pages.iter().flat_map(|process| &process.pages);
    let snapshots = pages.filter_map(|page| Snapshot::read(&page.file).ok());
    let classes = snapshots.flat_map(|snapshot| snapshot.classes);
    let real_time = classes.filter(|class| class.policy == Policy::Fifo);
    real_time
        .map(|class| (class.name, class.bound.map(|(packets, _)| packets)))
        .collect()
}

#[test]
fn an_orb_has_the_classes_of_its_links() {
    let Some(network) = network() else { return };
    let files = Files::new(SCHEDULE);
    let (server, text) = network.host(Host::B).enter(|| {
        // It listens by real-time I/O without a setting.
        let server = Orb::with_config(files.config("server")).expect("the schedule fits");
        let scheduler = server.server_scheduler().expect("a schedule");
        let root = server.root_poa().expect("the ORB runs");
        let poa = scheduler.create_poa(&root, "flight", Some(root.manager()), &[]);
        let servant = Arc::new(ProbeSkeleton(Arc::new(Probe::default())));
        let poa = poa.expect("the policies agree");
        let object = scheduler.serve(&poa, "Test::Probe::add", servant);
        root.manager().activate().expect("it is not destroyed");
        let text = server.object_to_string(&object.expect("the schedule has the name"));
        (server, text)
    });
    if server.rt().native_priority_range().is_some() {
        let classes = open_classes();
        let fast = files.class_of("Test::Probe::add");
        // A request of one packet, and a reply of two.
        assert!(classes.contains(&(fast, Some(3))), "{classes:?}");
        let slow = (files.class_of("Map::draw"), Some(1));
        assert!(classes.contains(&slow), "{classes:?}");
    }
    network.host(Host::A).enter(|| {
        let mut config = files.config("client");
        config.protocols = vec!["riop".to_owned()];
        let client = Orb::with_config(config).expect("the schedule fits");
        let object = client.string_to_object(&text).expect("it reads");
        let activities = client.client_scheduler().expect("a schedule");
        activities
            .schedule_activity("Desk::update")
            .expect("the node has it");
        assert_eq!(add(&object, 1, 2), Ok(3), "{:?}", client.last_failure());
        if client.rt().native_priority_range().is_some() {
            let classes = open_classes();
            let name = format!("to-{}", files.class_of("Test::Probe::add"));
            let is_open = classes.iter().any(|(class, _)| *class == name);
            assert!(is_open, "{name}: {classes:?}");
        }
        client.shutdown(true).expect("it ends");
    });
    server.shutdown(true).expect("it ends");
}

/// Returns the message with which an ORB does not start.
fn refusal(config: OrbConfig) -> String {
    match Orb::with_config(config) {
        Err(error @ (InitError::Schedule(_) | InitError::Config(ConfigError::BadValue { .. }))) => {
            error.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_that_contradict_the_interface_are_refused() {
    let files = Files::new(SCHEDULE);
    let interface = format!("interface {INTERFACE} (link lan)");
    type Change = fn(&mut OrbConfig);
    let changes: [(Change, &str); 3] = [
        (
            |it| it.rio.interface = Some("eth7".to_owned()),
            "-ORBRioInterface contradicts",
        ),
        (
            |it| it.protocols = vec!["iiop".to_owned()],
            "-ORBProtocols without riop contradicts",
        ),
        (
            |it| it.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0").expect("one"),
            "-ORBListenEndpoints without riop contradicts",
        ),
    ];
    for (change, expected) in changes {
        let mut config = files.config("server");
        change(&mut config);
        let told = refusal(config);
        assert!(
            told.contains(expected) && told.contains(&interface),
            "{told}"
        );
    }
}

#[test]
fn a_plan_that_promises_less_than_the_schedule_is_refused() {
    let files = Files::new(SCHEDULE);
    let class = files.class_of("Test::Probe::add");
    let own = files.lock.rio_plan("server").expect("it has an interface");
    for (plan, expected) in [
        (
            own.replace("budget = 3", "budget = 2"),
            "has 2 packets each 50ms",
        ),
        (own.replace("budget = 3", "budget = 2"), class.as_str()),
        (
            "[interface]\nname = \"rio0\"".to_owned(),
            "plan.toml has no class for lan-",
        ),
        (own.replace("rio0", "eth7"), "interface \"eth7\""),
    ] {
        let mut config = files.config("server");
        config.rio.plan = Some(files.plan(&plan));
        let told = refusal(config);
        assert!(
            told.contains("x.rt.lock") && told.contains(expected),
            "{told}"
        );
    }
    // The schedule itself fits its link, but the headers of its packets do not.
    let full = SCHEDULE.replace("reply = 2000", "reply = 580_000");
    let told = refusal(Files::new(&full).config("server"));
    assert!(told.contains("x.rt.lock: class \"lan-"), "{told}");
}
