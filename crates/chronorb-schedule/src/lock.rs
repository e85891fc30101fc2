//! The lock file: the result of an assignment, as programs start from it.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use chronorb_sched::{Response, Time};
use toml::de::DeTable;

use crate::assign::Assignment;
use crate::error::{FileError, Mistakes, ScheduleErrors};
use crate::schedule::{LaneOrder, LockProtocol, Schedule};
use crate::table::Table;
use crate::task_sets::{ResourceKind, StepWork};

/// A lock file, `NAME.rt.lock`: what programs start from. [`Display`](fmt::Display) writes it, the
/// same text for the same schedule, and [`LockFile::parse`] reads it. Times are nanoseconds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockFile {
    /// [`Schedule::digest`] of the schedule that it was made of.
    pub input: String,
    /// The bands of CORBA priorities, from the least urgent one up. They cover all priorities.
    pub bands: Vec<LockBand>,
    /// The lanes.
    pub lanes: Vec<LockLane>,
    /// The ceilings of the locks of nodes, with `locks = "ceiling"`.
    pub ceilings: Vec<LockCeiling>,
    /// The operations, in the order of the schedule.
    pub operations: Vec<LockOperation>,
    /// The activities: what a client starts by name.
    pub activities: Vec<LockActivity>,
    /// The classes of messages on links.
    pub classes: Vec<LockClass>,
    /// The network interfaces of nodes, for the real-time I/O subsystem.
    pub interfaces: Vec<LockInterface>,
    /// The packets that nodes with an interface reserve, for the real-time I/O subsystem.
    pub reservations: Vec<LockReservation>,
}

/// A band of CORBA priorities that share the lanes of one priority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockBand {
    /// The least priority.
    pub low: i16,
    /// The greatest priority.
    pub high: i16,
    /// The priority of the band's lanes.
    pub priority: i16,
}

/// A lane of a thread pool.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockLane {
    /// The name.
    pub name: String,
    /// The name of the node.
    pub node: String,
    /// The name of the processor.
    pub processor: String,
    /// The kernel's number of the processor.
    pub cpu: Option<u32>,
    /// The CORBA priority.
    pub priority: i16,
    /// The number of static threads.
    pub threads: u32,
    /// The order of its waiting requests, if the schedule declares one.
    pub order: Option<LaneOrder>,
}

/// The ceiling of a lock, which its holder has.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockCeiling {
    /// The name of the lock.
    pub name: String,
    /// The name of the node.
    pub node: String,
    /// The CORBA priority: the greatest one of the operations that take the lock, or above all
    /// lanes if they are on several processors.
    pub priority: i16,
}

/// An operation with its place among all others.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockOperation {
    /// The name in the schedule.
    pub name: String,
    /// The repository identifier of the interface.
    pub interface: String,
    /// The name on the wire.
    pub operation: String,
    /// The name of the node.
    pub node: String,
    /// The name of the lane.
    pub lane: String,
    /// The CORBA priority.
    pub priority: i16,
    /// The order among operations of one priority; a greater one is served first.
    pub subpriority: u32,
    /// The preemption level on its processor; 0 is the most urgent one.
    pub level: u32,
    /// The criticality, from 0 to 4.
    pub criticality: u8,
    /// The importance, from 0 to 4.
    pub importance: u8,
    /// The worst-case execution time, without the overhead of the node.
    pub wcet: Time,
    /// The period of its own arrivals.
    pub period: Option<Time>,
    /// The deadline from the arrival of its transaction.
    pub deadline: Time,
    /// The worst response from the arrival of its transaction.
    pub response: Time,
}

/// An activity of a client: a transaction and the priority at which it starts.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockActivity {
    /// The name of the transaction, or of the operation that starts it.
    pub name: String,
    /// The name of the node that starts it.
    pub node: String,
    /// The CORBA priority.
    pub priority: i16,
    /// The period.
    pub period: Time,
    /// The deadline.
    pub deadline: Time,
    /// The urgency of its requests, if a lane with an order other than that of arrival serves one
    /// of its operations.
    pub urgency: Option<LockUrgency>,
}

