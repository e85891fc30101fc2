//! The shares of clients in contexts and in the octets of bindings.

use std::collections::HashMap;
use std::sync::Arc;

use chronorb::Orb;
use chronorb::quota::{Charge, Origin, Quota, QuotaError};

use crate::limits::Limits;
use crate::tree::{NOBODY, Owner, Release};

/// The origins that own contexts and bindings, each with one charge of either kind: an entry of the
/// tree has a number, which is shorter than a charge.
#[derive(Debug)]
pub(crate) struct Owners {
    contexts: Arc<Quota>,
    octets: Arc<Quota>,
    numbers: HashMap<Origin, Owner>,
    charges: HashMap<Owner, Charges>,
    last: Owner,
}

#[derive(Debug)]
struct Charges {
    contexts: Charge,
    octets: Charge,
}

/// The charges of a group of changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) owner: Owner,
    contexts: u64,
    octets: u64,
    /// The octets that are not charged, because the owner replaces a binding of its own.
    credit: u64,
}

impl Owners {
    pub(crate) fn new(orb: &Orb, limits: &Limits) -> Self {
        Self {
            contexts: orb.quota("contexts", limits.shared_contexts()),
            octets: orb.quota("octets of bindings", limits.shared_octets()),
            numbers: HashMap::new(),
            charges: HashMap::new(),
            last: NOBODY,
        }
    }

    /// Charges an origin with contexts, and with octets of a binding that replaces another one.
    pub(crate) fn claim(
        &mut self,
        origin: Origin,
        (contexts, octets): (u64, u64),
        replaced: Release,
    ) -> Result<Claim, QuotaError> {
        let owner = self.number(origin)?;
        let credit = if replaced.owner == owner {
            replaced.octets.min(octets)
        } else {
            0
        };
        let octets = octets - credit;
        let claim = Claim {
            owner,
            contexts,
            octets,
            credit,
        };
        let charged = match self.charges.get_mut(&owner) {
            Some(charges) => charges.add(contexts, octets),
            None => Ok(()),
        };
        match charged {
            Ok(()) => Ok(claim),
            Err(error) => {
                self.give_back(owner, 0, 0);
                Err(error)
            }
        }
    }

    /// Gives back what was charged for changes that were not made.
    pub(crate) fn undo(&mut self, claim: Claim) {
        self.give_back(claim.owner, claim.contexts, claim.octets);
    }

    /// Gives back what a change has freed, to its owner.
    pub(crate) fn free(&mut self, claim: Claim, freed: Release) {
        let credit = if freed.owner == claim.owner {
            claim.credit
        } else {
            0
        };
        let octets = freed.octets.saturating_sub(credit);
        self.give_back(freed.owner, freed.contexts, octets);
    }

    fn give_back(&mut self, owner: Owner, contexts: u64, octets: u64) {
        let Some(charges) = self.charges.get_mut(&owner) else {
            return;
        };
        charges.contexts.give_back(contexts);
        charges.octets.give_back(octets);
        if charges.contexts.amount() == 0 && charges.octets.amount() == 0 {
            self.numbers.remove(&charges.contexts.origin());
            self.charges.remove(&owner);
        }
    }

    /// Returns the number of an origin, which gets one if it has none.
    fn number(&mut self, origin: Origin) -> Result<Owner, QuotaError> {
        if let Some(owner) = self.numbers.get(&origin) {
            return Ok(*owner);
        }
        let charges = Charges {
            contexts: self.contexts.charge(origin, 0)?,
            octets: self.octets.charge(origin, 0)?,
        };
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != NOBODY && !self.charges.contains_key(&self.last) {
                break;
            }
        }
        self.numbers.insert(origin, self.last);
        self.charges.insert(self.last, charges);
        Ok(self.last)
    }
}

impl Charges {
    /// Charges both or nothing.
    fn add(&mut self, contexts: u64, octets: u64) -> Result<(), QuotaError> {
        self.contexts.add(contexts)?;
        let added = self.octets.add(octets);
        if added.is_err() {
            self.contexts.give_back(contexts);
        }
        added
    }
}
