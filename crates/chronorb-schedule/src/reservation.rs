//! Reservations of real-time I/O for the messages of links.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronorb_sched::Time;

use crate::assign::Assignment;
use crate::lock::{BasicString, LockFile, LockReservation};
use crate::packets::HEADERS;
use crate::schedule::{DeclaredStep, Link, MessageLength, Schedule};

impl LockFile {
    /// Returns the plan of real-time I/O of a node as a file of `chronorb rio plan`; `None` if no
    /// link has an interface of the node.
    ///
    /// Each priority of the node's lanes and activities has a class, whose packets are processed on
    /// arrival. A priority without messages over the link reserves one packet every 10 s.
    pub fn rio_plan(&self, node: &str) -> Option<String> {
        let interface = self.interfaces.iter().find(|it| it.node == node)?;
        let of_node = self.reservations.iter().filter(|it| it.node == node);
        let mut classes: Vec<_> = of_node.cloned().collect();
        let lanes = self.lanes.iter().filter(|it| it.node == node);
        let activities = self.activities.iter().filter(|it| it.node == node);
        let priorities = lanes.map(|it| it.priority);
        for priority in priorities.chain(activities.map(|it| it.priority)) {
            if classes.iter().all(|it| it.priority != priority) {
                classes.push(LockReservation {
                    node: node.to_owned(),
                    priority,
                    messages: 0,
                    window: LONGEST_WINDOW,
                    packets: 1,
                    longest: interface.mtu,
                });
            }
        }
        classes.sort_by_key(|it| Reverse(it.priority));
        let mut lines = vec![
            "# Written by `chronorb sched plan`. Do not edit: change the schedule.".to_owned(),
            "[interface]".to_owned(),
            format!("name = {}", BasicString(&interface.name)),
            format!("rate = \"{} bit\"", interface.rate),
            format!("mtu = {}", interface.mtu),
        ];
        for it in classes {
            let name = format!("{}-{}", interface.link, it.priority);
            lines.push(format!("\n[[class]]\nname = {}", BasicString(&name)));
            lines.push(format!("priority = {}", it.priority));
            lines.push("processing = \"arrival\"".to_owned());
            lines.push(format!("period = \"{} ns\"", it.window));
            lines.push(format!("budget = {}\npacket = {}", it.packets, it.longest));
            // Each message may have a connection of its own.
            let connections = it.messages.max(LEAST_CONNECTIONS);
            lines.push(format!("connections = {connections}"));
            if let Some(cost) = interface.packet_cost {
                lines.push(format!("cost = \"{cost} ns\""));
            }
        }
        lines.push(String::new());
        Some(lines.join("\n"))
    }
}

/// Messages of one length that a transaction sends in each period.
#[derive(Clone, Copy)]
struct MessageFlow {
    period: Time,
    length: MessageLength,
    count: u64,
}

/// The messages of each node with an interface, by priority.
struct Traffic<'s> {
    schedule: &'s Schedule,
    assignment: &'s Assignment,
    /// By node, its link, and priority.
    sent: BTreeMap<(usize, usize, Reverse<i16>), Vec<MessageFlow>>,
}

impl Assignment {
    /// Returns the reservations of all nodes with an interface, by node, the most urgent one first.
    pub(crate) fn lock_reservations(&self, schedule: &Schedule) -> Vec<LockReservation> {
        let mut traffic = Traffic {
            schedule,
            assignment: self,
            sent: BTreeMap::new(),
        };
        for (operation, it) in schedule.operations.iter().enumerate() {
            if let Some(period) = it.period {
                traffic.add_calls(operation, period, 1);
            }
        }
        for it in &schedule.transactions {
            traffic.add_steps(&it.steps, it.period);
        }
        let sent = traffic.sent.into_iter();
        let reservations = sent.map(|((node, link, Reverse(priority)), messages)| {
            let node = schedule.nodes[node].name.clone();
            reservation(node, priority, &schedule.links[link], &messages)
        });
        reservations.collect()
    }
}

impl Traffic<'_> {
    /// Adds the messages of an operation's calls, and of those that they make. Calls are no cycle:
    /// the schedule has been analysed.
    fn add_calls(&mut self, operation: usize, period: Time, count: u64) {
        let schedule = self.schedule;
        for call in &schedule.operations[operation].calls {
            let count = count.saturating_mul(call.count.into());
            if let Some(messages) = call.messages {
                for length in [Some(messages.request), messages.reply]
                    .into_iter()
                    .flatten()
                {
                    let sent = MessageFlow {
                        period,
                        length,
                        count,
                    };
                    self.add(messages.link, operation, call.operation, sent);
                    self.add(messages.link, call.operation, call.operation, sent);
                }
            }
            self.add_calls(call.operation, period, count);
        }
    }

    /// Adds the messages of declared steps, which are from the operation before to the one after.
    fn add_steps(&mut self, steps: &[DeclaredStep], period: Time) {
        let executed = |step: &DeclaredStep| match step {
            DeclaredStep::Operation { operation } => Some(*operation),
            DeclaredStep::Message { .. } => None,
        };
        for (position, step) in steps.iter().enumerate() {
            match *step {
                DeclaredStep::Operation { operation } => self.add_calls(operation, period, 1),
                DeclaredStep::Message { link, length } => {
                    let before = steps[..position].iter().rev().find_map(executed);
                    let after = steps[position + 1..].iter().find_map(executed);
                    let sent = MessageFlow {
                        period,
                        length,
                        count: 1,
                    };
                    let called = after.or(before);
                    for end in before.into_iter().chain(after) {
                        self.add(link, end, called.unwrap_or(end), sent);
                    }
                }
            }
        }
    }

    /// Adds messages of calls to an operation, at the node of the operation `end`, if that has an
    /// interface of the link. They have the priority of the called one, as in the analysis: an ORB
    /// serves an object at its declared priority, and its clients have a connection for that.
    fn add(&mut self, link: usize, end: usize, called: usize, sent: MessageFlow) {
        let node = self.schedule.processors[self.schedule.operations[end].processor].node;
        let mut interfaces = self.schedule.links[link].interfaces.iter();
        if interfaces.any(|it| it.node == node) {
            let key = (node, link, Reverse(self.assignment.priority(called)));
            self.sent.entry(key).or_default().push(sent);
        }
    }
}

fn reservation(node: String, priority: i16, link: &Link, sent: &[MessageFlow]) -> LockReservation {
    let payload = link.payload();
    let periods = sent.iter().map(|it| it.period);
    let longest_period = periods.max().unwrap_or(LONGEST_WINDOW);
    let window = longest_period.clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
    let (mut messages, mut packets, mut longest) = (0_u64, 0_u64, 0_u64);
    for it in sent {
        let octets = link.octets(it.length);
        let arrivals = window.div_ceil(it.period.max(1));
        let of_each = octets.div_ceil(payload).max(1);
        let all = arrivals.saturating_mul(it.count).saturating_mul(of_each);
        packets = packets.saturating_add(all);
        messages = messages.saturating_add(it.count);
        longest = longest.max(octets.min(payload));
    }
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    LockReservation {
        node,
        priority,
        messages: small(messages),
        window,
        packets: small(packets),
        longest: small(longest).saturating_add(HEADERS),
    }
}

/// The connections of a class that has few messages.
const LEAST_CONNECTIONS: u32 = 8;
/// The shortest and the longest period of a class of real-time I/O.
const SHORTEST_WINDOW: Time = 100_000;
const LONGEST_WINDOW: Time = 10_000_000_000;