/// The urgency of the requests of an activity, for lanes with an order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockUrgency {
    /// The sum of the execution times of its operations, without the overhead of the nodes.
    pub execution: Time,
    /// The greatest criticality of its operations, from 0 to 4.
    pub criticality: u8,
    /// The greatest importance of its operations, from 0 to 4.
    pub importance: u8,
}

/// A class of messages on a link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockClass {
    /// The name of the link.
    pub link: String,
    /// The CORBA priority of the messages.
    pub priority: i16,
    /// The shortest period of a transaction that sends them.
    pub period: Time,
    /// The messages that its transactions send, each in its own period.
    pub messages: u32,
    /// The transmission time of the longest message.
    pub longest: Time,
}

/// A network interface by which a node sends the messages of a link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockInterface {
    /// The name of the link.
    pub link: String,
    /// The name of the node.
    pub node: String,
    /// The name of the interface.
    pub name: String,
    /// The data rate of the link in bits per second.
    pub rate: u64,
    /// The length of the longest packet in octets, including the IP header.
    pub mtu: u32,
    /// The maximum processor time of a packet.
    pub packet_cost: Option<Time>,
}

/// The packets of one priority that arrive at a node.
///
/// A packet of a message arrives at one end of its connection, and its acknowledgement at the other
/// end. So each end counts the packets of both directions.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockReservation {
    /// The name of the node.
    pub node: String,
    /// The CORBA priority of the called operations.
    pub priority: i16,
    /// The messages of their transactions, each in its own period.
    pub messages: u32,
    /// The length of the window: the longest period of these transactions, from 100 µs to 10 s.
    pub window: Time,
    /// The number of packets in each window.
    pub packets: u32,
    /// The octets of the longest packet, including the IP header.
    pub longest: u32,
}

impl Assignment {
    /// Returns the lock file of an assignment. `schedule` is the one that was assigned.
    pub fn lock_file(&self, schedule: &Schedule) -> LockFile {
        LockFile {
            input: schedule.digest.clone(),
            bands: self.lock_bands(),
            lanes: self.lock_lanes(schedule),
            ceilings: self.lock_ceilings(schedule),
            operations: self.lock_operations(schedule),
            activities: self.lock_activities(schedule),
            classes: self.lock_classes(schedule),
            interfaces: lock_interfaces(schedule),
            reservations: self.lock_reservations(schedule),
        }
    }

    fn lock_bands(&self) -> Vec<LockBand> {
        let mut low = 0;
        let mut bands = Vec::new();
        for (position, priority) in self.priorities.iter().enumerate() {
            let is_last = position + 1 == self.priorities.len();
            let high = if is_last { i16::MAX } else { *priority };
            bands.push(LockBand {
                low,
                high,
                priority: *priority,
            });
            low = high.saturating_add(1);
        }
        bands
    }

    fn lock_lanes(&self, schedule: &Schedule) -> Vec<LockLane> {
        let lanes = self.lanes.iter().map(|lane| {
            let processor = &schedule.processors[lane.processor];
            LockLane {
                name: lane.name.clone(),
                node: schedule.nodes[processor.node].name.clone(),
                processor: processor.name.clone(),
                cpu: processor.cpu,
                priority: self.priorities[lane.band],
                threads: lane.threads,
                order: schedule
                    .lanes
                    .iter()
                    .find(|declared| declared.name == lane.name)
                    .and_then(|declared| declared.order),
            }
        });
        lanes.collect()
    }

    fn lock_ceilings(&self, schedule: &Schedule) -> Vec<LockCeiling> {
        if schedule.rules.locks == LockProtocol::Inheritance {
            return Vec::new();
        }
        let shared = schedule.shared_locks();
        let mut ceilings: BTreeMap<(usize, &str), i16> = BTreeMap::new();
        for (number, operation) in schedule.operations.iter().enumerate() {
            let node = schedule.processors[operation.processor].node;
            for it in &operation.locks {
                let key = (node, it.lock.as_str());
                let above = self.ceiling.filter(|_| shared.contains(&key));
                let priority = above.unwrap_or_else(|| self.priority(number));
                let ceiling = ceilings.entry(key).or_default();
                *ceiling = priority.max(*ceiling);
            }
        }
        let ceilings = ceilings.into_iter();
        let ceilings = ceilings.map(|((node, name), priority)| LockCeiling {
            name: name.to_owned(),
            node: schedule.nodes[node].name.clone(),
            priority,
        });
        ceilings.collect()
    }

