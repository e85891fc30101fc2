//! The ledger of what is admitted, and the shares of clients.
//!
//! An analysis runs on a copy, with no lock held. Its result counts only if nothing changed
//! meanwhile, so of two clients that connect at the same time, the later one is analysed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronorb::quota::{Charge, Origin, Quota};
use chronorb::{Orb, SystemException, SystemExceptionKind};
use chronorb_rt::PiMutex;

use super::loads::{Loads, Work};
use super::shortfall::check;
use super::{Admission, AdmissionPolicy, ConsumerLoad, PublishedStream};
use crate::failure::system;
use crate::options::ChannelLimits;

/// The admission of a channel, and what it has admitted.
pub(crate) struct AdmissionLedger {
    pub(crate) settings: Admission,
    book: PiMutex<Book>,
    streams: Arc<Quota>,
    publications: Arc<Quota>,
}

struct Book {
    /// Replaced at each change, if an analysis has it.
    loads: Arc<Loads>,
    shares: BTreeMap<u64, Share>,
    last_ticket: u64,
}

/// The charges of a client.
struct Share {
    streams: Charge,
    publications: Charge,
}

/// A client's place in the ledger, until it is dropped.
pub(crate) struct AdmissionPlace {
    ledger: Arc<AdmissionLedger>,
    ticket: u64,
    /// The ticket that it replaces, which is not charged meanwhile.
    before: Option<u64>,
}

impl AdmissionPlace {
    /// The number of the place.
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }
}

/// The outcome of an admission.
#[derive(Default)]
pub(crate) struct Verdict {
    /// The time that is missing, as text; empty if none is.
    pub(crate) shortfall: String,
    /// `None` if the client is refused, or left out of the analysis.
    pub(crate) admitted: Option<AdmissionPlace>,
}

/// The result of an analysis.
struct ClientAnalysis {
    /// The loads with the client.
    next: Loads,
    /// The steps that are left, or the shortfall.
    outcome: Result<u64, String>,
}

impl AdmissionLedger {
    pub(crate) fn new(settings: Admission, limits: &ChannelLimits, orb: &Orb) -> Arc<Self> {
        let periodic = limits.periodic_publications;
        Arc::new(Self {
            settings,
            book: PiMutex::new(Book {
                loads: Arc::new(Loads::new(limits.streams.total)),
                shares: BTreeMap::new(),
                last_ticket: 0,
            }),
            streams: orb.quota("streams of events to consumers", limits.streams),
            publications: orb.quota("publications with periods", periodic),
        })
    }

    /// Admits a consumer, perhaps in place of the one with the ticket `before`, which its owner
    /// drops.
    ///
    /// # Errors
    /// `TRANSIENT` if other clients come and go all the time.
    pub(crate) fn admit_consumer(
        self: &Arc<Self>,
        origin: Origin,
        load: ConsumerLoad,
        before: Option<u64>,
    ) -> Result<Verdict, SystemException> {
        let load = Arc::new(load);
        self.admit(origin, before, |loads, ticket| {
            with_consumer(loads, ticket, &load, before)
        })
    }

    /// Admits a supplier with its publications, as a consumer.
    ///
    /// # Errors
    /// As for [`admit_consumer`](Self::admit_consumer).
    pub(crate) fn admit_supplier(
        self: &Arc<Self>,
        origin: Origin,
        streams: Vec<PublishedStream>,
        before: Option<u64>,
    ) -> Result<Verdict, SystemException> {
        let streams: Arc<[_]> = streams.into();
        self.admit(origin, before, |loads, ticket| {
            with_supplier(loads, ticket, &streams, before)
        })
    }

