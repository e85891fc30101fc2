//! Links: messages and their packets.

use super::jobs::sending_node;
use super::state::{Delivery, Event, Message};
use super::{Machine, priority};
use crate::schedule::{DeclaredStep, MessageLength, Schedule};
use crate::simulate::link::Packets;
use crate::simulate::work::Work;
use crate::task_sets::ResourceKind;

/// The number of the port of a link whose nodes send in turn.
const SHARED: usize = usize::MAX;

/// Returns whether each node of a link has a port of its own.
pub(super) fn have_ports(schedule: &Schedule) -> Vec<bool> {
    let is_end = |link: usize, node: usize| {
        let nodes = &schedule.links[link].nodes;
        nodes.is_empty() || nodes.contains(&node)
    };
    let ends = |link| {
        (0..schedule.nodes.len())
            .filter(|node| is_end(link, *node))
            .count()
    };
    let links = schedule.links.iter().enumerate();
    let have = links.map(|(link, it)| !it.half_duplex && ends(link) == 2);
    let mut have: Vec<_> = have.collect();
    // A message that no operation of an end sends can come from each of them.
    for it in &schedule.transactions {
        for (step, declared) in it.steps.iter().enumerate() {
            if let DeclaredStep::Message { link, .. } = *declared {
                let sender = sending_node(schedule, &it.steps, step);
                have[link] &= sender.is_some_and(|node| is_end(link, node));
            }
        }
    }
    have
}

impl Machine<'_> {
    /// Sends a message by a link from a node.
    pub(super) fn send(
        &mut self,
        job: usize,
        work: Work,
        of: u32,
        (link, node, length): (usize, Option<usize>, MessageLength),
        then: Delivery,
    ) {
        let node = node.filter(|_| self.has_ports[link]).unwrap_or(SHARED);
        let schedule = self.schedule;
        let it = &schedule.links[link];
        let packets = Packets::new(it, length, &mut self.choices);
        let message = self.messages.insert(Message {
            job,
            work,
            packets,
            then,
        });
        let turn = self.next_turn();
        let port = self.ports.entry((link, node)).or_default();
        if port.is_idle() && it.blocking > 0 && port.foreign_until <= self.now {
            // A frame from outside of the file has begun.
            let foreign = self.choices.delay(it.blocking, true);
            port.foreign_until = self.now.saturating_add(foreign);
        }
        port.add(message, priority(of), turn);
        self.changed_ports.insert((link, node));
    }

    pub(super) fn choose_packet(&mut self, link: usize, node: usize) {
        let Some(port) = self.ports.get_mut(&(link, node)) else {
            return;
        };
        let until = port.foreign_until;
        if until > self.now {
            self.push(until, Event::Sent { link, node });
            return;
        }
        let messages = &mut self.messages;
        let time = port.begin(self.now, |message| &mut messages[message].packets);
        if let Some(time) = time {
            self.push(self.now.saturating_add(time), Event::Sent { link, node });
        }
    }

    pub(super) fn sent(&mut self, link: usize, node: usize) {
        self.changed_ports.insert((link, node));
        let port = self.ports.get_mut(&(link, node));
        let Some(packet) = port.and_then(|port| port.end(self.now)) else {
            return;
        };
        let (job, work) = {
            let it = &self.messages[packet.message];
            (it.job, it.work)
        };
        self.record(ResourceKind::Link(link), job, work, packet.start, false);
        if packet.is_last
            && let Some(message) = self.messages.remove(packet.message)
        {
            self.deliver(job, work, message.then);
        }
    }

    pub(super) fn deliver(&mut self, job: usize, work: Work, then: Delivery) {
        self.count_work(job, work);
        match then {
            Delivery::Request { operation, caller } => {
                self.deliver_request(job, operation, caller);
            }
            Delivery::Reply { caller } => self.make_ready(caller),
            Delivery::Step { step } => self.step(job, step),
        }
    }
}
