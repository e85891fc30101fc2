//! The cockpit: `avionics [SECONDS] [-ORB…]`. Starts the mission computer as another process, calls
//! it at four rates, and compares responses with the analysis of the schedule.
//!
//! The mission computer is this program too: `avionics mission -ORBSchedule avionics.toml
//! -ORBScheduleNode mission`.

mod mission;

use std::error::Error;
use std::io::{self, BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use avionics_example::{Display, Flight, Maintenance, Navigation, ProcessorChoice, pin};
use chronorb::prelude::*;
use chronorb_rt::{Monotonic, sleep_until};
use chronorb_schedule::{LockFile, LockOperation};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().collect();
    let ended = if args.get(1).is_some_and(|role| role == MISSION) {
        mission::serve(&mut args)
    } else {
        run(&mut args)
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avionics: {error}");
            ExitCode::FAILURE
        }
    }
}

/// An activity of the cockpit, and the operation that it calls.
struct Activity {
    name: &'static str,
    operation: &'static str,
    /// Calls the operation of an object once.
    call: fn(&Object) -> Result<i32, Failure>,
}

const ACTIVITIES: [Activity; 4] = [
    Activity {
        name: "Cockpit::fly",
        operation: "Avionics::Flight::control",
        call: |object| Ok(Flight::unchecked_narrow(object).control(40)?),
    },
    Activity {
        name: "Cockpit::navigate",
        operation: "Avionics::Navigation::locate",
        call: |object| Ok(Navigation::unchecked_narrow(object).locate(250)?),
    },
    Activity {
        name: "Cockpit::show",
        operation: "Avionics::Display::draw",
        call: |object| Ok(Display::unchecked_narrow(object).draw(3)?),
    },
    Activity {
        name: "Cockpit::monitor",
        operation: "Avionics::Maintenance::inspect",
        call: |object| Ok(Maintenance::unchecked_narrow(object).inspect(64)?),
    },
];

fn run(args: &mut Vec<String>) -> Result<(), Failure> {
    let schedule = Path::new(env!("CARGO_MANIFEST_DIR")).join("avionics.toml");
    let path = schedule.with_extension("rt.lock");
    let text = std::fs::read_to_string(&path).map_err(|cause| naming(&path, &cause))?;
    let lock = LockFile::parse("avionics.rt.lock", &text)?;
    let options = |node| {
        let schedule = schedule.display().to_string();
        ["-ORBSchedule", &schedule, "-ORBScheduleNode", node].map(str::to_owned)
    };

    let mut mission = Mission::start(options(MISSION))?;
    pin(ProcessorChoice::First)?;
    args.extend(options("cockpit"));
    let orb = Orb::init(args)?;
    let seconds = args.get(1).map_or(Ok(10), |text| text.parse());
    let seconds = seconds.map_err(|_| "usage: avionics [SECONDS] [-ORB…]")?;

    let length = Duration::from_secs(seconds);
    let responses = fly(&orb, &lock, &mission.references, length)?;
    let executions = mission.stop()?;
    println!(
        "{:<18} {:>6} {:>7} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "activity", "calls", "missed", "deadline", "analysed", "longest", "wcet", "executed"
    );
    let mut above = 0;
    for (activity, responses) in ACTIVITIES.iter().zip(responses) {
        let [own, called] = [activity.name, activity.operation].map(|name| operation(&lock, name));
        let (own, called) = (own?, called?);
        let later = |than: u64| {
            let later = responses
                .iter()
                .filter(|time| time.as_nanos() > than.into());
            later.count()
        };
        above += later(own.response);
        let executed = executions
            .iter()
            .find(|(name, _)| name == activity.operation);
        println!(
            "{:<18} {:>6} {:>7} {:>11} {:>11} {:>11} {:>11} {:>11}",
            activity.name,
            responses.len(),
            later(own.deadline),
            milliseconds(own.deadline),
            milliseconds(own.response),
            milliseconds(longest(&responses)),
            milliseconds(called.wcet),
            executed.map_or_else(|| "–".to_owned(), |(_, time)| milliseconds(*time)),
        );
    }
    if above > 0 {
        println!(
            "{above} calls took longer than analysed. `chronorb doctor --measure` shows the \
             latencies of the machine, which no schedule contains."
        );
        if !orb.is_real_time() {
            println!("The threads had no real-time priorities: `chronorb doctor` names the right.");
        }
    }
    Ok(orb.shutdown(true)?)
}

