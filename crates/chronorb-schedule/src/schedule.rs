//! The model of a schedule file.

pub use chronorb_sched::{LockProtocol, Time};

/// The declarations of a schedule file and of the files that it includes. Indices are valid in the
/// vectors of the same schedule, and all times are nanoseconds.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// The rules of the assignment.
    pub rules: Rules,
    /// The nodes: machines, or processes with processors of their own.
    pub nodes: Vec<Node>,
    /// The processors of all nodes.
    pub processors: Vec<Processor>,
    /// The links between nodes.
    pub links: Vec<Link>,
    /// The declared lanes.
    pub lanes: Vec<Lane>,
    /// The operations, in the order of the files.
    pub operations: Vec<Operation>,
    /// The declared transactions.
    pub transactions: Vec<DeclaredTransaction>,
    /// Remarks on the files, which are no mistakes.
    pub notes: Vec<String>,
    /// The digest of the text of all files, in hexadecimal: `siphash128:…`. It detects changes by
    /// mistake, and no forgery.
    pub digest: String,
}

/// The rules of the assignment, from the table `[scheduling]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// The rule of priorities.
    pub priorities: PriorityRule,
    /// The protocol of locks.
    pub locks: LockProtocol,
    /// The division of levels into lanes.
    pub lanes: LaneRule,
    /// The least CORBA priority that is handed out, from 1 on.
    pub least: i16,
    /// The greatest CORBA priority that is handed out.
    pub greatest: i16,
}

/// The rule by which levels get their lanes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LaneRule {
    /// Levels share lanes as long as all deadlines are met. The default.
    Fewest,
    /// Each level has a lane of its own.
    Own,
}

/// The rule by which operations get their priorities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PriorityRule {
    /// The shorter the deadline, the more urgent. The default, unless all operations declare one.
    DeadlineMonotonic,
    /// The shorter the period, the more urgent.
    RateMonotonic,
    /// By Audsley's algorithm on processors without transactions over several resources, and by
    /// deadline on others.
    Optimal,
    /// By deadline if all deadlines are met so; otherwise by local deadlines (HOPA). These are the
    /// parts of the deadline of a transaction that its steps get, and are adjusted until it fits.
    Holistic,
    /// As the operations or their lanes declare.
    Declared,
}

/// A node.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The name.
    pub name: String,
    /// The time that is added to each job, for dispatch and two context switches.
    pub overhead: Time,
}

/// A processor.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Processor {
    /// The name, which no other processor or link has.
    pub name: String,
    /// The index of the node.
    pub node: usize,
    /// The kernel's number of the processor.
    pub cpu: Option<u32>,
    /// The longest time for which work outside of the file delays a job.
    pub blocking: Time,
}

/// A link between nodes. It sends messages as packets, which are not preempted.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// The name, which no other processor or link has.
    pub name: String,
    /// The data rate in bits per second.
    pub rate: Option<u64>,
    /// Whether one of two nodes waits while the other one sends. More nodes always do.
    pub half_duplex: bool,
    /// The longest time for which traffic outside of the file delays a message.
    pub blocking: Time,
    /// The indices of the nodes that it connects; empty for all.
    pub nodes: Vec<usize>,
    /// The network interfaces for the real-time I/O subsystem, at most one of each node.
    pub interfaces: Vec<Interface>,
    /// The length of the longest packet in octets, including the IP header.
    pub mtu: u32,
    /// The maximum processor time of a packet.
    pub packet_cost: Option<Time>,
}

/// A network interface by which a node sends the messages of a link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Interface {
    /// The index of the node.
    pub node: usize,
    /// The name of the interface on that node.
    pub name: String,
}

/// A lane of a thread pool.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Lane {
    /// The name, which no other lane has.
    pub name: String,
    /// The index of the processor.
    pub processor: usize,
    /// The declared number of static threads; `None` for as many as it needs.
    pub threads: Option<u32>,
    /// The declared CORBA priority.
    pub priority: Option<i16>,
    /// The declared order of its waiting requests.
    pub order: Option<LaneOrder>,
}

/// The order in which the requests that wait in a lane are served. None interrupts another one.
///
/// The analysis takes all others of the lane for more urgent, which holds for every order. By
/// deadline it also knows that only one request with a later deadline can come before another one,
/// if no operation of the lane takes a lock or waits for a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LaneOrder {
    /// In the order of arrival.
    Fifo,
    /// By the earliest deadline.
    Deadline,
    /// By the least laxity.
    Laxity,
    /// By the greatest criticality, then the least laxity.
    Urgency,
}

