//! Events within a process: the instructions, allocations, locks and system calls of a push.

use std::hint::black_box;

use chronorb_channel::{Channel, Consumer, Event, Filter, SubscribeError, Subscription, Supplier};
use chronorb_probe::{
    Mark, StepCounter, TraceError, Tracer, counts_of_this_thread, step_mark, trace_mark,
};
use chronorb_report::stats::median;
use chronorb_rt::{Deadline, Monotonic};
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::plan::{EventsPart, EventsPlan};
use crate::error::LabError;
use crate::process::{self, Begin, Child, Parent};

/// The subscribers of a push that is counted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushCase {
    /// None: the consumer is called by its trait, without a channel.
    Call,
    /// So many consumers of the type.
    Consumers(u32),
    /// One consumer of the type, and so many of other types.
    OtherTypes(u32),
    /// One consumer of the type, and so many of other sources with the type.
    OtherSources(u32),
    /// One consumer of the type, and so many with masks that do not match.
    Masks(u32),
}

/// The cost of one push.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PushRow {
    /// The subscribers.
    pub case: PushCase,
    /// The user-space instructions, the mean; `None` if they could not be counted.
    pub instructions: Option<f64>,
    /// The time in nanoseconds, the median of batches.
    pub nanos: f64,
    /// The heap allocations of all counted pushes.
    pub allocations: u64,
    /// The lock operations of all counted pushes.
    pub lock_operations: u64,
    /// The system calls of all counted pushes; `None` if they could not be traced.
    pub system_calls: Option<u64>,
}

/// The figures of the parts within a process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PushFigures {
    /// The rows.
    pub rows: Vec<PushRow>,
    /// The pushes by which allocations, locks and system calls were counted.
    pub pushes: u32,
    /// The reason why instructions or system calls could not be counted; empty if they were.
    pub refused: String,
}

/// The order of a counted process.
#[derive(Debug, Deserialize, Serialize)]
struct PushOrder {
    cases: Vec<PushCase>,
    pushes: u32,
    stepped: u32,
    pass: Pass,
}

/// The instrument of a pass.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Pass {
    /// A counter of instructions.
    Steps,
    /// A tracer of system calls.
    Trace,
    /// The counts of the process itself, and its clock.
    Own,
}

/// The thread whose instructions are counted.
#[derive(Debug, Deserialize, Serialize)]
struct PushThread {
    tid: u32,
}

/// Counts the pushes of the parts of a plan.
pub(super) fn measure(plan: &EventsPlan) -> Result<PushFigures, LabError> {
    let mut cases = vec![PushCase::Call];
    if plan.has(EventsPart::Collocated) {
        cases.extend([1, 2, 4, 8, 12].map(PushCase::Consumers));
    }
    if plan.has(EventsPart::Filters) {
        for others in [0, 9, 99, 999] {
            cases.push(PushCase::OtherTypes(others));
            cases.push(PushCase::OtherSources(others));
        }
        cases.extend([1, 9, 99].map(PushCase::Masks));
    }
    let order = |pass| PushOrder {
        cases: cases.clone(),
        pushes: plan.pushes,
        stepped: plan.stepped,
        pass,
    };
    let (mut child, PushThread { .. }) =
        Child::start("pushes", PUSHES, &order(Pass::Own)).map_err(LabError::from)?;
    child.tell(&Begin {})?;
    let rows: Vec<PushRow> = child.hear(Deadline::after(PATIENCE))?;
    child.stop(Deadline::after(PATIENCE))?;
    let mut figures = PushFigures {
        rows,
        pushes: plan.pushes,
        refused: String::new(),
    };
    let counted = steps(&order(Pass::Steps), &mut figures.refused)?;
    for (row, counted) in figures.rows.iter_mut().zip(counted) {
        row.instructions = Some(counted);
    }
    let traced = traced(&order(Pass::Trace), &mut figures.refused)?;
    for (row, traced) in figures.rows.iter_mut().zip(traced) {
        row.system_calls = Some(traced);
    }
    Ok(figures)
}

/// Counts the instructions of a push in each case; none if the kernel refuses it.
fn steps(order: &PushOrder, refused: &mut String) -> Result<Vec<f64>, LabError> {
    let (mut child, thread): (_, PushThread) = Child::start("pushes", PUSHES, order)?;
    // An empty span, and for each case one before its pushes and one of them.
    let marks = 2 + 2 * order.cases.len();
    let counter = StepCounter::attach(thread.tid, marks);
    let counter = unless_refused(counter, refused)?;
    child.tell(&Begin {})?;
    let spans = counter.map(StepCounter::spans).transpose();
    let spans = spans.map_err(LabError::work(COUNTING))?;
    child.finish(Deadline::after(PATIENCE))?;
    let Some((empty, spans)) = spans.as_deref().and_then(<[u64]>::split_first) else {
        return Ok(Vec::new());
    };
    let each = spans.chunks_exact(2).map(|of| {
        let instructions = of[1].saturating_sub(*empty) as f64 / f64::from(order.stepped);
        (instructions * 10.0).round() / 10.0
    });
    Ok(each.collect())
}

