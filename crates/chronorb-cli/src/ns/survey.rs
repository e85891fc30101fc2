//! The contexts of a name server that names lead to, and their bindings.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use chronorb_giop::{IiopProfile, TAG_INTERNET_IOP};
use chronorb_naming::idl::chronorb_naming::ListedContext;
use chronorb_naming::idl::cos_naming::{
    BindingType, NameComponentBuf, NamingContext, ResolveErrorBuf,
};
use chronorb_orb::{Interface as _, Object, SystemExceptionKind};
use chronorb_rt::Deadline;
use chronorb_transport::host_addresses;

use super::names::{NameServer, NsError, text_of};

/// The contexts that names of one server lead to. A context has its index as its number, the root
/// has 0.
pub(super) struct Survey {
    pub(super) contexts: Vec<SurveyContext>,
    numbers: HashMap<Object, usize>,
}

pub(super) struct SurveyContext {
    pub(super) context: NamingContext,
    /// The context around it, and the component there; `None` for the root.
    parent: Option<(usize, String)>,
    pub(super) bindings: Vec<SurveyBinding>,
    /// The reason why its bindings are unknown.
    pub(super) problem: Option<ContextProblem>,
}

#[derive(Clone, Debug)]
pub(super) enum ContextProblem {
    /// The context is one of this server, and is destroyed.
    Destroyed,
    /// The context belongs to another server, and cannot be listed.
    Elsewhere(String),
}

pub(super) struct SurveyBinding {
    pub(super) component: NameComponentBuf,
    pub(super) is_context: bool,
    /// The bound object; `None` for a nil reference.
    pub(super) object: Option<Object>,
}

impl Survey {
    /// Lists all contexts that names lead to. Contexts of other servers are listed if `follows` is
    /// set.
    pub(super) fn take(
        names: &NameServer,
        home: &mut HomeServer,
        follows: bool,
    ) -> Result<Self, NsError> {
        let mut survey = Self {
            contexts: vec![SurveyContext::new(home.root.clone(), None)],
            numbers: HashMap::from([(names.root.as_object().clone(), 0)]),
        };
        survey.numbers.insert(home.root.as_object().clone(), 0);
        let (mut next, mut count) = (0, 0);
        while next < survey.contexts.len() {
            survey.list(names, home, follows, next, &mut count)?;
            next += 1;
        }
        Ok(survey)
    }

