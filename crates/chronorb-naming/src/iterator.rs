//! Binding iterators, which are a position in the order of a context's bindings.
//!
//! A binding that exists during the whole listing is returned exactly once. An iterator holds one
//! key, however many bindings are left.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chronorb::poa::{Cookie, ObjectId, Poa, Refusal, ServantLocator};
use chronorb::quota::{Charge, Origin, Quota, QuotaError, QuotaLimits};
use chronorb::{Call, Servant, SystemException, SystemExceptionKind};
use chronorb_rt::Monotonic;

use crate::change::BindingKind;
use crate::failure::system;
use crate::idl::cos_naming::{
    Binding, BindingIteratorServant, BindingIteratorSkeleton, BindingList, BindingType,
};
use crate::limits::Limits;
use crate::state::{ServerState, number, target_of};
use crate::tree::ListEntry;

/// The iterators that exist.
#[derive(Debug)]
pub(crate) struct Iterators {
    quota: Arc<Quota>,
    most: QuotaLimits,
    last: u64,
    open: BTreeMap<u64, Position>,
}

#[derive(Debug)]
struct Position {
    context: u64,
    /// The key of the last binding that was returned.
    after: Option<Arc<[u8]>>,
    used: Monotonic,
    charge: Charge,
}

impl Iterators {
    pub(crate) fn new(quota: Arc<Quota>, most: QuotaLimits) -> Self {
        Self {
            quota,
            most,
            last: 0,
            open: BTreeMap::new(),
        }
    }

    /// Makes an iterator for an origin. If it has too many, its own oldest one ends; if all have
    /// too many together, the oldest one of the origin with the most ends.
    pub(crate) fn open(
        &mut self,
        origin: Origin,
        context: u64,
        after: Option<Arc<[u8]>>,
        now: Monotonic,
    ) -> Result<u64, QuotaError> {
        let origins = self.open.values().map(|position| position.charge.origin());
        let own = origins.filter(|it| *it == origin).count() as u64;
        if own >= self.most.per_origin {
            self.end_oldest(|it| it == origin);
        } else if self.open.len() as u64 >= self.most.total {
            self.end_oldest_of_most(origin);
        }
        let charge = self.quota.charge(origin, 1)?;
        self.last += 1;
        let position = Position {
            context,
            after,
            used: now,
            charge,
        };
        self.open.insert(self.last, position);
        Ok(self.last)
    }

    /// Ends the iterator that was not used for the longest time, of these origins.
    fn end_oldest(&mut self, is_of: impl Fn(Origin) -> bool) {
        let open = self.open.iter();
        let oldest = open
            .filter(|(_, position)| is_of(position.charge.origin()))
            .min_by_key(|(_, position)| position.used)
            .map(|(id, _)| *id);
        oldest.and_then(|id| self.open.remove(&id));
    }

    /// Ends the oldest iterator of the origin itself if none has more, or else of those that have
    /// the most.
    fn end_oldest_of_most(&mut self, origin: Origin) {
        let mut counts = HashMap::new();
        for position in self.open.values() {
            *counts.entry(position.charge.origin()).or_insert(0) += 1;
        }
        let count = |origin| counts.get(&origin).copied().unwrap_or_default();
        let most = counts.values().copied().max().unwrap_or_default();
        if count(origin) == most {
            self.end_oldest(|it| it == origin);
        } else {
            self.end_oldest(|it| count(it) == most);
        }
    }

    /// Ends the iterators that were not used for too long.
    pub(crate) fn end_unused(&mut self, now: Monotonic, limits: &Limits) {
        let is_used = |position: &Position| now < position.used + limits.iterator_age;
        self.open.retain(|_, position| is_used(position));
    }

    fn exists(&self, iterator: u64, now: Monotonic, limits: &Limits) -> bool {
        let position = self.open.get(&iterator);
        position.is_some_and(|position| now < position.used + limits.iterator_age)
    }
}

/// The servant of all iterators: the object id is the number of the iterator.
pub(crate) struct Listings(Arc<ServerState>);

impl Listings {
    fn next(&self, call: &Call<'_>, how_many: u32) -> Result<Vec<ListEntry>, SystemException> {
        let iterator = target_of(call)?;
        let n = how_many.min(self.0.limits.listed) as usize;
        let mut iterators = self.0.iterators.lock();
        // It may have been ended since the locator found it.
        let position = iterators.open.get_mut(&iterator);
        let position = position.ok_or(system(SystemExceptionKind::ObjectNotExist))?;
        let (context, after) = (position.context, position.after.as_deref());
        let (page, _) = self.0.read(|tree, now| tree.page(context, after, n, now));
        position.used = self.0.now();
        if let Some(last) = page.last() {
            position.after = Some(last.key.clone());
        }
        Ok(page)
    }
}

impl BindingIteratorServant for Listings {
    fn next_one<'a>(&self, call: &Call<'a>) -> Result<(bool, Binding<'a>), SystemException> {
        let page = to_list(call, self.next(call, 1)?)?;
        let nothing = Binding {
            binding_name: &[],
            binding_type: BindingType::Nobject,
        };
        Ok((!page.is_empty(), page.first().copied().unwrap_or(nothing)))
    }

    fn next_n<'a>(
        &self,
        call: &Call<'a>,
        how_many: u32,
    ) -> Result<(bool, BindingList<'a>), SystemException> {
        if how_many == 0 {
            return Err(system(SystemExceptionKind::BadParam));
        }
        let page = to_list(call, self.next(call, how_many)?)?;
        Ok((!page.is_empty(), page))
    }

    fn destroy(&self, call: &Call<'_>) -> Result<(), SystemException> {
        let iterator = target_of(call)?;
        let ended = self.0.iterators.lock().open.remove(&iterator);
        ended
            .map(drop)
            .ok_or(system(SystemExceptionKind::ObjectNotExist))
    }
}

/// The locator of iterators.
pub(crate) struct ListingLocator {
    shared: Arc<ServerState>,
    servant: Servant,
}

impl ListingLocator {
    pub(crate) fn new(shared: Arc<ServerState>) -> Self {
        let servant = BindingIteratorSkeleton::new(Listings(shared.clone()));
        let servant = Arc::new(servant);
        Self { shared, servant }
    }
}

impl ServantLocator for ListingLocator {
    fn preinvoke(&self, id: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        let (now, limits) = (self.shared.now(), &self.shared.limits);
        let exists = |number| self.shared.iterators.lock().exists(number, now, limits);
        if number(id).is_some_and(exists) {
            Ok((self.servant.clone(), None))
        } else {
            Err(system(SystemExceptionKind::ObjectNotExist).into())
        }
    }
}

/// Makes the result of a listing.
pub(crate) fn to_list<'a>(
    call: &Call<'a>,
    page: Vec<ListEntry>,
) -> Result<BindingList<'a>, SystemException> {
    let page = call.keep(page);
    let names = call.fill(page.len(), |i| page[i].component())?;
    call.fill(page.len(), |i| Binding {
        binding_name: &names[i..=i],
        binding_type: match page[i].kind {
            BindingKind::Object => BindingType::Nobject,
            BindingKind::Context => BindingType::Ncontext,
        },
    })
}