impl LaneOrder {
    /// The names in files, in the order of [`ALL`](Self::ALL).
    pub(crate) const NAMES: [&str; 4] = ["fifo", "deadline", "laxity", "muf"];
    /// All orders.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Deadline, Self::Laxity, Self::Urgency];

    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// An operation of an interface, or a periodic activity of a client that is no operation.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// The name that the schedule uses: `Interface::operation`.
    pub name: String,
    /// The repository identifier of the interface: `IDL:Interface:1.0`.
    pub interface: String,
    /// The name on the wire.
    pub operation: String,
    /// The index of the processor that executes it.
    pub processor: usize,
    /// The index of the lane, if it is declared.
    pub lane: Option<usize>,
    /// The worst-case execution time of its own, without the overhead of the node.
    pub cost: Time,
    /// The best-case execution time of its own; zero if it is unknown.
    pub least: Time,
    /// The minimum time between arrivals that no operation of the schedule causes.
    pub period: Option<Time>,
    /// The deadline, from the arrival that starts its transaction.
    pub deadline: Option<Time>,
    /// The maximum delay of its release; zero without a period.
    pub jitter: Time,
    /// The longest time for which less urgent work delays it that takes no lock of the file.
    pub blocking: Time,
    /// The threads that execute it in turn, with a period and calls that it waits for.
    pub threads: u32,
    /// The criticality, from 0 to 4 (very high).
    pub criticality: u8,
    /// The importance, from 0 to 4 (very high).
    pub importance: u8,
    /// The declared CORBA priority.
    pub priority: Option<i16>,
    /// The locks that it takes, one after another.
    pub locks: Vec<LockUse>,
    /// The calls that it makes, in their order.
    pub calls: Vec<Call>,
    /// The longest message in octets, from `@rt::max_size`.
    pub max_size: Option<u64>,
}

/// A lock that an operation takes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LockUse {
    /// The name of the lock.
    pub lock: String,
    /// The longest time for which the operation holds it.
    pub time: Time,
}

/// Calls of one operation by another.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The index of the called operation.
    pub operation: usize,
    /// The number of calls, one after another.
    pub count: u32,
    /// Whether the caller does not wait.
    pub oneway: bool,
    /// The caller's execution time before each of these calls, since the call before it. If it is
    /// left out in all calls, the execution time is divided evenly.
    pub before: Option<Time>,
    /// The least execution time of the caller before each of these calls, of `before`; zero if it
    /// is unknown.
    pub least: Time,
    /// The message of the request and that of the reply, over a link.
    pub messages: Option<Messages>,
}

/// The messages of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Messages {
    /// The index of the link.
    pub link: usize,
    /// The request.
    pub request: MessageLength,
    /// The reply; `None` for a one-way call.
    pub reply: Option<MessageLength>,
}

/// The length of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageLength {
    /// The octets of the message, without the headers of its packets.
    Octets(u64),
    /// The time on the link, with the headers of all packets.
    Time(Time),
}

/// A transaction that is declared step by step.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeclaredTransaction {
    /// The name.
    pub name: String,
    /// The minimum time between two arrivals.
    pub period: Time,
    /// The deadline of its last step.
    pub deadline: Time,
    /// The maximum delay of its first release.
    pub jitter: Time,
    /// The declared CORBA priority of its messages, if it has no other steps.
    pub priority: Option<i16>,
    /// The steps in their order.
    pub steps: Vec<DeclaredStep>,
}

/// A step of a declared transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DeclaredStep {
    /// The execution of an operation, with the calls that it makes.
    Operation {
        /// The index of the operation.
        operation: usize,
    },
    /// A message on a link.
    Message {
        /// The index of the link.
        link: usize,
        /// The length.
        length: MessageLength,
    },
}

impl DeclaredTransaction {
    /// Whether it executes nothing, so that its messages have a priority of their own.
    pub fn has_only_messages(&self) -> bool {
        let is_message = |step: &DeclaredStep| matches!(step, DeclaredStep::Message { .. });
        self.steps.iter().all(is_message)
    }
}

impl Schedule {
    /// Returns the transactions of messages only, which have priorities of their own.
    pub fn message_transactions(&self) -> impl Iterator<Item = &DeclaredTransaction> {
        let all = self.transactions.iter();
        all.filter(|it| it.has_only_messages())
    }

    /// Returns the number of priorities of an assignment: one for each operation, and then one for
    /// each transaction of messages only.
    pub fn priority_count(&self) -> usize {
        self.operations.len() + self.message_transactions().count()
    }

    /// Returns the index of an operation by its name in the schedule.
    pub fn operation(&self, name: &str) -> Option<usize> {
        self.operations.iter().position(|it| it.name == name)
    }

    /// Returns the worst-case execution time of an operation with the overhead of its node;
    /// `None` if it exceeds 64 bits.
    pub fn cost_with_overhead(&self, operation: usize) -> Option<Time> {
        let operation = &self.operations[operation];
        let node = self.processors[operation.processor].node;
        operation.cost.checked_add(self.nodes[node].overhead)
    }
}
