//! The reader of schedule files.

use std::collections::HashMap;
use std::hash::Hasher;
use std::ops::Range;

use siphasher::sip128::{Hasher128, SipHasher13};
use toml::de::{DeTable, DeValue};

use crate::checks;
use crate::error::{FileError, Mistakes, ScheduleErrors};
use crate::operations::{RawOperation, merge, read_operations};
use crate::schedule::{
    Call, DeclaredStep, DeclaredTransaction, Interface, Lane, LaneOrder, LaneRule, Link,
    LockProtocol, MessageLength, Messages, Node, Operation, PriorityRule, Processor, Rules,
    Schedule,
};
use crate::table::{Table, Value, WithSpan, text, unknown};
use crate::values::{Location, MAX_PRIORITY, MAX_THREADS, corba_priority};
use crate::wire::Wire;

impl Schedule {
    /// Parses a schedule file. `read` returns the text of a file that it includes, by the name as
    /// it is written there, or the reason why it cannot be read.
    ///
    /// # Errors
    /// [`ScheduleErrors`], all mistakes of the files with their lines.
    ///
    /// # Example
    /// ```
    /// use chronorb_schedule::Schedule;
    ///
    /// let text = r#"
    ///     [[operation]]
    ///     name = "Nav::update"
    ///     wcet = "2 ms"
    ///     period = "20 Hz"
    /// "#;
    /// let schedule = Schedule::parse("nav.toml", text, &mut |_| Err("not here".into()))?;
    /// assert_eq!(schedule.operations[0].period, Some(50_000_000));
    /// # Ok::<(), chronorb_schedule::ScheduleErrors>(())
    /// ```
    pub fn parse(
        file: &str,
        text: &str,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, ScheduleErrors> {
        let mut mistakes = Mistakes::new(file, text);
        let mut digest = SipHasher13::new();
        add_to_digest(&mut digest, text);
        if text.len() > MAX_TEXT {
            mistakes.add(&(0..0), format!("the file has more than {MAX_TEXT} octets"));
            return Err(ScheduleErrors(mistakes.into_errors()));
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            mistakes.add(&error.span().unwrap_or(0..0), error.message());
        }
        if !errors.is_empty() {
            return Err(ScheduleErrors(mistakes.into_errors()));
        }
        let top = Table::new(table.get_ref(), 0..0);
        top.integer("version", 1, 1, &mut mistakes);
        let includes = read_includes(&top, read, &mut digest, &mut mistakes);
        let (operations, notes) = all_operations(&top, &includes, &mut mistakes);
        let digest = digest.finish128();
        let reader = Reader {
            operations,
            mistakes,
            schedule: Self {
                rules: Rules {
                    priorities: PriorityRule::DeadlineMonotonic,
                    locks: LockProtocol::Inheritance,
                    lanes: LaneRule::Fewest,
                    least: 1,
                    greatest: GREATEST_USUAL,
                },
                nodes: Vec::new(),
                processors: Vec::new(),
                links: Vec::new(),
                lanes: Vec::new(),
                operations: Vec::new(),
                transactions: Vec::new(),
                notes,
                digest: format!("siphash128:{:016x}{:016x}", digest.h1, digest.h2),
            },
        };
        reader.read(top)
    }
}

/// The greatest CORBA priority that is handed out by default: it is below the kernel's threads of
/// interrupts with the linear mapping.
const GREATEST_USUAL: i16 = 16_383;
/// The octets of a schedule file, and of each that it includes, at most: 16 MiB.
pub const MAX_TEXT: usize = 16 << 20;
/// The declarations of one kind, at most.
const MAX_ITEMS: usize = 20_000;

fn add_to_digest(digest: &mut SipHasher13, text: &str) {
    digest.write_u64(text.len() as u64);
    digest.write(text.as_bytes());
}

/// Reads the included files. Their mistakes are those of the file that includes them.
fn read_includes(
    top: &Table<'_, '_>,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    digest: &mut SipHasher13,
    mistakes: &mut Mistakes<'_>,
) -> Vec<(String, String)> {
    let mut includes = Vec::new();
    for value in top.array("include") {
        let Some(name) = text(value, "include has to be names of files", mistakes) else {
            continue;
        };
        match read(&name.value) {
            Ok(text) if text.len() > MAX_TEXT => {
                mistakes.add(&name.span, format!("{} is too long", name.value));
            }
            Ok(text) => {
                add_to_digest(digest, &text);
                includes.push((name.value, text));
            }
            Err(problem) => {
                mistakes.add(
                    &name.span,
                    format!("{} cannot be read: {problem}", name.value),
                );
            }
        }
    }
    includes
}

/// Returns the operations of all files.
fn all_operations(
    top: &Table<'_, '_>,
    includes: &[(String, String)],
    mistakes: &mut Mistakes<'_>,
) -> (Vec<RawOperation>, Vec<String>) {
    let mut operations = read_operations(top, None, mistakes);
    let mut notes = Vec::new();
    for (file, text) in includes {
        let mut own = Mistakes::new(file, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            own.add(&error.span().unwrap_or(0..0), error.message());
        }
        if errors.is_empty() {
            let top = Table::new(table.get_ref(), 0..0);
            let included = read_operations(&top, Some(file), &mut own);
            top.finish(&mut own);
            merge(&mut operations, included, &mut own);
        }
        mistakes.append(own.into_errors());
    }
    operations.retain(|operation| {
        // The compiler lists what is annotated; not all of that is part of each system.
        let is_complete = operation.origin.is_none() || operation.cost.is_some();
        if !is_complete {
            notes.push(format!("{} is left out: it has no wcet", operation.name));
        }
        is_complete
    });
    (operations, notes)
}

struct Reader<'a> {
    operations: Vec<RawOperation>,
    mistakes: Mistakes<'a>,
    schedule: Schedule,
}