    /// Lists one context, and adds the contexts that are bound in it.
    fn list(
        &mut self,
        names: &NameServer,
        home: &mut HomeServer,
        follows: bool,
        number: usize,
        count: &mut usize,
    ) -> Result<(), NsError> {
        let context = self.contexts[number].context.clone();
        let name = self.name(number);
        let listed = match names.bindings_of(&context, &name, *count) {
            Ok(listed) => listed,
            Err(NsError::Client(error)) if number != 0 => {
                let is_home = home.contains(context.as_object());
                let problem = if !is_home {
                    ContextProblem::Elsewhere(error.to_string())
                } else if error.is_kind(SystemExceptionKind::ObjectNotExist) {
                    ContextProblem::Destroyed
                } else {
                    return Err(error.into());
                };
                self.contexts[number].problem = Some(problem);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        *count += listed.len();
        for binding in listed {
            let Some(component) = binding.binding_name.into_iter().next() else {
                continue;
            };
            let object = match context.resolve(&[component.as_view()]) {
                Ok(object) => object,
                // The binding was removed since it was listed.
                Err(ResolveErrorBuf::NotFound(_)) => continue,
                Err(error) => {
                    let components = [component];
                    let name = format!("{name}{}", text_of(&components[0]));
                    return Err(names.error(&name, &components, error.into()));
                }
            };
            let is_context = binding.binding_type == BindingType::Ncontext;
            if is_context && let Some(object) = &object {
                self.add(home, follows, number, &component, object);
            }
            self.contexts[number].bindings.push(SurveyBinding {
                component,
                is_context,
                object,
            });
        }
        Ok(())
    }

    /// Adds a context, if it is new and to be listed.
    fn add(
        &mut self,
        home: &mut HomeServer,
        follows: bool,
        parent: usize,
        component: &NameComponentBuf,
        object: &Object,
    ) {
        if self.numbers.contains_key(object) {
            return;
        }
        if home.is_root(object) {
            self.numbers.insert(object.clone(), 0);
        } else if follows || home.contains(object) {
            self.numbers.insert(object.clone(), self.contexts.len());
            let context = NamingContext::unchecked_narrow(object);
            let parent = Some((parent, text_of(component)));
            self.contexts.push(SurveyContext::new(context, parent));
        }
    }

    /// The number of a context, if the object is one.
    pub(super) fn number(&self, object: &Object) -> Option<usize> {
        self.numbers.get(object).copied()
    }

    /// The name of a context with a slash behind it; empty for the root.
    pub(super) fn name(&self, number: usize) -> String {
        let mut components = Vec::new();
        let mut number = number;
        while let Some((parent, component)) = &self.contexts[number].parent {
            if components.len() == MAX_SHOWN_COMPONENTS {
                components.push("…");
                break;
            }
            components.push(component);
            number = *parent;
        }
        let components = components.into_iter().rev();
        components.flat_map(|component| [component, "/"]).collect()
    }
}

impl SurveyContext {
    fn new(context: NamingContext, parent: Option<(usize, String)>) -> Self {
        Self {
            context,
            parent,
            bindings: Vec::new(),
            problem: None,
        }
    }
}

/// The contexts of one server, as opposed to those of others.
pub(super) struct HomeServer {
    /// The root context, by the server's own reference if the server is one of chronorb.
    pub(super) root: NamingContext,
    /// All contexts of the server but the root; `None` if it does not list them.
    pub(super) listed: Option<HashSet<Object>>,
    addresses: Vec<Address>,
    keys: Vec<Vec<u8>>,
    /// The addresses that were compared already.
    compared: HashMap<Address, bool>,
}

/// A host and a port.
type Address = (String, u16);

impl HomeServer {
    /// Asks a server for its contexts. A server without this operation is known by its addresses.
    pub(super) fn of(names: &NameServer) -> Result<Self, NsError> {
        let mut home = Self::new(&names.root);
        let context = ListedContext::unchecked_narrow(names.root.as_object());
        let (mut first, mut count, mut listed) = (0, 0, HashSet::new());
        loop {
            let batch = match context.list_contexts(first, BATCH) {
                Ok(batch) => batch,
                Err(exception) if is_missing(exception.kind) && first == 0 => return Ok(home),
                Err(exception) => {
                    let failed = names.client.failed("listing all contexts", exception);
                    return Err(failed.into());
                }
            };
            let Some(last) = batch.last() else { break };
            // A server that does not go on would keep this loop running.
            let Some(next) = last.number.checked_add(1).filter(|next| *next > first) else {
                break;
            };
            first = next;
            count += batch.len();
            if count > names.max {
                return Err(NsError::TooMany(names.max));
            }
            for entry in batch {
                match (entry.number, entry.reference) {
                    (0, Some(root)) => home.add_root(root),
                    (_, Some(context)) => drop(listed.insert(context.into_object())),
                    (_, None) => {}
                }
            }
        }
        home.listed = Some(listed);
        Ok(home)
    }

    fn new(root: &NamingContext) -> Self {
        let profiles = profiles(root.as_object());
        Self {
            root: root.clone(),
            listed: None,
            keys: profiles
                .iter()
                .map(|profile| profile.object_key.clone())
                .collect(),
            addresses: profiles.into_iter().map(address).collect(),
            compared: HashMap::new(),
        }
    }

    fn add_root(&mut self, root: NamingContext) {
        for profile in profiles(root.as_object()) {
            self.keys.push(profile.object_key.clone());
            self.addresses.push(address(profile));
        }
        self.root = root;
    }

    /// Whether an object is one of this server: the server lists it, or has one of its addresses.
    pub(super) fn contains(&mut self, object: &Object) -> bool {
        let listed = self.listed.as_ref();
        listed.is_some_and(|listed| listed.contains(object))
            || profiles(object)
                .into_iter()
                .any(|profile| self.has(address(profile)))
    }

    /// Whether an object is the root context of this server.
    fn is_root(&mut self, object: &Object) -> bool {
        let mut profiles = profiles(object).into_iter();
        profiles
            .any(|profile| self.keys.contains(&profile.object_key) && self.has(address(profile)))
    }

    fn has(&mut self, address: Address) -> bool {
        if let Some(known) = self.compared.get(&address) {
            return *known;
        }
        let is_here = self.addresses.iter().any(|own| is_same_host(own, &address));
        self.compared.insert(address, is_here);
        is_here
    }
}

fn profiles(object: &Object) -> Vec<IiopProfile> {
    let profiles = object.ior().profiles.iter();
    let profiles = profiles.filter(|profile| profile.tag == TAG_INTERNET_IOP);
    profiles
        .filter_map(|profile| IiopProfile::decode(&profile.data).ok())
        .collect()
}

fn address(profile: IiopProfile) -> Address {
    (profile.host, profile.port)
}

/// Whether two addresses lead to the same socket: their ports are equal, and their hosts have an
/// address in common or are both this machine.
fn is_same_host((one, port): &Address, (other, other_port): &Address) -> bool {
    if port != other_port {
        return false;
    }
    if one.eq_ignore_ascii_case(other) {
        return true;
    }
    let (one, other) = (addresses_of(one), addresses_of(other));
    one.iter().any(|address| other.contains(address))
        || one.iter().any(is_own) && other.iter().any(is_own)
}

fn addresses_of(host: &str) -> Vec<IpAddr> {
    // A host that has no address is another one.
    let addresses = host_addresses(host, Deadline::after(LOOK_UP)).unwrap_or_default();
    addresses.iter().map(|address| address.ip()).collect()
}

/// The longest look-up of a name.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Whether an address is one of this machine: sockets can be bound to it.
fn is_own(address: &IpAddr) -> bool {
    UdpSocket::bind((*address, 0)).is_ok()
}

/// Whether a server that fails so does not have the operation.
fn is_missing(kind: SystemExceptionKind) -> bool {
    use SystemExceptionKind::{BadOperation, NoImplement};
    matches!(kind, BadOperation | NoImplement)
}

/// The contexts of one answer of a server.
const BATCH: u32 = 1000;
/// The components of a name in a message.
const MAX_SHOWN_COMPONENTS: usize = 64;
