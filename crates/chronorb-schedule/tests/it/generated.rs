//! Random schedule files, and smaller ones that keep a property.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use chronorb_schedule::{LockProtocol, Time};
use fastrand::Rng;

/// The parts that random files have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) oneways: bool,
    pub(crate) declared_lanes: bool,
    /// Several callers of most operations.
    pub(crate) many_callers: bool,
    /// Deadlines after the next arrival.
    pub(crate) late_deadlines: bool,
    /// Also such as are held over calls.
    pub(crate) locks: bool,
    /// Machines with several processors, whose operations take the same locks.
    pub(crate) shared_locks: bool,
    pub(crate) links: bool,
}

/// A schedule file.
#[derive(Clone, Debug)]
pub(crate) struct FileSpec {
    /// The processors, each of a node.
    nodes: Vec<NodeSpec>,
    link: Option<LinkSpec>,
    locks: LockProtocol,
    has_priorities: bool,
    operations: Vec<OperationSpec>,
}

#[derive(Clone, Debug)]
struct LinkSpec {
    /// The rate in megabits.
    rate: u32,
    mtu: u32,
    is_half_duplex: bool,
    /// The time for which other traffic delays a message.
    blocking: Time,
}

#[derive(Clone, Debug)]
struct NodeSpec {
    /// The number of its node, which is that of the first processor of the node.
    machine: usize,
    overhead: Time,
    blocking: Time,
    /// The threads and the priority of its declared lane.
    lane: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
struct OperationSpec {
    name: usize,
    node: usize,
    in_lane: bool,
    cost: Time,
    least: Time,
    period: Option<Time>,
    deadline: Option<Time>,
    jitter: Time,
    /// Blocking of its own.
    blocking: Time,
    priority: u32,
    locks: Vec<(usize, Time)>,
    calls: Vec<CallSpec>,
}

#[derive(Clone, Debug)]
struct CallSpec {
    operation: usize,
    oneway: bool,
    before: Time,
    least: Time,
    /// The length of each message, as in the file.
    request: String,
    reply: String,
}

/// Returns the length of a message: mostly a few packets.
fn length(random: &mut Rng) -> String {
    match random.u8(0..8) {
        0 => random.u64(1..=60_000).to_string(),
        1 | 2 => random.u64(1..=25_000).to_string(),
        3 => format!("\"{} ns\"", random.u64(1..=MILLI)),
        _ => random.u64(1..=2_000).to_string(),
    }
}

const MICRO: Time = 1_000;
const MILLI: Time = 1_000_000;
const PERIODS: [Time; 5] = [10, 20, 25, 40, 50];
/// The least common multiple of the periods.
const FRAME: Time = 200;
const LOCKS: [&str; 2] = ["m", "n"];

impl FileSpec {
    /// Returns the file of a seed.
    pub(crate) fn random(seed: u64, parts: Parts) -> Self {
        let random = &mut Rng::with_seed(seed);
        let has_locks = parts.shared_locks || parts.locks && random.bool();
        let mut nodes = Vec::new();
        // Often the usual shape: clients, a server with a fast and a slow operation, and a disk.
        let is_server = parts.many_callers && random.u8(0..4) > 0;
        let least = if parts.shared_locks { 2 } else { 1 };
        let count = if is_server {
            3
        } else {
            random.usize(least..=3)
        };
        let mut machine = 0;
        for number in 0..count {
            if !parts.shared_locks || random.u8(0..4) == 0 {
                machine = number;
            }
            nodes.push(NodeSpec {
                machine,
                overhead: if random.bool() {
                    random.u64(1..=50) * MICRO
                } else {
                    0
                },
                blocking: if parts.locks && random.u8(0..5) == 0 {
                    random.u64(1..=500) * MICRO
                } else {
                    0
                },
                lane: (parts.declared_lanes && random.bool())
                    .then(|| (random.u32(1..=3), random.u32(1..=20))),
            });
        }
        let mut spec = Self {
            link: parts.links.then(|| LinkSpec {
                rate: [10, 100][random.usize(0..2)],
                mtu: random.u32(576..=1_500),
                is_half_duplex: random.u8(0..4) == 0,
                blocking: random.u64(0..=1) * 123 * MICRO,
            }),
            locks: if parts.shared_locks || random.bool() {
                LockProtocol::Ceiling
            } else {
                LockProtocol::Inheritance
            },
            has_priorities: random.bool(),
            operations: Vec::new(),
            nodes,
        };
        let (clients, count) = if is_server {
            let clients = random.usize(3..=4);
            (clients, clients + 3)
        } else {
            let count = random.usize(3..=7);
            (random.usize(1..=count.min(4)), count)
        };
        let callers = if parts.many_callers { 4 } else { 2 };
        let latest = if parts.late_deadlines { 300 } else { 100 };
        // The arrivals of each operation in a frame of all periods.
        let mut rates = vec![0; count];
        for name in 0..count {
            let node = match name.checked_sub(clients) {
                _ if !is_server => random.usize(0..spec.nodes.len()),
                None => 0,
                Some(2) => 2,
                Some(_) => 1,
            };
            // The fast client of a server comes while others wait for the disk.
            let periods = if !is_server {
                &PERIODS[..]
            } else if name + 1 < clients {
                &PERIODS[3..]
            } else {
                &PERIODS[..2]
            };
            let period = (name < clients).then(|| *random.choice(periods).expect("some"));
            rates[name] = period.map_or(0, |period| FRAME / period);
            spec.operations.push(OperationSpec {
                name,
                node,
                in_lane: period.is_none()
                    && spec.nodes[node].lane.is_some()
                    && (is_server || random.bool()),
                cost: 0,
                least: 0,
                period: period.map(|period| period * MILLI),
                deadline: period
                    .filter(|_| random.bool())
                    .map(|period| period * random.u64(50..=latest) * MILLI / 100),
                jitter: match period {
                    Some(period) if random.u8(0..4) == 0 => random.u64(1..=period) * MILLI / 10,
                    _ => 0,
                },
                blocking: if parts.locks && random.u8(0..3) == 0 {
                    random.u64(1..=500) * MICRO
                } else {
                    0
                },
                priority: if is_server { 10 } else { random.u32(1..=20) },
                locks: Vec::new(),
                calls: Vec::new(),
            });
            if name < clients {
                continue;
            }
            let callers = match name - clients {
                _ if !is_server => {
                    let count = random.usize(1..=callers.min(name));
                    (0..count).map(|_| random.usize(0..name)).collect()
                }
                0 => (0..clients - 1).collect(),
                1 => vec![clients - 1],
                _ => vec![clients],
            };
            for caller in callers {
                let oneway = parts.oneways && random.bool();
                spec.operations[caller].calls.push(CallSpec {
                    operation: name,
                    oneway,
                    before: 0,
                    least: 0,
                    request: length(random),
                    reply: length(random),
                });
                rates[name] += rates[caller];
            }
        }
        let loads = if is_server {
            [5..=15, 5..=20, 30..=70]
        } else {
            [15..=75, 15..=75, 15..=75]
        };
        spec.choose_costs(random, &rates, &loads);
        spec.choose_leasts(random);
        if has_locks {
            spec.choose_locks(random);
        }
        spec
    }