/// Runs each activity on a thread of its own. Returns the responses of each, from the time at which
/// a call was due to the use of its reply.
fn fly(
    orb: &Orb,
    lock: &LockFile,
    references: &[(String, String)],
    length: Duration,
) -> Result<Vec<Vec<Duration>>, Failure> {
    let start = Monotonic::now() + Duration::from_millis(200);
    thread::scope(|scope| {
        let threads = ACTIVITIES.iter().map(|activity| {
            scope.spawn(move || {
                let mut scheduled = lock.activities.iter();
                let scheduled = scheduled.find(|it| it.name == activity.name);
                let period = scheduled.ok_or("the schedule lacks an activity")?.period;
                let period = Duration::from_nanos(period);
                let scheduler = orb.client_scheduler().ok_or("there is no schedule")?;
                scheduler.schedule_activity(activity.name)?;
                let served =
                    |(name, _): &&(String, String)| activity.operation.starts_with(&**name);
                let reference = references.iter().find(served);
                let (_, reference) = reference.ok_or("the mission computer lacks an object")?;
                let object = orb.string_to_object(reference)?;
                object.validate_connection()?;

                let mut responses = Vec::new();
                let mut due = start;
                while due.since(start) < length {
                    sleep_until(due);
                    (activity.call)(&object)?;
                    responses.push(Monotonic::now().since(due));
                    due = due + period;
                }
                Ok::<_, Failure>(responses)
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    })
}

/// The process of the mission computer.
struct Mission {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
    /// The references of its objects, by interface.
    references: Vec<(String, String)>,
}

impl Mission {
    fn start(options: [String; 4]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut process = Command::new(&program)
            .arg(MISSION)
            .args(options)
            .args([
                "-ORBListenEndpoints",
                "iiop://127.0.0.1:0",
                "-ORBMeasure",
                "1",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| naming(&program, &cause))?;
        let output = process.stdout.take().ok_or("it has no output")?;
        let mut output = BufReader::new(output).lines();
        let mut references = Vec::new();
        while references.len() < ACTIVITIES.len() {
            let line = output.next().ok_or("the mission computer has ended")??;
            references.push(pair(&line)?);
        }
        Ok(Self {
            process,
            output,
            references,
        })
    }

    /// Ends the process. Returns the longest execution time of each operation in nanoseconds.
    fn stop(&mut self) -> Result<Vec<(String, u64)>, Failure> {
        drop(self.process.stdin.take());
        let mut executions = Vec::new();
        for line in self.output.by_ref() {
            let (name, time) = pair(&line?)?;
            executions.push((name, time.parse()?));
        }
        self.process.wait()?;
        Ok(executions)
    }
}

impl Drop for Mission {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn naming(path: &Path, cause: &io::Error) -> String {
    format!("{}: {cause}", path.display())
}

fn pair(line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line
        .split_once(' ')
        .ok_or("the mission computer said too little")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn operation<'a>(lock: &'a LockFile, name: &str) -> Result<&'a LockOperation, Failure> {
    let found = lock
        .operations
        .iter()
        .find(|operation| operation.name == name);
    found.ok_or_else(|| format!("the schedule has no operation {name}").into())
}

fn longest(responses: &[Duration]) -> u64 {
    let longest = responses.iter().max().map_or(0, Duration::as_nanos);
    u64::try_from(longest).unwrap_or(u64::MAX)
}

fn milliseconds(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

/// The name of the mission computer's node, and the argument that makes this program its process.
const MISSION: &str = "mission";
