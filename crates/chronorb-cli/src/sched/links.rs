//! The admission of a schedule's messages by real-time I/O, as an ORB checks it at its start.

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_orb::rtcorba::{LinearMapping, Priority, PriorityMapping};
use chronorb_rio::plan::{Bits, Plan, Why};
use chronorb_schedule::{
    Assignment, LockFile, LockInterface, ResourceKind, Schedule, StepWork, Time, readable_time,
};

/// The classes of all interfaces that real-time I/O refuses, and what would fit.
#[derive(Debug, Default)]
pub(super) struct LinkVerdict {
    pub(super) refused: Vec<RefusedClass>,
    /// Links and the least rate in bits per second with which their packets fit.
    pub(super) rates: Vec<(String, u64)>,
    /// Links and the greatest cost of a packet with which the processors have time for them.
    pub(super) packet_costs: Vec<(String, Time)>,
}

/// A class of messages that an interface has no room for.
#[derive(Debug)]
pub(super) struct RefusedClass {
    pub(super) link: String,
    pub(super) node: String,
    pub(super) interface: String,
    /// The name of the class in the plan of the node; empty if the plan is none.
    pub(super) class: String,
    /// The called operations whose messages have the class.
    pub(super) operations: Vec<String>,
    /// A stable word for the reason.
    pub(super) reason: &'static str,
    /// The reason, by how much a limit is exceeded, and the packets that would fit.
    pub(super) why: String,
}

impl LinkVerdict {
    /// Checks the plan of each node with an interface, with the default mapping of priorities.
    pub(super) fn of(schedule: &Schedule, assignment: &Assignment) -> Self {
        let lock = assignment.lock_file(schedule);
        let mut refused = Vec::new();
        let (mut rates, mut packet_costs) = (BTreeMap::new(), BTreeMap::new());
        for interface in &lock.interfaces {
            let link = &interface.link;
            let plan = match plan_of(&lock, interface) {
                Ok(plan) => plan,
                Err(problem) => {
                    refused.push(RefusedClass {
                        link: link.clone(),
                        node: interface.node.clone(),
                        interface: interface.name.clone(),
                        class: String::new(),
                        operations: Vec::new(),
                        reason: "impossible",
                        why: problem,
                    });
                    continue;
                }
            };
            let admission = plan.admit();
            let is_network = |why: &Why| matches!(why, Why::Network { .. });
            if admission.refusals.iter().any(|it| is_network(&it.why)) {
                let rate: &mut u64 = rates.entry(link.clone()).or_default();
                *rate = admission.reserved().max(*rate);
            }
            if admission.refusals.iter().any(|it| is_processor(&it.why)) {
                let most = interface.packet_cost.unwrap_or(0);
                let fits = greatest_packet_cost(&plan, most);
                let cost = packet_costs.entry(link.clone()).or_insert(fits);
                *cost = fits.min(*cost);
            }
            let own = admission.refusals.iter().map(|refusal| RefusedClass {
                link: link.clone(),
                node: interface.node.clone(),
                interface: interface.name.clone(),
                class: refusal.class.clone(),
                operations: operations(schedule, assignment, &plan, link, &refusal.class),
                reason: refusal.why.word(),
                why: refusal.why.to_string(),
            });
            refused.extend(own);
        }
        Self {
            refused,
            rates: rates.into_iter().collect(),
            packet_costs: packet_costs
                .into_iter()
                .filter(|(_, cost)| *cost > 0)
                .collect(),
        }
    }

    /// Whether all interfaces have room for the messages.
    pub(super) const fn fits(&self) -> bool {
        self.refused.is_empty()
    }

    /// Returns a sentence for each change that would fit.
    pub(super) fn remedies(&self) -> Vec<String> {
        let rates = self.rates.iter().map(|(link, rate)| {
            let rounded = Bits(*rate);
            format!(
                "a rate of \"{rate} bit\" ({rounded}) of link {link} would fit for these messages"
            )
        });
        let costs = self.packet_costs.iter().map(|(link, cost)| {
            let cost = readable_time(*cost);
            format!("a packet_cost of {cost} of link {link} would fit")
        });
        rates.chain(costs).collect()
    }
}

impl RefusedClass {
    /// Returns the interface, the messages, and the reason.
    pub(super) fn text(&self) -> String {
        let Self {
            link,
            node,
            interface,
            class,
            why,
            ..
        } = self;
        let at = format!("link {link}, interface {interface} of node {node}");
        if class.is_empty() {
            return format!("{at}: {why}");
        }
        let messages = if self.operations.is_empty() {
            String::new()
        } else {
            format!(" (messages of {})", self.operations.join(", "))
        };
        format!("{at}: class {class}{messages}: {why}")
    }
}

/// Returns the plan of an interface.
fn plan_of(lock: &LockFile, interface: &LockInterface) -> Result<Plan, String> {
    let to_native = |corba| LinearMapping.to_native(Priority::new(corba)?);
    let text = lock.rio_plan(&interface.node).unwrap_or_default();
    Plan::parse(&text, &to_native).map_err(|error| error.problem)
}

/// Whether processors have no time for a class.
const fn is_processor(why: &Why) -> bool {
    matches!(why, Why::Late { .. } | Why::Overload { .. })
}

/// Returns the greatest cost of a packet, below `most`, that processors have time for, or zero.
fn greatest_packet_cost(plan: &Plan, most: Time) -> Time {
    let fits = |cost| {
        let mut plan = plan.clone();
        for class in &mut plan.classes {
            class.cost = Some(Duration::from_nanos(cost));
        }
        !(plan.admit().refusals.iter()).any(|it| is_processor(&it.why))
    };
    let (mut good, mut bad) = (0, most);
    while bad.saturating_sub(good) > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// Returns the operations whose messages on a link have the priority of a class.
fn operations(
    schedule: &Schedule,
    assignment: &Assignment,
    plan: &Plan,
    link: &str,
    class: &str,
) -> Vec<String> {
    let class = plan.classes.iter().find(|it| it.name == class);
    let priority = class.and_then(|it| it.corba_priority);
    let sets = &assignment.task_sets;
    let is_link = |resource: usize| match sets.resources[resource].kind {
        ResourceKind::Link(number) => schedule.links[number].name == link,
        ResourceKind::Processor(_) => false,
    };
    let mut called: Vec<_> = (sets.transactions.iter())
        .flat_map(|it| it.transaction.steps.iter().zip(&it.works))
        .filter(|(step, _)| is_link(step.resource))
        .filter_map(|(_, work)| match work {
            StepWork::Request { operation } | StepWork::Reply { operation } => Some(*operation),
            StepWork::Execution { .. } | StepWork::Message => None,
        })
        .filter(|operation| Some(assignment.priority(*operation)) == priority)
        .collect();
    called.sort_unstable();
    called.dedup();
    let names = called
        .iter()
        .map(|it| schedule.operations[*it].name.clone());
    names.collect()
}
