//! The servant of all contexts.

use std::sync::Arc;

use chronorb::poa::{Cookie, ObjectId, Poa, Refusal, ServantLocator};
use chronorb::{Call, Object, Servant, SystemException, SystemExceptionKind};
use chronorb_cdr::CdrError;
use chronorb_giop::name_text::TextComponents;
use chronorb_rt::Monotonic;

use crate::change::{Binding, BindingKind, Change, Target};
use crate::failure::{Failure, RemoteError, TextFailure, over_quota, system};
use crate::federation::proceed;
use crate::housekeeping::{BATCH, end_leases};
use crate::idl::chronorb_naming::leasing_context::InvalidTimeToLive;
use crate::idl::chronorb_naming::{
    BindWithLeaseError, LeasingContext, LeasingContextServant, ListedContextServant,
    ListedContextSkeleton, NumberedContext, NumberedContexts, RebindWithLeaseError, ReleaseError,
    RenewError,
};
use crate::idl::cos_naming::naming_context::NotEmpty;
use crate::idl::cos_naming::naming_context_ext::InvalidAddress;
use crate::idl::cos_naming::{
    BindContextError, BindError, BindNewContextError, BindingIterator, BindingList, DestroyError,
    Name, NameComponent, NamingContext, NamingContextExtServant, NamingContextServant,
    RebindContextError, RebindError, ResolveError, ResolveStrError, ToNameError, ToStringError,
    ToUrlError, UnbindError,
};
use crate::iterator::to_list;
use crate::name::{in_arena, text_octets, url_octets, write_text, write_url};
use crate::state::{ChangeFailure, ServerState, number, target_of};
use crate::tree::{Place, Tree, TreeError};

/// The servant of all contexts: the object id is the number of the context.
pub(crate) struct Contexts(Arc<ServerState>);

/// The locator of contexts: an object exists as long as the tree has its number.
pub(crate) struct ContextLocator {
    shared: Arc<ServerState>,
    servant: Servant,
}

impl ContextLocator {
    pub(crate) fn new(shared: Arc<ServerState>) -> Self {
        let servant = ListedContextSkeleton::new(Contexts(shared.clone()));
        let servant = Arc::new(servant);
        Self { shared, servant }
    }
}

impl ServantLocator for ContextLocator {
    fn preinvoke(&self, id: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        let exists = |number| self.shared.read(|tree, _| tree.contains(number));
        if number(id).is_some_and(exists) {
            Ok((self.servant.clone(), None))
        } else {
            Err(system(SystemExceptionKind::ObjectNotExist).into())
        }
    }
}

/// The changes of an operation and its result.
type Plan<'a, T> = Result<(Vec<Change>, T), TreeError<'a>>;

impl Contexts {
    /// Makes the changes that `plan` finds for the last component, or continues elsewhere.
    fn edit<'a, T, E: RemoteError>(
        &self,
        call: &Call<'a>,
        name: Name<'a>,
        plan: impl FnOnce(&Tree, u64, &'a NameComponent<'a>, Monotonic) -> Plan<'a, T>,
        remote: impl FnOnce(&Object, Name<'a>) -> Result<T, E>,
    ) -> Result<T, Failure<'a>> {
        let context = target_of(call)?;
        let made = self.0.change(
            || call.origin(),
            |tree, now| {
                Ok(match tree.walk(context, name, now)? {
                    Place::Here(context, last) => {
                        let (changes, result) = plan(tree, context, last, now)?;
                        (changes, Ok(result))
                    }
                    Place::Elsewhere(reference, rest) => (Vec::new(), Err((reference, rest))),
                })
            },
        );
        match made.map_err(|failure| self.refused(call, failure))? {
            Ok(result) => Ok(result),
            Err((reference, rest)) => proceed(&self.0, call, reference, rest, remote),
        }
    }

    fn refused<'a>(&self, call: &Call<'a>, failure: ChangeFailure<'a>) -> Failure<'a> {
        match failure {
            ChangeFailure::Refused(error) => Failure::of_tree(call, &self.0, error),
            ChangeFailure::Quota(error) => Failure::System(over_quota(&error)),
            ChangeFailure::Journal => Failure::System(system(SystemExceptionKind::PersistStore)),
            ChangeFailure::Inconsistent => Failure::System(system(SystemExceptionKind::Internal)),
        }
    }

    fn look_up<'a>(&self, call: &Call<'a>, name: Name<'a>) -> Result<Option<Object>, Failure<'a>> {
        let context = target_of(call)?;
        let found = self.0.read(|tree, now| {
            Ok(match tree.walk(context, name, now)? {
                Place::Here(context, last) => Ok(tree.resolve(context, last, now)?),
                Place::Elsewhere(reference, rest) => Err((reference, rest)),
            })
        });
        match found.map_err(|error| Failure::of_tree(call, &self.0, error))? {
            Ok(target) => Ok(self.0.object(&target)?),
            Err((reference, rest)) => proceed(&self.0, call, reference, rest, |object, rest| {
                NamingContext::unchecked_narrow(object).resolve(rest)
            }),
        }
    }

    /// Binds an object of this server or another; `time_to_live` is that of a lease.
    fn bind_target<'a, E: RemoteError>(
        &self,
        call: &Call<'a>,
        name: Name<'a>,
        object: Option<&Object>,
        how: How,
        remote: impl FnOnce(&Object, Name<'a>) -> Result<u64, E>,
    ) -> Result<u64, Failure<'a>> {
        let target = self.0.target(object)?;
        let plan = |tree: &Tree, context, last, now| {
            let lease = how.time_to_live.map(|time| tree.new_lease(time));
            let binding = Binding {
                kind: how.kind,
                target,
                lease,
            };
            let bound = tree.bind(context, last, binding, how.replace, now)?;
            Ok((vec![bound], lease.map_or(0, |lease| lease.id)))
        };
        self.edit(call, name, plan, remote)
    }

    fn check_time_to_live<'a>(&self, time_to_live: u32) -> Result<(), Failure<'a>> {
        let (least, greatest) = self.0.limits.time_to_live;
        if (least..=greatest).contains(&time_to_live) {
            Ok(())
        } else {
            let refused = InvalidTimeToLive { least, greatest };
            Err(Failure::InvalidTimeToLive(refused))
        }
    }
}

