//! ORBs that start with a schedule.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronorb_orb::poa::{CreatePoaError, Policy, PriorityModel};
use chronorb_orb::rtcorba::{Priority, RtMutex, SchedulingPolicy, TimeConstraint};
use chronorb_orb::schedule::{
    ScheduleActivityError, ScheduleObjectError, ServerScheduler, SessionCall, SessionError,
    StartError,
};
use chronorb_orb::{
    InitError, Object, Orb, OrbConfig, RealTimeMode, Servant, SystemExceptionKind, parse_endpoints,
};
use chronorb_rt::{Scheduling, ThreadBuilder};
use chronorb_schedule::Schedule;
use tempfile::TempDir;

use crate::support::{Probe, ProbeSkeleton, add, priority};

/// A node with a server of two interfaces, and one with a client.
const SCHEDULE: &str = r#"
    [[node]]
    name = "server"
    [[processor]]
    name = "flight"
    node = "server"
    [[node]]
    name = "client"
    [[processor]]
    name = "desk"
    node = "client"

    [[lane]]
    name = "fast"
    processor = "flight"
    threads = 2
    [[lane]]
    name = "slow"
    processor = "flight"

    [[operation]]
    name = "Test::Probe::add"
    processor = "flight"
    lane = "fast"
    wcet = "1 ms"
    [[operation]]
    name = "Test::Probe::priority"
    processor = "flight"
    lane = "fast"
    wcet = "1 ms"
    [[operation]]
    name = "Map::draw"
    processor = "flight"
    lane = "slow"
    wcet = "10 ms"
    period = "1 Hz"
    [[operation]]
    name = "Map::clear"
    processor = "flight"
    lane = "fast"
    wcet = "1 ms"
    period = "10 Hz"
    [[operation]]
    name = "Desk::update"
    processor = "desk"
    wcet = "1 ms"
    period = "20 Hz"
    calls = ["Test::Probe::add", "Test::Probe::priority"]
"#;

/// A change of a configuration.
type Change<'c> = &'c dyn Fn(&mut OrbConfig);

/// A schedule with its lock file, in a folder of its own.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let this = Self { folder };
        fs::write(this.schedule(), text).expect("written");
        let schedule = Schedule::parse("flight.toml", text, &mut |_| Err("none".into()));
        let schedule = schedule.expect("the schedule is sound");
        let assignment = schedule.assign().expect("it can be assigned");
        assert!(assignment.analysis.feasible);
        let lock = assignment.lock_file(&schedule).to_string();
        fs::write(this.lock(), lock).expect("written");
        this
    }

    fn schedule(&self) -> PathBuf {
        self.folder.path().join("flight.toml")
    }

    fn lock(&self) -> PathBuf {
        self.folder.path().join("flight.rt.lock")
    }
}

fn config(file: &Path, node: &str) -> OrbConfig {
    let path = file.to_str().expect("UTF-8");
    let mut args: Vec<String> = [
        "-ORBSchedule",
        path,
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
    ]
    .map(str::to_owned)
    .to_vec();
    if !node.is_empty() {
        args.extend(["-ORBScheduleNode", node].map(str::to_owned));
    }
    OrbConfig::read(&mut args).expect("the options are correct")
}

fn start(file: &Path, node: &str) -> Orb {
    Orb::with_config(config(file, node)).expect("the schedule fits")
}