/// Counts the system calls of the pushing thread in each case; none if the kernel refuses it.
fn traced(order: &PushOrder, refused: &mut String) -> Result<Vec<u64>, LabError> {
    let (mut child, thread): (_, PushThread) = Child::start("pushes", PUSHES, order)?;
    let tracer = unless_refused(Tracer::attach(child.id()), refused)?;
    child.tell(&Begin {})?;
    let spans = tracer.map(Tracer::spans).transpose();
    let spans = spans.map_err(LabError::work(COUNTING))?;
    child.finish(Deadline::after(PATIENCE))?;
    // Marks stand before and after the pushes of each case.
    let spans = spans.iter().flatten().step_by(2);
    let own = spans.map(|span| {
        let own = span.iter().filter(|of| of.thread == thread.tid);
        own.map(|of| of.calls).sum()
    });
    Ok(own.collect())
}

fn unless_refused<T>(
    attached: Result<T, TraceError>,
    refused: &mut String,
) -> Result<Option<T>, LabError> {
    match attached {
        Ok(attached) => Ok(Some(attached)),
        Err(error @ TraceError::Refused(_)) => {
            *refused = error.to_string();
            Ok(None)
        }
        Err(error) => Err(LabError::work(COUNTING)(error)),
    }
}

/// Pushes events in each case between marks.
pub(crate) fn pushes_main(order: &str) -> Result<(), LabError> {
    let order: PushOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let sites = order.cases.iter().map(|case| PushSite::new(*case));
    let sites = sites.collect::<Result<Vec<_>, _>>();
    let sites = sites.map_err(LabError::work("subscribing"))?;
    // What happens only once is not counted.
    sites.iter().for_each(|site| site.push(order.stepped));
    let tid = gettid().as_raw_nonzero().get().unsigned_abs();
    process::tell(&PushThread { tid })?;
    let Begin {} = parent.hear()?;
    match order.pass {
        Pass::Steps => {
            step_mark();
            step_mark();
            for site in &sites {
                step_mark();
                site.push(order.stepped);
                step_mark();
            }
        }
        Pass::Trace => {
            for (number, site) in sites.iter().enumerate() {
                trace_mark(Mark::Next);
                site.push(order.pushes);
                let is_last = number + 1 == sites.len();
                trace_mark(if is_last { Mark::Last } else { Mark::Next });
            }
        }
        Pass::Own => {
            let cases = order.cases.iter().zip(&sites);
            let rows = cases.map(|(case, site)| site.row(*case, order.pushes));
            parent.conclude(&rows.collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// A consumer that looks at the body of its events.
#[derive(Debug)]
struct Blackbox;

impl Consumer<u64> for Blackbox {
    fn push(&self, set: &[Event<u64>]) {
        black_box(set[0].body);
    }
}

/// The consumer of a case, and its channel.
struct PushSite {
    direct: Option<Box<dyn Consumer<u64>>>,
    supplier: Supplier<u64>,
    _subscriptions: Vec<Subscription<u64>>,
}

impl PushSite {
    fn new(case: PushCase) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let channel = Channel::<u64>::builder().start()?;
        let subscribe = |filter| channel.subscribe(filter).call(Blackbox);
        let matching = |number| (0..number).map(|_| subscribe(Filter::of_type(TYPE)));
        let one_and = |others: Vec<Filter>| {
            let others = others.into_iter().map(subscribe);
            matching(1).chain(others).collect()
        };
        let subscriptions: Result<Vec<_>, SubscribeError> = match case {
            PushCase::Call => Ok(Vec::new()),
            PushCase::Consumers(number) => matching(number).collect(),
            PushCase::OtherTypes(number) => {
                let other = |number| Filter::of_type(TYPE + 1 + number as i32);
                one_and((0..number).map(other).collect())
            }
            PushCase::OtherSources(number) => {
                let other = |number| Filter::event(SOURCE + 1 + number as i32, TYPE);
                one_and((0..number).map(other).collect())
            }
            PushCase::Masks(number) => {
                let other = |_| Filter::Masked {
                    source_mask: 0xff,
                    type_mask: 0,
                    source_value: SOURCE + 1,
                    type_value: 0,
                };
                one_and((0..number).map(other).collect())
            }
        };
        let direct = (case == PushCase::Call).then(|| Box::new(Blackbox) as Box<_>);
        Ok(Self {
            direct,
            supplier: channel.supplier(SOURCE),
            _subscriptions: subscriptions?,
        })
    }

    #[inline(never)]
    fn push(&self, times: u32) {
        match &self.direct {
            Some(consumer) => {
                for number in 0..times {
                    let event = Event::new(SOURCE, TYPE, u64::from(number));
                    black_box(consumer).push(std::slice::from_ref(black_box(&event)));
                }
            }
            None => {
                for number in 0..times {
                    self.supplier.push(TYPE, black_box(u64::from(number)));
                }
            }
        }
    }

    /// Counts pushes by the instruments of the process.
    fn row(&self, case: PushCase, pushes: u32) -> PushRow {
        let before = counts_of_this_thread();
        self.push(pushes);
        let after = counts_of_this_thread();
        let batches = (0..BATCHES).map(|_| {
            let begin = Monotonic::now();
            self.push(pushes);
            Monotonic::now().since(begin).as_nanos() as f64 / f64::from(pushes)
        });
        PushRow {
            case,
            instructions: None,
            nanos: median(batches).unwrap_or(0.0),
            allocations: after.allocations - before.allocations,
            lock_operations: after.lock_operations - before.lock_operations,
            system_calls: None,
        }
    }
}

/// The part of a process that pushes events.
pub(crate) const PUSHES: &str = "events-pushes";
const BATCHES: u32 = 21;
const SOURCE: i32 = 1;
const TYPE: i32 = 20;
const COUNTING: &str = "counting the work of a push";
