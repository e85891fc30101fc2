//! One ring of shared memory with many readers: the cost of a message to its publisher.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_probe::{Mark, TraceError, Tracer, trace_mark};
use chronorb_report::stats::median;
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use chronorb_transport::shm::fan_out::{FanOutError, FanOutOptions, Publisher, Reader, Reading};
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::plan::EventsPlan;
use crate::error::LabError;
use crate::process::{self, Begin, Child, Parent, Ready};
use crate::usage::thread_time;
use crate::watch::Watch;

/// So many cursors, all of which poll or sleep.
#[derive(Clone, Debug, Serialize)]
pub struct RingRow {
    /// The cursors, in two processes.
    pub cursors: u32,
    /// Whether readers sleep, or poll.
    pub sleeping: bool,
    /// The processor time of the publisher for a message, the median of batches.
    pub nanos: f64,
    /// The calls for a message that wake readers, if messages come one by one; `None` if they could
    /// not be traced.
    pub wakes: Option<f64>,
    /// All messages.
    pub published: u64,
    /// The messages that all cursors took.
    pub taken: u64,
    /// The messages that they were told as lost.
    pub lost: u64,
}

/// The order of a process.
#[derive(Debug, Deserialize, Serialize)]
struct RingOrder {
    /// The socket of the publisher.
    path: PathBuf,
    part: RingPart,
}

#[derive(Debug, Deserialize, Serialize)]
enum RingPart {
    /// The publisher, for so many processes of readers, with so many messages in a batch.
    Publisher { processes: u32, messages: u32 },
    /// So many cursors.
    Reader { cursors: u32, sleeping: bool },
}

/// The thread of the publisher, and the processor time of a message.
#[derive(Debug, Deserialize, Serialize)]
struct PublisherTimes {
    tid: u32,
    nanos: f64,
}

/// The end of a publisher.
#[derive(Debug, Deserialize, Serialize)]
struct PublishedMessages {
    published: u64,
}

/// The messages of all cursors of a process.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct ReaderTotals {
    taken: u64,
    lost: u64,
}

/// Measures all numbers of cursors, which poll, and one number which sleeps.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<Vec<RingRow>, LabError> {
    let polling = plan.cursors.iter().map(|cursors| (*cursors, false));
    let sleeping = plan.sleepers.iter().map(|cursors| (*cursors, true));
    let rows = polling.chain(sleeping).map(|(cursors, sleeping)| {
        watch.begin(&format!("a ring with {cursors} cursors"));
        row(cursors, sleeping, plan.pushes)
    });
    rows.collect()
}

fn row(cursors: u32, sleeping: bool, messages: u32) -> Result<RingRow, LabError> {
    let processes = PROCESSES;
    let name = format!(
        "chronorb-ring-{}-{}",
        std::process::id(),
        Monotonic::now().as_nanos()
    );
    let path = std::env::temp_dir().join(name);
    let order = |part| RingOrder {
        path: path.clone(),
        part,
    };
    let publisher = order(RingPart::Publisher {
        processes,
        messages,
    });
    let (mut publisher, Ready {}) = Child::start("publisher", RING, &publisher)?;
    let readers = (0..processes).map(|number| {
        // The first one has what is left over.
        let more = if number == 0 { cursors % processes } else { 0 };
        let part = order(RingPart::Reader {
            cursors: cursors / processes + more,
            sleeping,
        });
        let (child, Ready {}) = Child::start("readers", RING, &part)?;
        Ok(child)
    });
    let readers = readers.collect::<Result<Vec<_>, LabError>>()?;
    publisher.tell(&Begin {})?;
    let patience = || Deadline::after(PATIENCE);
    let times: PublisherTimes = publisher.hear(patience())?;
    let tracer = match Tracer::attach(publisher.id()) {
        Ok(tracer) => Some(tracer),
        Err(TraceError::Refused(_)) => None,
        Err(error) => return Err(LabError::work(TRACING)(error)),
    };
    publisher.tell(&Begin {})?;
    let PublishedMessages { published } = publisher.hear(patience())?;
    let spans = tracer.map(Tracer::spans).transpose();
    let spans = spans.map_err(LabError::work(TRACING))?;
    let wakes = spans.map(|spans| {
        let calls = spans.iter().flatten();
        let wakes = calls.filter(|of| of.thread == times.tid && of.name == "futex");
        wakes.map(|of| of.calls).sum::<u64>() as f64 / f64::from(SINGLE)
    });
    publisher.stop(patience())?;
    let mut totals = ReaderTotals::default();
    for mut reader in readers {
        let of: ReaderTotals = reader.hear(patience())?;
        totals.taken += of.taken;
        totals.lost += of.lost;
        reader.stop(patience())?;
    }
    // The publisher has removed it, unless it failed.
    let _ = fs::remove_file(&path);
    Ok(RingRow {
        cursors,
        sleeping,
        nanos: times.nanos,
        wakes,
        published,
        taken: totals.taken,
        lost: totals.lost,
    })
}

