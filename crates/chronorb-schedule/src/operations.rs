//! Operations as the files declare them, and the lists that the IDL compiler writes.

use std::collections::HashMap;
use std::ops::Range;

use chronorb_sched::Time;
use toml::de::DeValue;

use crate::error::Mistakes;
use crate::schedule::{LockUse, MessageLength};
use crate::table::{Table, Value, WithSpan, parsed, text};
use crate::units::{A_TIME, parse_time};
use crate::values::{Location, MAX_PRIORITY, MAX_THREADS, corba_priority};

/// An operation before its references are resolved.
#[derive(Clone, Debug)]
pub(crate) struct RawOperation {
    pub(crate) name: String,
    pub(crate) interface: String,
    pub(crate) operation: String,
    /// The included file; `None` for the schedule file.
    pub(crate) origin: Option<String>,
    pub(crate) line: usize,
    pub(crate) span: Range<usize>,
    pub(crate) location: Location,
    pub(crate) lane: Option<WithSpan<String>>,
    pub(crate) cost: Option<Time>,
    /// Whether a cost is given, and is a mistake.
    pub(crate) has_bad_cost: bool,
    pub(crate) least: Option<WithSpan<Time>>,
    pub(crate) period: Option<Time>,
    pub(crate) deadline: Option<Time>,
    pub(crate) jitter: Option<Time>,
    pub(crate) blocking: Option<Time>,
    pub(crate) threads: Option<u32>,
    pub(crate) criticality: Option<u8>,
    pub(crate) importance: Option<u8>,
    pub(crate) priority: Option<i16>,
    pub(crate) locks: Vec<LockUse>,
    pub(crate) calls: Vec<RawCall>,
    pub(crate) max_size: Option<u64>,
    /// Whether the interface is given by its repository identifier.
    has_identifier: bool,
}

/// A call before its references are resolved.
#[derive(Clone, Debug)]
pub(crate) struct RawCall {
    pub(crate) operation: WithSpan<String>,
    pub(crate) count: u32,
    pub(crate) oneway: bool,
    pub(crate) before: Option<Time>,
    pub(crate) least: Option<WithSpan<Time>>,
    pub(crate) link: Option<WithSpan<String>>,
    pub(crate) request: Option<WithSpan<MessageLength>>,
    pub(crate) reply: Option<WithSpan<MessageLength>>,
}

/// Reads the operations of a file; `origin` is the name of an included one.
pub(crate) fn read_operations(
    top: &Table<'_, '_>,
    origin: Option<&str>,
    mistakes: &mut Mistakes<'_>,
) -> Vec<RawOperation> {
    let mut names = HashMap::new();
    let mut operations = Vec::new();
    for table in top.tables("operation", mistakes) {
        let span = table.span();
        let Some(operation) = read_operation(table, origin, mistakes) else {
            continue;
        };
        if names.insert(operation.name.clone(), ()).is_some() {
            mistakes.add(
                &span,
                format!("there is another operation {}", operation.name),
            );
        } else {
            operations.push(operation);
        }
    }
    operations
}

/// Adds the operations of an included file. The schedule file's own values come first.
pub(crate) fn merge(
    operations: &mut Vec<RawOperation>,
    included: Vec<RawOperation>,
    mistakes: &mut Mistakes<'_>,
) {
    let own = operations.len();
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, operation) in operations.iter().enumerate() {
        by_name
            .entry(operation.operation.clone())
            .or_default()
            .push(number);
    }
    for operation in included {
        let named = by_name.get(&operation.operation);
        let same = |number: &&usize| operations[**number].is_same(&operation);
        let found = named.and_then(|numbers| numbers.iter().find(same)).copied();
        match found {
            Some(number) if number < own && !operations[number].has_include() => {
                operations[number].complete(operation);
            }
            Some(number) => {
                let name = operations[number].name.clone();
                mistakes.add(
                    &operation.span,
                    format!("there is another operation {name}"),
                );
            }
            None => {
                let numbers = by_name.entry(operation.operation.clone()).or_default();
                numbers.push(operations.len());
                operations.push(operation);
            }
        }
    }
}

