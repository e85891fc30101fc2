//! What the paper says that thread pools of Real-time CORBA do, tried: each step is provoked by an event, and what was
//! seen is told.

mod floor;
mod site;

use chronorb::minor;
use chronorb::observe::{Activity, LaneSnapshot};
use chronorb::prelude::*;
use chronorb_rt::Scheduling;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::error::LabError;
use floor::Sight;
use site::Site;

/// What thread pools promise.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// A request for which there is neither a thread nor room gets `TRANSIENT`.
    Buffering,
    /// A lane whose threads are all busy uses one of a lower lane, at its own priority.
    Borrowing,
    /// Threads are made on demand, up to the bound.
    DynamicThreads,
    /// The threads of lanes keep their priorities.
    Lanes,
    /// Without lanes a thread takes the priority of the request, and its own again.
    WithoutLanes,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Buffering,
        Self::Borrowing,
        Self::DynamicThreads,
        Self::Lanes,
        Self::WithoutLanes,
    ];

    /// What should be true.
    pub(super) const fn claim(self) -> &'static str {
        match self {
            Self::Buffering => {
                "when all threads are busy and the buffer is full, the next request gets TRANSIENT"
            }
            Self::Borrowing => {
                "a lane that has exhausted its threads borrows one of a lower lane, which has its own priority again \
                 afterwards"
            }
            Self::DynamicThreads => "threads are made on demand, and never more than the bound",
            Self::Lanes => "the priorities of a lane's threads never change, without borrowing",
            Self::WithoutLanes => {
                "without lanes a thread takes the priority of the request, and then its own again"
            }
        }
    }

    /// What the paper says of it.
    pub(super) const fn published(self) -> &'static str {
        match self {
            Self::Buffering => "the ORB should raise a TRANSIENT exception",
            Self::Borrowing => "its priority raised to that of the lane, then lowered again",
            Self::DynamicThreads => "created if their number has not exceeded the dynamic value",
            Self::Lanes => "do not change except when thread borrowing is used",
            Self::WithoutLanes => "changed to match the priority of the client, then restored",
        }
    }
}

/// What a strategy did where something is promised.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Observation {
    /// How the threads shared the work.
    pub strategy: Strategy,
    /// What was promised.
    pub promise: Promise,
    /// Whether it was kept; nothing where it cannot be told, since all priorities are the same to this process.
    pub kept: Option<bool>,
    /// What was seen.
    pub seen: String,
}

/// Tries all that is promised.
pub(super) fn observe(strategy: Strategy) -> Result<Vec<Observation>, LabError> {
    let try_out = |promise| {
        let (kept, seen) = match promise {
            Promise::Buffering => buffering(strategy),
            Promise::Borrowing => borrowing(strategy),
            Promise::DynamicThreads => dynamic_threads(strategy),
            Promise::Lanes => lanes(strategy),
            Promise::WithoutLanes => without_lanes(strategy),
        }?;
        Ok(Observation {
            strategy,
            promise,
            kept,
            seen,
        })
    };
    Promise::ALL.into_iter().map(try_out).collect()
}

type Seen = Result<(Option<bool>, String), LabError>;

/// One thread, room for two, and four requests.
fn buffering(strategy: Strategy) -> Seen {
    let site = Site::with_lanes(
        strategy,
        ThreadpoolLanes {
            lanes: vec![Lane::new(LOW, 1)],
            request_buffering: room(2),
            ..Default::default()
        },
    )?;
    let first = site.hold(1, LOW);
    site.floor.begun(1)?;
    let second = site.hold(2, LOW);
    site.await_queued(1)?;
    let third = site.hold(3, LOW);
    site.await_queued(2)?;
    let refused = match site.hold(4, LOW).answer()? {
        Err(exception) => {
            exception.kind == SystemExceptionKind::Transient
                && exception.minor == minor::OMG | 1
                && exception.completed == CompletionStatus::No
        }
        Ok(_) => false,
    };
    let served_too = site.floor.has_begun(4);
    site.floor.open();
    let mut answered = true;
    for asked in [first, second, third] {
        answered &= asked.answer()?.is_ok();
    }
    // There is room again.
    answered &= site.hold(5, LOW).answer()?.is_ok();
    let word = |kept, yes, no| if kept { yes } else { no };
    Ok((
        Some(refused && !served_too && answered),
        format!(
            "one at work and two in the buffer: the fourth {} by TRANSIENT, minor 0x4f4d0001, completed NO; {} \
             answered",
            word(refused, "was refused at once", "was not refused"),
            word(
                answered,
                "the three, and one that came later, were",
                "the others were not all"
            ),
        ),
    ))
}