fn refused(config: OrbConfig) -> StartError {
    match Orb::with_config(config) {
        Err(InitError::Schedule(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_orb_has_the_lanes_of_its_node() {
    let files = Files::new(SCHEDULE);
    let orb = start(&files.schedule(), "server");
    let pools = orb.snapshot().pools;
    assert_eq!(pools.len(), 1);
    let lanes: Vec<_> = pools[0]
        .lanes
        .iter()
        .map(|lane| (lane.priority, lane.seats))
        .collect();
    let table = orb.server_scheduler().expect("a schedule").table().cloned();
    let table = table.expect("its operations");
    let of = |name| {
        table
            .find(name)
            .and_then(|it| table.get(it))
            .map(|it| it.priority)
    };
    assert_eq!(lanes, [(of("Map::draw"), 1), (of("Test::Probe::add"), 2)]);
    orb.shutdown(true).expect("no servant asks for it");
    let client = start(&files.lock(), "client");
    assert!(client.client_scheduler().is_some());
    client.shutdown(true).expect("no servant asks for it");
}

/// Serves a servant as the book does.
fn serve(orb: &Orb, servant: Servant) -> Result<Object, Box<dyn Error>> {
    let scheduler = orb
        .server_scheduler()
        .ok_or("start it with -ORBSchedule FILE")?;
    let root = orb.root_poa()?;
    let poa = scheduler.create_poa(&root, "flight", Some(root.manager()), &[])?;
    let object = scheduler.serve(&poa, "Map::draw", servant)?;
    root.manager().activate()?;
    Ok(object)
}

/// Begins an activity as the book does.
fn begin_update(orb: &Orb) -> Result<(), Box<dyn Error>> {
    let scheduler = orb
        .client_scheduler()
        .ok_or("start it with -ORBSchedule FILE")?;
    // From here on, calls of this thread have the priority of the activity.
    scheduler.schedule_activity("Desk::update")?;
    Ok(())
}

#[test]
fn clients_and_servants_name_activities_and_interfaces() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.schedule(), "server");
    let servant = Arc::new(ProbeSkeleton(Arc::new(Probe::default())));
    let object = serve(&server, servant).expect("the schedule has the name");
    let client = start(&files.schedule(), "client");
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("the reference reads");
    let scheduler = server.server_scheduler().expect("a schedule");
    let table = scheduler.table().expect("its operations");
    let declared = table.find("Map::draw").and_then(|it| table.get(it));
    let declared = declared.expect("it is scheduled").priority;
    std::thread::scope(|threads| {
        let caller = threads.spawn(|| {
            begin_update(&client).expect("the client has the activity");
            assert_eq!(add(&object, 1, 2), Ok(3));
            let (corba, _) = priority(&object).expect("it is served");
            assert_eq!(corba, declared.value());
            let own = client.rt_current().priority().expect("it was set");
            let activities = client.client_scheduler().expect("a schedule");
            let table = activities.table().expect("its operations");
            let entry = table.find("Desk::update").and_then(|it| table.get(it));
            assert_eq!(Some(own), entry.map(|entry| entry.priority));
        });
        caller.join().expect("it does not panic");
    });
    let _ = client.shutdown(true);
    server.shutdown(true).expect("no servant asks for it");
}

#[test]
fn an_activity_of_an_ordered_lane_is_released_with_its_deadline() {
    let files = Files::new(ORDERED);
    let orb = start(&files.schedule(), "program");
    let (scheduler, current) = (orb.client_scheduler(), orb.rt_current());
    let scheduler = scheduler.expect("a schedule");
    let begin = |name| scheduler.schedule_activity(name).expect("it has the name");
    let within = |seconds: i64| {
        let left = current.time_left().expect("a deadline");
        assert!(left <= seconds * 1_000_000_000, "{left}");
        left
    };
    assert_eq!(current.time_left(), None);
    begin("Desk::track");
    let first = within(40);
    // The same activity is released anew.
    while current.time_left().expect("a deadline") == first {}
    begin("Desk::track");
    let released = within(40);
    begin("Desk::follow");
    assert!(within(80) > released);
    // A constraint within the activity ends with its guard.
    drop(current.constrain(TimeConstraint::within(Duration::ZERO)));
    assert!(current.time_left() > Some(released));
    begin("Desk::log");
    assert_eq!(current.time_left(), None);
    let _ = orb.shutdown(true);
}

/// Activities of a lane with an order, and one of a lane without.
const ORDERED: &str = r#"
    [[node]]
    name = "program"
    [[processor]]
    name = "desk"
    node = "program"
    [[lane]]
    name = "ordered"
    processor = "desk"
    order = "deadline"
    [[lane]]
    name = "plain"
    processor = "desk"
    [[operation]]
    name = "Desk::track"
    processor = "desk"
    lane = "ordered"
    wcet = "1 ms"
    period = "40 s"
    [[operation]]
    name = "Desk::follow"
    processor = "desk"
    lane = "ordered"
    wcet = "1 ms"
    period = "80 s"
    [[operation]]
    name = "Desk::log"
    processor = "desk"
    lane = "plain"
    wcet = "1 ms"
    period = "100 s"
"#;

/// Opens and closes a session as the book does.
fn admit(scheduler: &ServerScheduler) -> Result<(), Box<dyn Error>> {
    let mut sessions = scheduler.sessions()?;
    let video = sessions.open(&[SessionCall {
        operation: "Map::draw".to_owned(),
        period: 40_000_000,
        deadline: 40_000_000,
    }])?;
    // When the client has gone:
    sessions.close(video);
    Ok(())
}

#[test]
fn sessions_are_admitted_to_the_schedule_while_there_is_room() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.lock(), "server");
    let scheduler = server.server_scheduler().expect("a schedule");
    admit(&scheduler).expect("there is room");
    let mut sessions = scheduler.sessions().expect("the schedule is beside");
    let draws = |ms: u64| SessionCall {
        operation: "Map::draw".to_owned(),
        period: ms * 1_000_000,
        deadline: 200_000_000,
    };
    let first = sessions.open(&[draws(50)]).expect("there is room");
    let responses = sessions.responses(first).expect("it is open");
    assert!(responses[0].time() >= Some(10_000_000), "{responses:?}");
    let refused = sessions
        .open(&[draws(12)])
        .expect_err("a processor is full");
    let told = refused.to_string();
    assert!(matches!(refused, SessionError::Refused(_)), "{told}");
    assert!(told.contains("Map::draw"), "{told}");
    assert!(
        told.contains("would fit with periods multiplied by"),
        "{told}"
    );
    sessions.change(first, &[draws(500)]).expect("it is less");
    sessions.open(&[draws(100)]).expect("there is room now");
    assert!(sessions.close(first) && !sessions.close(first));
    let unknown = sessions.open(&[SessionCall {
        operation: "Map::fold".to_owned(),
        ..draws(100)
    }]);
    let unknown = unknown.expect_err("there is none").to_string();
    assert_eq!(unknown, "the schedule has no operation Map::fold");
    fs::write(files.schedule(), format!("{SCHEDULE}\n")).expect("the folder is there");
    let error = scheduler.sessions().expect_err("it has changed");
    assert!(matches!(error, StartError::Outdated { .. }), "{error}");
    server.shutdown(true).expect("no servant asks for it");
}