    fn lock_operations(&self, schedule: &Schedule) -> Vec<LockOperation> {
        let mut lane_of = vec![0; schedule.operations.len()];
        for (number, lane) in self.lanes.iter().enumerate() {
            for operation in &lane.operations {
                lane_of[*operation] = number;
            }
        }
        let operations = schedule.operations.iter().enumerate().map(|(number, it)| {
            let lane = &self.lanes[lane_of[number]];
            let processor = &schedule.processors[it.processor];
            let above = self
                .lanes
                .iter()
                .filter(|other| other.processor == lane.processor && other.band > lane.band);
            let result = &self.analysis.operations[number];
            LockOperation {
                name: it.name.clone(),
                interface: it.interface.clone(),
                operation: it.operation.clone(),
                node: schedule.nodes[processor.node].name.clone(),
                lane: lane.name.clone(),
                priority: self.priority(number),
                subpriority: self.subpriority(schedule, lane_of[number], number),
                level: count(above.count()),
                criticality: it.criticality,
                importance: it.importance,
                wcet: it.cost,
                period: it.period,
                deadline: result.deadline,
                response: result.response.time().unwrap_or(Time::MAX),
            }
        });
        operations.collect()
    }

    /// Returns the order within a lane: by level, then by importance, then by position.
    fn subpriority(&self, schedule: &Schedule, lane: usize, operation: usize) -> u32 {
        let key = |it: usize| {
            (
                self.ranks[it],
                schedule.operations[it].importance,
                std::cmp::Reverse(it),
            )
        };
        let less = self.lanes[lane].operations.iter();
        count(less.filter(|other| key(**other) < key(operation)).count())
    }

    fn lock_activities(&self, schedule: &Schedule) -> Vec<LockActivity> {
        let activities = self.task_sets.transactions.iter().filter_map(|it| {
            let first = it.works.iter().find_map(|work| work.executed())?;
            let processor = schedule.operations[first].processor;
            Some(LockActivity {
                name: it.name.clone(),
                node: schedule.nodes[schedule.processors[processor].node]
                    .name
                    .clone(),
                priority: self.priority(first),
                period: it.transaction.period,
                deadline: it.transaction.deadline,
                urgency: urgency_of(schedule, &it.works),
            })
        });
        activities.collect()
    }

    fn lock_classes(&self, schedule: &Schedule) -> Vec<LockClass> {
        let mut classes: Vec<LockClass> = Vec::new();
        for it in &self.task_sets.transactions {
            for step in &it.transaction.steps {
                let ResourceKind::Link(link) = self.task_sets.resources[step.resource].kind else {
                    continue;
                };
                let link = &schedule.links[link].name;
                let band = (step.priority as usize).saturating_sub(1);
                let priority = self.priorities.get(band).copied().unwrap_or(0);
                let same =
                    |class: &&mut LockClass| class.link == *link && class.priority == priority;
                let period = it.transaction.period;
                if let Some(class) = classes.iter_mut().find(same) {
                    class.period = class.period.min(period);
                    class.messages = class.messages.saturating_add(1);
                    class.longest = class.longest.max(step.cost);
                } else {
                    classes.push(LockClass {
                        link: link.clone(),
                        priority,
                        period,
                        messages: 1,
                        longest: step.cost,
                    });
                }
            }
        }
        classes.sort_by(|a, b| (&a.link, b.priority).cmp(&(&b.link, a.priority)));
        classes
    }
}