impl RawOperation {
    /// Whether an operation of an included file is this one.
    fn is_same(&self, included: &Self) -> bool {
        if self.operation != included.operation {
            return false;
        }
        if self.has_identifier {
            return self.interface == included.interface;
        }
        // A name without the prefix of its repository identifier.
        let own = scopes(&self.interface);
        let other = scopes(&included.interface);
        other == own
            || other
                .strip_suffix(own)
                .is_some_and(|rest| rest.ends_with('/'))
    }

    const fn has_include(&self) -> bool {
        self.has_identifier
    }

    fn complete(&mut self, included: Self) {
        self.interface = included.interface;
        self.has_identifier = true;
        self.lane = self.lane.take().or(included.lane);
        self.cost = self.cost.or(included.cost);
        self.has_bad_cost |= included.has_bad_cost;
        self.period = self.period.or(included.period);
        self.deadline = self.deadline.or(included.deadline);
        self.priority = self.priority.or(included.priority);
        self.max_size = self.max_size.or(included.max_size);
    }
}

/// Returns `prefix/A/B` of `IDL:prefix/A/B:1.0`.
fn scopes(identifier: &str) -> &str {
    let path = identifier.strip_prefix("IDL:").unwrap_or(identifier);
    path.rsplit_once(':').map_or(path, |(path, _)| path)
}

fn read_operation(
    table: Table<'_, '_>,
    origin: Option<&str>,
    mistakes: &mut Mistakes<'_>,
) -> Option<RawOperation> {
    let span = table.span();
    let identity = Identity::take(&table, mistakes);
    let included = origin.is_some();
    let gives_cost = table.take("wcet").is_some();
    let cost = table.positive_time("wcet", mistakes);
    let priority = table.integer("priority", 0, MAX_PRIORITY, mistakes);
    let mut raw = RawOperation {
        name: String::new(),
        interface: String::new(),
        operation: String::new(),
        origin: origin.map(str::to_owned),
        line: mistakes.line(&span),
        span,
        location: Location::default(),
        lane: table.text("lane", mistakes),
        has_bad_cost: gives_cost && cost.is_none(),
        cost,
        least: None,
        period: table.period("period", mistakes),
        deadline: table.positive_time("deadline", mistakes),
        jitter: None,
        blocking: None,
        threads: None,
        criticality: None,
        importance: None,
        priority: priority.map(corba_priority),
        locks: Vec::new(),
        calls: Vec::new(),
        max_size: table.integer("max_size", 1, 1 << 40, mistakes),
        has_identifier: false,
    };
    if !included {
        raw.location = Location::take(&table, mistakes);
        raw.least = table.time_with_span("least", mistakes);
        raw.jitter = table.time("jitter", mistakes);
        raw.blocking = table.time("blocking", mistakes);
        let threads = table.integer("threads", 1, MAX_THREADS, mistakes);
        raw.threads = threads.and_then(|it| u32::try_from(it).ok());
        raw.criticality = rank(&table, "criticality", mistakes);
        raw.importance = rank(&table, "importance", mistakes);
        raw.locks = read_locks(&table, mistakes);
        raw.calls = read_calls(&table, mistakes);
    }
    table.finish(mistakes);
    let identity = identity?;
    raw.name = identity.name;
    raw.interface = identity.interface;
    raw.operation = identity.operation;
    raw.has_identifier = identity.has_identifier;
    Some(raw)
}

/// The names of an operation.
struct Identity {
    name: String,
    interface: String,
    operation: String,
    has_identifier: bool,
}

