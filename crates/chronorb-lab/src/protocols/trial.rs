//! What is tried, and where.

use serde::Serialize;

use super::plan::Plan;
use crate::bench::{Operation, Placement, Waits};

/// What is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(into = "String")]
pub enum Trial {
    /// One client calls, and so many octets go there and come back; with none, an octet goes and its cube comes.
    Call(u32),
    /// So many clients at a time make the smallest of calls, each on a connection of its own.
    Clients(u32),
    /// One client sends messages that have no answer, with so many octets; with none, the time alone.
    Oneway(u32),
    /// So many clients at a time send the smallest of messages without an answer, as fast as they can.
    Flood(u32),
}

impl Trial {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Call(0),
        Self::Call(1 << 10),
        Self::Call(1 << 16),
        Self::Oneway(0),
        Self::Oneway(1 << 10),
        Self::Oneway(1 << 16),
        Self::Clients(4),
        Self::Flood(4),
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Call(0) => "a call".to_owned(),
            Self::Call(octets) => format!("a call with {} KiB", octets >> 10),
            Self::Clients(clients) => format!("calls of {clients} clients"),
            Self::Oneway(0) => "a message without an answer".to_owned(),
            Self::Oneway(octets) => format!("a message without an answer, {} KiB", octets >> 10),
            Self::Flood(clients) => format!("messages without an answer of {clients} clients"),
        }
    }

    /// What is counted, in a word.
    pub(super) const fn noun(self) -> &'static str {
        match self.is_oneway() {
            true => "message",
            false => "call",
        }
    }

    /// What is called.
    pub(super) const fn operation(self) -> Operation {
        match self {
            Self::Call(0) | Self::Clients(_) => Operation::Cube,
            Self::Call(octets) => Operation::Octets(octets),
            Self::Oneway(octets) => Operation::Oneway(octets),
            Self::Flood(_) => Operation::Flood,
        }
    }

    /// How many call at a time.
    pub(super) const fn clients(self) -> u32 {
        match self {
            Self::Clients(clients) | Self::Flood(clients) => clients,
            Self::Call(_) | Self::Oneway(_) => 1,
        }
    }

    /// How much data goes each way, beside the least that a message has.
    pub(super) const fn octets(self) -> u32 {
        match self {
            Self::Call(octets) | Self::Oneway(octets) => octets,
            Self::Clients(_) | Self::Flood(_) => 0,
        }
    }

    /// Whether this is tried by those that wait so: several clients never spin.
    pub(super) fn waits(self, waits: Waits) -> bool {
        waits == Waits::Block || self.clients() == 1
    }

    /// Whether there are no answers.
    pub(super) const fn is_oneway(self) -> bool {
        matches!(self, Self::Oneway(_) | Self::Flood(_))
    }
}

/// As figures for programs have it.
impl From<Trial> for String {
    fn from(trial: Trial) -> Self {
        match trial {
            Trial::Call(octets) => format!("call-{octets}"),
            Trial::Clients(clients) => format!("clients-{clients}"),
            Trial::Oneway(octets) => format!("oneway-{octets}"),
            Trial::Flood(clients) => format!("flood-{clients}"),
        }
    }
}

/// What is tried, where, and by whom that waits how.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Cell {
    /// What.
    pub trial: Trial,
    /// Where.
    pub placement: Placement,
    /// How threads wait.
    pub waits: Waits,
}

impl Cell {
    /// The smallest of calls.
    pub(super) const fn of_calls(placement: Placement, waits: Waits) -> Self {
        Self {
            trial: Trial::Call(0),
            placement,
            waits,
        }
    }

    /// All that a plan has.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let mut cells = Vec::new();
        for trial in Trial::ALL {
            for &waits in &plan.waits {
                for &placement in &plan.places {
                    let cell = Self {
                        trial,
                        placement,
                        waits,
                    };
                    if cell.makes_sense() {
                        cells.push(cell);
                    }
                }
            }
        }
        cells
    }

    /// Who spins needs a processor for each side, and for each client.
    fn makes_sense(self) -> bool {
        let has_processors = match self.waits {
            Waits::Block => true,
            Waits::Spin => self.placement == Placement::AcrossCpus,
        };
        has_processors && self.trial.waits(self.waits)
    }

    /// In words: `a call, same CPU, blocking`.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}, {}", self.trial.name(), self.place())
    }

    /// Where, and how threads wait, in words.
    pub(super) fn place(self) -> String {
        let waits = match self.waits {
            Waits::Block => "blocking",
            Waits::Spin => "spinning",
        };
        format!("{}, {waits}", self.placement.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_spins_is_never_without_a_processor() {
        let cells = Cell::all(&Plan::full());
        let spinning = || cells.iter().filter(|cell| cell.waits == Waits::Spin);
        assert!(spinning().all(|cell| cell.placement == Placement::AcrossCpus));
        assert_eq!(spinning().count(), 6);
        assert_eq!(cells.len(), 6 + 2 * 8);
    }

    #[test]
    fn the_smallest_of_calls_is_in_every_plan() {
        for plan in [Plan::full(), Plan::short(), Plan::tiny()] {
            let smallest = Cell::of_calls(Placement::SameCpu, Waits::Block);
            assert!(Cell::all(&plan).contains(&smallest));
        }
    }
}