/// Returns the urgency of a transaction; `None` if no lane with an order serves its operations.
fn urgency_of(schedule: &Schedule, works: &[StepWork]) -> Option<LockUrgency> {
    let mut executed: Vec<_> = works.iter().filter_map(|work| work.executed()).collect();
    executed.sort_unstable();
    executed.dedup();
    let operations = || executed.iter().map(|it| &schedule.operations[*it]);
    let is_ordered = operations().any(|it| {
        let order = it.lane.and_then(|lane| schedule.lanes[lane].order);
        order.is_some_and(|order| order != LaneOrder::Fifo)
    });
    is_ordered.then(|| LockUrgency {
        execution: operations().fold(0, |sum, it| sum.saturating_add(it.cost)),
        criticality: operations().map(|it| it.criticality).max().unwrap_or(0),
        importance: operations().map(|it| it.importance).max().unwrap_or(0),
    })
}

fn lock_interfaces(schedule: &Schedule) -> Vec<LockInterface> {
    let of_links = schedule.links.iter().flat_map(|link| {
        link.interfaces.iter().map(|it| LockInterface {
            link: link.name.clone(),
            node: schedule.nodes[it.node].name.clone(),
            name: it.name.clone(),
            rate: link.rate.unwrap_or(0),
            mtu: link.mtu,
            packet_cost: link.packet_cost,
        })
    });
    of_links.collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl fmt::Display for LockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Written by `chronorb sched assign`. Do not edit: change the schedule."
        )?;
        writeln!(f, "version = 1")?;
        writeln!(f, "input = {}", BasicString(&self.input))?;
        for it in &self.bands {
            writeln!(f, "\n[[band]]\nlow = {}\nhigh = {}", it.low, it.high)?;
            writeln!(f, "priority = {}", it.priority)?;
        }
        for it in &self.lanes {
            writeln!(f, "\n[[lane]]\nname = {}", BasicString(&it.name))?;
            writeln!(
                f,
                "node = {}\nprocessor = {}",
                BasicString(&it.node),
                BasicString(&it.processor)
            )?;
            if let Some(cpu) = it.cpu {
                writeln!(f, "cpu = {cpu}")?;
            }
            writeln!(f, "priority = {}\nthreads = {}", it.priority, it.threads)?;
            if let Some(order) = it.order {
                writeln!(f, "order = {}", BasicString(order.name()))?;
            }
        }
        for it in &self.ceilings {
            writeln!(f, "\n[[ceiling]]\nlock = {}", BasicString(&it.name))?;
            writeln!(f, "node = {}", BasicString(&it.node))?;
            writeln!(f, "priority = {}", it.priority)?;
        }
        for it in &self.operations {
            writeln!(f, "\n[[operation]]\nname = {}", BasicString(&it.name))?;
            writeln!(f, "interface = {}", BasicString(&it.interface))?;
            writeln!(f, "operation = {}", BasicString(&it.operation))?;
            writeln!(
                f,
                "node = {}\nlane = {}",
                BasicString(&it.node),
                BasicString(&it.lane)
            )?;
            writeln!(
                f,
                "priority = {}\nsubpriority = {}",
                it.priority, it.subpriority
            )?;
            writeln!(f, "level = {}\ncriticality = {}", it.level, it.criticality)?;
            writeln!(f, "importance = {}\nwcet_ns = {}", it.importance, it.wcet)?;
            if let Some(period) = it.period {
                writeln!(f, "period_ns = {period}")?;
            }
            writeln!(
                f,
                "deadline_ns = {}\nresponse_ns = {}",
                it.deadline, it.response
            )?;
        }
        for it in &self.activities {
            writeln!(f, "\n[[activity]]\nname = {}", BasicString(&it.name))?;
            writeln!(
                f,
                "node = {}\npriority = {}",
                BasicString(&it.node),
                it.priority
            )?;
            writeln!(
                f,
                "period_ns = {}\ndeadline_ns = {}",
                it.period, it.deadline
            )?;
            if let Some(urgency) = &it.urgency {
                writeln!(
                    f,
                    "execution_ns = {}\ncriticality = {}\nimportance = {}",
                    urgency.execution, urgency.criticality, urgency.importance
                )?;
            }
        }
        for it in &self.classes {
            writeln!(
                f,
                "\n[[class]]\nlink = {}\npriority = {}",
                BasicString(&it.link),
                it.priority
            )?;
            writeln!(f, "period_ns = {}\nmessages = {}", it.period, it.messages)?;
            writeln!(f, "longest_ns = {}", it.longest)?;
        }
        for it in &self.interfaces {
            writeln!(f, "\n[[interface]]\nlink = {}", BasicString(&it.link))?;
            writeln!(f, "node = {}", BasicString(&it.node))?;
            writeln!(f, "name = {}", BasicString(&it.name))?;
            writeln!(f, "rate = {}\nmtu = {}", it.rate, it.mtu)?;
            if let Some(cost) = it.packet_cost {
                writeln!(f, "packet_cost_ns = {cost}")?;
            }
        }
        for it in &self.reservations {
            writeln!(f, "\n[[reservation]]\nnode = {}", BasicString(&it.node))?;
            writeln!(f, "priority = {}\nmessages = {}", it.priority, it.messages)?;
            writeln!(f, "window_ns = {}\npackets = {}", it.window, it.packets)?;
            writeln!(f, "longest = {}", it.longest)?;
        }
        Ok(())
    }
}