/// A high lane of one thread, and two requests for it.
fn borrowing(strategy: Strategy) -> Seen {
    let site = Site::with_lanes(
        strategy,
        ThreadpoolLanes {
            lanes: vec![Lane::new(LOW, 1), Lane::new(HIGH, 1)],
            allow_borrowing: true,
            ..Default::default()
        },
    )?;
    let home = homes(&site.lanes());
    let asked = [site.hold(1, HIGH), site.hold(2, HIGH)];
    let sights = [site.floor.begun(1)?, site.floor.begun(2)?];
    let lent = sights.iter().find(|sight| sight.lane == Some(0));
    let own = sights.iter().find(|sight| sight.lane == Some(1));
    let (Some(lent), Some(own)) = (lent.cloned(), own.cloned()) else {
        site.floor.open();
        return Ok((
            Some(false),
            "no thread of the low lane served the second request".to_owned(),
        ));
    };
    site.floor.open();
    for asked in asked {
        asked.answered()?;
    }
    let is_home = || scheduling(&site.lanes(), &lent) == home.first().copied();
    let restored = site.until(is_home);
    site.hold(3, LOW).answered()?;
    let after = site.floor.begun(3)?;
    let raised = lent.native == own.native;
    Ok((
        told_apart(&home)
            .then_some(raised && restored && Some(after.native) == home.first().copied()),
        format!(
            "with the high lane's thread at work, {} of the low lane served the next request at {}, as {} of the high \
             lane; its own is {}, {}",
            lent.thread,
            lent.native,
            own.thread,
            home[0],
            match restored {
                true => "and was again afterwards",
                false => "but was not again",
            },
        ),
    ))
}

/// One thread and two on demand, for five requests.
fn dynamic_threads(strategy: Strategy) -> Seen {
    let lane = Lane {
        dynamic_threads: 2,
        ..Lane::new(LOW, 1)
    };
    let site = Site::with_lanes(
        strategy,
        ThreadpoolLanes {
            lanes: vec![lane],
            request_buffering: room(8),
            ..Default::default()
        },
    )?;
    let before = threads(&site.lanes());
    let asked: Vec<_> = (1..=5).map(|number| site.hold(number, LOW)).collect();
    site.await_queued(2)?;
    site.floor.await_running(3)?;
    let lanes = site.lanes();
    let serve = |lane: &LaneSnapshot| {
        let threads = lane.threads.iter();
        threads
            .filter(|thread| thread.activity == Activity::Serving)
            .count()
    };
    let (then, serving) = (threads(&lanes), lanes.iter().map(serve).sum::<usize>());
    site.floor.open();
    for asked in asked {
        asked.answered()?;
    }
    let most = site.floor.most();
    Ok((
        Some(serving == 3 && most == 3 && then == before + 2),
        format!(
            "1 static and 2 dynamic threads, 5 requests: {serving} ran and 2 waited; the lane had {before} threads \
             before, reading ones included, and {then} then; at most {most} ran at a time"
        ),
    ))
}

/// Three lanes, ten times a request in each at the same time.
fn lanes(strategy: Strategy) -> Seen {
    let priorities = [LOW, MIDDLE, HIGH];
    let site = Site::with_lanes(
        strategy,
        ThreadpoolLanes {
            lanes: priorities.map(|priority| Lane::new(priority, 1)).to_vec(),
            ..Default::default()
        },
    )?;
    let all = |lanes: &[LaneSnapshot]| -> Vec<(u32, Scheduling)> {
        let threads = lanes.iter().flat_map(|lane| &lane.threads);
        threads
            .map(|thread| (thread.tid, thread.scheduling))
            .collect()
    };
    let (before, home) = (all(&site.lanes()), homes(&site.lanes()));
    let (mut right, mut wrong) = (0, 0);
    for round in 0..ROUNDS {
        let numbers = priorities.into_iter().zip(3 * round + 1..);
        let asked: Vec<_> = numbers
            .map(|(priority, number)| (number, site.hold(number, priority)))
            .collect();
        for (lane, (number, _)) in asked.iter().enumerate() {
            let sight = site.floor.begun(*number)?;
            match sight.lane == Some(lane) && home.get(lane) == Some(&sight.native) {
                true => right += 1,
                false => wrong += 1,
            }
        }
        // While they are at work.
        wrong += i32::from(all(&site.lanes()) != before);
        for (number, asked) in asked {
            site.floor.release(number);
            asked.answered()?;
        }
    }
    wrong += i32::from(all(&site.lanes()) != before);
    let home_names: Vec<String> = home.iter().map(ToString::to_string).collect();
    Ok((
        told_apart(&home).then_some(wrong == 0),
        format!(
            "{right} of {} requests were served by threads of their lanes at {}; {}",
            3 * u32::from(ROUNDS),
            home_names.join(", "),
            match wrong {
                0 => "no thread was found at another priority before, meanwhile or afterwards"
                    .to_owned(),
                wrong => format!("{wrong} times another priority was found"),
            },
        ),
    ))
}

