//! A reference model of a lane: it asks every subscription, and looks at every timer.

use std::collections::BTreeMap;

use chronorb_events::{
    DEADLINE_TIMEOUT, Filter, Header, INTERVAL_TIMEOUT, Rules, TIMEOUT, TimerKind,
};

use crate::support::Set;

/// A place in a tree: the numbers of the children on the way to it.
type Path = Vec<usize>;

/// A set of events, each with its place in the order of arrival.
type Events = Vec<(u64, Header)>;

/// The sets of the children of a conjunction, each with the arrival that completed it.
type Sets = BTreeMap<usize, (u64, Events)>;

pub(crate) struct Model {
    rules: Rules,
    subscriptions: Vec<Subscription>,
    arrivals: u64,
    pub(crate) delivered: Vec<(usize, Set)>,
}

struct Subscription {
    name: usize,
    filter: Filter,
    is_suspended: bool,
    /// The state of each conjunction, and the time of its last delivery.
    groups: BTreeMap<Path, (Sets, u64)>,
    delivered: u64,
    timers: Vec<Timer>,
}

#[derive(Clone)]
struct Timer {
    path: Path,
    kind: TimerKind,
    nanos: u64,
    due: u64,
    group: Option<Path>,
}

struct Offer<'a> {
    header: Header,
    arrival: u64,
    timer: Option<&'a Path>,
    now: u64,
    rules: Rules,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            subscriptions: Vec::new(),
            arrivals: 0,
            delivered: Vec::new(),
        }
    }

    pub(crate) fn subscribe(&mut self, name: usize, filter: &Filter, now: u64) {
        let mut timers = Vec::new();
        find_timers(filter, &mut Vec::new(), None, self.rules, now, &mut timers);
        let mut groups = BTreeMap::new();
        find_groups(filter, &mut Vec::new(), now, &mut groups);
        self.subscriptions.push(Subscription {
            name,
            filter: filter.clone(),
            is_suspended: false,
            groups,
            delivered: now,
            timers,
        });
    }

    pub(crate) fn unsubscribe(&mut self, name: usize) {
        self.subscriptions.retain(|one| one.name != name);
    }

    pub(crate) fn suspend(&mut self, name: usize) {
        for one in self.subscriptions.iter_mut().filter(|one| one.name == name) {
            one.is_suspended = true;
        }
    }

    pub(crate) fn resume(&mut self, name: usize, now: u64) {
        for one in self.subscriptions.iter_mut().filter(|one| one.name == name) {
            if std::mem::take(&mut one.is_suspended) {
                one.delivered = now;
                one.groups.values_mut().for_each(|group| group.1 = now);
            }
        }
    }

    pub(crate) fn push(&mut self, header: Header, now: u64) {
        self.arrivals += 1;
        for index in 0..self.subscriptions.len() {
            self.offer(index, header, None, now);
        }
    }

    /// Fires the timers that are due by a time, one after the other.
    pub(crate) fn run_until(&mut self, until: u64) {
        loop {
            let mut next: Option<(u64, usize, usize)> = None;
            for (index, one) in self.subscriptions.iter().enumerate() {
                for (number, timer) in one.timers.iter().enumerate() {
                    let due = one.due(timer);
                    if due <= until && next.is_none_or(|next| (due, index, number) < next) {
                        next = Some((due, index, number));
                    }
                }
            }
            let Some((due, index, number)) = next else {
                return;
            };
            self.arrivals += 1;
            let timer = self.subscriptions[index].timers[number].clone();
            let event_type = match timer.kind {
                TimerKind::Once => TIMEOUT,
                TimerKind::Interval => INTERVAL_TIMEOUT,
                TimerKind::Deadline => DEADLINE_TIMEOUT,
            };
            let header = Header {
                event_type,
                ..Header::default()
            };
            self.offer(index, header, Some(&timer.path), due);
            let one = &mut self.subscriptions[index];
            match timer.kind {
                TimerKind::Once => {
                    one.timers.remove(number);
                }
                _ => one.timers[number].due = due + timer.nanos,
            }
        }
    }

    fn offer(&mut self, index: usize, header: Header, timer: Option<&Path>, now: u64) {
        let one = &mut self.subscriptions[index];
        if one.is_suspended {
            return;
        }
        let offer = Offer {
            header,
            arrival: self.arrivals,
            timer,
            now,
            rules: self.rules,
        };
        let filter = one.filter.clone();
        let (_, sets) = one.ask(&filter, &mut Vec::new(), &offer);
        if sets.is_empty() {
            return;
        }
        one.delivered = now;
        if self.rules == Rules::Tao {
            for group in one.groups.values_mut() {
                *group = (BTreeMap::new(), now);
            }
        }
        for set in sets {
            let set = set.into_iter().map(|(_, one)| (one.source, one.event_type));
            self.delivered.push((one.name, set.collect()));
        }
    }
}

impl Subscription {
    /// The time at which a timer fires.
    fn due(&self, timer: &Timer) -> u64 {
        if timer.kind != TimerKind::Deadline {
            return timer.due;
        }
        let restarted = timer.group.as_ref().map(|path| self.groups[path].1);
        let restarted = restarted.unwrap_or(self.delivered);
        timer.due.max(restarted + timer.nanos)
    }

