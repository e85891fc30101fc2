//! Pushes many events while consumers come and go, and shows the memory of the process:
//! `soak [EVENTS [CHANGES]]`, with so many connections and disconnections each second.
//!
//! One consumer is called directly, and one has a queue on a lane. The others alternate. Fails if a
//! push begins after a disconnection has returned, if an event is neither delivered nor told as
//! lost, or if memory grows by more than a MiB after the first tenth.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chronorb_channel::{Channel, Event, Filter, Lane, Overflow};

/// The source of all events.
const SOURCE: i32 = 1;
/// The type of all events.
const TYPE: i32 = 20;
/// The consumers that come and go and are connected at the same time.
const TRANSIENT: usize = 8;
/// The growth that is no failure, in KiB.
const TOLERANCE: u64 = 1024;

/// The counts of the consumers that come and go.
#[derive(Default)]
struct Churn {
    connected: AtomicU64,
    pushes: AtomicU64,
    /// Pushes that began after the disconnection had returned.
    late: AtomicU64,
    is_over: AtomicBool,
}

impl Churn {
    /// Connects and disconnects consumers at a rate until the end.
    fn run(self: &Arc<Self>, channel: &Channel<u64>, each_second: u64) {
        let (begin, mut done) = (Instant::now(), 0);
        let mut present = VecDeque::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let wanted = begin.elapsed().as_secs_f64() * each_second as f64;
            if (done as f64) < wanted {
                present.push_back(self.connect(channel, done));
                if present.len() > TRANSIENT
                    && let Some(leaving) = present.pop_front()
                {
                    leaving.disconnect();
                }
                done += 1;
            } else {
                thread::sleep(Duration::from_micros(200));
            }
        }
        present.into_iter().for_each(Transient::disconnect);
        self.connected.store(done, Ordering::Relaxed);
    }

    fn connect(self: &Arc<Self>, channel: &Channel<u64>, number: u64) -> Transient {
        let (this, has_left) = (self.clone(), Arc::new(AtomicBool::new(false)));
        let seen = has_left.clone();
        let consume = move |_: &[Event<u64>]| {
            this.pushes.fetch_add(1, Ordering::Relaxed);
            let late = u64::from(seen.load(Ordering::SeqCst));
            this.late.fetch_add(late, Ordering::Relaxed);
        };
        let subscription = channel.subscribe(Filter::event(SOURCE, TYPE));
        let subscription = match number % 2 {
            0 => subscription.call(consume),
            _ => subscription
                .queue(16, Overflow::DropOldest)
                .call_on(0, consume),
        };
        Transient {
            subscription: subscription.expect("there are few consumers"),
            has_left,
        }
    }
}

/// A consumer that comes and goes.
struct Transient {
    subscription: chronorb_channel::Subscription<u64>,
    has_left: Arc<AtomicBool>,
}

impl Transient {
    fn disconnect(self) {
        self.subscription.disconnect();
        self.has_left.store(true, Ordering::SeqCst);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let events = numbers.next().transpose()?.unwrap_or(100_000_000);
    let changes = numbers.next().transpose()?.unwrap_or(1_000);
    let channel = Channel::<u64>::builder().lane(Lane::new("soak")).start()?;
    let direct = Arc::new(AtomicU64::new(0));
    let count = direct.clone();
    let all = channel
        .subscribe(Filter::of_type(TYPE))
        .call(move |_: &[Event<u64>]| {
            count.fetch_add(1, Ordering::Relaxed);
        })?;
    let queued = channel.subscribe(Filter::of_type(TYPE));
    let queued = queued.queue(256, Overflow::DropOldest);
    let queued = queued.call_on(0, |_: &[Event<u64>]| ())?;
    let churn = Arc::new(Churn::default());
    let (working, of_churn) = (churn.clone(), channel.clone());
    let churning = thread::spawn(move || working.run(&of_churn, changes));

    let supplier = channel.supplier(SOURCE);
    let (begin, mut memory) = (Instant::now(), Vec::new());
    println!("{:>12} {:>10} {:>8}", "events", "RSS (KiB)", "seconds");
    for tenth in 1..=10 {
        for number in events * (tenth - 1) / 10..events * tenth / 10 {
            supplier.push(TYPE, number);
        }
        let pushed = events * tenth / 10;
        memory.push(resident()?);
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{pushed:>12} {:>10} {seconds:>8.1}",
            memory[memory.len() - 1]
        );
    }
    churn.is_over.store(true, Ordering::Relaxed);
    churning.join().map_err(|_| "the consumers have failed")?;
    let is_flushed = channel.flush(Duration::from_secs(60));
    let (connected, status) = (churn.connected.load(Ordering::Relaxed), queued.status());
    let late = churn.late.load(Ordering::Relaxed);
    let growth = memory[9].saturating_sub(memory[0]);
    println!(
        "{connected} consumers connected and disconnected, {:.0} a second; \
         {} pushes to them, {late} late",
        connected as f64 / begin.elapsed().as_secs_f64(),
        churn.pushes.load(Ordering::Relaxed),
    );
    println!(
        "direct: {} delivered; by the lane: {} delivered, {} lost",
        direct.load(Ordering::Relaxed),
        status.events,
        status.lost
    );
    println!("growth after the first tenth: {growth} KiB");
    let is_complete = direct.load(Ordering::Relaxed) == events
        && is_flushed
        && status.events + status.lost == events;
    drop(all);
    if late > 0 || !is_complete || growth > TOLERANCE {
        return Err("the channel has failed".into());
    }
    Ok(())
}

/// The resident memory of the process, in KiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("the system tells no VmRSS")?.parse()?)
}
