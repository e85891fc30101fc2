//! `chronorb ns list`: contexts and their bindings, with the state of each object.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chronorb_naming::idl::cos_naming::{BindingType, NamingContext};
use chronorb_orb::{Object, OrbConfig, SystemExceptionKind};
use serde::Serialize;

use super::arguments::ListArguments;
use super::names::{NameServer, NsError, text_of};
use super::print;
use crate::client::Client;

/// All bindings of a list, in the order of the tree.
#[derive(Serialize)]
struct Listing {
    /// The version of the JSON.
    version: u32,
    bindings: Vec<ListedBinding>,
}

#[derive(Serialize)]
struct ListedBinding {
    /// The name from the first context on.
    name: String,
    kind: ListedKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    ior: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The reason why the binding cannot be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip)]
    component: String,
    #[serde(skip)]
    depth: usize,
    #[serde(skip)]
    object: Option<Object>,
}

#[derive(Clone, Copy, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ListedKind {
    Object,
    Context,
}

/// Lists a context; `false` where an object was found not to be there.
pub(super) fn run(arguments: &ListArguments, config: OrbConfig) -> Result<bool, NsError> {
    let names = NameServer::connect(&arguments.server, config)?;
    let first = match &arguments.name {
        Some(name) => NamingContext::unchecked_narrow(&names.resolve(name)?),
        None => names.root.clone(),
    };
    let mut listing = Listing {
        version: 1,
        bindings: Vec::new(),
    };
    let mut path = vec![first.as_object().clone()];
    listing.add_context(&names, arguments, &first, "", &mut path)?;
    let mut all_there = true;
    if arguments.check {
        check(&names.client, &mut listing.bindings);
        all_there = listing
            .bindings
            .iter()
            .all(|binding| binding.state.as_deref().is_none_or(|state| state == OK));
    }
    if arguments.json {
        let text = serde_json::to_string(&listing).map_err(std::io::Error::from)?;
        print(&(text + "\n"))?;
    } else {
        print(&listing.tree())?;
    }
    Ok(all_there)
}

impl Listing {
    /// Adds the bindings of a context. `path` has the contexts around it, so that a loop ends.
    fn add_context(
        &mut self,
        names: &NameServer,
        arguments: &ListArguments,
        context: &NamingContext,
        prefix: &str,
        path: &mut Vec<Object>,
    ) -> Result<(), NsError> {
        for binding in names.bindings_of(context, prefix, self.bindings.len())? {
            let Some(component) = binding.binding_name.first() else {
                continue;
            };
            let is_context = binding.binding_type == BindingType::Ncontext;
            let name = format!("{prefix}{}", text_of(component));
            let index = self.bindings.len();
            self.bindings.push(ListedBinding {
                name: name.clone(),
                kind: if is_context {
                    ListedKind::Context
                } else {
                    ListedKind::Object
                },
                ior: None,
                state: None,
                problem: None,
                component: text_of(component),
                depth: path.len() - 1,
                object: None,
            });
            let is_followed = is_context && !arguments.flat;
            if !is_followed && !arguments.ior && !arguments.check {
                continue;
            }
            let entry = &mut self.bindings[index];
            let object = match context.resolve(&[component.as_view()]) {
                Ok(Some(object)) => object,
                Ok(None) => {
                    entry.problem = Some("a nil reference".to_owned());
                    continue;
                }
                Err(error) => {
                    entry.problem = Some(error.to_string());
                    continue;
                }
            };
            if arguments.ior {
                entry.ior = Some(object.ior().to_string());
            }
            if !is_followed {
                entry.object = Some(object);
                continue;
            }
            if path.contains(&object) {
                entry.problem = Some("a context around this one".to_owned());
                continue;
            }
            if path.len() >= MAX_DEPTH {
                entry.problem = Some(format!("more than {MAX_DEPTH} contexts in each other"));
                continue;
            }
            path.push(object.clone());
            let inner = NamingContext::unchecked_narrow(&object);
            let listed = self.add_context(names, arguments, &inner, &format!("{name}/"), path);
            path.pop();
            match listed {
                Ok(()) => {}
                // The context of another server may be down; the list goes on.
                Err(NsError::Client(error)) => {
                    self.bindings[index].problem = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn tree(&self) -> String {
        let mut text = String::new();
        for binding in &self.bindings {
            let indent = 2 * binding.depth;
            let slash = match binding.kind {
                ListedKind::Context => "/",
                ListedKind::Object => "",
            };
            // A string takes every text.
            let _ = write!(text, "{:indent$}{}{slash}", "", binding.component);
            for part in [&binding.state, &binding.problem, &binding.ior]
                .into_iter()
                .flatten()
            {
                let _ = write!(text, "  {part}");
            }
            text.push('\n');
        }
        text
    }
}

/// The answer to the question whether an object exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ObjectState {
    Exists,
    Gone,
    /// The reason why its server does not answer.
    Unreachable(String),
}

impl fmt::Display for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str(OK),
            Self::Gone => f.write_str("gone: the server does not have the object"),
            Self::Unreachable(cause) => write!(f, "unreachable: {cause}"),
        }
    }
}

/// Asks all objects of a list whether they exist.
fn check(client: &Client, bindings: &mut [ListedBinding]) {
    let entries = bindings.iter().enumerate();
    let entries = entries.filter_map(|(index, binding)| Some((index, binding.object.as_ref()?)));
    let (indices, objects): (Vec<_>, Vec<_>) = entries.unzip();
    let states = states(client, &objects);
    for (index, state) in indices.into_iter().zip(states) {
        bindings[index].state = Some(state.to_string());
    }
}

/// Asks objects whether they exist, several at a time.
pub(super) fn states(client: &Client, objects: &[&Object]) -> Vec<ObjectState> {
    let next = AtomicUsize::new(0);
    let ask = || {
        let mut states = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(object) = objects.get(index) else {
                return states;
            };
            let state = match object.non_existent() {
                Ok(false) => ObjectState::Exists,
                Ok(true) => ObjectState::Gone,
                Err(exception) if exception.kind == SystemExceptionKind::ObjectNotExist => {
                    ObjectState::Gone
                }
                Err(exception) => ObjectState::Unreachable(client.cause(exception)),
            };
            states.push((index, state));
        }
    };
    let mut states = thread::scope(|scope| {
        let threads: Vec<_> = (0..ASKERS.min(objects.len()))
            .map(|_| scope.spawn(ask))
            .collect();
        let states = threads.into_iter().filter_map(|thread| thread.join().ok());
        states.flatten().collect::<Vec<_>>()
    });
    states.sort_by_key(|(index, _)| *index);
    states.into_iter().map(|(_, state)| state).collect()
}

const OK: &str = "ok";
/// The greatest depth of contexts in contexts.
const MAX_DEPTH: usize = 64;
/// The threads that ask objects.
const ASKERS: usize = 16;