    /// Gives each node a load, and divides it among its operations.
    fn choose_costs(&mut self, random: &mut Rng, rates: &[Time], loads: &[RangeInclusive<u64>]) {
        for (node, load) in (0..self.nodes.len()).zip(loads) {
            let load = random.u64(load.clone());
            let own = self.operations.iter_mut().filter(|it| it.node == node);
            let own: Vec<_> = own.map(|it| (random.u64(1..=10), it)).collect();
            let all: u64 = own.iter().map(|(weight, _)| weight).sum();
            for (weight, it) in own {
                let rate = rates[it.name].max(1);
                it.cost = (FRAME * MILLI * load * weight / (100 * all * rate)).max(20 * MICRO);
                // Some calls have no execution before them.
                let place = |_| match random.u8(0..6) {
                    0 => 0,
                    _ => random.u64(0..=it.cost),
                };
                let mut places: Vec<_> = it.calls.iter().map(place).collect();
                places.sort_unstable();
                let mut before = 0;
                for (call, place) in it.calls.iter_mut().zip(places) {
                    call.before = place - before;
                    before = place;
                }
            }
        }
    }

    /// Gives executions and their parts least times, which are often the longest ones.
    fn choose_leasts(&mut self, random: &mut Rng) {
        let mut of = |longest: Time| match random.u8(0..4) {
            0 => longest,
            1 => random.u64(0..=longest),
            _ => 0,
        };
        for it in &mut self.operations {
            it.least = of(it.cost);
            for call in &mut it.calls {
                call.least = of(call.before);
            }
        }
    }

