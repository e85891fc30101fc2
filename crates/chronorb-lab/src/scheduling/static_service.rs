//! The cost of the static scheduling service of RT-CORBA at run time.

use std::fs;
use std::panic::resume_unwind;
use std::thread;

use chronorb::prelude::*;
use chronorb_orb::rtscheduling::Monotonic;
use chronorb_orb::schedule::ClientScheduler;
use chronorb_report::stats::median;
use chronorb_schedule::Schedule;
use serde::Serialize;

use super::SchedulingPlan;
use super::nodes::{Node, STARTING, Script, TimedWork, perform};
use crate::error::LabError;

/// The time of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct StaticServiceRow {
    /// The operation.
    pub what: String,
    /// The time of one, the median of batches.
    pub median_ns: f64,
    /// The time above that of a call without the service, the median of the differences of batches;
    /// `None` where it is no call.
    pub extra_ns: Option<f64>,
}

/// Measures the service, and calls of objects with and without it.
pub(super) fn measure(plan: &SchedulingPlan) -> Result<Vec<StaticServiceRow>, LabError> {
    let process = std::process::id();
    let folder = std::env::temp_dir().join(format!("chronorb-static-service-{process}"));
    let written = fs::create_dir_all(&folder).and_then(|()| {
        let path = folder.join("lab.toml");
        fs::write(&path, SCHEDULE).map(|()| path)
    });
    let path = written.map_err(LabError::work(WRITING))?;
    let schedule = Schedule::parse(
        "lab.toml",
        SCHEDULE,
        &mut |_| Err("it includes none".into()),
    );
    let schedule = schedule.map_err(LabError::work(WRITING))?;
    let assignment = schedule.assign().map_err(LabError::work(WRITING))?;
    let lock = assignment.lock_file(&schedule).to_string();
    let locked = fs::write(folder.join("lab.rt.lock"), lock);
    locked.map_err(LabError::work(WRITING))?;
    let rows = with_schedule(plan, &path.display().to_string());
    // Only the folder would stay.
    let _ = fs::remove_dir_all(&folder);
    rows
}

