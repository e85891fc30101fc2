//! What parent and children say to each other.

use std::path::PathBuf;

use chronorb_orb::Stage;
use chronorb_probe::{Activity, Point, ThreadStamps};
use serde::{Deserialize, Serialize};

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Part {
    Server(ServerOrder),
    Client(ClientOrder),
    /// To measure what a point costs.
    Cost,
}

/// What a server is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) scheme: String,
    /// Where the certificates are, if it needs some.
    pub(super) certificates: Option<PathBuf>,
    /// How many stamps each thread shall keep; without, all points are off.
    pub(super) stamps: Option<usize>,
}

/// What a client is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) scheme: String,
    pub(super) certificates: Option<PathBuf>,
    pub(super) stamps: Option<usize>,
    pub(super) reference: String,
    pub(super) warm_up: u32,
    pub(super) calls: u32,
}

/// From a server, when it serves.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    pub(super) reference: String,
}

/// To a server: to tell its stamps.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Tell {}

/// From both: the stamps of all their threads that put some down.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Told {
    pub(super) threads: Vec<Stamps>,
}

impl Told {
    /// How many there are.
    pub(super) fn stamps(&self) -> u64 {
        let of_threads = self.threads.iter().map(|of| of.marks.len() as u64);
        of_threads.sum()
    }
}

/// From a client whose points are off: how long its calls took, in nanoseconds.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Timed {
    pub(super) calls: Vec<u64>,
}

/// The stamps of a thread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Stamps {
    /// Where, as [`Mark`] numbers it, and when, in nanoseconds of the monotonic clock.
    pub(super) marks: Vec<(u8, u64)>,
}

/// Where a thread was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// At a stage of the ORB.
    At(Stage),
    /// Where the experiment itself put a stamp down.
    Own(u8),
    /// About to ask the kernel for input or output.
    IntoKernel,
    /// Back from there, or from anything else that is not the ORB's.
    Back,
    /// About to do anything else.
    Elsewhere,
}

impl Stamps {
    pub(super) fn of(thread: &ThreadStamps) -> Self {
        let number = |point| match point {
            Point::Number(number) => number,
            Point::TurnedTo(Activity::InputOutput) => INTO_KERNEL,
            Point::TurnedTo(Activity::Other) => BACK,
            Point::TurnedTo(_) => ELSEWHERE,
        };
        let mark = |stamp: &chronorb_probe::Stamp| (number(stamp.point), stamp.at.as_nanos());
        Self {
            marks: thread.stamps.iter().map(mark).collect(),
        }
    }

    /// All of them, with their times in nanoseconds.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Mark, u64)> {
        self.marks.iter().map(|(number, at)| {
            let mark = match *number {
                INTO_KERNEL => Mark::IntoKernel,
                BACK => Mark::Back,
                ELSEWHERE => Mark::Elsewhere,
                number => match Stage::ALL.get(usize::from(number)) {
                    Some(stage) => Mark::At(*stage),
                    None => Mark::Own(number),
                },
            };
            (mark, *at)
        })
    }
}

/// All stamps of this process.
pub(super) fn told() -> Told {
    Told {
        threads: chronorb_probe::stamps().iter().map(Stamps::of).collect(),
    }
}

pub(super) const INTO_KERNEL: u8 = 200;
pub(super) const BACK: u8 = 201;
pub(super) const ELSEWHERE: u8 = 202;
/// The client is about to call the stub, and has its result.
pub(super) const CALL: u8 = 100;
pub(super) const RESULT: u8 = 101;
/// The servant begins, and ends.
pub(super) const SERVANT: u8 = 102;
pub(super) const SERVED: u8 = 103;
