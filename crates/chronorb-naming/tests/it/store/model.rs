//! Random changes, and the state that they make.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronorb_naming::store::{Files, OpenError, Store};
use chronorb_naming::{Binding, BindingKind, Change, Lease, ROOT, Target, Tree};
use chronorb_rt::Monotonic;
use fastrand::Rng;

type Key = (Vec<u8>, Vec<u8>);

/// The contexts with their bindings, as maps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    contexts: BTreeMap<u64, BTreeMap<Key, Binding>>,
    next: u64,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            contexts: BTreeMap::from([(ROOT, BTreeMap::new())]),
            next: 1,
        }
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::CreateContext { context } => {
                assert!(self.contexts.insert(context, BTreeMap::new()).is_none());
                self.next = self.next.max(context + 1);
            }
            Change::DestroyContext { context } => {
                assert!(self.contexts.remove(&context).is_some_and(|c| c.is_empty()));
            }
            Change::Bind {
                context,
                id,
                kind,
                binding,
            } => {
                let of_context = self.contexts.get_mut(&context).expect("a context");
                of_context.insert((id, kind), binding);
            }
            Change::Unbind { context, id, kind } => {
                let of_context = self.contexts.get_mut(&context).expect("a context");
                assert!(of_context.remove(&(id, kind)).is_some());
            }
        }
    }

    /// The changes that make the state: contexts, then bindings, in order.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let created = self.contexts.keys().filter(|context| **context != ROOT);
        let created = created.map(|context| Change::CreateContext { context: *context });
        let bound = self.contexts.iter().flat_map(|(context, bindings)| {
            bindings.iter().map(|((id, kind), binding)| Change::Bind {
                context: *context,
                id: id.clone(),
                kind: kind.clone(),
                binding: binding.clone(),
            })
        });
        created.chain(bound).collect()
    }

    /// Returns a group of changes that is possible now, and makes it.
    pub(crate) fn group(&mut self, random: &mut Rng) -> Vec<Change> {
        let count = random.usize(1..4);
        (0..count)
            .map(|_| {
                let change = self.change(random);
                self.apply(&change);
                change
            })
            .collect()
    }

    fn change(&self, random: &mut Rng) -> Change {
        let contexts: Vec<_> = self.contexts.keys().copied().collect();
        let context = random.choice(contexts).unwrap_or(ROOT);
        let bindings = &self.contexts[&context];
        match random.u8(..8) {
            0 | 1 => Change::CreateContext { context: self.next },
            2 if context != ROOT && bindings.is_empty() => Change::DestroyContext { context },
            3 | 4 if !bindings.is_empty() => {
                let (id, kind) = random.choice(bindings.keys()).cloned().expect("a key");
                Change::Unbind { context, id, kind }
            }
            _ => Change::Bind {
                context,
                id: octets(random, 6),
                kind: octets(random, 2),
                binding: Binding {
                    kind: random
                        .choice([BindingKind::Object, BindingKind::Context])
                        .expect("one"),
                    target: if random.bool() {
                        Target::Context(random.u64(..self.next))
                    } else {
                        Target::Reference(Arc::from(octets(random, 40)))
                    },
                    lease: random.bool().then(|| Lease {
                        id: random.u64(1..100),
                        time_to_live: random.u32(1..100),
                    }),
                },
            },
        }
    }
}

fn octets(random: &mut Rng, most: usize) -> Vec<u8> {
    (0..random.usize(..=most)).map(|_| random.u8(1..)).collect()
}

/// Opens a store, and returns it with the state that it has.
pub(crate) fn recover<F: Files>(files: F) -> Result<(Store<F>, Vec<Change>), OpenError> {
    let mut tree = Tree::new(1);
    let store = Store::open(files, |change| {
        tree.apply(&change, Monotonic::from_nanos(1))
    })?;
    let state = tree.changes().collect();
    Ok((store, state))
}