    fn choose_locks(&mut self, random: &mut Rng) {
        for it in &mut self.operations {
            // The longest execution without a wait.
            let (mut longest, mut piece, mut left) = (0, 0, it.cost);
            for call in &it.calls {
                piece += call.before;
                left -= call.before;
                if !call.oneway {
                    longest = longest.max(piece);
                    piece = 0;
                }
            }
            longest = longest.max(piece + left);
            for lock in 0..LOCKS.len() {
                let most = if random.u8(0..6) == 0 {
                    it.cost / 2
                } else {
                    longest / 3
                };
                if random.bool() && most > 0 {
                    it.locks.push((lock, random.u64(1..=most)));
                }
            }
        }
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("[scheduling]\n");
        if self.has_priorities {
            text += "priorities = \"declared\"\n";
        }
        if self.locks == LockProtocol::Ceiling {
            text += "locks = \"ceiling\"\n";
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let machine = node.machine;
            if machine == number {
                let _ = writeln!(text, "[[node]]\nname = \"n{number}\"");
                if node.overhead > 0 {
                    let _ = writeln!(text, "overhead = \"{} ns\"", node.overhead);
                }
            }
            let _ = writeln!(
                text,
                "[[processor]]\nname = \"p{number}\"\nnode = \"n{machine}\"\ncpu = {number}"
            );
            if node.blocking > 0 {
                let _ = writeln!(text, "blocking = \"{} ns\"", node.blocking);
            }
            if let Some((threads, priority)) = node.lane {
                let _ = writeln!(
                    text,
                    "[[lane]]\nname = \"l{number}\"\nprocessor = \"p{number}\"\nthreads = {threads}"
                );
                if self.has_priorities {
                    let _ = writeln!(text, "priority = {priority}");
                }
            }
        }
        if let Some(link) = &self.link {
            let _ = writeln!(
                text,
                "[[link]]\nname = \"lan\"\nrate = \"{} Mbit\"\nmtu = {}",
                link.rate, link.mtu
            );
            if link.is_half_duplex {
                text += "duplex = \"half\"\n";
            }
            if link.blocking > 0 {
                let _ = writeln!(text, "blocking = \"{} ns\"", link.blocking);
            }
        }
        for it in &self.operations {
            self.write(it, &mut text);
        }
        text
    }

    fn write(&self, it: &OperationSpec, text: &mut String) {
        let _ = writeln!(
            text,
            "[[operation]]\nname = \"O::o{}\"\nwcet = \"{} ns\"",
            it.name, it.cost
        );
        let _ = if it.in_lane {
            writeln!(text, "lane = \"l{}\"", it.node)
        } else {
            writeln!(text, "processor = \"p{}\"", it.node)
        };
        if self.has_priorities && !it.in_lane {
            let _ = writeln!(text, "priority = {}", it.priority);
        }
        for (key, time) in [
            ("least", Some(it.least).filter(|least| *least > 0)),
            ("period", it.period),
            ("deadline", it.deadline),
            ("jitter", Some(it.jitter).filter(|jitter| *jitter > 0)),
            ("blocking", Some(it.blocking).filter(|time| *time > 0)),
        ] {
            if let Some(time) = time {
                let _ = writeln!(text, "{key} = \"{time} ns\"");
            }
        }
        let locks = it.locks.iter();
        let locks: Vec<_> = locks
            .map(|(lock, time)| format!("{} = \"{time} ns\"", LOCKS[*lock]))
            .collect();
        if !locks.is_empty() {
            let _ = writeln!(text, "locks = {{ {} }}", locks.join(", "));
        }
        let calls: Vec<_> = it.calls.iter().map(|call| self.call(it, call)).collect();
        if !calls.is_empty() {
            let _ = writeln!(text, "calls = [{}]", calls.join(", "));
        }
    }

