//! All cases: each stage by each strategy with each number of entries.

use chronorb_orb::Demultiplexing;
use chronorb_orb::poa::Poa;

use super::Plan;
use super::operations::{Find, Operations};
use super::outcome::Stage;
use super::population::{Home, Ids, Octets, activate, key_of, key_within, message};
use super::probe::{MessageProbe, OperationProbe, PoaProbe, Probe, ServantProbe};
use crate::error::LabError;

/// One case: look-ups of one kind in one table.
pub(super) struct Case {
    pub(super) stage: Stage,
    pub(super) strategy: &'static str,
    pub(super) entries: u32,
    pub(super) probe: Box<dyn Probe>,
}

/// All cases, with the ORBs that they look into.
#[derive(Default)]
pub(super) struct Cases {
    pub(super) cases: Vec<Case>,
    /// Numbers of operations, and octets of the perfect table for them.
    pub(super) operation_octets: Vec<(u32, u64)>,
    /// They end after the probes, which hold on to what is in them.
    pub(super) homes: Vec<Home>,
}

impl Cases {
    /// Makes all that a plan needs.
    pub(super) fn new(plan: &Plan, mut made: impl FnMut()) -> Result<Self, LabError> {
        let mut all = Self::default();
        let aside = Home::new(Demultiplexing::Active)?;
        for &size in &plan.sizes {
            let operations = Operations::new(size);
            let octets = operations.perfect_octets as u64;
            all.operation_octets.push((size, octets));
            all.add_operations(size, operations);
            for strategy in STRATEGIES {
                let names = operations.names;
                match strategy {
                    Demultiplexing::Active => {
                        all.add_orb(size, strategy, names, operations.perfect)
                    }
                    Demultiplexing::DynamicHash => {
                        all.add_orb(size, strategy, names, operations.hash)
                    }
                    Demultiplexing::LinearSearch => {
                        all.add_orb(size, strategy, names, operations.linear)
                    }
                }?;
                made();
            }
            for (ids, strategy) in [(Ids::User, "user-id"), (Ids::Persistent, "persistent")] {
                let poa = aside.poa(&format!("{strategy}-{size}"), ids.policies())?;
                let keys = keys_of_objects(&poa, ids, size, operations.perfect)?;
                if ids == Ids::Persistent {
                    all.add_servants(size, NO_HINT, &aside, &poa, keys.clone())?;
                }
                all.add_servants(size, strategy, &aside, &poa, keys)?;
            }
            made();
        }
        all.homes.push(aside);
        if let Some(size) = plan.many_servants {
            let operations = Operations::new(1);
            for strategy in [Demultiplexing::Active, Demultiplexing::DynamicHash] {
                let home = Home::new(strategy)?;
                let keys = keys_of_objects(&home.root, Ids::System, size, operations.perfect)?;
                all.add_servants(size, name(strategy), &home, &home.root, keys)?;
                all.homes.push(home);
                made();
            }
        }
        Ok(all)
    }

    /// How often [`new`](Self::new) tells that it has made something.
    pub(super) fn steps(plan: &Plan) -> u64 {
        let many = if plan.many_servants.is_some() { 2 } else { 0 };
        plan.sizes.len() as u64 * (STRATEGIES.len() as u64 + 1) + many
    }

    fn add(
        &mut self,
        stage: Stage,
        strategy: &'static str,
        entries: u32,
        probe: impl Probe + 'static,
    ) {
        self.cases.push(Case {
            stage,
            strategy,
            entries,
            probe: Box::new(probe),
        });
    }

    /// An ORB of so many POAs, of which one has so many objects, each of so many operations.
    fn add_orb<F: Find>(
        &mut self,
        size: u32,
        strategy: Demultiplexing,
        names: &[&str],
        find: F,
    ) -> Result<(), LabError> {
        let home = Home::new(strategy)?;
        let poas = home.poas(size)?;
        let keys: Octets = poas.iter().map(key_within).collect::<Result<_, _>>()?;
        self.add(
            Stage::Poa,
            name(strategy),
            size,
            PoaProbe {
                stages: home.stages()?,
                keys,
                batch: Octets::default(),
            },
        );

        // In the middle, for the sake of linear search.
        let poa = &poas[poas.len() / 2];
        let stages = home.stages()?;
        let (mut keys, mut references) = (Octets::default(), Vec::new());
        activate(poa, Ids::System, size, find, |reference| {
            keys.push(key_of(reference));
            references.push(reference.clone());
        })?;
        self.add_servants(size, name(strategy), &home, poa, keys)?;

        let messages: Octets = references
            .iter()
            .enumerate()
            .map(|(n, reference)| {
                // Which object is called says nothing of the operation.
                let operation = (n as u64 * STRIDE % u64::from(size)) as usize;
                message(&stages, reference, names[operation])
            })
            .collect::<Result<_, _>>()?;
        if strategy == Demultiplexing::Active {
            self.add(
                Stage::Request,
                "giop",
                size,
                MessageProbe {
                    stages: home.stages()?,
                    messages: messages.clone(),
                    frames: Vec::new(),
                    whole: false,
                },
            );
        }
        self.add(
            Stage::Total,
            name(strategy),
            size,
            MessageProbe {
                stages,
                messages,
                frames: Vec::new(),
                whole: true,
            },
        );
        self.homes.push(home);
        Ok(())
    }

    fn add_servants(
        &mut self,
        size: u32,
        strategy: &'static str,
        home: &Home,
        poa: &Poa,
        keys: Octets,
    ) -> Result<(), LabError> {
        let probe = ServantProbe {
            stages: home.stages()?,
            poa: poa.clone(),
            keys,
            batch: Octets::default(),
            hint: strategy != NO_HINT,
        };
        self.add(Stage::Servant, strategy, size, probe);
        Ok(())
    }

    fn add_operations(&mut self, size: u32, operations: Operations) {
        let names: Octets = operations.names.iter().collect();
        self.add_operation(size, "perfect", operations.perfect, &names);
        self.add_operation(size, "hash", operations.hash, &names);
        self.add_operation(size, "binary", operations.binary, &names);
        self.add_operation(size, "linear", operations.linear, &names);
    }

    fn add_operation<F: Find>(
        &mut self,
        size: u32,
        strategy: &'static str,
        find: F,
        names: &Octets,
    ) {
        let probe = OperationProbe {
            find,
            names: names.clone(),
            batch: Octets::default(),
        };
        self.add(Stage::Operation, strategy, size, probe);
    }
}

/// Activates objects, and gives their keys.
fn keys_of_objects<F: Find>(poa: &Poa, ids: Ids, count: u32, find: F) -> Result<Octets, LabError> {
    let mut keys = Octets::default();
    activate(poa, ids, count, find, |reference| {
        keys.push(key_of(reference));
    })?;
    Ok(keys)
}

/// What a strategy is called in figures.
fn name(strategy: Demultiplexing) -> &'static str {
    match strategy {
        Demultiplexing::Active => "active",
        Demultiplexing::DynamicHash => "hash",
        Demultiplexing::LinearSearch => "linear",
    }
}

const STRATEGIES: [Demultiplexing; 3] = [
    Demultiplexing::Active,
    Demultiplexing::DynamicHash,
    Demultiplexing::LinearSearch,
];
/// Active, where the hint in the key is of no use.
const NO_HINT: &str = "no-hint";
/// Has no divisor in common with a power of ten.
const STRIDE: u64 = 7_919;