    /// Whether a subtree takes an event, and the sets that it delivers.
    fn ask(&mut self, filter: &Filter, path: &mut Path, offer: &Offer<'_>) -> (bool, Vec<Events>) {
        let alone = vec![vec![(offer.arrival, offer.header)]];
        let nothing = (false, Vec::new());
        if let Filter::Timer { .. } = filter {
            return if offer.timer == Some(path) {
                (true, alone)
            } else {
                nothing
            };
        }
        if filter.is_stateless() {
            let passes = offer.timer.is_none() && filter.passes(&offer.header);
            return if passes { (true, alone) } else { nothing };
        }
        match filter {
            Filter::Bits {
                source_mask,
                type_mask,
                then,
            } => {
                let has_bits = offer.header.source & source_mask != 0
                    && offer.header.event_type & type_mask != 0;
                if !has_bits && offer.timer.is_none() {
                    return nothing;
                }
                path.push(0);
                let answer = self.ask(then, path, offer);
                path.pop();
                answer
            }
            Filter::Any(children) => self.ask_any(children, path, offer, &alone[0]),
            Filter::Conjunction(children) => self.ask_conjunction(children, path, offer),
            _ => unreachable!("other filters have no state"),
        }
    }

    fn ask_any(
        &mut self,
        children: &[Filter],
        path: &mut Path,
        offer: &Offer<'_>,
        alone: &Events,
    ) -> (bool, Vec<Events>) {
        let (mut is_taken, mut sets) = (false, Vec::<Events>::new());
        for (number, child) in children.iter().enumerate() {
            path.push(number);
            let (took, more) = self.ask(child, path, offer);
            path.pop();
            for set in more {
                if set != *alone || !sets.contains(alone) {
                    sets.push(set);
                }
            }
            is_taken |= took;
            if took && offer.rules == Rules::Tao {
                break;
            }
        }
        (is_taken, sets)
    }

    fn ask_conjunction(
        &mut self,
        children: &[Filter],
        path: &mut Path,
        offer: &Offer<'_>,
    ) -> (bool, Vec<Events>) {
        let is_tao = offer.rules == Rules::Tao;
        for (number, child) in children.iter().enumerate() {
            let has = self.groups[path].0.contains_key(&number);
            if has && !is_tao {
                continue;
            }
            path.push(number);
            let (took, sets) = self.ask(child, path, offer);
            path.pop();
            if !took {
                continue;
            }
            let Some(set) = sets.into_iter().next().filter(|_| !has) else {
                return (true, Vec::new());
            };
            let group = self.groups.get_mut(path).expect("each has a place");
            group.0.insert(number, (offer.arrival, set));
            let is_deadline = |child: &Filter| {
                !is_tao
                    && matches!(child, Filter::Timer { kind, .. } if *kind == TimerKind::Deadline)
            };
            let required = |number: &usize| !is_deadline(&children[*number]);
            let is_complete = (0..children.len())
                .filter(required)
                .all(|number| group.0.contains_key(&number));
            let has_required = (0..children.len()).any(|number| required(&number));
            if !(is_deadline(child) || is_complete && has_required) {
                return (true, Vec::new());
            }
            let mut sets: Vec<_> = std::mem::take(&mut group.0).into_values().collect();
            sets.sort_by_key(|(completed, _)| *completed);
            let mut events: Events = sets.into_iter().flat_map(|(_, set)| set).collect();
            if !is_tao {
                events.sort_by_key(|(arrival, _)| *arrival);
            }
            group.1 = offer.now;
            return (true, vec![events]);
        }
        (false, Vec::new())
    }
}

fn children_of(filter: &Filter) -> &[Filter] {
    match filter {
        Filter::Bits { then, .. } | Filter::Negation(then) => std::slice::from_ref(then),
        Filter::All(children) | Filter::Any(children) | Filter::Conjunction(children) => children,
        _ => &[],
    }
}

fn find_timers(
    filter: &Filter,
    path: &mut Path,
    group: Option<&Path>,
    rules: Rules,
    now: u64,
    timers: &mut Vec<Timer>,
) {
    if let Filter::Timer { kind, time } = filter {
        let nanos = time.as_nanos() as u64;
        let is_of_group = *kind == TimerKind::Deadline && rules == Rules::Corrected;
        timers.push(Timer {
            path: path.clone(),
            kind: *kind,
            nanos,
            due: now + nanos,
            group: group.filter(|_| is_of_group).cloned(),
        });
    }
    let here = path.clone();
    let group = matches!(filter, Filter::Conjunction(_)).then_some(&here);
    for (number, child) in children_of(filter).iter().enumerate() {
        path.push(number);
        find_timers(child, path, group, rules, now, timers);
        path.pop();
    }
}

fn find_groups(
    filter: &Filter,
    path: &mut Path,
    now: u64,
    groups: &mut BTreeMap<Path, (Sets, u64)>,
) {
    if matches!(filter, Filter::Conjunction(_)) {
        groups.insert(path.clone(), (BTreeMap::new(), now));
    }
    for (number, child) in children_of(filter).iter().enumerate() {
        path.push(number);
        find_groups(child, path, now, groups);
        path.pop();
    }
}
