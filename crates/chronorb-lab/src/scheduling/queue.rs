//! The queue of a lane with an order: a request put in and one taken out, in instructions.

use std::hint::black_box;

use chronorb_probe::{StepCounter, TraceError, step_mark};
use chronorb_report::{Axis, Chart, Mark, Series, Unit, units};
use chronorb_rt::{Bounds, Deadline, OfferOutcome, Rank, WorkerSet, allocations};
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

use super::fleet::PATIENCE;
use crate::Claim;
use crate::error::LabError;
use crate::process::{self, Child, Parent};

/// The instructions of a queue of one order and depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// The order.
    pub order: &'static str,
    /// The requests that wait before and after.
    pub depth: u32,
    /// The user-space instructions by which one request is put in and the most urgent one is taken
    /// out: the mean.
    pub mean: f64,
    /// The most of all.
    pub most: u64,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueFigures {
    /// The queues, by order and depth.
    pub rows: Vec<QueueRow>,
    /// The allocations of all of them.
    pub allocations: u64,
    /// The reason why instructions could not be counted; empty if they were.
    pub refused: String,
}

/// The depths of the queues.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct QueueOrder {
    depths: Vec<u32>,
    requests: u32,
}

/// The thread whose instructions are counted.
#[derive(Debug, Deserialize, Serialize)]
struct QueueThread {
    tid: u32,
    allocations: u64,
}

/// Counts the instructions of queues in another process.
pub(super) fn measure(requests: u32) -> Result<QueueFigures, LabError> {
    let order = QueueOrder {
        depths: DEPTHS.to_vec(),
        requests,
    };
    let (mut child, thread): (_, QueueThread) = Child::start("queues", QUEUES, &order)?;
    let cases = ORDERS.len() * DEPTHS.len();
    // An empty span; for each queue, one before its requests and one of each.
    let of_queue = 1 + requests as usize;
    let mut figures = QueueFigures {
        allocations: thread.allocations,
        ..QueueFigures::default()
    };
    let counter = match StepCounter::attach(thread.tid, 2 + cases * of_queue) {
        Err(error @ TraceError::Refused(_)) => {
            child.tell(&())?;
            child.finish(Deadline::after(PATIENCE))?;
            figures.refused = error.to_string();
            return Ok(figures);
        }
        counter => counter.map_err(counting())?,
    };
    child.tell(&())?;
    let spans = counter.spans().map_err(counting())?;
    child.finish(Deadline::after(PATIENCE))?;
    let [empty, spans @ ..] = &spans[..] else {
        return Err(counting()(TraceError::Ended));
    };
    let queues = ORDERS.iter().flat_map(|(order, _)| {
        let depths = DEPTHS.into_iter();
        depths.map(move |depth| (*order, depth))
    });
    for ((order, depth), spans) in queues.zip(spans.chunks_exact(of_queue)) {
        let counts = spans[1..].iter().map(|span| span.saturating_sub(*empty));
        let (sum, most) = counts.fold((0, 0), |(sum, most), it| (sum + it, most.max(it)));
        figures.rows.push(QueueRow {
            order,
            depth,
            mean: (sum as f64 / f64::from(requests) * 10.0).round() / 10.0,
            most,
        });
    }
    Ok(figures)
}

/// Fills queues, and puts requests in and takes them out between marks.
pub(crate) fn queues_main(order: &str) -> Result<(), LabError> {
    let order: QueueOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let mut queues = Vec::new();
    for (_, rank) in ORDERS {
        for depth in &order.depths {
            let mut random = fastrand::Rng::with_seed(4);
            let mut ranks = || rank(&mut random);
            let queue = Queue::filled(*depth, &mut ranks)?;
            let more: Vec<_> = (0..order.requests).map(|_| ranks()).collect();
            queues.push((queue, more));
        }
    }
    // What happens only once is not counted, such as the growth of the memory.
    let serve_all = |mark: fn()| {
        for (queue, more) in &queues {
            mark();
            for rank in more.iter() {
                queue.put_and_take(*rank);
                mark();
            }
        }
    };
    serve_all(|| ());
    let before = allocations();
    serve_all(|| ());
    let thread = QueueThread {
        tid: gettid().as_raw_nonzero().get().unsigned_abs(),
        allocations: allocations() - before,
    };
    process::tell(&thread)?;
    let () = parent.hear()?;
    step_mark();
    step_mark();
    serve_all(step_mark);
    Ok(())
}

/// A lane with one permit, which is taken, and requests that wait for it.
struct Queue(WorkerSet<u32>);

impl Queue {
    fn filled(depth: u32, ranks: &mut dyn FnMut() -> Rank) -> Result<Self, LabError> {
        let bounds = Bounds {
            things: depth + 1,
            octets: usize::MAX,
        };
        let queue = Self(WorkerSet::new(1, 1, 1, bounds));
        let mut is_full = queue.0.try_begin();
        for number in 0..depth {
            is_full &= queue.put(ranks(), number);
        }
        is_full
            .then_some(queue)
            .ok_or_else(|| LabError::work("filling a queue")("it refused a request"))
    }

    fn put(&self, rank: Rank, number: u32) -> bool {
        let outcome = self.0.offer(rank, 0, number, |_| ());
        matches!(outcome, OfferOutcome::Waits(evicted) if evicted.is_empty())
    }

    /// Has one more request wait, and ends the one that has the permit: the most urgent one gets
    /// it.
    #[inline(never)]
    fn put_and_take(&self, rank: Rank) {
        black_box(self.put(black_box(rank), 0));
        black_box(self.0.finish());
    }
}

