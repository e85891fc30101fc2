//! The changes of the kernel's shares between two readings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use chronorb_net::Handle;
use chronorb_rio::kernel::{CountedShare, InterfaceShares};
use chronorb_rio::plan::Plan;
use chronorb_rt::Monotonic;
use serde_json::{Value, json};

use crate::top::text::plain;

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct SharesWatch {
    plan: Option<(PathBuf, Plan)>,
    before: HashMap<(u32, Handle), (Monotonic, CountedShare)>,
}

/// The shares of an interface in one direction, since the reading before.
#[derive(Debug)]
pub(super) struct SharesView {
    pub(super) interface: String,
    pub(super) is_inward: bool,
    /// The file of the requested plan, if another one is kept here.
    pub(super) other_than: Option<PathBuf>,
    pub(super) shares: Vec<ShareView>,
}

#[derive(Debug)]
pub(super) struct ShareView {
    /// The name of its class, if the plan has it; the kernel does not keep names.
    pub(super) name: Option<String>,
    pub(super) now: CountedShare,
    /// The reading before and its age, if the share existed then.
    before: Option<(Duration, CountedShare)>,
}

impl SharesWatch {
    /// Returns a watch that knows the names of classes by a plan.
    pub(super) fn new(plan: Option<(PathBuf, Plan)>) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    /// Adds a reading of the kernel's counters.
    pub(super) fn look(&mut self, counted: Vec<InterfaceShares>) -> Vec<SharesView> {
        let now = Monotonic::now();
        let mut seen = HashMap::new();
        let mut views = Vec::new();
        for counted in counted {
            let plan = self.plan.as_ref();
            let names = plan.and_then(|(_, plan)| counted.names(&plan.interface, &plan.classes));
            let name = |at: usize, share: &CountedShare| match &names {
                Some(names) => Some(plain(&names[at])),
                None if share.is_of_others() => Some("others".to_owned()),
                None => None,
            };
            let mut shares = Vec::new();
            for (at, share) in counted.shares.iter().enumerate() {
                let place = (counted.index, share.handle);
                let before = self.before.remove(&place);
                seen.insert(place, (now, *share));
                shares.push(ShareView {
                    name: name(at, share),
                    now: *share,
                    before: before.map(|(then, share)| (now.since(then), share)),
                });
            }
            let is_other = names.is_none();
            views.push(SharesView {
                interface: plain(&counted.interface),
                is_inward: counted.is_inward,
                other_than: plan.filter(|_| is_other).map(|(file, _)| file.clone()),
                shares,
            });
        }
        self.before = seen;
        views
    }
}

impl ShareView {
    /// Returns the name to show.
    pub(super) fn title(&self) -> String {
        let handle = || self.now.handle.to_string();
        self.name.clone().unwrap_or_else(handle)
    }

    /// Returns the packets per second; 0 at the first reading.
    pub(super) fn packets_per_s(&self) -> f64 {
        self.rate_of(|share| share.sent.packets)
    }

    /// Returns the octets per second, with Ethernet headers.
    pub(super) fn octets_per_s(&self) -> f64 {
        self.rate_of(|share| share.sent.octets)
    }

    /// Returns the dropped packets per second.
    pub(super) fn drops_per_s(&self) -> f64 {
        self.rate_of(|share| share.sent.dropped.into())
    }

    /// Returns the used part of its own rate, above 1 if it used that of others; `None` at the
    /// first reading.
    pub(super) fn used(&self) -> Option<f64> {
        self.before?;
        let rate = self.now.rates.rate.max(1);
        Some(self.rate_of(CountedShare::wire_octets) / rate as f64)
    }

    fn rate_of(&self, count: impl Fn(&CountedShare) -> u64) -> f64 {
        let Some((time, before)) = &self.before else {
            return 0.0;
        };
        // A share that was set up anew counts from 0.
        let more = count(&self.now).saturating_sub(count(before));
        more as f64 / time.as_secs_f64().max(1e-9)
    }

    fn to_json(&self) -> Value {
        let CountedShare {
            handle,
            rates,
            sent,
        } = self.now;
        json!({
            "name": self.name,
            "handle": handle.to_string(),
            "rank": rates.priority,
            "rate_bit_per_s": rates.rate.saturating_mul(8),
            "ceiling_bit_per_s": rates.ceiling.saturating_mul(8),
            "packets": sent.packets,
            "octets": sent.octets,
            "packets_per_s": self.packets_per_s(),
            "octets_per_s": self.octets_per_s(),
            "used": self.used(),
            "dropped": sent.dropped,
            "drops_per_s": self.drops_per_s(),
            "waited": sent.over_rate,
            "queue": { "packets": sent.waiting, "octets": sent.waiting_octets },
        })
    }
}

impl SharesView {
    /// Renders the shares for programs.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "interface": self.interface,
            "direction": if self.is_inward { "in" } else { "out" },
            "classes": self.shares.iter().map(ShareView::to_json).collect::<Vec<_>>(),
        })
    }
}
