//! Sensors, and consumers of their readings: `sensors [SECONDS] [PAGE.html] [-ORB…]`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_channel::{Channel, Delivery, Event, EventStream, Filter, Overflow};

use chronorb_report::{Document, Table, Target, write_page};
use chronorb_rt::{Monotonic, sleep_until};
use chronorb_schedule::LockFile;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sensors: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A sensor: its activity in the schedule, its source, and its rate in Hz.
struct Sensor {
    activity: &'static str,
    source: i32,
    rate: u32,
}

const SENSORS: [Sensor; 5] = [
    sensor("Sensor::radar", RADAR, 40),
    sensor("Sensor::gyro", GYRO, 20),
    sensor("Sensor::air", 3, 10),
    sensor("Sensor::fuel", 4, 5),
    sensor("Sensor::hull", 5, 1),
];

const fn sensor(activity: &'static str, source: i32, rate: u32) -> Sensor {
    Sensor {
        activity,
        source,
        rate,
    }
}

const RADAR: i32 = 1;
const GYRO: i32 = 2;
const FUSION: i32 = 10;
/// The type of the events of sensors.
const READING: i32 = 20;
/// The type of the events of the fusion.
const TRACK: i32 = 21;

/// The body of an event.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// The time at which it was taken. `None` for the events of timers.
    taken: Option<Monotonic>,
    value: f64,
}

impl Sample {
    fn now(value: f64) -> Self {
        let taken = Some(Monotonic::now());
        Self { taken, value }
    }
}

/// The events that a consumer got.
#[derive(Default)]
struct Tally {
    sets: u64,
    events: u64,
    ticks: u64,
    lost: u64,
    /// The longest time from a sample to its use, for the newest sample of each set.
    longest_age: Duration,
}

impl Tally {
    /// Takes all deliveries that wait.
    fn drain(
        &mut self,
        stream: &mut EventStream<Sample>,
        mut use_set: impl FnMut(&[Event<Sample>]),
    ) {
        while let Some(delivery) = stream.next_within(Duration::ZERO) {
            self.add(delivery, &mut use_set);
        }
    }

    fn add(&mut self, delivery: Delivery<Sample>, use_set: &mut impl FnMut(&[Event<Sample>])) {
        let set = match delivery {
            Delivery::Lost(lost) => {
                self.lost += lost;
                return;
            }
            Delivery::Set(set) => set,
        };
        let newest = set.iter().filter_map(|event| event.body.taken).max();
        let Some(newest) = newest else {
            self.ticks += 1;
            return;
        };
        use_set(&set);
        self.sets += 1;
        self.events += set.len() as u64;
        self.longest_age = self.longest_age.max(Monotonic::now().since(newest));
    }
}

/// The results of a run.
struct Results {
    /// The events that each sensor pushed.
    pushed: Vec<u64>,
    tracks: u64,
    fusion: Tally,
    display: Tally,
    logger: Tally,
}

fn run() -> Result<(), Failure> {
    let schedule = Path::new(env!("CARGO_MANIFEST_DIR")).join("sensors.toml");
    let lock = std::fs::read_to_string(schedule.with_extension("rt.lock"))?;
    let lock = LockFile::parse("sensors.rt.lock", &lock)?;
    let mut args: Vec<String> = std::env::args().collect();
    let schedule = schedule.display().to_string();
    let options = ["-ORBSchedule", &schedule, "-ORBScheduleNode", "plant"];
    args.extend(options.map(str::to_owned));
    let orb = Orb::init(&mut args)?;
    let seconds = args.get(1).map_or(Ok(10), |text| text.parse())?;

    let results = measure(&orb, Duration::from_secs(seconds))?;
    let report = report(&results, &lock, seconds);
    print!("{}", report.text(Target::Plain));
    if let Some(page) = args.get(2) {
        write_page(&report.html(), Path::new(page))?;
        println!("\nThe page is {page}.");
    }
    Ok(orb.shutdown(true)?)
}

