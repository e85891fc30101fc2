//! Quotas: limited resources of a server, shared between the origins of its clients.
//!
//! A service charges what a client makes it keep or do, and keeps the [`Charge`] as long as that
//! lasts. A quota is refused as a whole ([`QuotaLimits::total`]) and for each [`Origin`]
//! ([`QuotaLimits::per_origin`]), so one client cannot use up what others need.

mod origin;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use chronorb_rt::PiMutex;
#[cfg(feature = "monitor-client")]
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::incident::{Incident, Incidents};

pub use origin::Origin;
pub(crate) use origin::OriginKey;

/// The limits of a quota, in the unit of its resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuotaLimits {
    /// The most of all origins together.
    pub total: u64,
    /// The most of one origin.
    pub per_origin: u64,
}

impl QuotaLimits {
    /// Limits of which one origin has a part, rounded up, such as half with `parts` of 2.
    pub const fn shared(total: u64, parts: u64) -> Self {
        let per_origin = total.div_ceil(parts);
        Self { total, per_origin }
    }
}

/// A limited resource, such as proxies, timers or octets that wait.
///
/// [`Orb::quota`](crate::Orb::quota) makes one, which the ORB's monitor reports and whose refusals
/// it counts and logs. The lock of a quota is held for a binary search among its origins.
///
/// ```
/// # use chronorb_orb as chronorb;
/// use chronorb::Orb;
/// use chronorb::quota::{Origin, QuotaError, QuotaLimits};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let orb = Orb::init(&mut Vec::<String>::new())?;
/// let limits = QuotaLimits { total: 100, per_origin: 10 };
/// let iterators = orb.quota("iterators", limits);
/// // In a servant, the origin is that of the call.
/// let client = Origin::Process;
/// let mut kept = iterators.charge(client, 9)?;
/// kept.add(1)?;
/// assert!(matches!(iterators.charge(client, 1), Err(QuotaError::Origin { .. })));
/// drop(kept);
/// assert_eq!(iterators.snapshot().used, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Quota {
    name: &'static str,
    shares: Shares,
    incidents: Arc<Incidents>,
}

/// The use of a limited resource, in all and by each origin.
#[derive(Debug)]
pub(crate) struct Shares {
    limits: QuotaLimits,
    used: PiMutex<Usage>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Usage {
    total: u64,
    /// Sorted by origin. No origin is here with nothing.
    by_origin: Vec<(OriginKey, u64)>,
}

/// The reason why an amount was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shortage {
    /// The origin uses this amount, and would have more than it may.
    Origin(u64),
    /// All origins use this amount, and would have more than they may.
    Total(u64),
    /// No memory is left to count the use of another origin.
    Memory,
}

/// The reason why a quota refused a charge.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The origin would have more than it may.
    #[error("{origin} has {used} of {limit} {name}, and asks for {asked} more")]
    Origin {
        /// The name of the quota.
        name: &'static str,
        /// The origin.
        origin: Origin,
        /// The amount that it has.
        used: u64,
        /// The most that it may have.
        limit: u64,
        /// The amount that it asks for.
        asked: u64,
    },
    /// All origins together would have more than they may.
    #[error("{used} of {limit} {name} are used, and {origin} asks for {asked} more")]
    Total {
        /// The name of the quota.
        name: &'static str,
        /// The origin.
        origin: Origin,
        /// The amount of all origins.
        used: u64,
        /// The most of all origins.
        limit: u64,
        /// The amount that the origin asks for.
        asked: u64,
    },
    /// No memory is left to count the use of another origin.
    #[error("no memory is left to count the {name} of {origin}")]
    Memory {
        /// The name of the quota.
        name: &'static str,
        /// The origin.
        origin: Origin,
    },
}

impl Quota {
    pub(crate) fn new(name: &'static str, limits: QuotaLimits, incidents: Arc<Incidents>) -> Self {
        Self {
            name,
            shares: Shares::new(limits),
            incidents,
        }
    }

    /// Charges an origin with an amount, until the charge is dropped.
    ///
    /// # Errors
    /// The origin or the whole quota has too little left, which is counted and logged. Nothing is
    /// charged.
    pub fn charge(self: &Arc<Self>, origin: Origin, amount: u64) -> Result<Charge, QuotaError> {
        self.take(origin, amount)?;
        Ok(Charge {
            quota: self.clone(),
            origin,
            amount,
        })
    }

    /// The present use, and the refusals since the quota was made.
    pub fn snapshot(&self) -> QuotaSnapshot {
        self.shares.snapshot(self.name.to_owned())
    }

