//! The errors of schedule files.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

/// One mistake in a schedule file, or in a file that it includes.
#[derive(Clone, Debug, Eq, Error, Ord, PartialEq, PartialOrd)]
#[error("{file}: line {line}, column {column}: {problem}")]
pub struct FileError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1 on.
    pub line: usize,
    /// The character in the line, from 1 on.
    pub column: usize,
    /// The problem, and what is permitted.
    pub problem: String,
}

/// All mistakes of a schedule file, in the order of their lines.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub struct ScheduleErrors(pub Vec<FileError>);

impl fmt::Display for ScheduleErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

/// The mistakes found so far in one file.
#[derive(Debug)]
pub(crate) struct Mistakes<'a> {
    file: &'a str,
    text: &'a str,
    /// The starts of the lines.
    lines: Vec<usize>,
    found: Vec<FileError>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file,
            text,
            lines: std::iter::once(0).chain(ends).collect(),
            found: Vec::new(),
        }
    }

    /// Adds a mistake at a place of the text. More than [`MOST`] are not kept.
    pub(crate) fn add(&mut self, span: &Range<usize>, problem: impl Into<String>) {
        if self.found.len() >= MOST {
            return;
        }
        let line = self.line(span);
        let before = self.text.get(self.lines[line - 1]..span.start);
        self.found.push(FileError {
            file: self.file.to_owned(),
            line,
            column: before.map_or(0, |before| before.chars().count()) + 1,
            problem: problem.into(),
        });
    }

    /// Returns the line of a place, from 1 on.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        self.lines
            .partition_point(|start| *start <= span.start)
            .max(1)
    }

    pub(crate) fn append(&mut self, others: Vec<FileError>) {
        let room = MOST.saturating_sub(self.found.len());
        self.found.extend(others.into_iter().take(room));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the mistakes by file and line.
    pub(crate) fn into_errors(mut self) -> Vec<FileError> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// The mistakes that are reported, so that a file of mistakes costs time in proportion to it.
const MOST: usize = 100;

/// The error of a schedule that cannot be analysed. One that is late is a result and no error.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Operations that call each other without end.
    #[error("these operations call each other without end: {}", operations.join(" -> "))]
    Cycle {
        /// The names of the operations, the first one once more at the end.
        operations: Vec<String>,
    },
    /// A lock that operations on several processors of one node take, by inheritance.
    #[error(
        "the lock {lock} is taken on the processors {first} and {second}, where inheritance has no \
         bound: use locks = \"ceiling\""
    )]
    SharedLock {
        /// The name of the lock.
        lock: String,
        /// The name of one processor.
        first: String,
        /// The name of the other processor.
        second: String,
    },
    /// More steps than the analysis permits.
    #[error("the calls of {transaction} make more than {limit} steps: use fewer calls")]
    TooManySteps {
        /// The name of the transaction.
        transaction: String,
        /// The greatest number of steps of a schedule.
        limit: usize,
    },
    /// Calls within calls, deeper than the analysis permits.
    #[error("the calls of {transaction} are nested more than {limit} deep: use fewer levels")]
    TooDeep {
        /// The name of the transaction.
        transaction: String,
        /// The greatest depth.
        limit: usize,
    },
    /// More levels than there are priorities.
    #[error(
        "{levels} levels are needed, and the CORBA priorities from {least} to {greatest} have \
         {available} native ones: widen them in [scheduling], or use fewer lanes"
    )]
    TooFewPriorities {
        /// The number of levels.
        levels: usize,
        /// The number of native priorities.
        available: usize,
        /// The least CORBA priority.
        least: i16,
        /// The greatest CORBA priority.
        greatest: i16,
    },
    /// No priority above all lanes, for a lock that is taken on several processors.
    #[error(
        "sections of the lock {lock} execute above all lanes, and no native priority is above \
         {priority}: declare lesser ones"
    )]
    NoCeiling {
        /// The name of the lock.
        lock: String,
        /// The greatest CORBA priority of a lane.
        priority: i16,
    },
    /// A lane that needs more threads than it is given without a declaration.
    #[error(
        "the lane {lane} needs {threads} threads, because so many requests can wait for calls at \
         once; more than {limit} are not given without threads in a [[lane]]"
    )]
    TooManyThreads {
        /// The name of the lane.
        lane: String,
        /// The number of threads that it needs.
        threads: u64,
        /// The greatest number that is given.
        limit: u64,
    },
    /// The analysis failed.
    #[error("{subject}: {source}")]
    Analysis {
        /// The transaction, or the schedule.
        subject: String,
        /// The cause.
        source: chronorb_sched::AnalysisError,
    },
}