    /// Analyses the loads with a client until nothing changes meanwhile.
    fn admit(
        self: &Arc<Self>,
        origin: Origin,
        before: Option<u64>,
        mut analyse: impl FnMut(&Loads, u64) -> Result<ClientAnalysis, String>,
    ) -> Result<Verdict, SystemException> {
        let refused = |shortfall| {
            Ok(Verdict {
                shortfall,
                admitted: None,
            })
        };
        for _ in 0..ATTEMPTS {
            let (loads, ticket) = self.book.lock().copy();
            let ClientAnalysis { next, outcome } = match analyse(&loads, ticket) {
                Ok(analysed) => analysed,
                Err(shortfall) => return refused(shortfall),
            };
            let shortfall = outcome.err().unwrap_or_default();
            if !shortfall.is_empty() && self.settings.policy == AdmissionPolicy::Refuse {
                return refused(shortfall);
            }
            // Dropped last, which settles what the ticket before pays.
            let admitted = AdmissionPlace {
                ledger: self.clone(),
                ticket,
                before,
            };
            self.book.lock().exempt(before);
            let charge = |quota: &Arc<Quota>, amount| {
                quota
                    .charge(origin, amount)
                    .map_err(|error| error.to_string())
            };
            let share = charge(&self.streams, next.paid_by(ticket)).and_then(|streams| {
                let publications = charge(&self.publications, next.published_by(ticket))?;
                Ok(Share {
                    streams,
                    publications,
                })
            });
            let share = match share {
                Ok(share) => share,
                Err(shortfall) => return refused(shortfall),
            };
            let mut payers = next.other_payers(&loads);
            payers.retain(|payer| Some(*payer) != before);
            let client = (ticket, share);
            if self.book.lock().commit(&loads, next, client, &payers) {
                return Ok(Verdict {
                    shortfall,
                    admitted: Some(admitted),
                });
            }
        }
        Err(system(SystemExceptionKind::Transient))
    }
}

/// Analyses the loads with a consumer.
fn with_consumer(
    loads: &Loads,
    ticket: u64,
    load: &Arc<ConsumerLoad>,
    before: Option<u64>,
) -> Result<ClientAnalysis, String> {
    let mut work = Work::for_loads(loads);
    let mut next = loads.clone();
    next.add_consumer(ticket, load, &mut work)?;
    let own = next.sums_of(ticket);
    let mut others = next.sums().without(&own);
    if let Some(before) = before {
        others = others.without(&next.sums_of(before));
    }
    let outcome = check(others.transactions(), &own.transactions(), work.left());
    Ok(ClientAnalysis { next, outcome })
}

/// Analyses the loads with a supplier.
fn with_supplier(
    loads: &Loads,
    ticket: u64,
    streams: &Arc<[PublishedStream]>,
    before: Option<u64>,
) -> Result<ClientAnalysis, String> {
    let mut work = Work::for_loads(loads);
    let mut next = loads.clone();
    next.add_supplier(ticket, streams, &mut work)?;
    let all = if let Some(before) = before {
        // Both are in the ledger until the one before is dropped.
        let mut replaced = loads.clone();
        replaced.remove(before);
        replaced.add_supplier(ticket, streams, &mut work)?;
        replaced.sums().transactions()
    } else {
        next.sums().transactions()
    };
    let outcome = check(Vec::new(), &all, work.left());
    Ok(ClientAnalysis { next, outcome })
}

impl Book {
    /// Returns the loads for an analysis, and a new ticket.
    fn copy(&mut self) -> (Arc<Loads>, u64) {
        self.last_ticket += 1;
        (self.loads.clone(), self.last_ticket)
    }

    /// Gives back the share of a client that is replaced.
    fn exempt(&mut self, ticket: Option<u64>) {
        let share = ticket.and_then(|ticket| self.shares.get_mut(&ticket));
        if let Some(share) = share {
            share.streams.give_back(u64::MAX);
            share.publications.give_back(u64::MAX);
        }
    }

    /// Adds a client, if the loads are those of its analysis. Returns whether they are. The clients
    /// that pay for other streams then, without the one that is replaced, are charged with them.
    fn commit(
        &mut self,
        analysed: &Arc<Loads>,
        next: Loads,
        (ticket, share): (u64, Share),
        payers: &[u64],
    ) -> bool {
        if !Arc::ptr_eq(&self.loads, analysed) {
            return false;
        }
        self.loads = Arc::new(next);
        self.shares.insert(ticket, share);
        for payer in payers {
            self.settle(*payer);
        }
        true
    }

    /// Charges a client with what it pays for. One whose share is used up meanwhile pays less.
    fn settle(&mut self, ticket: u64) {
        if let Some(share) = self.shares.get_mut(&ticket) {
            let _ = share.streams.change(self.loads.paid_by(ticket));
            let _ = share.publications.change(self.loads.published_by(ticket));
        }
    }
}

impl Drop for AdmissionPlace {
    fn drop(&mut self) {
        let mut book = self.ledger.book.lock();
        let share = book.shares.remove(&self.ticket);
        // Without a share it was not committed.
        let mut payers = if share.is_some() {
            Arc::make_mut(&mut book.loads).remove(self.ticket)
        } else {
            Default::default()
        };
        drop(share);
        payers.extend(self.before);
        for payer in payers {
            book.settle(payer);
        }
    }
}

/// The analyses of a client while others come and go.
const ATTEMPTS: usize = 8;

#[cfg(test)]
mod tests;