#[test]
fn names_that_the_schedule_does_not_have_are_unknown() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.schedule(), "server");
    let activities = server.client_scheduler().expect("a schedule");
    let error = activities
        .schedule_activity("Desk::update")
        .expect_err("of another node");
    assert!(
        matches!(error, ScheduleActivityError::UnknownName(_)),
        "{error}"
    );
    let told = error.to_string();
    assert!(
        told.contains("no activity Desk::update on node server"),
        "{told}"
    );
    let scheduler = server.server_scheduler().expect("a schedule");
    let root = server.root_poa().expect("the ORB runs");
    let poa = scheduler
        .create_poa(&root, "flight", None, &[])
        .expect("the policies agree");
    let reference = poa
        .create_reference("IDL:Test/Probe:1.0")
        .expect("system ids");
    let error = scheduler
        .schedule_object(&reference, "Nothing")
        .expect_err("it is unknown");
    assert!(
        matches!(error, ScheduleObjectError::UnknownName(_)),
        "{error}"
    );
    let error = scheduler
        .schedule_object(&reference, "Map")
        .expect_err("it has two");
    assert!(
        matches!(error, ScheduleObjectError::SeveralPriorities(_)),
        "{error}"
    );
    scheduler
        .schedule_object(&reference, "Map::draw")
        .expect("the lane is there");
    let error = scheduler
        .schedule_object(&reference, "Map::clear")
        .expect_err("it has one");
    let ScheduleObjectError::System(exception) = error else {
        panic!("{error}");
    };
    assert_eq!(exception.kind, SystemExceptionKind::BadInvOrder);
    let processor = scheduler.on_processor("desk").expect_err("of another node");
    assert!(
        processor.to_string().contains("processor desk"),
        "{processor}"
    );
    server.shutdown(true).expect("no servant asks for it");
}

#[test]
fn policies_of_the_application_come_first() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.schedule(), "server");
    let scheduler = server.server_scheduler().expect("a schedule");
    let root = server.root_poa().expect("the ORB runs");
    let lane = server.snapshot().pools[0].lanes[0]
        .priority
        .expect("lanes have one");
    let model = Policy::PriorityModel(PriorityModel::ClientPropagated, lane);
    let poa = scheduler
        .create_poa(&root, "own", None, &[model])
        .expect("the policies agree");
    let reference = poa
        .create_reference("IDL:Test/Probe:1.0")
        .expect("system ids");
    let error = scheduler
        .schedule_object(&reference, "Map::draw")
        .expect_err("by clients");
    assert!(matches!(error, ScheduleObjectError::WrongPolicy), "{error}");
    server.shutdown(true).expect("no servant asks for it");
}