impl Identity {
    /// Takes `name`, or `interface` and `operation` as the IDL compiler writes them.
    fn take(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Self> {
        let name = table.text("name", mistakes);
        let interface = table.text("interface", mistakes);
        let operation = table.text("operation", mistakes);
        if let Some(id) = &interface
            && !(id.value.starts_with("IDL:") && id.value.matches(':').count() == 2)
        {
            let problem = "interface has to be a repository identifier, as \"IDL:A/B:1.0\"";
            mistakes.add(&id.span, problem);
            return None;
        }
        match (name, interface, operation) {
            (Some(name), interface, operation) => {
                let Some((scope, last)) = name.value.rsplit_once("::") else {
                    let problem = "name has to be Interface::operation";
                    mistakes.add(&name.span, problem);
                    return None;
                };
                if scope.is_empty() || last.is_empty() || scope.split("::").any(str::is_empty) {
                    mistakes.add(&name.span, "name has to be Interface::operation");
                    return None;
                }
                Some(Self {
                    has_identifier: interface.is_some(),
                    interface: interface.map_or_else(
                        || format!("IDL:{}:1.0", scope.replace("::", "/")),
                        |id| id.value,
                    ),
                    operation: operation.map_or_else(|| last.to_owned(), |it| it.value),
                    name: name.value,
                })
            }
            (None, Some(interface), Some(operation)) => {
                let path = scopes(&interface.value);
                let path = match path.split_once('/') {
                    // A prefix of a domain is no part of the name.
                    Some((prefix, rest)) if prefix.contains('.') => rest,
                    _ => path,
                };
                Some(Self {
                    name: format!("{}::{}", path.replace('/', "::"), operation.value),
                    interface: interface.value,
                    operation: operation.value,
                    has_identifier: true,
                })
            }
            (None, _, _) => {
                let problem = "name is missing, or interface and operation";
                mistakes.add(&table.span(), problem);
                None
            }
        }
    }
}

/// Takes a criticality or an importance: a number from 0 to 4, or its word.
fn rank(table: &Table<'_, '_>, key: &'static str, mistakes: &mut Mistakes<'_>) -> Option<u8> {
    const WORDS: [&str; 5] = ["very-low", "low", "medium", "high", "very-high"];
    let number = match table.take(key)?.get_ref() {
        DeValue::Integer(_) => table.integer(key, 0, 4, mistakes),
        _ => table.word(key, &WORDS, mistakes).map(|word| word as u64),
    };
    number.and_then(|number| u8::try_from(number).ok())
}

/// Takes `locks = { NAME = "1 ms" }`.
fn read_locks(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Vec<LockUse> {
    let Some(locks) = table
        .take("locks")
        .and_then(|value| Table::of(value, mistakes))
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (lock, value) in locks.entries() {
        let time = parsed(value, lock, A_TIME, parse_time, mistakes);
        match time {
            Some(0) => mistakes.add(&value.span(), format!("{lock} is held for no time")),
            Some(time) => all.push(LockUse {
                lock: lock.to_owned(),
                time,
            }),
            None => {}
        }
    }
    all
}

fn read_calls(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Vec<RawCall> {
    let values = table.array("calls").into_iter();
    values
        .filter_map(|value| read_call(value, mistakes))
        .collect()
}

fn read_call(value: &Value<'_>, mistakes: &mut Mistakes<'_>) -> Option<RawCall> {
    if !matches!(value.get_ref(), DeValue::Table(_)) {
        let problem = "a call is the name of an operation, or a table with operation";
        return Some(RawCall {
            operation: text(value, problem, mistakes)?,
            count: 1,
            oneway: false,
            before: None,
            least: None,
            link: None,
            request: None,
            reply: None,
        });
    }
    let table = Table::of(value, mistakes)?;
    let operation = table.required_text("operation", mistakes);
    let count = table.integer("count", 1, 10_000, mistakes);
    let oneway = table.flag("oneway", mistakes);
    let before = table.time("before", mistakes);
    let least = table.time_with_span("least", mistakes);
    let link = table.text("link", mistakes);
    let request = MessageLength::take(&table, "request", mistakes);
    let reply = MessageLength::take(&table, "reply", mistakes);
    table.finish(mistakes);
    Some(RawCall {
        operation: operation?,
        count: count.and_then(|it| u32::try_from(it).ok()).unwrap_or(1),
        oneway,
        before,
        least,
        link,
        request,
        reply,
    })
}