/// A basic string of TOML.
pub(crate) struct BasicString<'a>(pub(crate) &'a str);

impl fmt::Display for BasicString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

impl LockFile {
    /// Parses a lock file. `file` is its name, for errors.
    ///
    /// # Errors
    /// [`ScheduleErrors`] if the text is not such a file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScheduleErrors> {
        let mut mistakes = Mistakes::new(file, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            mistakes.add(&error.span().unwrap_or(0..0), error.message());
        }
        if !errors.is_empty() {
            return Err(ScheduleErrors(mistakes.into_errors()));
        }
        let top = Table::new(table.get_ref(), 0..0);
        let lock = Self::read(&top, &mut mistakes);
        top.finish(&mut mistakes);
        match lock {
            Some(lock) if mistakes.is_empty() => Ok(lock),
            _ => {
                let mut errors = mistakes.into_errors();
                if errors.is_empty() {
                    errors.push(FileError {
                        file: file.to_owned(),
                        line: 1,
                        column: 1,
                        problem: "this is no lock file of a schedule".to_owned(),
                    });
                }
                Err(ScheduleErrors(errors))
            }
        }
    }

    fn read(top: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Self> {
        required(top, "version", 1, mistakes);
        let mut lock = Self {
            input: top.required_text("input", mistakes)?.value,
            ..Self::default()
        };
        for table in top.tables("band", mistakes) {
            lock.bands.push(LockBand {
                low: priority(&table, "low", mistakes),
                high: priority(&table, "high", mistakes),
                priority: priority(&table, "priority", mistakes),
            });
            table.finish(mistakes);
        }
        for table in top.tables("lane", mistakes) {
            lock.lanes.push(LockLane {
                name: name(&table, "name", mistakes),
                node: name(&table, "node", mistakes),
                processor: name(&table, "processor", mistakes),
                cpu: (table.integer("cpu", 0, u64::from(u32::MAX), mistakes))
                    .and_then(|cpu| u32::try_from(cpu).ok()),
                priority: priority(&table, "priority", mistakes),
                threads: small(&table, "threads", mistakes),
                order: (table.word("order", &LaneOrder::NAMES, mistakes))
                    .map(|order| LaneOrder::ALL[order]),
            });
            table.finish(mistakes);
        }
        for table in top.tables("ceiling", mistakes) {
            lock.ceilings.push(LockCeiling {
                name: name(&table, "lock", mistakes),
                node: name(&table, "node", mistakes),
                priority: priority(&table, "priority", mistakes),
            });
            table.finish(mistakes);
        }
        for table in top.tables("operation", mistakes) {
            lock.operations.push(LockOperation::read(&table, mistakes));
            table.finish(mistakes);
        }
        for table in top.tables("activity", mistakes) {
            lock.activities.push(LockActivity {
                name: name(&table, "name", mistakes),
                node: name(&table, "node", mistakes),
                priority: priority(&table, "priority", mistakes),
                period: time(&table, "period_ns", mistakes),
                deadline: time(&table, "deadline_ns", mistakes),
                urgency: LockUrgency::read(&table, mistakes),
            });
            table.finish(mistakes);
        }
        for table in top.tables("class", mistakes) {
            lock.classes.push(LockClass {
                link: name(&table, "link", mistakes),
                priority: priority(&table, "priority", mistakes),
                period: time(&table, "period_ns", mistakes),
                messages: small(&table, "messages", mistakes),
                longest: time(&table, "longest_ns", mistakes),
            });
            table.finish(mistakes);
        }
        for table in top.tables("interface", mistakes) {
            lock.interfaces.push(LockInterface {
                link: name(&table, "link", mistakes),
                node: name(&table, "node", mistakes),
                name: name(&table, "name", mistakes),
                rate: time(&table, "rate", mistakes),
                mtu: small(&table, "mtu", mistakes),
                packet_cost: table.integer("packet_cost_ns", 1, u64::MAX, mistakes),
            });
            table.finish(mistakes);
        }
        for table in top.tables("reservation", mistakes) {
            lock.reservations.push(LockReservation {
                node: name(&table, "node", mistakes),
                priority: priority(&table, "priority", mistakes),
                messages: small(&table, "messages", mistakes),
                window: time(&table, "window_ns", mistakes),
                packets: small(&table, "packets", mistakes),
                longest: small(&table, "longest", mistakes),
            });
            table.finish(mistakes);
        }
        Some(lock)
    }
}