/// The form of a binding.
#[derive(Clone, Copy)]
struct How {
    kind: BindingKind,
    replace: bool,
    time_to_live: Option<u32>,
}

impl How {
    const fn new(kind: BindingKind, replace: bool) -> Self {
        Self {
            kind,
            replace,
            time_to_live: None,
        }
    }

    const fn leased(replace: bool, time_to_live: u32) -> Self {
        Self {
            kind: BindingKind::Object,
            replace,
            time_to_live: Some(time_to_live),
        }
    }
}

/// The exception for a nil context.
const NIL: SystemException = system(SystemExceptionKind::BadParam);

impl NamingContextServant for Contexts {
    fn bind<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        obj: Option<&Object>,
    ) -> Result<(), BindError<'a>> {
        let how = How::new(BindingKind::Object, false);
        let bound = self.bind_target(call, n, obj, how, |object, rest| {
            NamingContext::unchecked_narrow(object)
                .bind(rest, obj)
                .map(|()| 0)
        });
        Ok(bound.map(drop)?)
    }

    fn rebind<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        obj: Option<&Object>,
    ) -> Result<(), RebindError<'a>> {
        let how = How::new(BindingKind::Object, true);
        let bound = self.bind_target(call, n, obj, how, |object, rest| {
            NamingContext::unchecked_narrow(object)
                .rebind(rest, obj)
                .map(|()| 0)
        });
        Ok(bound.map(drop)?)
    }

    fn bind_context<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        nc: Option<&NamingContext>,
    ) -> Result<(), BindContextError<'a>> {
        let bound = nc.ok_or(NIL)?.as_object();
        let how = How::new(BindingKind::Context, false);
        let bound = self.bind_target(call, n, Some(bound), how, |object, rest| {
            NamingContext::unchecked_narrow(object)
                .bind_context(rest, nc)
                .map(|()| 0)
        });
        Ok(bound.map(drop)?)
    }

    fn rebind_context<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        nc: Option<&NamingContext>,
    ) -> Result<(), RebindContextError<'a>> {
        let bound = nc.ok_or(NIL)?.as_object();
        let how = How::new(BindingKind::Context, true);
        let bound = self.bind_target(call, n, Some(bound), how, |object, rest| {
            let context = NamingContext::unchecked_narrow(object);
            context.rebind_context(rest, nc).map(|()| 0)
        });
        Ok(bound.map(drop)?)
    }

    fn resolve<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
    ) -> Result<Option<Object>, ResolveError<'a>> {
        Ok(self.look_up(call, n)?)
    }

    fn unbind<'a>(&self, call: &Call<'a>, n: Name<'a>) -> Result<(), UnbindError<'a>> {
        let plan = |tree: &Tree, context, last, now| {
            let removed = tree.unbind(context, last, now)?;
            Ok((vec![removed], ()))
        };
        Ok(self.edit(call, n, plan, |object, rest| {
            NamingContext::unchecked_narrow(object).unbind(rest)
        })?)
    }

    fn new_context(&self, call: &Call<'_>) -> Result<Option<NamingContext>, SystemException> {
        let created = self.0.change(
            || call.origin(),
            |tree, _| {
                let (context, change) = tree.create_context()?;
                Ok((vec![change], context))
            },
        );
        match created.map_err(|failure| self.refused(call, failure)) {
            Ok(context) => self.0.context(context).map(Some),
            Err(Failure::System(exception)) => Err(exception),
            Err(_) => Err(system(SystemExceptionKind::Internal)),
        }
    }

    fn bind_new_context<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
    ) -> Result<Option<NamingContext>, BindNewContextError<'a>> {
        let plan = |tree: &Tree, context, last, now| {
            let (created, change) = tree.create_context()?;
            let binding = Binding {
                kind: BindingKind::Context,
                target: Target::Context(created),
                lease: None,
            };
            let bound = tree.bind(context, last, binding, false, now)?;
            Ok((vec![change, bound], NewContext::Here(created)))
        };
        let made = self.edit(call, n, plan, |object, rest| {
            let context = NamingContext::unchecked_narrow(object);
            context.bind_new_context(rest).map(NewContext::Elsewhere)
        });
        match made? {
            NewContext::Here(context) => Ok(Some(self.0.context(context)?)),
            NewContext::Elsewhere(context) => Ok(context),
        }
    }

    fn destroy(&self, call: &Call<'_>) -> Result<(), DestroyError> {
        let context = target_of(call)?;
        // The change removes bindings whose leases have ended, in one group.
        if self.0.read(|tree, _| tree.binding_count(context)) > BATCH {
            end_leases(&self.0);
        }
        let destroyed = self.0.change(
            || call.origin(),
            |tree, now| Ok((tree.destroy(context, now)?, ())),
        );
        match destroyed.map_err(|failure| self.refused(call, failure)) {
            Ok(()) => Ok(()),
            Err(Failure::NotEmpty) => Err(NotEmpty.into()),
            Err(Failure::System(exception)) => Err(exception.into()),
            Err(_) => Err(system(SystemExceptionKind::Internal).into()),
        }
    }

    fn list<'a>(
        &self,
        call: &Call<'a>,
        how_many: u32,
    ) -> Result<(BindingList<'a>, Option<BindingIterator>), SystemException> {
        let context = target_of(call)?;
        let n = how_many.min(self.0.limits.listed) as usize;
        let (page, has_others) = self.0.read(|tree, now| tree.page(context, None, n, now));
        let iterator = if has_others || how_many == 0 {
            let after = page.last().map(|entry| entry.key.clone());
            let (origin, now) = (call.origin(), self.0.now());
            let opened = self.0.iterators.lock().open(origin, context, after, now);
            let opened = opened.map_err(|error| over_quota(&error))?;
            Some(self.0.iterator(opened)?)
        } else {
            None
        };
        Ok((to_list(call, page)?, iterator))
    }
}