/// One thread for requests of two priorities.
fn without_lanes(strategy: Strategy) -> Seen {
    let site = Site::without_lanes(strategy, &Threadpool::new(LOW, 1))?;
    let home = homes(&site.lanes());
    let mut served = Vec::new();
    let mut restored = true;
    for (number, priority) in [(1, HIGH), (2, MIDDLE)] {
        let asked = site.hold(number, priority);
        let sight = site.floor.begun(number)?;
        site.floor.release(number);
        asked.answered()?;
        restored &= site.until(|| scheduling(&site.lanes(), &sight) == home.first().copied());
        served.push(sight.native);
    }
    let all = [home.as_slice(), &served].concat();
    Ok((
        told_apart(&all).then_some(restored),
        format!(
            "the thread, of {}, served a request of high priority at {}, one of middle priority at {}, and {}",
            home[0],
            served[0],
            served[1],
            match restored {
                true => "had its own after each",
                false => "did not get its own back",
            },
        ),
    ))
}

fn room(requests: u32) -> Option<RequestBuffering> {
    Some(RequestBuffering {
        max_requests: requests,
        max_octets: 0,
    })
}

/// What the threads of each lane have natively, when they serve nothing.
fn homes(lanes: &[LaneSnapshot]) -> Vec<Scheduling> {
    lanes.iter().map(|lane| lane.scheduling).collect()
}

/// Whether all priorities differ: without the right to real-time priorities they do not.
fn told_apart(priorities: &[Scheduling]) -> bool {
    let mut others = priorities.iter().enumerate();
    others.all(|(index, priority)| !priorities[..index].contains(priority))
}

/// What a thread has natively now.
fn scheduling(lanes: &[LaneSnapshot], sight: &Sight) -> Option<Scheduling> {
    let mut threads = lanes.iter().flat_map(|lane| &lane.threads);
    let thread = threads.find(|thread| thread.tid == sight.tid)?;
    Some(thread.scheduling)
}

fn threads(lanes: &[LaneSnapshot]) -> usize {
    lanes.iter().map(|lane| lane.threads.len()).sum()
}

const LOW: Priority = Priority::new(8_000).expect("not negative");
const MIDDLE: Priority = Priority::new(16_000).expect("not negative");
const HIGH: Priority = Priority::new(24_000).expect("not negative");
const ROUNDS: u8 = 10;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As if all was kept by one, and the first promise broken by the other.
    pub(in super::super) fn observations() -> Vec<Observation> {
        let of = |strategy| {
            Promise::ALL.map(|promise| Observation {
                strategy,
                promise,
                kept: Some(strategy == Strategy::LeaderFollowers || promise != Promise::Buffering),
                seen: format!("seen with {}", strategy.title()),
            })
        };
        Strategy::ALL.into_iter().flat_map(of).collect()
    }

    #[test]
    fn both_strategies_keep_what_is_promised() {
        for strategy in Strategy::ALL {
            let observations = observe(strategy).unwrap();
            assert_eq!(observations.len(), Promise::ALL.len());
            for observation in observations {
                // Without the right to real-time priorities some cannot be told.
                assert_ne!(observation.kept, Some(false), "{observation:?}");
                assert!(!observation.seen.is_empty());
            }
        }
    }

    #[test]
    fn priorities_are_told_apart_when_no_two_are_the_same() {
        let fifo = Scheduling::fifo;
        assert!(told_apart(&[fifo(1), fifo(2), fifo(3)]));
        assert!(!told_apart(&[fifo(1), fifo(2), fifo(1)]));
    }
}
