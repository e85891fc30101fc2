//! The changes between two readings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use chronorb_net::NetlinkError;
use chronorb_rio::class::ClassId;
use chronorb_rio::kernel::InterfaceShares;
use chronorb_rio::status::{ClassSnapshot, Count, Latencies, Level, Mode, PageSearch, Snapshot};
use chronorb_rt::Monotonic;
use serde_json::{Value, json};

use super::shares::{SharesView, SharesWatch};
use crate::top::text::plain;

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct Watch {
    shares: SharesWatch,
    before: HashMap<Place, (Monotonic, ClassSnapshot)>,
}

/// The page of a class's counters, as long as they continue to count.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Place {
    page: PathBuf,
    class: ClassId,
    opening: u64,
}

/// The changes since the reading before.
#[derive(Debug)]
pub(super) struct View {
    pub(super) processes: Vec<ProcessView>,
    /// The shares that the kernel keeps, or the reason why they are not visible.
    pub(super) kernel: Result<Vec<SharesView>, String>,
    /// The number of processes that could not be read.
    pub(super) unseen: usize,
}

#[derive(Debug)]
pub(super) struct ProcessView {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) interfaces: Vec<InterfaceView>,
}

#[derive(Debug)]
pub(super) struct InterfaceView {
    /// The class, or the reason why its page cannot be read.
    pub(super) name: Result<String, String>,
    pub(super) classes: Vec<ClassView>,
}

#[derive(Debug)]
pub(super) struct ClassView {
    pub(super) now: ClassSnapshot,
    /// The reading before and its age, if the class existed then.
    before: Option<(Duration, ClassSnapshot)>,
}

/// A reading.
#[derive(Debug)]
pub(super) struct Seen {
    /// The processes.
    pub(super) looked: PageSearch,
    /// The shares that the kernel keeps.
    pub(super) kernel: Result<Vec<InterfaceShares>, NetlinkError>,
}

impl Watch {
    /// Returns a watch that knows the names of the kernel's classes by `shares`.
    pub(super) fn new(shares: SharesWatch) -> Self {
        Self {
            shares,
            ..Self::default()
        }
    }

    /// Adds a reading: for processes, the contents of their pages.
    pub(super) fn look(&mut self, Seen { looked, kernel }: Seen) -> View {
        let mut seen = HashMap::new();
        let mut processes = Vec::new();
        for found in looked.found {
            let mut interfaces = Vec::new();
            for page in found.pages {
                let read = Snapshot::read(&page.file);
                let now = Monotonic::now();
                let (name, classes) = match read {
                    Ok(snapshot) => (Ok(plain(&snapshot.interface)), snapshot.classes),
                    Err(error) => (Err(error.to_string()), Vec::new()),
                };
                let mut views = Vec::new();
                for class in classes {
                    let place = Place {
                        page: page.path.clone(),
                        class: class.class,
                        opening: class.opening,
                    };
                    let before = self.before.remove(&place);
                    seen.insert(place, (now, class.clone()));
                    views.push(ClassView {
                        now: class,
                        before: before.map(|(then, class)| (now.since(then), class)),
                    });
                }
                interfaces.push(InterfaceView {
                    name,
                    classes: views,
                });
            }
            processes.push(ProcessView {
                pid: found.pid,
                command: plain(&found.command),
                interfaces,
            });
        }
        self.before = seen;
        let kernel = kernel.map(|counted| self.shares.look(counted));
        View {
            processes,
            kernel: kernel.map_err(|error| plain(&error.to_string())),
            unseen: looked.unseen.len(),
        }
    }
}

impl ClassView {
    /// Returns a rate per second; 0 at the first reading.
    pub(super) fn rate(&self, count: Count) -> f64 {
        self.rate_of(|class| class.count(count))
    }

    /// Returns the lost and dropped packets per second.
    pub(super) fn drop_rate(&self) -> f64 {
        self.rate_of(ClassSnapshot::drops)
    }

    /// Returns the latencies since the reading before, or all of them.
    pub(super) fn latencies(&self) -> Latencies {
        match &self.before {
            Some((_, before)) => self.now.latencies.since(&before.latencies),
            None => self.now.latencies,
        }
    }

    fn rate_of(&self, count: impl Fn(&ClassSnapshot) -> u64) -> f64 {
        let Some((time, before)) = &self.before else {
            return 0.0;
        };
        // Another process writes the counts, and may write any.
        let more = count(&self.now).saturating_sub(count(before));
        more as f64 / time.as_secs_f64().max(1e-9)
    }
}

impl View {
    /// Renders the view for programs.
    pub(super) fn to_json(&self) -> Value {
        let processes = self.processes.iter().map(|process| {
            let interfaces = process.interfaces.iter().map(|interface| {
                json!({
                    "name": interface.name.as_ref().ok(),
                    "error": interface.name.as_ref().err(),
                    "classes": interface.classes.iter().map(ClassView::to_json).collect::<Vec<_>>(),
                })
            });
            json!({
                "pid": process.pid,
                "command": process.command,
                "interfaces": interfaces.collect::<Vec<_>>(),
            })
        });
        json!({
            "version": 1,
            "processes": processes.collect::<Vec<_>>(),
            "kernel": self.kernel.as_ref().ok().map(|kernel| {
                kernel.iter().map(SharesView::to_json).collect::<Vec<_>>()
            }),
            "unseen": self.unseen,
        })
    }
}

impl ClassView {
    fn to_json(&self) -> Value {
        let class = &self.now;
        let count = |count| class.count(count);
        let level = |level| {
            let level = class.level(level);
            json!({ "now": level.now, "most": level.most })
        };
        let latencies = self.latencies();
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        json!({
            "class": class.class.index(),
            "name": plain(&class.name),
            "processing": mode(class.mode),
            "policy": class.policy.to_string(),
            "native": class.priority,
            "cpu": class.cpu,
            "packets": class.bound.map(|(packets, _)| packets),
            "period_us": class.bound.map(|(_, period)| micros(period)),
            "packets_in": count(Count::PacketsIn),
            "octets_in": count(Count::OctetsIn),
            "packets_out": count(Count::PacketsOut),
            "octets_out": count(Count::OctetsOut),
            "packets_in_per_s": self.rate(Count::PacketsIn),
            "octets_in_per_s": self.rate(Count::OctetsIn),
            "packets_out_per_s": self.rate(Count::PacketsOut),
            "octets_out_per_s": self.rate(Count::OctetsOut),
            "drops": {
                "queue_full": count(Count::QueueFull),
                "malformed": count(Count::Malformed),
                "no_connection": count(Count::NoConnection),
                "no_buffers": count(Count::NoBuffers),
                "syn_over_limit": count(Count::SynOverLimit),
            },
            "drops_per_s": self.drop_rate(),
            "queue": level(Level::Queue),
            "left_over": level(Level::LeftOver),
            "queue_room": class.queue,
            "budget_used": level(Level::BudgetUsed),
            "periods": count(Count::Periods),
            "overruns": count(Count::Overruns),
            "connections": level(Level::Open),
            "connections_room": class.connections,
            "half_open": level(Level::HalfOpen),
            "established": count(Count::Established),
            "refused": count(Count::Refused),
            "retransmissions": count(Count::Retransmissions),
            "latency": {
                "packets": latencies.count(),
                "p50_us": latencies.quantile(0.5).map(micros),
                "p99_us": latencies.quantile(0.99).map(micros),
                "longest_us": micros(latencies.longest),
            },
        })
    }
}

pub(super) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::OnArrival => "arrival",
        Mode::OnDemand => "demand",
        Mode::Periodic => "periodic",
    }
}