/// The context that `bind_new_context` has made.
enum NewContext {
    Here(u64),
    Elsewhere(Option<NamingContext>),
}

impl NamingContextExtServant for Contexts {
    fn to_string<'a>(&self, call: &Call<'a>, n: Name<'a>) -> Result<&'a str, ToStringError> {
        Ok(self.name_to_text(call, n)?)
    }

    fn to_name<'a>(&self, call: &Call<'a>, sn: &'a str) -> Result<Name<'a>, ToNameError> {
        Ok(self.name_from_text(call, sn)?)
    }

    fn to_url<'a>(
        &self,
        call: &Call<'a>,
        addr: &'a str,
        sn: &'a str,
    ) -> Result<&'a str, ToUrlError> {
        self.check_text(sn)?;
        if addr.len() > self.0.limits.reference_octets {
            return Err(system(SystemExceptionKind::ImpLimit).into());
        }
        let mut url = room_for(url_octets(addr, sn))?;
        write_url(addr, sn, &mut url).map_err(|_| InvalidAddress)?;
        Ok(call.keep(url))
    }

    fn resolve_str<'a>(
        &self,
        call: &Call<'a>,
        sn: &'a str,
    ) -> Result<Option<Object>, ResolveStrError<'a>> {
        let name = self.name_from_text(call, sn).map_err(Failure::from)?;
        Ok(self.look_up(call, name)?)
    }
}

impl Contexts {
    /// Checks the text of a name, in constant memory, and returns the number of its components.
    fn check_text(&self, text: &str) -> Result<usize, TextFailure> {
        let limits = &self.0.limits;
        if text.is_empty() {
            return Err(TextFailure::Invalid);
        }
        if text.len() > limits.longest_text() {
            return Err(TOO_LONG.into());
        }
        let mut components = 0;
        for component in TextComponents::new(text) {
            components += 1;
            if components > limits.components || component?.octets() > limits.component_octets {
                return Err(TOO_LONG.into());
            }
        }
        Ok(components)
    }