#[test]
fn settings_that_contradict_the_schedule_are_refused_with_both_places() {
    let files = Files::new(SCHEDULE);
    let file = files.schedule();
    let lock = files.lock();
    let off = |config: &mut OrbConfig| config.real_time = RealTimeMode::Off;
    let other = |config: &mut OrbConfig| config.scheduling_policy = SchedulingPolicy::Other;
    let share = |config: &mut OrbConfig| config.share_connections_across_priorities = true;
    let ceiling = |config: &mut OrbConfig| config.priority_ceiling = Priority::new(1);
    let cases: [(&str, Change<'_>); 4] = [
        ("-ORBRealTime off", &off),
        ("-ORBSchedulingPolicy other", &other),
        ("-ORBShareConnectionsAcrossPriorities true", &share),
        ("-ORBPriorityCeiling", &ceiling),
    ];
    for (setting, set) in cases {
        let mut config = config(&file, "server");
        set(&mut config);
        let told = refused(config).to_string();
        assert!(told.contains(setting), "{told}");
        assert!(told.contains("lane fast"), "{told}");
        assert!(told.contains(&lock.display().to_string()), "{told}");
    }
    let mut misplaced = config(&file, "server");
    let endpoint = parse_endpoints("iiop://127.0.0.1:0")
        .expect("one")
        .remove(0);
    misplaced.lane_listen_endpoints = vec![((1, 7), endpoint)];
    let told = refused(misplaced).to_string();
    assert!(
        told.contains("-ORBLaneListenEndpoints names lane 1:7"),
        "{told}"
    );
    assert!(
        told.contains("flight.rt.lock: the lanes of processor flight"),
        "{told}"
    );
}

#[test]
fn a_schedule_that_is_newer_than_its_lock_file_is_refused() {
    let files = Files::new(SCHEDULE);
    let changed = SCHEDULE.replace("wcet = \"10 ms\"", "wcet = \"11 ms\"");
    fs::write(files.schedule(), changed).expect("written");
    let error = refused(config(&files.schedule(), "server"));
    assert!(matches!(error, StartError::Outdated { .. }), "{error}");
    assert!(
        error.to_string().contains("assign the schedule again"),
        "{error}"
    );
}

#[test]
fn files_and_nodes_that_are_not_there_are_named() {
    let files = Files::new(SCHEDULE);
    let missing = files.folder.path().join("missing.toml");
    let error = refused(config(&missing, ""));
    assert!(matches!(error, StartError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("missing.toml"), "{error}");
    let told = refused(config(&files.lock(), "")).to_string();
    assert!(told.contains("client, server"), "{told}");
    fs::write(files.lock(), "version = 1\nrubbish = 1\n").expect("written");
    let error = refused(config(&files.lock(), "server"));
    assert!(matches!(error, StartError::Malformed(_)), "{error}");
}

#[test]
fn create_poa_raises_what_the_standard_lists() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.schedule(), "server");
    let scheduler = server.server_scheduler().expect("a schedule");
    let root = server.root_poa().expect("the ORB runs");
    let create = |policies: &[Policy]| scheduler.create_poa(&root, "flight", None, policies);
    let without_a_lane = Priority::new(1).expect("it is in range");
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, without_a_lane);
    let error = create(&[model]).expect_err("no lane has it");
    assert!(
        matches!(error, CreatePoaError::InvalidPolicy { index: 0, .. }),
        "{error}"
    );
    create(&[]).expect("the name is free");
    let error = create(&[]).expect_err("the name is taken");
    assert!(
        matches!(error, CreatePoaError::AdapterAlreadyExists),
        "{error}"
    );
    server.shutdown(true).expect("no servant asks for it");
    assert!(matches!(create(&[]), Err(CreatePoaError::System(_))));
}

#[test]
fn only_objects_of_the_orb_are_scheduled() {
    let files = Files::new(SCHEDULE);
    let server = start(&files.schedule(), "server");
    let scheduler = server.server_scheduler().expect("a schedule");
    let foreign = server.string_to_object("corbaloc::127.0.0.1:1/other");
    let foreign = foreign.expect("it reads");
    let error = scheduler.schedule_object(&foreign, "Map::draw");
    assert!(
        matches!(error, Err(ScheduleObjectError::Foreign)),
        "{error:?}"
    );
    server.shutdown(true).expect("no servant asks for it");
}

