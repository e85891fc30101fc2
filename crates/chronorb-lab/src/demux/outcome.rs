//! The figures of a run.

use serde::Serialize;

use super::{Caches, DemuxPlan, Scale};
use crate::environment::Environment;

/// A stage on the path from a message to its servant.
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
    /// From the octets of a message to the skeleton and back.
    Total,
}

impl Stage {
    /// All stages, in the order of a request.
    pub const ALL: [Self; 5] = [
        Self::Request,
        Self::Poa,
        Self::Servant,
        Self::Operation,
        Self::Total,
    ];

    /// Returns the time of the stage in the tutorial slides of 1999, in ns.
    #[must_use]
    pub const fn published_ns(self) -> f64 {
        match self {
            Self::Request | Self::Poa | Self::Operation => 2_000.0,
            Self::Servant => 3_000.0,
            Self::Total => 9_000.0,
        }
    }

    /// Whether the stage looks up an entry in a table that requests share, so that the time depends
    /// on whether the same entry was looked up before.
    pub(super) const fn is_look_up(self) -> bool {
        matches!(self, Self::Poa | Self::Servant)
    }

    /// Returns the name of the stage in reports.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Request => "Reading the request header",
            Self::Poa => "Finding the POA",
            Self::Servant => "Finding the servant",
            Self::Operation => "Finding the operation",
            Self::Total => "The whole way, from octets to skeleton",
        }
    }

    /// Returns the name of the entries of its table.
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

/// The time of one look-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LookUpRow {
    /// The stage.
    pub stage: Stage,
    /// The strategy: `active`, `hash`, `linear`, `perfect`, `binary`; `giop` for reading the
    /// header. For servants also `user-id`, `persistent` and `no-hint`, by which the strategy
    /// `active` finds objects that the application names.
    pub strategy: &'static str,
    /// The number of entries of the table.
    pub entries: u32,
    /// The median of batches, in ns for one look-up.
    pub p50_ns: f64,
    /// The 99th percentile of batches, in ns for one look-up.
    pub p99_ns: f64,
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct DemuxOutcome {
    /// The plan of the run.
    pub plan: DemuxPlan,
    /// The sizes of the processor's caches.
    pub caches: Caches,
    /// The machine.
    pub environment: Environment,
    /// The figures with entries drawn at random.
    pub rows: Vec<LookUpRow>,
    /// The figures with the same entry again and again; the stages `poa` and `servant` only.
    pub hot: Vec<LookUpRow>,
    /// The cost of many objects and POAs.
    pub scale: Scale,
    /// Numbers of operations, each with the bytes of the perfect hash table for them.
    #[serde(skip)]
    pub operation_bytes: Vec<(u32, u64)>,
}

impl DemuxOutcome {
    /// Returns the rows of a stage and a strategy, by their number of entries.
    pub(super) fn series(&self, stage: Stage, strategy: &str) -> Vec<LookUpRow> {
        series(&self.rows, stage, strategy)
    }

    /// Returns one row.
    pub(super) fn row(&self, stage: Stage, strategy: &str, entries: u32) -> Option<LookUpRow> {
        let mut rows = self.series(stage, strategy).into_iter();
        rows.find(|row| row.entries == entries)
    }
}

/// Returns the rows of a stage and a strategy, by their number of entries.
pub(super) fn series(rows: &[LookUpRow], stage: Stage, strategy: &str) -> Vec<LookUpRow> {
    let is_its = |row: &&LookUpRow| row.stage == stage && row.strategy == strategy;
    let mut rows: Vec<LookUpRow> = rows.iter().filter(is_its).copied().collect();
    rows.sort_by_key(|row| row.entries);
    rows
}