    fn take(&self, origin: Origin, amount: u64) -> Result<(), QuotaError> {
        self.shares.take(origin.key(), amount).map_err(|shortage| {
            let error = self.error(shortage, origin, amount);
            self.shares.count_refusal();
            let asked = i64::try_from(amount).unwrap_or(i64::MAX);
            self.incidents
                .tell(Incident::QuotaExceeded, &origin, asked, &error);
            error
        })
    }

    fn error(&self, shortage: Shortage, origin: Origin, asked: u64) -> QuotaError {
        let name = self.name;
        let QuotaLimits { total, per_origin } = self.shares.limits;
        match shortage {
            Shortage::Origin(used) => QuotaError::Origin {
                name,
                origin,
                used,
                limit: per_origin,
                asked,
            },
            Shortage::Total(used) => QuotaError::Total {
                name,
                origin,
                used,
                limit: total,
                asked,
            },
            Shortage::Memory => QuotaError::Memory { name, origin },
        }
    }
}

impl Shares {
    pub(crate) fn new(limits: QuotaLimits) -> Self {
        Self {
            limits,
            used: PiMutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes an amount for an origin; for [`OriginKey::NONE`] of the total alone.
    pub(crate) fn take(&self, origin: OriginKey, amount: u64) -> Result<(), Shortage> {
        let mut used = self.used.lock();
        let at = used.place_of(origin);
        let Usage { total, by_origin } = &mut *used;
        let entry = by_origin.get_mut(at).filter(|entry| entry.0 == origin);
        let before = entry.as_ref().map_or(0, |entry| entry.1);
        let is_limited = origin != OriginKey::NONE;
        if is_limited && amount > self.limits.per_origin.saturating_sub(before) {
            return Err(Shortage::Origin(before));
        }
        if amount > self.limits.total.saturating_sub(*total) {
            return Err(Shortage::Total(*total));
        }
        if let Some(entry) = entry {
            entry.1 += amount;
        } else if is_limited && amount > 0 {
            by_origin.try_reserve(1).map_err(|_| Shortage::Memory)?;
            by_origin.insert(at, (origin, amount));
        }
        *total += amount;
        Ok(())
    }

    /// Gives back an amount that was taken for an origin.
    pub(crate) fn give_back(&self, origin: OriginKey, amount: u64) {
        let mut used = self.used.lock();
        used.total -= amount;
        let at = used.place_of(origin);
        let entry = used.by_origin.get_mut(at).filter(|entry| entry.0 == origin);
        if let Some((_, left)) = entry {
            *left -= amount;
            if *left == 0 {
                used.by_origin.remove(at);
            }
        }
    }

    pub(crate) fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The present use under a name.
    pub(crate) fn snapshot(&self, name: String) -> QuotaSnapshot {
        let used = self.used.lock();
        QuotaSnapshot {
            name,
            used: used.total,
            total: self.limits.total,
            per_origin: self.limits.per_origin,
            origins: used.by_origin.len() as u64,
            most: used.by_origin.iter().map(|it| it.1).max().unwrap_or(0),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

impl Usage {
    /// The index of an origin, or that at which it would be inserted.
    #[inline(never)]
    fn place_of(&self, origin: OriginKey) -> usize {
        self.by_origin.partition_point(|entry| entry.0 < origin)
    }
}

/// An amount of a quota that an origin uses. Dropping it gives the amount back.
#[derive(Debug)]
#[must_use = "the amount is given back when the charge is dropped"]
pub struct Charge {
    quota: Arc<Quota>,
    origin: Origin,
    amount: u64,
}

impl Charge {
    /// The origin that is charged.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The amount that is charged.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Charges the origin with more.
    ///
    /// # Errors
    /// As [`Quota::charge`]; the amount is unchanged.
    pub fn add(&mut self, more: u64) -> Result<(), QuotaError> {
        self.quota.take(self.origin, more)?;
        self.amount += more;
        Ok(())
    }

    /// Gives a part back, at most all.
    pub fn give_back(&mut self, less: u64) {
        let less = less.min(self.amount);
        if less > 0 {
            self.amount -= less;
            self.quota.shares.give_back(self.origin.key(), less);
        }
    }

    /// Changes the amount to another one.
    ///
    /// # Errors
    /// As [`Quota::charge`]; the amount is unchanged.
    pub fn change(&mut self, amount: u64) -> Result<(), QuotaError> {
        if amount > self.amount {
            return self.add(amount - self.amount);
        }
        self.give_back(self.amount - amount);
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// The state of a quota.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[non_exhaustive]
pub struct QuotaSnapshot {
    /// The name of the resource, in the plural.
    pub name: String,
    /// The amount that all origins use.
    pub used: u64,
    /// The most that all origins may use.
    pub total: u64,
    /// The most that each origin may use.
    pub per_origin: u64,
    /// The number of origins that use it, without those that have no limit of their own, as
    /// connections on the loopback have none.
    pub origins: u64,
    /// The amount of the origin with the greatest use.
    pub most: u64,
    /// The charges that were refused so far.
    pub refused: u64,
}

/// The quotas of an ORB, in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Quotas(PiMutex<Vec<Weak<Quota>>>);

impl Quotas {
    pub(crate) fn add(&self, quota: &Arc<Quota>) {
        let mut quotas = self.0.lock();
        quotas.retain(|quota| quota.strong_count() > 0);
        quotas.push(Arc::downgrade(quota));
    }

    /// Returns the states of the quotas that are in use.
    pub(crate) fn snapshots(&self) -> Vec<QuotaSnapshot> {
        let quotas: Vec<Arc<Quota>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        quotas.iter().map(|quota| quota.snapshot()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quota(total: u64, per_origin: u64) -> Arc<Quota> {
        let limits = QuotaLimits { total, per_origin };
        Arc::new(Quota::new("places", limits, Arc::default()))
    }

    #[test]
    fn an_origin_has_no_more_than_its_share() {
        let places = quota(10, 4);
        let mut first = places.charge(Origin::User(1), 3).unwrap();
        assert_eq!(first.add(1), Ok(()));
        let error = first.add(1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "user 1 has 4 of 4 places, and asks for 1 more"
        );
        let _second = places.charge(Origin::User(2), 4).unwrap();
        let error = places.charge(Origin::User(3), 3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "8 of 10 places are used, and user 3 asks for 3 more"
        );
        let snapshot = places.snapshot();
        assert_eq!((snapshot.used, snapshot.origins), (8, 2));
        assert_eq!((snapshot.most, snapshot.refused), (4, 2));
    }

    #[test]
    fn an_origin_without_a_limit_counts_in_the_total_alone() {
        let limits = QuotaLimits {
            total: 3,
            per_origin: 1,
        };
        let shares = Shares::new(limits);
        let user = Origin::User(0).key();
        for origin in [OriginKey::NONE, user, OriginKey::NONE] {
            assert_eq!(shares.take(origin, 1), Ok(()));
        }
        assert_eq!(shares.take(user, 1), Err(Shortage::Origin(1)));
        assert_eq!(shares.take(OriginKey::NONE, 1), Err(Shortage::Total(3)));
        let snapshot = shares.snapshot(String::new());
        assert_eq!((snapshot.used, snapshot.origins), (3, 1));
        assert_eq!((snapshot.most, snapshot.refused), (1, 0));
        shares.give_back(user, 1);
        shares.give_back(OriginKey::NONE, 2);
        let snapshot = shares.snapshot(String::new());
        assert_eq!((snapshot.used, snapshot.origins), (0, 0));
    }

    #[test]
    fn refusals_are_incidents() {
        let places = quota(1, 1);
        let _one = places.charge(Origin::Process, 1).unwrap();
        assert!(places.charge(Origin::Process, u64::MAX).is_err());
        let mut counts = places.incidents.counts();
        assert!(counts.any(|count| count == (Incident::QuotaExceeded, 1)));
    }

    proptest! {
        #[test]
        fn the_use_is_the_sum_of_the_charges(
            steps in prop::collection::vec((0..4_u32, 0..6_u64, any::<bool>()), 0..60),
        ) {
            let places = quota(20, 8);
            let mut held: Vec<Charge> = Vec::new();
            for (user, amount, changes) in steps {
                let mine = held.iter().position(|it| it.origin() == Origin::User(user));
                match mine {
                    Some(at) if changes => {
                        let before = held[at].amount();
                        if held[at].change(amount).is_err() {
                            prop_assert_eq!(held[at].amount(), before);
                        }
                    }
                    Some(at) if amount == 0 => drop(held.swap_remove(at)),
                    _ => held.extend(places.charge(Origin::User(user), amount).ok()),
                }
                let sum: u64 = held.iter().map(Charge::amount).sum();
                let mut by_user = [0; 4];
                for charge in &held {
                    let Origin::User(user) = charge.origin() else { unreachable!() };
                    by_user[user as usize] += charge.amount();
                }
                let snapshot = places.snapshot();
                prop_assert_eq!(snapshot.used, sum);
                prop_assert_eq!(snapshot.most, by_user.into_iter().max().unwrap_or(0));
                prop_assert!(sum <= 20 && snapshot.most <= 8);
            }
            held.clear();
            prop_assert_eq!(places.snapshot().used, 0);
            prop_assert_eq!(places.snapshot().origins, 0);
        }
    }
}