impl Reader<'_> {
    fn read(mut self, top: Table<'_, '_>) -> Result<Schedule, ScheduleErrors> {
        let rule = self.read_rules(&top);
        self.read_nodes(&top);
        self.read_processors(&top);
        self.read_links(&top);
        self.read_lanes(&top);
        self.read_all_operations();
        self.read_transactions(&top);
        top.finish(&mut self.mistakes);
        self.check_priorities(rule);
        // References are complete only without mistakes.
        if self.mistakes.is_empty() {
            self.check_arrivals();
        }
        if self.mistakes.is_empty() {
            Ok(self.schedule)
        } else {
            Err(ScheduleErrors(self.mistakes.into_errors()))
        }
    }

    /// Reads `[scheduling]`. Returns the rule if it is given, with its place.
    fn read_rules(&mut self, top: &Table<'_, '_>) -> Option<(PriorityRule, Range<usize>)> {
        let mistakes = &mut self.mistakes;
        let table = Table::of(top.take("scheduling")?, mistakes)?;
        let rules = &mut self.schedule.rules;
        let words = [
            "deadline-monotonic",
            "rate-monotonic",
            "optimal",
            "holistic",
            "declared",
        ];
        let all = [
            PriorityRule::DeadlineMonotonic,
            PriorityRule::RateMonotonic,
            PriorityRule::Optimal,
            PriorityRule::Holistic,
            PriorityRule::Declared,
        ];
        let rule = table.word("priorities", &words, mistakes);
        let rule = rule.map(|number| all[number]);
        if let Some(1) = table.word("locks", &["inheritance", "ceiling"], mistakes) {
            rules.locks = LockProtocol::Ceiling;
        }
        if let Some(1) = table.word("lanes", &["fewest", "own"], mistakes) {
            rules.lanes = LaneRule::Own;
        }
        let least = table.integer("least", 1, MAX_PRIORITY, mistakes);
        let greatest = table.integer("greatest", 1, MAX_PRIORITY, mistakes);
        rules.least = least.map_or(rules.least, corba_priority);
        rules.greatest = greatest.map_or(rules.greatest, corba_priority);
        if rules.least > rules.greatest {
            let problem = format!(
                "the least priority, {}, is above the greatest one, {}",
                rules.least, rules.greatest
            );
            mistakes.add(&table.span(), problem);
        }
        let span = table.span();
        table.finish(mistakes);
        if let Some(rule) = rule {
            rules.priorities = rule;
        }
        rule.map(|rule| (rule, span))
    }

    fn read_nodes(&mut self, top: &Table<'_, '_>) {
        let mut names = HashMap::new();
        for table in self.tables(top, "node") {
            let mistakes = &mut self.mistakes;
            let name = table.required_text("name", mistakes);
            let overhead = table.time("overhead", mistakes).unwrap_or(0);
            table.finish(mistakes);
            let Some(name) = name else { continue };
            if is_new(&mut names, "node", &name, mistakes) {
                self.schedule.nodes.push(Node {
                    name: name.value,
                    overhead,
                });
            }
        }
        if self.schedule.nodes.is_empty() {
            self.schedule.nodes.push(Node {
                name: "local".to_owned(),
                overhead: 0,
            });
        }
    }

    fn read_processors(&mut self, top: &Table<'_, '_>) {
        let mut names = HashMap::new();
        for table in self.tables(top, "processor") {
            let name = table.required_text("name", &mut self.mistakes);
            let node = self.node_of(&table);
            let mistakes = &mut self.mistakes;
            let cpu = table.integer("cpu", 0, u64::from(u32::MAX), mistakes);
            let blocking = table.time("blocking", mistakes).unwrap_or(0);
            table.finish(mistakes);
            let (Some(name), Some(node)) = (name, node) else {
                continue;
            };
            if is_new(&mut names, "processor", &name, mistakes) {
                self.schedule.processors.push(Processor {
                    name: name.value,
                    node,
                    cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
                    blocking,
                });
            }
        }
        // A node without processors of its own has one.
        for (node, it) in self.schedule.nodes.iter().enumerate() {
            let mut processors = self.schedule.processors.iter();
            if !processors.any(|processor| processor.node == node) {
                if names.contains_key(&it.name) {
                    let problem = format!(
                        "the node {} has no processor, and one of another node has its name",
                        it.name
                    );
                    self.mistakes.add(&(0..0), problem);
                }
                self.schedule.processors.push(Processor {
                    name: it.name.clone(),
                    node,
                    cpu: None,
                    blocking: 0,
                });
            }
        }
    }

    fn read_links(&mut self, top: &Table<'_, '_>) {
        let processors = self.schedule.processors.iter();
        let mut names: HashMap<_, _> = processors.map(|it| (it.name.clone(), ())).collect();
        for table in self.tables(top, "link") {
            let name = table.required_text("name", &mut self.mistakes);
            let rate = table.rate("rate", &mut self.mistakes);
            let blocking = table.time("blocking", &mut self.mistakes).unwrap_or(0);
            let duplex = table.word("duplex", &["full", "half"], &mut self.mistakes);
            let mut nodes = Vec::new();
            for value in table.array("nodes") {
                let problem = "nodes has to be names of nodes";
                if let Some(node) = text(value, problem, &mut self.mistakes) {
                    nodes.extend(self.find_node(&node));
                }
            }
            let wire = Wire::take(&table, rate.is_some(), &mut self.mistakes);
            table.finish(&mut self.mistakes);
            let Some(name) = name else { continue };
            let interfaces = self.interfaces(&wire, &name, rate, &nodes);
            if is_new(&mut names, "processor or link", &name, &mut self.mistakes) {
                self.schedule.links.push(Link {
                    name: name.value,
                    rate,
                    half_duplex: duplex == Some(1),
                    blocking,
                    nodes,
                    interfaces,
                    mtu: wire.mtu,
                    packet_cost: wire.packet_cost,
                });
            }
        }
    }

    /// Finds the nodes of a link's interfaces. A node has the interface of one link at most, since
    /// an ORB has one plan of real-time I/O.
    fn interfaces(
        &mut self,
        wire: &Wire,
        link: &WithSpan<String>,
        rate: Option<u64>,
        nodes: &[usize],
    ) -> Vec<Interface> {
        if wire.has_interface() && rate.is_none() {
            let problem = format!("the link {} has an interface, and no rate", link.value);
            self.mistakes.add(&link.span, problem);
        }
        let connected: Vec<_> = match nodes {
            [] => (0..self.schedule.nodes.len()).collect(),
            nodes => nodes.to_vec(),
        };
        let mut interfaces = Vec::new();
        for (node, name) in &wire.interfaces {
            let of = match node {
                None => connected.clone(),
                Some(node) => self.find_node(node).into_iter().collect(),
            };
            for node in of {
                let its_name = &self.schedule.nodes[node].name;
                let mut others = self.schedule.links.iter();
                let other = others.find(|it| it.interfaces.iter().any(|it| it.node == node));
                if let Some(other) = other {
                    let problem = format!(
                        "the node {its_name} has an interface of the link {} already",
                        other.name
                    );
                    self.mistakes.add(&name.span, problem);
                } else if !connected.contains(&node) {
                    let problem = format!("the link {} does not connect {its_name}", link.value);
                    self.mistakes.add(&name.span, problem);
                }
                let name = name.value.clone();
                interfaces.push(Interface { node, name });
            }
        }
        interfaces
    }

    fn read_lanes(&mut self, top: &Table<'_, '_>) {
        let mut names = HashMap::new();
        for table in self.tables(top, "lane") {
            let name = table.required_text("name", &mut self.mistakes);
            let place = Location::take(&table, &mut self.mistakes);
            let processor = self.processor_of(&place, &table.span());
            let mistakes = &mut self.mistakes;
            let threads = table.integer("threads", 1, MAX_THREADS, mistakes);
            let priority = table.integer("priority", 0, MAX_PRIORITY, mistakes);
            let order = table.word("order", &LaneOrder::NAMES, mistakes);
            table.finish(mistakes);
            let (Some(name), Some(processor)) = (name, processor) else {
                continue;
            };
            if is_new(&mut names, "lane", &name, mistakes) {
                self.schedule.lanes.push(Lane {
                    name: name.value,
                    processor,
                    threads: threads.and_then(|it| u32::try_from(it).ok()),
                    priority: priority.map(corba_priority),
                    order: order.map(|order| LaneOrder::ALL[order]),
                });
            }
        }
    }

    fn read_all_operations(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        if operations.len() > MAX_ITEMS {
            let problem = format!("there are more than {MAX_ITEMS} operations");
            self.mistakes.add(&(0..0), problem);
            return;
        }
        let mut numbers = HashMap::new();
        for (number, operation) in operations.iter().enumerate() {
            if numbers.insert(operation.name.as_str(), number).is_some() {
                let problem = format!("there is another operation {}", operation.name);
                self.report(operation, &operation.span, problem);
            }
        }
        for raw in &operations {
            let span = &raw.span;
            let lane = match &raw.lane {
                None => None,
                Some(name) => {
                    let lanes = &self.schedule.lanes;
                    let lane = lanes.iter().position(|lane| lane.name == name.value);
                    if lane.is_none() {
                        let names = lanes.iter().map(|lane| lane.name.as_str());
                        let problem = unknown("lane", &name.value, names);
                        self.report(raw, &name.span, problem);
                    }
                    lane
                }
            };
            let processor = match lane {
                Some(lane) if raw.location.is_empty() => Some(self.schedule.lanes[lane].processor),
                None if raw.lane.is_some() && raw.location.is_empty() => None,
                _ => self.processor_of(&raw.location, span),
            };
            if let (Some(lane), Some(processor)) = (lane, processor) {
                let own = self.schedule.lanes[lane].processor;
                if own != processor {
                    let problem = format!(
                        "{} is on processor {}, and its lane {} on {}",
                        raw.name,
                        self.schedule.processors[processor].name,
                        self.schedule.lanes[lane].name,
                        self.schedule.processors[own].name
                    );
                    self.mistakes.add(span, problem);
                }
            }
            if raw.cost.is_none() && !raw.has_bad_cost {
                let problem = format!("{}: wcet, the execution time, is missing", raw.name);
                self.report(raw, span, problem);
            }
            let calls = raw.calls.iter().filter_map(|call| {
                let Some(called) = numbers.get(call.operation.value.as_str()) else {
                    let names = operations.iter().map(|it| it.name.as_str());
                    let problem = unknown("operation", &call.operation.value, names);
                    self.mistakes.add(&call.operation.span, problem);
                    return None;
                };
                Some((call, *called))
            });
            let calls: Vec<_> = calls.collect();
            let calls = calls.into_iter().map(|(call, called)| Call {
                operation: called,
                count: call.count,
                oneway: call.oneway,
                before: call.before,
                least: call.least.as_ref().map_or(0, |least| least.value),
                messages: None,
            });
            let calls = calls.collect();
            let operation = Operation {
                name: raw.name.clone(),
                interface: raw.interface.clone(),
                operation: raw.operation.clone(),
                processor: processor.unwrap_or(0),
                lane,
                cost: raw.cost.unwrap_or(1),
                least: raw.least.as_ref().map_or(0, |least| least.value),
                period: raw.period,
                deadline: raw.deadline,
                jitter: raw.jitter.unwrap_or(0),
                blocking: raw.blocking.unwrap_or(0),
                threads: raw.threads.unwrap_or(1),
                criticality: raw.criticality.unwrap_or(0),
                importance: raw.importance.unwrap_or(0),
                priority: raw.priority,
                locks: raw.locks.clone(),
                calls,
                max_size: raw.max_size,
            };
            checks::check_times(raw, &mut self.mistakes, &mut self.schedule.notes);
            let processor = &self.schedule.processors[operation.processor];
            checks::check_use(raw, &operation, processor, &mut self.mistakes);
            self.schedule.operations.push(operation);
        }
        if self.mistakes.is_empty() {
            self.check_locks(&operations);
            self.read_messages(&operations);
        }
    }

    /// Refuses locks of several processors by inheritance.
    fn check_locks(&mut self, operations: &[RawOperation]) {
        if self.schedule.rules.locks == LockProtocol::Ceiling {
            return;
        }
        let processors = &self.schedule.processors;
        let mut first = HashMap::new();
        for (raw, it) in operations.iter().zip(&self.schedule.operations) {
            let own = &processors[it.processor];
            for used in &it.locks {
                let other = *first
                    .entry((own.node, used.lock.as_str()))
                    .or_insert(it.processor);
                if other != it.processor {
                    let between = (own, &processors[other]);
                    checks::refuse_shared_lock(raw, &used.lock, between, &mut self.mistakes);
                }
            }
        }
    }

    /// Finds the link and the messages of each call between nodes.
    fn read_messages(&mut self, operations: &[RawOperation]) {
        for (caller, raw) in operations.iter().enumerate() {
            for (number, call) in raw.calls.iter().enumerate() {
                let called = self.schedule.operations[caller].calls[number].operation;
                let from = self.node_of_operation(caller);
                let to = self.node_of_operation(called);
                let given = call.link.is_some() || call.request.is_some() || call.reply.is_some();
                if from == to && !given {
                    continue;
                }
                if call.link.is_none() && self.schedule.links.is_empty() && !given {
                    let note = format!(
                        "{} calls {} on another node, and no link is declared: its messages take \
                         no time",
                        raw.name, self.schedule.operations[called].name
                    );
                    self.schedule.notes.push(note);
                    continue;
                }
                let span = &call.operation.span;
                let Some(link) = self.link_between(call.link.as_ref(), from, to, span) else {
                    continue;
                };
                let size = self.schedule.operations[called].max_size;
                let request = self.message(link, call.request.as_ref(), size, "request", span);
                let reply = if call.oneway {
                    if let Some(reply) = &call.reply {
                        self.mistakes
                            .add(&reply.span, "a one-way call has no reply");
                    }
                    Some(None)
                } else {
                    let reply = self.message(link, call.reply.as_ref(), size, "reply", span);
                    reply.map(Some)
                };
                if let (Some(request), Some(reply)) = (request, reply) {
                    let call = &mut self.schedule.operations[caller].calls[number];
                    call.messages = Some(Messages {
                        link,
                        request,
                        reply,
                    });
                }
            }
        }
    }

    fn link_between(
        &mut self,
        name: Option<&WithSpan<String>>,
        from: usize,
        to: usize,
        span: &Range<usize>,
    ) -> Option<usize> {
        let links = &self.schedule.links;
        if let Some(name) = name {
            let link = links.iter().position(|link| link.name == name.value);
            if link.is_none() {
                let names = links.iter().map(|link| link.name.as_str());
                let problem = unknown("link", &name.value, names);
                self.mistakes.add(&name.span, problem);
            }
            return link;
        }
        let connects = |link: &Link| {
            link.nodes.is_empty() || (link.nodes.contains(&from) && link.nodes.contains(&to))
        };
        let mut fitting = (0..links.len()).filter(|link| connects(&links[*link]));
        match (fitting.next(), fitting.next()) {
            (Some(link), None) => Some(link),
            (first, _) => {
                let (from, to) = (
                    &self.schedule.nodes[from].name,
                    &self.schedule.nodes[to].name,
                );
                let count = if first.is_none() {
                    "no link"
                } else {
                    "several links"
                };
                let problem = format!("{count} between {from} and {to}: give one by link = \"…\"");
                self.mistakes.add(span, problem);
                None
            }
        }
    }

    /// Returns the length of a message: as it is given, or the longest one of the operation.
    fn message(
        &mut self,
        link: usize,
        given: Option<&WithSpan<MessageLength>>,
        max_size: Option<u64>,
        key: &str,
        span: &Range<usize>,
    ) -> Option<MessageLength> {
        let link = &self.schedule.links[link];
        let length = given.map(|given| given.value);
        let length = length.or_else(|| max_size.map(MessageLength::Octets));
        let span = given.map_or(span, |given| &given.span);
        let problem = match length {
            None => format!(
                "the {key} has no length: give {key} = 512 (octets), or its time, {key} = \"40 us\""
            ),
            Some(length) if link.transmission(length).is_some() => return Some(length),
            Some(_) if link.rate.is_none() => format!(
                "the link {} has no rate: give it one, or the message its time, {key} = \"40 us\"",
                link.name
            ),
            Some(_) => format!("the {key} takes more than 64 bits of nanoseconds"),
        };
        self.mistakes.add(span, problem);
        None
    }

    fn read_transactions(&mut self, top: &Table<'_, '_>) {
        let mut names = HashMap::new();
        for table in self.tables(top, "transaction") {
            let span = table.span();
            let mistakes = &mut self.mistakes;
            let name = table.required_text("name", mistakes);
            let period = table.period("period", mistakes);
            let deadline = table.positive_time("deadline", mistakes);
            let jitter = table.time("jitter", mistakes).unwrap_or(0);
            let priority = table.integer("priority", 0, MAX_PRIORITY, mistakes);
            if period.is_none() && table.take("period").is_none() {
                mistakes.add(&span, "period is missing");
            }
            let steps = table.array("steps");
            if steps.is_empty() {
                mistakes.add(&span, "steps is missing, or empty");
            }
            let steps: Vec<_> = steps.into_iter().map(|step| self.step(step)).collect();
            table.finish(&mut self.mistakes);
            let (Some(name), Some(period)) = (name, period) else {
                continue;
            };
            let known = self.schedule.operation(&name.value).is_some();
            if known {
                let problem = format!("an operation has the name {}", name.value);
                self.mistakes.add(&name.span, problem);
            }
            if is_new(&mut names, "transaction", &name, &mut self.mistakes) {
                let transaction = DeclaredTransaction {
                    name: name.value,
                    period,
                    deadline: deadline.unwrap_or(period),
                    jitter,
                    priority: priority.map(corba_priority),
                    steps: steps.into_iter().flatten().collect(),
                };
                if priority.is_some() && !transaction.has_only_messages() {
                    let problem = format!(
                        "{}: priority is for a transaction of messages only: others have the \
                         priorities of their operations",
                        transaction.name
                    );
                    self.mistakes.add(&span, problem);
                }
                self.schedule.transactions.push(transaction);
            }
        }
    }

    fn step(&mut self, value: &Value<'_>) -> Option<DeclaredStep> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            let problem = "a step is the name of an operation, or a table with link";
            let name = text(value, problem, &mut self.mistakes)?;
            let operation = self.schedule.operation(&name.value);
            if operation.is_none() {
                let names = self.schedule.operations.iter().map(|it| it.name.as_str());
                let problem = unknown("operation", &name.value, names);
                self.mistakes.add(&name.span, problem);
            }
            return operation.map(|operation| DeclaredStep::Operation { operation });
        }
        let table = Table::of(value, &mut self.mistakes)?;
        let span = table.span();
        let name = table.required_text("link", &mut self.mistakes);
        let length = MessageLength::take(&table, "message", &mut self.mistakes);
        table.finish(&mut self.mistakes);
        let link = self.link_between(Some(&name?), 0, 0, &span)?;
        let length = self.message(link, length.as_ref(), None, "message", &span)?;
        Some(DeclaredStep::Message { link, length })
    }

    /// Checks the priorities against their rule, which by default follows what is declared.
    fn check_priorities(&mut self, rule: Option<(PriorityRule, Range<usize>)>) {
        let schedule = &mut self.schedule;
        let lanes = &schedule.lanes;
        let declared = |operation: &Operation| {
            let of_lane = operation.lane.and_then(|lane| lanes[lane].priority);
            operation.priority.or(of_lane)
        };
        let operations = schedule.operations.iter();
        let operations = operations.map(|it| (&it.name, declared(it), true));
        let of_messages = schedule.message_transactions();
        let of_messages = of_messages.map(|it| (&it.name, it.priority, false));
        let all: Vec<_> = operations.chain(of_messages).collect();
        let missing = all.iter().find(|(_, priority, _)| priority.is_none());
        let missing = missing.map(|(name, _, is_operation)| {
            if *is_operation {
                format!("priorities are declared, and neither {name} nor its lane has one")
            } else {
                format!("priorities are declared, and the messages of {name} have none")
            }
        });
        let some = all.iter().any(|(_, priority, _)| priority.is_some());
        let (rule, span) = match rule {
            Some(rule) => rule,
            None if missing.is_none() && some => (PriorityRule::Declared, 0..0),
            None => (PriorityRule::DeadlineMonotonic, 0..0),
        };
        schedule.rules.priorities = rule;
        match (rule, missing) {
            (PriorityRule::Declared, Some(problem)) => self.mistakes.add(&span, problem),
            (PriorityRule::Declared, None) => {}
            (_, _) if some => schedule.notes.push(
                "declared priorities have no effect: priorities = \"declared\" uses them"
                    .to_owned(),
            ),
            (_, _) => {}
        }
    }

    /// Checks that each operation has arrivals: a period, a caller, or a transaction.
    fn check_arrivals(&mut self) {
        let schedule = &self.schedule;
        let mut arrives: Vec<_> = schedule
            .operations
            .iter()
            .map(|it| it.period.is_some())
            .collect();
        for transaction in &schedule.transactions {
            for step in &transaction.steps {
                if let DeclaredStep::Operation { operation } = step {
                    arrives[*operation] = true;
                }
            }
        }
        let calls = schedule.operations.iter().flat_map(|it| &it.calls);
        for call in calls {
            arrives[call.operation] = true;
        }
        let without = (0..arrives.len()).filter(|number| !arrives[*number]);
        let without: Vec<_> = without
            .map(|it| schedule.operations[it].name.clone())
            .collect();
        for name in without {
            let problem = format!(
                "{name} never arrives: give it a period, or an operation or a transaction that \
                 calls it"
            );
            self.mistakes.add(&(0..0), problem);
        }
    }

    fn tables<'a, 't>(&mut self, top: &Table<'a, 't>, key: &'static str) -> Vec<Table<'a, 't>> {
        let mut tables = top.tables(key, &mut self.mistakes);
        if tables.len() > MAX_ITEMS {
            let problem = format!("there are more than {MAX_ITEMS} tables {key}");
            self.mistakes.add(&tables[MAX_ITEMS].span(), problem);
            tables.truncate(MAX_ITEMS);
        }
        tables
    }

    fn node_of(&mut self, table: &Table<'_, '_>) -> Option<usize> {
        if let Some(name) = table.text("node", &mut self.mistakes) {
            return self.find_node(&name);
        }
        if self.schedule.nodes.len() > 1 {
            self.mistakes.add(
                &table.span(),
                "node is missing, and there are several nodes",
            );
            return None;
        }
        Some(0)
    }

    fn find_node(&mut self, name: &WithSpan<String>) -> Option<usize> {
        let nodes = &self.schedule.nodes;
        let node = nodes.iter().position(|node| node.name == name.value);
        if node.is_none() {
            let names = nodes.iter().map(|node| node.name.as_str());
            let problem = unknown("node", &name.value, names);
            self.mistakes.add(&name.span, problem);
        }
        node
    }

    /// Returns the processor of a lane or an operation. It can be left out if there is only one.
    fn processor_of(&mut self, location: &Location, span: &Range<usize>) -> Option<usize> {
        let node = match &location.node {
            Some(name) => Some(self.find_node(name)?),
            None => None,
        };
        let processors = &self.schedule.processors;
        if let Some(name) = &location.processor {
            let found = processors.iter().position(|it| it.name == name.value);
            let problem = match found {
                None => {
                    let names = processors.iter().map(|it| it.name.as_str());
                    unknown("processor", &name.value, names)
                }
                Some(it) if node.is_some_and(|node| node != processors[it].node) => {
                    format!("the processor {} is of another node", name.value)
                }
                Some(it) => return Some(it),
            };
            self.mistakes.add(&name.span, problem);
            return None;
        }
        let mut fitting =
            (0..processors.len()).filter(|it| node.is_none_or(|node| processors[*it].node == node));
        let (first, second) = (fitting.next(), fitting.next());
        if second.is_some() {
            let problem = "processor (or lane, or node) is missing, and there are several";
            self.mistakes.add(span, problem);
            return None;
        }
        first
    }

    fn node_of_operation(&self, operation: usize) -> usize {
        let operation = &self.schedule.operations[operation];
        self.schedule.processors[operation.processor].node
    }

    /// Reports a mistake of an operation, which may be in an included file.
    fn report(&mut self, raw: &RawOperation, span: &Range<usize>, problem: String) {
        match &raw.origin {
            None => self.mistakes.add(span, problem),
            Some(file) => self.mistakes.append(vec![FileError {
                file: file.clone(),
                line: raw.line,
                column: 1,
                problem,
            }]),
        }
    }
}

/// Whether a name is new; a second one is a mistake.
fn is_new(
    names: &mut HashMap<String, ()>,
    kind: &str,
    name: &WithSpan<String>,
    mistakes: &mut Mistakes<'_>,
) -> bool {
    let is_new = names.insert(name.value.clone(), ()).is_none();
    if !is_new {
        let problem = format!("there is another {kind} {}", name.value);
        mistakes.add(&name.span, problem);
    }
    is_new
}