/// Runs sensors and consumers for a time. Consumers end when nothing more can come.
fn measure(orb: &Orb, length: Duration) -> Result<Results, Failure> {
    let channel = Channel::<Sample>::builder().start()?;
    let pairs = Filter::Conjunction(vec![
        Filter::event(RADAR, READING),
        Filter::event(GYRO, READING),
    ]);
    let mut pairs = (channel.subscribe(pairs))
        .queue(16, Overflow::DropOldest)
        .stream()?;
    let mut latest = (channel.subscribe(Filter::Everything))
        .queue(8, Overflow::LatestByKey)
        .stream()?;
    let all = Filter::Everything | Filter::each(Duration::from_secs(1));
    let mut all = (channel.subscribe(all))
        .queue(256, Overflow::DropOldest)
        .stream()?;

    let (channel, sensors_ended, fusion_ended) =
        (&channel, &AtomicBool::new(false), &AtomicBool::new(false));
    let start = Monotonic::now() + Duration::from_millis(100);
    let tracks = AtomicU64::new(0);
    let tracks_pushed = &tracks;
    let joined: Result<_, Failure> = thread::scope(|scope| {
        let sensors: Vec<_> = (SENSORS.iter())
            .map(|sensor| scope.spawn(move || sense(orb, channel, sensor, start, length)))
            .collect();
        let fusion = scope.spawn(move || {
            take_priority(orb, "Fusion::track")?;
            let mut tally = Tally::default();
            let fused = channel.supplier(FUSION);
            let mut fuse = |set: &[Event<Sample>]| {
                let sum: f64 = set.iter().map(|event| event.body.value).sum();
                fused.push(TRACK, Sample::now(sum / set.len() as f64));
                tracks_pushed.fetch_add(1, Ordering::Relaxed);
            };
            loop {
                let was_last = sensors_ended.load(Ordering::Acquire);
                if let Some(delivery) = pairs.next_within(Duration::from_millis(50)) {
                    tally.add(delivery, &mut fuse);
                } else if was_last {
                    return Ok::<_, Failure>(tally);
                }
            }
        });
        let display = scope.spawn(move || {
            take_priority(orb, "Display::draw")?;
            Ok::<_, Failure>(use_regularly(&mut latest, start, 10, fusion_ended))
        });
        let logger = scope.spawn(move || {
            take_priority(orb, "Logger::write")?;
            Ok::<_, Failure>(use_regularly(&mut all, start, 5, fusion_ended))
        });
        let pushed: Vec<_> = sensors.into_iter().map(join).collect();
        sensors_ended.store(true, Ordering::Release);
        let fusion = join(fusion);
        fusion_ended.store(true, Ordering::Release);
        let (display, logger) = (join(display), join(logger));
        let pushed = pushed.into_iter().collect::<Result<Vec<u64>, Failure>>();
        Ok((pushed?, fusion?, display?, logger?))
    });
    let (pushed, fusion, display, logger) = joined?;
    Ok(Results {
        pushed,
        tracks: tracks.into_inner(),
        fusion,
        display,
        logger,
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let joined = thread.join();
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Gives the calling thread the priority of its activity in the schedule.
fn take_priority(orb: &Orb, activity: &str) -> Result<(), Failure> {
    let scheduler = orb.client_scheduler().ok_or("there is no schedule")?;
    Ok(scheduler.schedule_activity(activity)?)
}

/// Pushes readings at the rate of a sensor. Returns their number.
fn sense(
    orb: &Orb,
    channel: &Channel<Sample>,
    sensor: &Sensor,
    start: Monotonic,
    length: Duration,
) -> Result<u64, Failure> {
    take_priority(orb, sensor.activity)?;
    let supplier = channel.supplier(sensor.source);
    let period = Duration::from_secs(1) / sensor.rate;
    let mut due = start;
    let mut pushed = 0;
    while due.since(start) < length {
        sleep_until(due);
        let phase = pushed as f64 / f64::from(sensor.rate);
        supplier.push(READING, Sample::now(phase.sin()));
        pushed += 1;
        due = due + period;
    }
    Ok(pushed)
}

/// Uses what waits, at a rate, until nothing more can come.
fn use_regularly(
    stream: &mut EventStream<Sample>,
    start: Monotonic,
    rate: u32,
    is_last: &AtomicBool,
) -> Tally {
    let mut tally = Tally::default();
    let mut due = start;
    loop {
        sleep_until(due);
        let was_last = is_last.load(Ordering::Acquire);
        tally.drain(stream, |_| {});
        if was_last {
            return tally;
        }
        due = due + Duration::from_secs(1) / rate;
    }
}

fn report(results: &Results, lock: &LockFile, seconds: u64) -> Document {
    let response = |activity: &str| {
        let operation = lock.operations.iter().find(|it| it.name == activity);
        operation.map_or_else(|| "–".to_owned(), |it| milliseconds(it.response))
    };
    let sensors = SENSORS.iter().zip(&results.pushed).map(|(sensor, pushed)| {
        let cells = vec![
            format!("{} Hz", sensor.rate),
            response(sensor.activity),
            pushed.to_string(),
        ];
        (sensor.activity.to_owned(), cells)
    });
    let consumers = [
        ("Fusion::track", &results.fusion),
        ("Display::draw", &results.display),
        ("Logger::write", &results.logger),
    ];
    let consumers = consumers.map(|(activity, tally)| {
        let cells = vec![
            response(activity),
            tally.sets.to_string(),
            tally.events.to_string(),
            tally.ticks.to_string(),
            tally.lost.to_string(),
            milliseconds(tally.longest_age.as_nanos() as u64),
        ];
        (activity.to_owned(), cells)
    });
    let pushed = results.pushed.iter().sum::<u64>() + results.tracks;
    let logger = &results.logger;
    Document::new("Sensors")
        .lead(format!(
            "Five sensors, a fusion, a display and a logger on one event channel, for {seconds} s."
        ))
        .tables([
            Table::new("Sensor", ["rate", "response, ms", "pushed"], sensors),
            Table::new(
                "Consumer",
                [
                    "response, ms",
                    "sets",
                    "events",
                    "ticks",
                    "lost",
                    "oldest, ms",
                ],
                consumers,
            ),
        ])
        .notes([
            format!(
                "{pushed} events were pushed; the logger got {} of them, and was told that {} were \
                 lost.",
                logger.events, logger.lost
            ),
            "Responses are those of the analysis. The age of a reading when it is used is more by \
             the period of a display or logger."
                .to_owned(),
        ])
        .commands("cargo run --release -p sensors-example -- 10 sensors.html")
}

/// Nanoseconds as milliseconds.
fn milliseconds(nanos: u64) -> String {
    format!("{:.2}", nanos as f64 / 1e6)
}
