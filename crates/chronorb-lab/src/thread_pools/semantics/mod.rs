//! Trials of the paper's statements about thread pools of Real-time CORBA. Each step waits for an
//! event, never for a time.

mod floor;
mod site;

use chronorb::minor;
use chronorb::observe::{Activity, LaneSnapshot, ThreadSnapshot};
use chronorb::prelude::*;
use chronorb_rt::Scheduling;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::error::LabError;
use floor::Sight;
use site::PoolSite;

/// A promise of thread pools.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// A request for which there is neither a thread nor room gets `TRANSIENT`.
    Buffering,
    /// A lane whose threads are all busy uses a thread of a lower lane, at its own priority.
    Borrowing,
    /// Threads are made on demand, up to the bound.
    DynamicThreads,
    /// The threads of lanes keep their priorities.
    Lanes,
    /// Without lanes a thread takes the priority of the request, and its own again.
    WithoutLanes,
}

impl Promise {
    /// All promises.
    pub const ALL: [Self; 5] = [
        Self::Buffering,
        Self::Borrowing,
        Self::DynamicThreads,
        Self::Lanes,
        Self::WithoutLanes,
    ];

    /// Returns the claim, and the words of the paper.
    pub(super) const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Buffering => [
                "when all threads are busy and the buffer is full, the next request gets TRANSIENT",
                "the ORB should raise a TRANSIENT exception",
            ],
            Self::Borrowing => [
                "a lane that has exhausted its threads borrows one of a lower lane, which has its \
                 own priority again afterwards",
                "its priority raised to that of the lane, then lowered again",
            ],
            Self::DynamicThreads => [
                "threads are made on demand, and never more than the bound",
                "created if their number has not exceeded the dynamic value",
            ],
            Self::Lanes => [
                "the priorities of a lane's threads never change, without borrowing",
                "do not change except when thread borrowing is used",
            ],
            Self::WithoutLanes => [
                "without lanes a thread takes the priority of the request, and then its own again",
                "changed to match the priority of the client, then restored",
            ],
        }
    }
}

/// The behaviour of a strategy under a promise.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Observation {
    /// The strategy.
    pub strategy: Strategy,
    /// The promise.
    pub promise: Promise,
    /// Whether it was kept; `None` if all priorities are the same to this process, so that it
    /// cannot tell.
    pub kept: Option<bool>,
    /// The observation in words.
    pub seen: String,
}

