//! `chronorb ns list`: contexts and their bindings, with the state of each object.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chronorb_naming::idl::cos_naming::{BindingBuf, BindingType, NameComponentBuf, NamingContext};
use chronorb_orb::{Object, OrbConfig, SystemExceptionKind};
use chronorb_rt::visible;
use serde::Serialize;

use super::arguments::ListArguments;
use super::names::{NameServer, NsError, text_of};
use crate::client::Client;
use crate::output::{print, print_json};

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
    let names = NameServer::connect(&arguments.server, config)?.bounded(&arguments.bound);
    let first = match &arguments.name {
        Some(name) => NamingContext::unchecked_narrow(&names.resolve(name)?),
        None => names.root.clone(),
    };
    let mut walk = Walk {
        names: &names,
        arguments,
        count: 0,
        kept: Vec::new(),
    };
    let bindings = walk.bindings_of(&first, "")?;
    let mut path = vec![first.as_object().clone()];
    walk.context(&first, "", &mut path, bindings)?;
    let mut listing = Listing {
        version: 1,
        bindings: walk.kept,
    };
    let mut all_there = true;
    if arguments.check {
        check(&names.client, &mut listing.bindings);
        all_there = listing
            .bindings
            .iter()
            .all(|binding| binding.state.as_deref().is_none_or(|state| state == OK));
    }
    if arguments.json {
        print_json(&listing)?;
    } else {
        for binding in &listing.bindings {
            print(&binding.line())?;
        }
    }
    Ok(all_there)
}

/// The way through the contexts of a list. A binding is printed when it is found, unless it is
/// needed afterwards.
struct Walk<'a> {
    names: &'a NameServer,
    arguments: &'a ListArguments,
    /// The bindings that were asked for.
    count: usize,
    kept: Vec<ListedBinding>,
}

impl Walk<'_> {
    fn bindings_of(
        &mut self,
        context: &NamingContext,
        prefix: &str,
    ) -> Result<Vec<BindingBuf>, NsError> {
        let bindings = self.names.bindings_of(context, prefix, self.count)?;
        self.count += bindings.len();
        Ok(bindings)
    }

    /// Lists the bindings of a context. `path` has the contexts around it, so that a loop ends.
    fn context(
        &mut self,
        context: &NamingContext,
        prefix: &str,
        path: &mut Vec<Object>,
        bindings: Vec<BindingBuf>,
    ) -> Result<(), NsError> {
        for binding in bindings {
            let Some(component) = binding.binding_name.first() else {
                continue;
            };
            let is_context = binding.binding_type == BindingType::Ncontext;
            let text = text_of(component);
            let mut entry = ListedBinding {
                name: format!("{prefix}{text}"),
                kind: if is_context {
                    ListedKind::Context
                } else {
                    ListedKind::Object
                },
                ior: None,
                state: None,
                problem: None,
                component: text,
                depth: path.len() - 1,
                object: None,
            };
            let prefix = format!("{}/", entry.name);
            let inner = self.inspect(context, component, &prefix, path, &mut entry)?;
            self.add(entry)?;
            if let Some((object, bindings)) = inner {
                let inner = NamingContext::unchecked_narrow(&object);
                path.push(object);
                self.context(&inner, &prefix, path, bindings)?;
                path.pop();
            }
        }
        Ok(())
    }

    /// Resolves a binding as far as that is asked for. Returns the context there and its bindings,
    /// if it is to be listed.
    fn inspect(
        &mut self,
        context: &NamingContext,
        component: &NameComponentBuf,
        prefix: &str,
        path: &[Object],
        entry: &mut ListedBinding,
    ) -> Result<Option<(Object, Vec<BindingBuf>)>, NsError> {
        let is_followed = entry.kind == ListedKind::Context && !self.arguments.flat;
        if !is_followed && !self.arguments.ior && !self.arguments.check {
            return Ok(None);
        }
        let ListedBinding {
            ior,
            problem,
            object: kept,
            ..
        } = entry;
        let mut problem = |text: String| {
            *problem = Some(text);
            Ok(None)
        };
        let object = match context.resolve(&[component.as_view()]) {
            Ok(Some(object)) => object,
            Ok(None) => return problem("a nil reference".to_owned()),
            Err(error) => return problem(error.to_string()),
        };
        if self.arguments.ior {
            *ior = Some(object.ior().to_string());
        }
        if !is_followed {
            *kept = Some(object);
            return Ok(None);
        }
        if path.contains(&object) {
            return problem("a context around this one".to_owned());
        }
        if path.len() >= MAX_DEPTH {
            return problem(format!("more than {MAX_DEPTH} contexts in each other"));
        }
        match self.bindings_of(&NamingContext::unchecked_narrow(&object), prefix) {
            Ok(bindings) => Ok(Some((object, bindings))),
            // The context of another server may be down; the list goes on.
            Err(NsError::Client(error)) => problem(error.to_string().replace('\n', " ")),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, binding: ListedBinding) -> Result<(), NsError> {
        if self.arguments.json || self.arguments.check {
            self.kept.push(binding);
        } else {
            print(&binding.line())?;
        }
        Ok(())
    }
}

impl ListedBinding {
    /// Returns the line of a tree.
    fn line(&self) -> String {
        let indent = 2 * self.depth;
        let slash = match self.kind {
            ListedKind::Context => "/",
            ListedKind::Object => "",
        };
        let mut text = format!("{:indent$}{}{slash}", "", visible(&self.component));
        for part in [&self.state, &self.problem, &self.ior]
            .into_iter()
            .flatten()
        {
            text.push_str("  ");
            text.push_str(&visible(part));
        }
        text.push('\n');
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
