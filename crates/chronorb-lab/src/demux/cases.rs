//! All cases: each stage by each strategy with each number of entries.

use chronorb_orb::Demultiplexing::{self, Active, DynamicHash, LinearSearch};
use chronorb_orb::poa::{IdAssignment, Lifespan, Poa, Policy};
use chronorb_orb::stages::Stages;

use super::DemuxPlan;
use super::operations::{Find, Operations};
use super::outcome::Stage;
use super::population::{Home, OctetTable, activate, key_of, key_within, message};
use super::probe::{self, Probe};
use crate::error::LabError;

/// A case: look-ups of one kind in one table.
pub(super) struct LookUpCase {
    pub(super) stage: Stage,
    pub(super) strategy: &'static str,
    pub(super) entries: u32,
    pub(super) probe: Probe,
}

/// All cases, with the ORBs of their tables.
#[derive(Default)]
pub(super) struct Cases {
    pub(super) cases: Vec<LookUpCase>,
    /// Numbers of operations, each with the bytes of its perfect table.
    pub(super) operation_bytes: Vec<(u32, u64)>,
    /// The ORBs, which have to live longer than the probes.
    pub(super) homes: Vec<Home>,
}

impl Cases {
    /// Makes all cases of a plan. Calls `made` as often as [`steps`](Self::steps) says.
    pub(super) fn new(plan: &DemuxPlan, mut made: impl FnMut()) -> Result<Self, LabError> {
        let mut all = Self::default();
        let aside = Home::new(Active)?;
        for &size in &plan.sizes {
            let operations = Operations::new(size);
            let (perfect, hash) = (operations.by_perfect_hash(), operations.by_dynamic_hash());
            let (binary, linear) = (operations.by_binary_search(), operations.by_linear_search());
            let bytes = operations.perfect_bytes as u64;
            all.operation_bytes.push((size, bytes));
            let names: OctetTable = operations.names.iter().collect();
            let mut add = |strategy, probe| all.add(Stage::Operation, strategy, size, probe);
            add("perfect", probe::of_operations(perfect, names.clone()));
            add("hash", probe::of_operations(hash, names.clone()));
            add("binary", probe::of_operations(binary, names.clone()));
            add("linear", probe::of_operations(linear, names));
            all.add_orb(size, Active, operations.names, perfect)?;
            made();
            all.add_orb(size, DynamicHash, operations.names, hash)?;
            made();
            all.add_orb(size, LinearSearch, operations.names, linear)?;
            made();
            for (strategy, policies) in [(USER_ID, &PERSISTENT[..1]), ("persistent", &PERSISTENT)] {
                let poa = aside.poa(&format!("{strategy}-{size}"), policies)?;
                let keys = keys(activate(&poa, false, size, perfect))?;
                if strategy != USER_ID {
                    all.add_servants(size, NO_HINT, &aside, &poa, keys.clone())?;
                }
                all.add_servants(size, strategy, &aside, &poa, keys)?;
            }
            made();
        }
        all.homes.push(aside);
        for strategy in [Active, DynamicHash] {
            let Some(size) = plan.many_servants else {
                break;
            };
            let home = Home::new(strategy)?;
            let find = Operations::new(1).by_perfect_hash();
            let keys = keys(activate(&home.root, true, size, find))?;
            all.add_servants(size, name(strategy), &home, &home.root, keys)?;
            all.homes.push(home);
            made();
        }
        Ok(all)
    }

    /// Returns the number of steps of [`new`](Self::new).
    pub(super) fn steps(plan: &DemuxPlan) -> u64 {
        let many = if plan.many_servants.is_some() { 2 } else { 0 };
        plan.sizes.len() as u64 * 4 + many
    }

    fn add(&mut self, stage: Stage, strategy: &'static str, entries: u32, probe: Probe) {
        self.cases.push(LookUpCase {
            stage,
            strategy,
            entries,
            probe,
        });
    }

    /// Adds an ORB of so many POAs, of which one has so many objects of so many operations.
    fn add_orb(
        &mut self,
        size: u32,
        demultiplexing: Demultiplexing,
        names: &[&str],
        find: impl Find,
    ) -> Result<(), LabError> {
        let home = Home::new(demultiplexing)?;
        let strategy = name(demultiplexing);
        let poas = home.poas(size)?;
        let keys_within: OctetTable = poas.iter().map(key_within).collect::<Result<_, _>>()?;
        let probe = probe::of_poas(home.stages()?, keys_within);
        self.add(Stage::Poa, strategy, size, probe);

        // A linear search goes through half of the POAs to the one in the middle.
        let poa = &poas[poas.len() / 2];
        let references = activate(poa, true, size, find);
        let references = references.collect::<Result<Vec<_>, _>>()?;
        let keys = references.iter().map(key_of).collect();
        self.add_servants(size, strategy, &home, poa, keys)?;

        let stages = home.stages()?;
        // The number of the object says nothing of the operation.
        let operations = (0..).map(|n| names[(n * STRIDE % u64::from(size)) as usize]);
        let messages = references.iter().zip(operations);
        let messages = messages.map(|(object, operation)| message(&stages, object, operation));
        let messages: OctetTable = messages.collect::<Result<_, _>>()?;
        if demultiplexing == Active {
            let read = |stages: &mut Stages, message: &mut _| stages.read_request(message);
            let probe = probe::of_messages(home.stages()?, messages.clone(), read);
            self.add(Stage::Request, "giop", size, probe);
        }
        let probe = probe::of_messages(stages, messages, Stages::serve);
        self.add(Stage::Total, strategy, size, probe);
        self.homes.push(home);
        Ok(())
    }

    fn add_servants(
        &mut self,
        size: u32,
        strategy: &'static str,
        home: &Home,
        poa: &Poa,
        keys: OctetTable,
    ) -> Result<(), LabError> {
        let probe = probe::of_servants(home.stages()?, poa.clone(), keys, strategy != NO_HINT);
        self.add(Stage::Servant, strategy, size, probe);
        Ok(())
    }
}

/// Returns the object keys of references.
fn keys(
    references: impl Iterator<Item = Result<chronorb_orb::Object, LabError>>,
) -> Result<OctetTable, LabError> {
    let mut keys = OctetTable::default();
    for reference in references {
        keys.push(key_of(&reference?));
    }
    Ok(keys)
}

/// Returns the name of a strategy in figures.
fn name(strategy: Demultiplexing) -> &'static str {
    match strategy {
        Active => "active",
        DynamicHash => "hash",
        LinearSearch => "linear",
    }
}

/// The policies of a POA for persistent objects. Its caller names the objects of it.
const PERSISTENT: [Policy; 2] = [
    Policy::IdAssignment(IdAssignment::User),
    Policy::Lifespan(Lifespan::Persistent),
];
/// The strategy `active` in a POA whose caller names the objects.
const USER_ID: &str = "user-id";
/// The strategy `active` with keys whose hint is of no use.
const NO_HINT: &str = "no-hint";
/// A number that has no divisor in common with a power of ten.
const STRIDE: u64 = 7_919;