/// Tries all promises.
pub(super) fn observe(strategy: Strategy) -> Result<Vec<Observation>, LabError> {
    let observation = |promise| {
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
    Promise::ALL.into_iter().map(observation).collect()
}

/// Whether a promise was kept, and the observation in words.
type Trial = Result<(Option<bool>, String), LabError>;

/// Tries one thread and a buffer for two with four requests.
fn buffering(strategy: Strategy) -> Trial {
    let pool = pool(vec![Lane::new(LOW, 1)], room(2));
    let site = PoolSite::with_lanes(strategy, pool)?;
    let first = site.hold(1, LOW);
    site.floor.begun(1)?;
    let second = site.hold(2, LOW);
    site.await_queued(1)?;
    let third = site.hold(3, LOW);
    site.await_queued(2)?;
    let refusal = SystemException::no(SystemExceptionKind::Transient, minor::OMG | 1);
    let fourth = site.hold(4, LOW).reply()?;
    let served_too = site.floor.has_begun(4);
    site.floor.open();
    let earlier = [first.reply()?, second.reply()?, third.reply()?];
    // There is room again.
    let fifth = site.hold(5, LOW).reply()?;
    let others = earlier.iter().chain([&fifth]);
    let answered = others.filter(|reply| reply.is_ok()).count();
    let words = match fourth {
        Err(exception) => format!("got {exception}"),
        Ok(_) => "was served".to_owned(),
    };
    let seen = format!(
        "one at work and two in the buffer: the fourth {words}; of these three, and one that came \
         later, {answered} were answered"
    );
    let kept = fourth == Err(refusal) && !served_too && answered == 4;
    Ok((Some(kept), seen))
}

/// Tries a high lane of one thread with two requests for it.
fn borrowing(strategy: Strategy) -> Trial {
    let mut pool = pool(vec![Lane::new(LOW, 1), Lane::new(HIGH, 1)], None);
    pool.allow_borrowing = true;
    let site = PoolSite::with_lanes(strategy, pool)?;
    let home = homes(&site.lanes());
    let requests = [site.hold(1, HIGH), site.hold(2, HIGH)];
    let sights = [site.floor.begun(1)?, site.floor.begun(2)?];
    let lanes = site.lanes();
    site.floor.open();
    let of_lane = |lane: &LaneSnapshot| {
        let mut threads = sights
            .iter()
            .map(|sight| (sight, thread(&lane.threads, sight)));
        threads.find_map(|(sight, thread)| Some((sight, thread?.name.clone())))
    };
    let (Some((lent, low)), Some((own, high))) = (of_lane(&lanes[0]), of_lane(&lanes[1])) else {
        let seen = "no thread of the low lane served the second request";
        return Ok((Some(false), seen.to_owned()));
    };
    for request in requests {
        request.served()?;
    }
    let restored = site.until(|| site.scheduling(lent) == Some(home[0]));
    site.hold(3, LOW).served()?;
    let after = site.floor.begun(3)?;
    let kept = restored && lent.native == own.native && after.native == home[0];
    let not = if restored { "" } else { "not " };
    let seen = format!(
        "with {high}, the high lane's thread, at work at {}, {low} of the low lane served the next \
         request at {}; it was {not}at {} again afterwards",
        own.native, lent.native, home[0],
    );
    Ok((all_differ(&home).then_some(kept), seen))
}

/// Tries one thread and two on demand with five requests.
fn dynamic_threads(strategy: Strategy) -> Trial {
    let mut lane = Lane::new(LOW, 1);
    lane.dynamic_threads = 2;
    let site = PoolSite::with_lanes(strategy, pool(vec![lane], room(8)))?;
    let before = site.threads().len();
    let requests: Vec<_> = (1..=5).map(|number| site.hold(number, LOW)).collect();
    site.await_queued(2)?;
    site.floor.await_running(3)?;
    let threads = site.threads();
    let serving = threads.iter().filter(|of| of.activity == Activity::Serving);
    let (then, serving) = (threads.len(), serving.count());
    site.floor.open();
    for request in requests {
        request.served()?;
    }
    let most = site.floor.most();
    let seen = format!(
        "1 static and 2 dynamic threads, 5 requests: {serving} ran and 2 waited; the lane had \
         {before} threads before, reading ones included, and {then} then; at most {most} ran at a \
         time"
    );
    let kept = serving == 3 && most == 3 && then == before + 2;
    Ok((Some(kept), seen))
}

/// Tries three lanes with a request in each at the same time, ten times.
fn lanes(strategy: Strategy) -> Trial {
    let priorities = [LOW, MIDDLE, HIGH];
    let lanes = priorities.map(|priority| Lane::new(priority, 1));
    let site = PoolSite::with_lanes(strategy, pool(lanes.to_vec(), None))?;
    let all = || -> Vec<_> {
        let threads = site.threads().into_iter();
        threads
            .map(|thread| (thread.tid, thread.scheduling))
            .collect()
    };
    let (before, home) = (all(), homes(&site.lanes()));
    let (mut right, mut wrong) = (0, 0);
    for round in 0..ROUNDS {
        let numbers = priorities.into_iter().zip(3 * round + 1..);
        let requests = numbers.map(|(priority, number)| (number, site.hold(number, priority)));
        let requests: Vec<_> = requests.collect();
        for (lane, (number, _)) in requests.iter().enumerate() {
            let sight = site.floor.begun(*number)?;
            let is_of_lane = thread(&site.lanes()[lane].threads, &sight).is_some();
            right += u32::from(is_of_lane && sight.native == home[lane]);
        }
        // All three requests are in their servants.
        wrong += u32::from(all() != before);
        for (number, request) in requests {
            site.floor.release(number);
            request.served()?;
        }
    }
    wrong += u32::from(all() != before);
    let requests = 3 * u32::from(ROUNDS);
    let natives: Vec<String> = home.iter().map(ToString::to_string).collect();
    let natives = natives.join(", ");
    let seen = format!(
        "{right} of {requests} requests were served by threads of their lanes at {natives}; \
         threads were found at another priority {wrong} times, before, meanwhile or afterwards"
    );
    let kept = right == requests && wrong == 0;
    Ok((all_differ(&home).then_some(kept), seen))
}

/// Tries one thread with requests of two priorities.
fn without_lanes(strategy: Strategy) -> Trial {
    let site = PoolSite::without_lanes(strategy, &Threadpool::new(LOW, 1))?;
    let mut natives = homes(&site.lanes());
    let home = natives[0];
    let mut restored = true;
    for (number, priority) in [(1, HIGH), (2, MIDDLE)] {
        let request = site.hold(number, priority);
        let sight = site.floor.begun(number)?;
        site.floor.release(number);
        request.served()?;
        restored &= site.until(|| site.scheduling(&sight) == Some(home));
        natives.push(sight.native);
    }
    let not = if restored { "" } else { "not " };
    let seen = format!(
        "the thread, of {home}, served a request of high priority at {}, one of middle priority at \
         {}, and was {not}at its own again after each",
        natives[1], natives[2],
    );
    Ok((all_differ(&natives).then_some(restored), seen))
}

fn pool(lanes: Vec<Lane>, request_buffering: Option<RequestBuffering>) -> ThreadpoolLanes {
    ThreadpoolLanes {
        lanes,
        request_buffering,
        ..Default::default()
    }
}

fn room(max_requests: u32) -> Option<RequestBuffering> {
    Some(RequestBuffering {
        max_requests,
        max_octets: 0,
    })
}

/// Returns the native scheduling of each lane's idle threads.
fn homes(lanes: &[LaneSnapshot]) -> Vec<Scheduling> {
    lanes.iter().map(|lane| lane.scheduling).collect()
}

/// Whether all priorities differ. Without the right to real-time priorities they do not.
fn all_differ(priorities: &[Scheduling]) -> bool {
    let mut others = priorities.iter().enumerate();
    others.all(|(index, priority)| !priorities[..index].contains(priority))
}

/// Returns the thread of a request, if it is one of these.
fn thread<'a>(threads: &'a [ThreadSnapshot], sight: &Sight) -> Option<&'a ThreadSnapshot> {
    threads.iter().find(|thread| thread.tid == sight.tid)
}

const LOW: Priority = Priority::new(8_000).expect("not negative");
const MIDDLE: Priority = Priority::new(16_000).expect("not negative");
const HIGH: Priority = Priority::new(24_000).expect("not negative");
const ROUNDS: u8 = 10;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns observations in which one strategy keeps all promises, and the other breaks the
    /// first.
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
    fn both_strategies_keep_all_promises() {
        for strategy in Strategy::ALL {
            let observations = observe(strategy).unwrap();
            assert_eq!(observations.len(), Promise::ALL.len());
            for observation in observations {
                // Some promises cannot be judged without the right to real-time priorities.
                assert_ne!(observation.kept, Some(false), "{observation:?}");
                assert!(!observation.seen.is_empty());
            }
        }
    }

    #[test]
    fn equal_priorities_are_recognised() {
        let fifo = Scheduling::fifo;
        assert!(all_differ(&[fifo(1), fifo(2), fifo(3)]));
        assert!(!all_differ(&[fifo(1), fifo(2), fifo(1)]));
    }
}