impl LockUrgency {
    fn read(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Self> {
        let execution = table.integer("execution_ns", 0, u64::MAX, mistakes);
        let mut byte = |key| {
            let number = table.integer(key, 0, 4, mistakes).unwrap_or(0);
            u8::try_from(number).unwrap_or(4)
        };
        let (criticality, importance) = (byte("criticality"), byte("importance"));
        Some(Self {
            execution: execution?,
            criticality,
            importance,
        })
    }
}

impl LockOperation {
    fn read(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Self {
        let byte = |key, mistakes: &mut Mistakes<'_>| {
            let number = required(table, key, 4, mistakes);
            u8::try_from(number).unwrap_or(4)
        };
        Self {
            name: name(table, "name", mistakes),
            interface: name(table, "interface", mistakes),
            operation: name(table, "operation", mistakes),
            node: name(table, "node", mistakes),
            lane: name(table, "lane", mistakes),
            priority: priority(table, "priority", mistakes),
            subpriority: small(table, "subpriority", mistakes),
            level: small(table, "level", mistakes),
            criticality: byte("criticality", mistakes),
            importance: byte("importance", mistakes),
            wcet: time(table, "wcet_ns", mistakes),
            period: table.integer("period_ns", 1, u64::MAX, mistakes),
            deadline: time(table, "deadline_ns", mistakes),
            response: time(table, "response_ns", mistakes),
        }
    }

    /// Returns the worst response as the analysis has it.
    pub const fn worst_response(&self) -> Response {
        match self.response {
            Time::MAX => Response::Unbounded,
            time => Response::Bounded(time),
        }
    }
}

fn name(table: &Table<'_, '_>, key: &'static str, mistakes: &mut Mistakes<'_>) -> String {
    let text = table.required_text(key, mistakes);
    text.map(|text| text.value).unwrap_or_default()
}

fn priority(table: &Table<'_, '_>, key: &'static str, mistakes: &mut Mistakes<'_>) -> i16 {
    let number = required(table, key, i16::MAX as u64, mistakes);
    i16::try_from(number).unwrap_or(i16::MAX)
}

fn small(table: &Table<'_, '_>, key: &'static str, mistakes: &mut Mistakes<'_>) -> u32 {
    let number = required(table, key, u64::from(u32::MAX), mistakes);
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn time(table: &Table<'_, '_>, key: &'static str, mistakes: &mut Mistakes<'_>) -> Time {
    required(table, key, u64::MAX, mistakes)
}

/// Takes a number from 0 to `most`, without which the table is a mistake.
fn required(
    table: &Table<'_, '_>,
    key: &'static str,
    most: u64,
    mistakes: &mut Mistakes<'_>,
) -> u64 {
    if table.take(key).is_none() {
        mistakes.add(&table.span(), format!("{key} is missing"));
        return 0;
    }
    table.integer(key, 0, most, mistakes).unwrap_or(0)
}
