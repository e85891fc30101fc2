//! A lane in virtual time that records what it delivers.

use std::time::Duration;

use chronorb_events::{Event, Filter, Lane, Limits, Program, Rules, SubscriptionId};

/// A millisecond, in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;

/// A set of events as sources and types.
pub(crate) type Set = Vec<(i32, i32)>;

/// A lane, its time, and the sets that each subscription got.
pub(crate) struct Script {
    pub(crate) lane: Lane<()>,
    pub(crate) now: u64,
    pub(crate) rules: Rules,
    delivered: Vec<(SubscriptionId, u64, Set)>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::with(Rules::Corrected)
    }

    pub(crate) fn with(rules: Rules) -> Self {
        Self {
            lane: Lane::new(),
            now: 0,
            rules,
            delivered: Vec::new(),
        }
    }

    pub(crate) fn subscribe(&mut self, filter: &Filter) -> SubscriptionId {
        let limits = Limits {
            firings_per_second: u64::MAX,
            ..Limits::default()
        };
        let program = Program::compile(filter, self.rules, &limits);
        let program = program.expect("the filter is valid");
        self.lane.subscribe(program.into(), 0, self.now)
    }

    /// Pushes an event of a source and a type.
    pub(crate) fn push(&mut self, source: i32, event_type: i32) {
        let event = Event::new(source, event_type, ());
        let (now, delivered) = (self.now, &mut self.delivered);
        self.lane.push(&event, now, |id, set| {
            delivered.push((id, now, headers(set)))
        });
    }

    /// Moves time forward, timer by timer.
    pub(crate) fn run_until(&mut self, until: u64) {
        while let Some(due) = self.lane.next_due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            let (now, delivered) = (self.now, &mut self.delivered);
            self.lane
                .expire(now, |id, set| delivered.push((id, now, headers(set))));
        }
        self.now = until;
    }

    /// The sets that a subscription got.
    pub(crate) fn sets(&self, id: SubscriptionId) -> Vec<Set> {
        let of = self.delivered.iter().filter(|(to, ..)| *to == id);
        of.map(|(.., set)| set.clone()).collect()
    }

    /// The times of the sets that a subscription got.
    pub(crate) fn times(&self, id: SubscriptionId) -> Vec<u64> {
        let of = self.delivered.iter().filter(|(to, ..)| *to == id);
        of.map(|(_, at, _)| *at).collect()
    }

    /// All sets, in order.
    pub(crate) fn all(&self) -> Vec<(SubscriptionId, Set)> {
        let all = self.delivered.iter();
        all.map(|(id, _, set)| (*id, set.clone())).collect()
    }
}

pub(crate) fn headers(set: &[Event<()>]) -> Set {
    let headers = set.iter().map(|event| event.header);
    headers.map(|one| (one.source, one.event_type)).collect()
}

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The sets that a filter delivers of events, from a source of the given number and a type each.
pub(crate) fn sets_of(rules: Rules, filter: &Filter, events: &[(i32, i32)]) -> Vec<Set> {
    let mut script = Script::with(rules);
    let id = script.subscribe(filter);
    for (source, event_type) in events {
        script.push(*source, *event_type);
    }
    script.sets(id)
}