/// Publishes messages, or reads them.
pub(crate) fn ring_main(order: &str) -> Result<(), LabError> {
    let RingOrder { path, part } = process::order(order)?;
    let parent = Parent::or_exit();
    match part {
        RingPart::Publisher {
            processes,
            messages,
        } => publish(&parent, &path, processes, messages),
        RingPart::Reader { cursors, sleeping } => {
            let socket = UnixStream::connect(&path).map_err(LabError::work(CONNECTING))?;
            let reader = Reader::receive(socket.into());
            let reader = reader.map_err(LabError::work(CONNECTING))?;
            let cursors: Vec<_> = (0..cursors).map(|_| reader.clone()).collect();
            process::tell(&Ready {})?;
            let totals = read(cursors, sleeping).map_err(LabError::work("reading a ring"))?;
            Ok(parent.conclude(&totals)?)
        }
    }
}

fn publish(parent: &Parent, path: &PathBuf, processes: u32, messages: u32) -> Result<(), LabError> {
    let options = FanOutOptions {
        slots: 4096,
        octets: 256,
    };
    let publisher = Publisher::create(options);
    let mut publisher = publisher.map_err(LabError::work(CONNECTING))?;
    let listener = UnixListener::bind(path).map_err(LabError::work(CONNECTING))?;
    process::tell(&Ready {})?;
    let sockets = (0..processes).map(|_| {
        let (socket, _) = listener.accept().map_err(LabError::work(CONNECTING))?;
        let sent = publisher.offer().send(&socket);
        sent.map_err(LabError::work(CONNECTING))?;
        Ok(socket)
    });
    let _sockets = sockets.collect::<Result<Vec<_>, LabError>>()?;
    fs::remove_file(path).map_err(LabError::work(CONNECTING))?;
    let Begin {} = parent.hear()?;
    let mut published = 0;
    let mut publish = || {
        published += 1;
        publisher.publish(&[&[7; OCTETS]])
    };
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let begin = thread_time();
        for _ in 0..messages {
            publish().map_err(LabError::work(PUBLISHING))?;
        }
        let time = thread_time().saturating_sub(begin);
        times.push(time.as_nanos() as f64 / f64::from(messages));
    }
    process::tell(&PublisherTimes {
        tid: gettid().as_raw_nonzero().get().unsigned_abs(),
        nanos: median(times.into_iter()).unwrap_or(0.0),
    })?;
    let Begin {} = parent.hear()?;
    trace_mark(Mark::Next);
    for _ in 0..SINGLE {
        // Readers sleep again meanwhile.
        sleep_until(Monotonic::now() + PAUSE);
        publish().map_err(LabError::work(PUBLISHING))?;
    }
    trace_mark(Mark::Last);
    drop(publisher);
    Ok(parent.conclude(&PublishedMessages { published })?)
}

/// Reads by all cursors until the publisher ends.
fn read(mut cursors: Vec<Reader>, sleeping: bool) -> Result<ReaderTotals, FanOutError> {
    let mut totals = ReaderTotals::default();
    let mut drain = |cursor: &mut Reader| {
        loop {
            match cursor.poll() {
                Ok(None) => return Ok(true),
                Ok(Some(Reading::Message(_))) => totals.taken += 1,
                Ok(Some(Reading::Lost(number))) => totals.lost += number,
                Err(FanOutError::Ended) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    };
    while !cursors.is_empty() {
        let mut index = 0;
        while index < cursors.len() {
            if drain(&mut cursors[index])? {
                index += 1;
            } else {
                cursors.swap_remove(index);
            }
        }
        if let Some(cursor) = cursors.first().filter(|_| sleeping) {
            cursor.wait(Deadline::after(PATIENCE))?;
        }
    }
    Ok(totals)
}

/// The part of a process that publishes or reads messages of a ring.
pub(crate) const RING: &str = "events-ring";
/// The processes of readers, for any number of cursors, so that publishers have equal company.
const PROCESSES: u32 = 2;
const BATCHES: u32 = 21;
/// The octets of a message.
const OCTETS: usize = 64;
/// The messages that come one by one.
const SINGLE: u32 = 200;
const PAUSE: Duration = Duration::from_micros(500);
const CONNECTING: &str = "connecting to a ring";
const PUBLISHING: &str = "publishing";
const TRACING: &str = "tracing the system calls of a publisher";