fn with_schedule(plan: &SchedulingPlan, path: &str) -> Result<Vec<StaticServiceRow>, LabError> {
    let node = |name| Node::start(&["-ORBSchedule", path, "-ORBScheduleNode", name]);
    let (server, client, plain) = (node("server")?, node("client")?, Node::start(&[])?);
    let activities = client.orb.client_scheduler();
    let activities = activities.ok_or_else(|| LabError::work(STARTING)("it has no schedule"))?;
    let scheduler = server.orb.server_scheduler();
    let scheduler = scheduler.ok_or_else(|| LabError::work(STARTING)("it has no schedule"))?;
    let starting = LabError::work(STARTING);
    let root = server.orb.root_poa().map_err(LabError::work(STARTING))?;
    let manager = Some(root.manager());
    let poa = scheduler.create_poa(&root, "lab", manager, &[]);
    let poa = poa.map_err(LabError::work(STARTING))?;
    let servant = std::sync::Arc::new(Script(|_: &Call<'_>| Ok(())));
    let scheduled = scheduler.serve(&poa, "Lab::run", servant);
    let scheduled = scheduled.map_err(LabError::work(STARTING))?;
    root.manager().activate().map_err(starting)?;
    let table = scheduler.table().and_then(|table| {
        let entry = table.find("Lab::run").and_then(|it| table.get(it));
        entry.map(|entry| entry.priority)
    });
    let priority =
        table.ok_or_else(|| LabError::work(STARTING)("the operation has no priority"))?;
    let by_hand = by_hand(&plain, priority)?;
    let scheduled = client.see(&server, &scheduled)?;
    let by_hand = client.see(&plain, &by_hand)?;
    // An activity gives its thread a real-time priority, which ends with the thread.
    let timed = || timed(plan, &activities, &by_hand, &scheduled);
    let rows = thread::scope(|scope| scope.spawn(timed).join());
    rows.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Times calls and activities on the calling thread, which keeps the priority of an activity.
fn timed(
    plan: &SchedulingPlan,
    activities: &ClientScheduler,
    by_hand: &Object,
    scheduled: &Object,
) -> Result<Vec<StaticServiceRow>, LabError> {
    let schedule = |name: &str| {
        let scheduled = activities.schedule_activity(name);
        scheduled.map_err(LabError::work(SCHEDULING))
    };
    let calls = |object: &Object| {
        (0..plan.calls).try_for_each(|_| perform(object).map_err(LabError::work(SCHEDULING)))
    };
    let alternating = || {
        (0..plan.calls).try_for_each(|number| {
            schedule(if number % 2 == 0 {
                "Desk::slow"
            } else {
                "Desk::fast"
            })
        })
    };
    let works: [TimedWork<'_>; 4] = [
        ("call of an object without the service", &|| calls(by_hand)),
        ("call of a scheduled object", &|| calls(scheduled)),
        ("schedule_activity, the same one", &|| {
            (0..plan.calls).try_for_each(|_| schedule("Desk::fast"))
        }),
        ("schedule_activity, another one", &alternating),
    ];
    schedule("Desk::fast")?;
    let mut times = works.map(|_| Vec::new());
    // The first batch is not counted.
    for batch in 0..=plan.batches {
        for step in 0..works.len() {
            let number = (step + batch as usize) % works.len();
            let start = Monotonic::now();
            works[number].1()?;
            let time = Monotonic::now().since(start);
            schedule("Desk::fast")?;
            if batch > 0 {
                times[number].push(time.as_nanos() as f64 / f64::from(plan.calls));
            }
        }
    }
    let extra = times[1].iter().zip(&times[0]);
    let extra = median(extra.map(|(with, without)| with - without));
    let rows = works.iter().zip(&times).enumerate();
    let rows = rows.map(|(number, ((what, _), times))| StaticServiceRow {
        what: (*what).to_owned(),
        median_ns: median(times.iter().copied()).unwrap_or(0.0),
        extra_ns: extra.filter(|_| number == 1),
    });
    Ok(rows.collect())
}

/// Serves an object at a priority, as an application does without a schedule.
fn by_hand(node: &Node, priority: Priority) -> Result<Object, LabError> {
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(priority, 1)],
        ..Default::default()
    };
    let pool = node.orb.rt().create_threadpool_with_lanes(&lanes);
    let pool = pool.map_err(LabError::work(STARTING))?;
    let root = node.orb.root_poa().map_err(LabError::work(STARTING))?;
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, priority),
    ];
    let poa = root.create_poa("lab", Some(root.manager()), &policies);
    let poa = poa.map_err(LabError::work(STARTING))?;
    let object = poa.serve(Script(|_: &Call<'_>| Ok(())));
    let object = object.map_err(LabError::work(STARTING))?;
    root.manager()
        .activate()
        .map_err(LabError::work(STARTING))?;
    Ok(object)
}

/// A server with one operation, and a client with two activities.
const SCHEDULE: &str = r#"
    [[node]]
    name = "server"
    [[processor]]
    name = "lanes"
    node = "server"
    [[node]]
    name = "client"
    [[processor]]
    name = "desk"
    node = "client"

    [[lane]]
    name = "lane"
    processor = "lanes"

    [[operation]]
    name = "Lab::run"
    processor = "lanes"
    lane = "lane"
    wcet = "1 ms"
    [[operation]]
    name = "Desk::fast"
    processor = "desk"
    wcet = "1 ms"
    period = "20 Hz"
    calls = ["Lab::run"]
    [[operation]]
    name = "Desk::slow"
    processor = "desk"
    wcet = "1 ms"
    period = "1 Hz"
"#;
const WRITING: &str = "writing a schedule";
const SCHEDULING: &str = "scheduling an activity";