    fn call(&self, caller: &OperationSpec, call: &CallSpec) -> String {
        let called = &self.operations[call.operation];
        let mut text = format!(
            "{{ operation = \"O::o{}\", before = \"{} ns\"",
            called.name, call.before
        );
        if call.least > 0 {
            let _ = write!(text, ", least = \"{} ns\"", call.least);
        }
        if call.oneway {
            text += ", oneway = true";
        }
        let machine = |it: &OperationSpec| self.nodes[it.node].machine;
        if self.link.is_some() && machine(called) != machine(caller) {
            let _ = write!(text, ", request = {}", call.request);
            if !call.oneway {
                let _ = write!(text, ", reply = {}", call.reply);
            }
        }
        text + " }"
    }

    /// Returns the smallest file with a property that this one has, by leaving out parts.
    pub(crate) fn reduced(mut self, mut has_it: impl FnMut(&Self) -> bool) -> Self {
        loop {
            let mut smaller = self.smaller().into_iter();
            match smaller.find(|it| has_it(it)) {
                Some(it) => self = it,
                None => return self,
            }
        }
    }

    fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut it = self.clone();
            change(&mut it);
            if it.text() != self.text() {
                all.push(it);
            }
        };
        for number in 0..self.operations.len() {
            add(&|it| it.remove(number));
        }
        for number in 0..self.operations.len() {
            for call in 0..self.operations[number].calls.len() {
                add(&|it| {
                    it.operations[number].calls.remove(call);
                });
                add(&|it| {
                    let call = &mut it.operations[number].calls[call];
                    (call.before, call.least) = (0, 0);
                });
                add(&|it| it.operations[number].calls[call].least = 0);
                add(&|it| it.operations[number].calls[call].oneway = false);
            }
            add(&|it| it.operations[number].locks.clear());
            add(&|it| it.operations[number].least = 0);
            add(&|it| it.operations[number].jitter = 0);
            add(&|it| it.operations[number].blocking = 0);
            add(&|it| it.operations[number].deadline = None);
            add(&|it| it.operations[number].in_lane = false);
        }
        add(&|it| it.link = None);
        for node in 0..self.nodes.len() {
            add(&|it| it.nodes[node].overhead = 0);
            add(&|it| it.nodes[node].blocking = 0);
            let is_used = |it: &OperationSpec| it.node == node && it.in_lane;
            if !self.operations.iter().any(is_used) {
                add(&|it| it.nodes[node].lane = None);
            }
        }
        if let Some(last) = self.nodes.len().checked_sub(1)
            && self.operations.iter().all(|it| it.node != last)
        {
            add(&|it| {
                it.nodes.pop();
            });
        }
        all
    }

    /// Removes an operation, and those that only it calls.
    fn remove(&mut self, number: usize) {
        self.operations.remove(number);
        for it in &mut self.operations {
            it.calls.retain(|call| call.operation != number);
            for call in &mut it.calls {
                if call.operation > number {
                    call.operation -= 1;
                }
            }
        }
        let all = 0..self.operations.len();
        let lonely = all.into_iter().find(|it| {
            let mut callers = self.operations.iter();
            self.operations[*it].period.is_none()
                && !callers.any(|caller| caller.calls.iter().any(|call| call.operation == *it))
        });
        if let Some(lonely) = lonely {
            self.remove(lonely);
        }
    }
}