    /// Reads the text of a name. The name borrows from the text.
    fn name_from_text<'a>(&self, call: &Call<'a>, text: &'a str) -> Result<Name<'a>, TextFailure> {
        let n = self.check_text(text)?;
        let (arena, mut components) = (call.arena(), TextComponents::new(text));
        let name = arena.fill(n, |_| match components.next() {
            Some(Ok(component)) => in_arena(component, arena),
            // The text was checked.
            Some(Err(_)) | None => Err(CdrError::EndOfData),
        });
        Ok(name.map_err(SystemException::from)?)
    }

    /// Writes the text of a name.
    fn name_to_text<'a>(&self, call: &Call<'a>, name: Name<'a>) -> Result<&'a str, TextFailure> {
        let limits = &self.0.limits;
        let is_long = |component: &NameComponent<'_>| {
            component.id.len() + component.kind.len() > limits.component_octets
        };
        if name.is_empty() {
            return Err(TextFailure::Invalid);
        }
        if name.len() > limits.components || name.iter().any(is_long) {
            return Err(TOO_LONG.into());
        }
        let mut text = room_for(text_octets(name))?;
        write_text(name, &mut text);
        Ok(call.keep(text))
    }
}

/// The exception for a name or an address that is longer than the limits allow.
const TOO_LONG: SystemException = system(SystemExceptionKind::ImpLimit);

/// Returns a string with room for so many octets.
fn room_for(octets: usize) -> Result<String, SystemException> {
    let mut text = String::new();
    let reserved = text.try_reserve_exact(octets);
    reserved.map_err(|_| system(SystemExceptionKind::NoMemory))?;
    Ok(text)
}

impl LeasingContextServant for Contexts {
    fn bind_with_lease<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        obj: Option<&Object>,
        time_to_live: u32,
    ) -> Result<u64, BindWithLeaseError<'a>> {
        self.check_time_to_live(time_to_live)?;
        let how = How::leased(false, time_to_live);
        Ok(self.bind_target(call, n, obj, how, |object, rest| {
            LeasingContext::unchecked_narrow(object).bind_with_lease(rest, obj, time_to_live)
        })?)
    }

    fn rebind_with_lease<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        obj: Option<&Object>,
        time_to_live: u32,
    ) -> Result<u64, RebindWithLeaseError<'a>> {
        self.check_time_to_live(time_to_live)?;
        let how = How::leased(true, time_to_live);
        Ok(self.bind_target(call, n, obj, how, |object, rest| {
            LeasingContext::unchecked_narrow(object).rebind_with_lease(rest, obj, time_to_live)
        })?)
    }

    fn renew<'a>(&self, call: &Call<'a>, n: Name<'a>, lease: u64) -> Result<(), RenewError<'a>> {
        let context = target_of(call)?;
        let renewed = self.0.touch(|tree, now| match tree.walk(context, n, now)? {
            Place::Here(context, last) => tree.renew(context, last, lease, now).map(|()| None),
            Place::Elsewhere(reference, rest) => Ok(Some((reference, rest))),
        });
        let failed = |error| Failure::of_tree(call, &self.0, error);
        match renewed.map_err(failed)? {
            None => Ok(()),
            Some((reference, rest)) => {
                Ok(proceed(&self.0, call, reference, rest, |object, rest| {
                    LeasingContext::unchecked_narrow(object).renew(rest, lease)
                })?)
            }
        }
    }

    fn release<'a>(
        &self,
        call: &Call<'a>,
        n: Name<'a>,
        lease: u64,
    ) -> Result<(), ReleaseError<'a>> {
        let plan = |tree: &Tree, context, last, now| {
            tree.leased(context, last, lease, now)?;
            let removed = tree.unbind(context, last, now)?;
            Ok((vec![removed], ()))
        };
        Ok(self.edit(call, n, plan, |object, rest| {
            LeasingContext::unchecked_narrow(object).release(rest, lease)
        })?)
    }
}

impl ListedContextServant for Contexts {
    fn list_contexts<'a>(
        &self,
        call: &Call<'a>,
        first: u64,
        how_many: u32,
    ) -> Result<NumberedContexts<'a>, SystemException> {
        let most = how_many.min(self.0.limits.listed) as usize;
        let numbers = self.0.read(|tree, _| tree.contexts_from(first, most));
        let contexts = numbers.iter().map(|number| self.0.context(*number));
        let contexts = call.keep(contexts.collect::<Result<Vec<_>, _>>()?);
        call.fill(contexts.len(), |i| NumberedContext {
            number: numbers[i],
            reference: Some(&contexts[i]),
        })
    }
}
