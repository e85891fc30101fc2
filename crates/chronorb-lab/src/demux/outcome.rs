//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::{Caches, Demux, Plan, Scale, claims, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};

/// A stage of the way from a message to its servant.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// From the octets of a message to its request header and object key.
    Request,
    /// From an object key to its POA.
    Poa,
    /// From an object's id to its servant.
    Servant,
    /// From the name of an operation to its number.
    Operation,
    /// From the octets of a message to the skeleton, and back out of it.
    Total,
}

impl Stage {
    /// All, in the order of a request.
    pub const ALL: [Self; 5] = [
        Self::Request,
        Self::Poa,
        Self::Servant,
        Self::Operation,
        Self::Total,
    ];

    /// As in the figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Poa => "poa",
            Self::Servant => "servant",
            Self::Operation => "operation",
            Self::Total => "total",
        }
    }

    /// What the tutorial slides of 1999 give for it, in ns.
    #[must_use]
    pub const fn published_ns(self) -> f64 {
        match self {
            Self::Request | Self::Poa | Self::Operation => 2_000.0,
            Self::Servant => 3_000.0,
            Self::Total => 9_000.0,
        }
    }

    /// Whether something is looked up among others that requests share, so that it matters whether
    /// it was looked up just before.
    pub(super) const fn is_look_up(self) -> bool {
        matches!(self, Self::Poa | Self::Servant)
    }

    /// As a heading.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Request => "Reading the request header",
            Self::Poa => "Finding the POA",
            Self::Servant => "Finding the servant",
            Self::Operation => "Finding the operation",
            Self::Total => "The whole way, from octets to skeleton",
        }
    }

    /// What there is one or many of.
    pub(super) const fn entries(self) -> &'static str {
        match self {
            Self::Request => "different messages",
            Self::Poa => "POAs",
            Self::Servant => "objects in the POA",
            Self::Operation => "operations of the interface",
            Self::Total => "POAs, objects in the POA, and operations, each",
        }
    }
}

/// What one look-up takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The stage.
    pub stage: Stage,
    /// How it is done: `active`, `hash`, `linear`, `perfect`, `binary`; `giop` for reading the
    /// header; for servants also `user-id`, `persistent` and `no-hint`, by which the strategy
    /// `active` finds objects whose ids are the application's.
    pub strategy: &'static str,
    /// Among how many.
    pub entries: u32,
    /// The median of batches, in ns for one look-up.
    pub p50_ns: f64,
    /// The 99th percentile of batches, in ns for one look-up.
    pub p99_ns: f64,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was measured.
    pub plan: Plan,
    /// The sizes of the processor's caches.
    pub caches: Caches,
    /// Where.
    pub environment: Environment,
    /// With entries drawn at random.
    pub rows: Vec<Row>,
    /// With the same entry again and again; the stages `poa` and `servant` only.
    pub hot: Vec<Row>,
    /// What many objects and POAs take.
    pub scale: Scale,
    /// Numbers of operations, each with the octets of the perfect hash table for them.
    #[serde(skip)]
    pub operation_octets: Vec<(u32, u64)>,
}

impl Outcome {
    /// The rows of a stage by a strategy, by their number of entries.
    pub(super) fn series(&self, stage: Stage, strategy: &str) -> Vec<Row> {
        series(&self.rows, stage, strategy)
    }

    /// One row.
    pub(super) fn row(&self, stage: Stage, strategy: &str, entries: u32) -> Option<Row> {
        let mut rows = self.series(stage, strategy).into_iter();
        rows.find(|row| row.entries == entries)
    }

    /// The strategies of a stage, in the order in which they were measured.
    pub(super) fn strategies(&self, stage: Stage) -> Vec<&'static str> {
        let mut strategies = Vec::new();
        for row in self.rows.iter().filter(|row| row.stage == stage) {
            if !strategies.contains(&row.strategy) {
                strategies.push(row.strategy);
            }
        }
        strategies.sort_by_key(|strategy| ORDER.iter().position(|other| other == strategy));
        strategies
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Demux::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// Those of a stage by a strategy, by their number of entries.
pub(super) fn series(rows: &[Row], stage: Stage, strategy: &str) -> Vec<Row> {
    let is_its = |row: &&Row| row.stage == stage && row.strategy == strategy;
    let mut rows: Vec<Row> = rows.iter().filter(is_its).copied().collect();
    rows.sort_by_key(|row| row.entries);
    rows
}

/// The best first.
const ORDER: [&str; 9] = [
    "giop",
    "active",
    "perfect",
    "user-id",
    "persistent",
    "no-hint",
    "hash",
    "binary",
    "linear",
];