/// Returns the ranks of the lanes of an ORB: by arrival all are equal, and in the order of urgency
/// the criticality precedes the time.
type Ranks = fn(&mut fastrand::Rng) -> Rank;

fn by_arrival(_: &mut fastrand::Rng) -> Rank {
    Rank::of(0)
}

fn by_time(random: &mut fastrand::Rng) -> Rank {
    let due = random.u64(..);
    Rank {
        urgency: u128::from(!due) << 32,
        worth: u128::from(random.u8(0..4)) << 96 | u128::from(!due) << 32,
    }
}

fn by_urgency(random: &mut fastrand::Rng) -> Rank {
    Rank::of(by_time(random).worth)
}

pub(super) fn finding(figures: &QueueFigures) -> String {
    let of = |order| {
        let mut rows = figures.rows.iter();
        rows.rfind(|row| row.order == order).map(|row| row.mean)
    };
    match (of("deadline"), figures.rows.last()) {
        (Some(mean), Some(last)) => format!(
            "a request goes into and one out of a lane by deadline in {mean} instructions, while \
             {} wait",
            units::count(last.depth.into()),
        ),
        _ => "the queues of lanes were not counted".to_owned(),
    }
}

/// Returns the instructions of all orders by depth.
pub(super) fn chart(figures: &QueueFigures) -> Chart {
    let caption = "User-space instructions by which a request is put into the queue of a lane and \
                   the most urgent one is taken out: bars are means, dots the most.";
    let series = ORDERS.iter().flat_map(|(order, _)| {
        let rows = || figures.rows.iter().filter(|row| row.order == *order);
        [
            Series::of_groups(Mark::Bars, *order, rows().map(|row| Some(row.mean))),
            Series::of_groups(Mark::Dots, "", rows().map(|row| Some(row.most as f64))),
        ]
    });
    let series: Vec<_> = series.collect();
    let depths = DEPTHS.map(|depth| units::count(depth.into()));
    let depths = Axis::groups("requests that wait", depths);
    let instructions = Axis::linear("instructions", Unit::Number);
    Chart::new(caption, depths, instructions).series(series)
}

pub(super) fn claim(figures: &QueueFigures) -> Claim {
    let claim = "In each order the instructions grow with the logarithm: among 1,000 requests at \
                 most three times those among 10, and no allocation";
    let ends = ORDERS.iter().filter_map(|(order, _)| {
        let of = |depth| {
            let mut rows = figures.rows.iter();
            rows.find(|row| row.order == *order && row.depth == depth)
        };
        Some((order, of(10)?.mean, of(1_000)?.mean))
    });
    let ends: Vec<_> = ends.collect();
    let is_flat = ends.iter().all(|(_, few, many)| *many <= 3.0 * few);
    let each = ends
        .iter()
        .map(|(order, few, many)| format!("{order} {few} and {many}"));
    let each = each.collect::<Vec<_>>().join(", ");
    let measured = format!("{each}; {} allocations", figures.allocations);
    let holds = is_flat && figures.allocations == 0;
    Claim::aim(claim).holds((!ends.is_empty()).then_some((holds, measured)))
}

pub(super) const NOTE: &str = "Queues: another process has a lane of one permit, which is taken, \
     and requests with random deadlines. For each of 32 more it puts that one in and takes the \
     most urgent one out, and stops after each instruction (ptrace). The instructions of an empty \
     span are taken off. By laxity the queue is the same as by deadline: the rank of a request has \
     the execution time taken off.";

fn counting() -> impl Fn(TraceError) -> LabError {
    LabError::work("counting the instructions of queues")
}

/// The part of a process that has queues.
pub(crate) const QUEUES: &str = "scheduling-queues";
/// The orders by their names.
const ORDERS: [(&str, Ranks); 4] = [
    ("fifo", by_arrival),
    ("deadline", by_time),
    ("laxity", by_time),
    ("muf", by_urgency),
];
/// The requests that wait.
const DEPTHS: [u32; 4] = [1, 10, 100, 1_000];

#[cfg(test)]
pub(in crate::scheduling) mod tests {
    use super::*;
    use crate::Verdict;

    pub(in crate::scheduling) fn figures() -> QueueFigures {
        let rows = ORDERS.iter().flat_map(|(order, _)| {
            DEPTHS.map(|depth| QueueRow {
                order,
                depth,
                mean: 300.0 + 90.0 * f64::from(depth.ilog2()),
                most: 400 + 100 * u64::from(depth.ilog2()),
            })
        });
        QueueFigures {
            rows: rows.collect(),
            ..QueueFigures::default()
        }
    }

    #[test]
    fn the_claim_needs_a_logarithm_and_no_allocation() {
        let mut figures = figures();
        assert_eq!(claim(&figures).verdict(), Verdict::Pass);
        figures.allocations = 1;
        assert_eq!(claim(&figures).verdict(), Verdict::Missed);
        figures.allocations = 0;
        figures.rows[3].mean = 300_000.0;
        assert_eq!(claim(&figures).verdict(), Verdict::Missed);
        figures.rows.clear();
        assert_eq!(claim(&figures).verdict(), Verdict::NotMeasured);
    }

    #[test]
    fn the_most_urgent_request_is_taken() {
        let rank = |due: u64| Rank::of(u128::from(!due));
        let mut ranks = [rank(3), rank(1), rank(2)].into_iter();
        let queue = Queue::filled(3, &mut || ranks.next().expect("one for each")).expect("room");
        let taken: Vec<_> = (0..3).map_while(|_| queue.0.finish()).collect();
        assert_eq!(taken, [1, 2, 0]);
        assert_eq!(queue.0.finish(), None, "the permit is free");
    }
}