#[test]
fn a_node_with_lanes_on_several_processors_chooses_one_for_each_poa() {
    let text = SCHEDULE.replace(
        "    [[lane]]\n    name = \"slow\"\n    processor = \"flight\"",
        "    [[processor]]\n    name = \"maps\"\n    node = \"server\"\n\
         [[lane]]\n    name = \"slow\"\n    processor = \"maps\"",
    );
    let text = text.replace(
        "name = \"Map::draw\"\n    processor = \"flight\"",
        "name = \"Map::draw\"\n    processor = \"maps\"",
    );
    let files = Files::new(&text);
    let server = start(&files.schedule(), "server");
    assert_eq!(server.snapshot().pools.len(), 2, "one for each processor");
    let scheduler = server.server_scheduler().expect("a schedule");
    let root = server.root_poa().expect("the ORB runs");
    let error = scheduler.create_poa(&root, "any", None, &[]);
    let error = error.expect_err("there are two");
    assert!(
        matches!(error, CreatePoaError::System(exception)
            if exception.kind == SystemExceptionKind::BadParam),
        "{error}"
    );
    let maps = scheduler.on_processor("maps").expect("it has a lane");
    let poa = maps.create_poa(&root, "maps", None, &[]);
    let poa = poa.expect("the policies agree");
    let servant = Arc::new(ProbeSkeleton(Arc::new(Probe::default())));
    maps.serve(&poa, "Map::draw", servant)
        .expect("its lane is there");
    server.shutdown(true).expect("no servant asks for it");
}

/// Two processors of a node whose operations take the lock `map`.
#[test]
fn the_owner_of_a_lock_of_the_schedule_runs_at_its_ceiling() {
    let threads = ThreadBuilder::new("probe").spawn(chronorb_rt::list);
    let threads = threads.map(|probe| probe.join().expect("it does not panic"));
    let cpus = threads.expect("it starts")[0].affinity.clone();
    let mut text = String::from("[scheduling]\nlocks = \"ceiling\"\n");
    for (name, cpu) in [("first", cpus[0]), ("second", cpus[cpus.len() - 1])] {
        text += &format!(
            "[[processor]]\nname = \"{name}\"\ncpu = {cpu}\n[[operation]]\n\
             name = \"Map::{name}\"\nprocessor = \"{name}\"\nwcet = \"1 ms\"\n\
             period = \"1 s\"\nlocks = {{ map = \"100 us\" }}\n"
        );
    }
    let files = Files::new(&text);
    let schedule = Schedule::parse("flight.toml", &text, &mut |_| Err("none".into()));
    let assignment = schedule.expect("it is sound").assign();
    let ceiling = assignment.expect("it fits").ceiling.expect("it has one");
    let orb = start(&files.schedule(), "local");
    let (map, _) = orb.rt().create_named_mutex("map");
    let (other, _) = orb.rt().create_named_mutex("other");
    let range = orb.rt().native_priority_range();
    let native = orb
        .rt()
        .priority_mapping()
        .to_native(Priority::new(ceiling).expect("not negative"));
    let native = native.filter(|native| range.is_some_and(|range| range.contains(native)));
    let native = native.map(Scheduling::fifo);
    let own = ThreadBuilder::new("user").spawn(move || {
        let before = chronorb_rt::current().expect("it has one");
        let within = |mutex: &RtMutex| {
            let _section = mutex.guard().expect("it is free");
            chronorb_rt::current().expect("it has one")
        };
        let seen = [within(&map), within(&other)];
        assert_eq!(chronorb_rt::current().expect("it has one"), before);
        (before, seen)
    });
    let (before, [with_ceiling, without]) =
        own.expect("it starts").join().expect("it does not panic");
    assert_eq!(with_ceiling, native.unwrap_or(before));
    assert_eq!(without, before);
}

#[test]
fn an_orb_without_a_schedule_has_no_schedulers() {
    let orb = Orb::with_config(OrbConfig::default()).expect("it starts");
    assert!(orb.client_scheduler().is_none());
    assert!(orb.server_scheduler().is_none());
    orb.shutdown(true).expect("no servant asks for it");
}
