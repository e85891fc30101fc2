//! `chronorb ns list`: contexts and their bindings, with the state of each object.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chronorb_naming::idl::cos_naming::{BindingBuf, BindingType, NamingContext};
use chronorb_orb::{Object, OrbConfig};
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
    listing.add_context(&names.client, arguments, &first, "", &mut path)?;
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
        client: &Client,
        arguments: &ListArguments,
        context: &NamingContext,
        prefix: &str,
        path: &mut Vec<Object>,
    ) -> Result<(), NsError> {
        for binding in self.bindings_of(client, context, prefix)? {
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
            let listed = self.add_context(client, arguments, &inner, &format!("{name}/"), path);
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

    /// Asks for all bindings of a context.
    fn bindings_of(
        &self,
        client: &Client,
        context: &NamingContext,
        prefix: &str,
    ) -> Result<Vec<BindingBuf>, NsError> {
        let failed = |exception| {
            let name = prefix.trim_end_matches('/');
            let subject = if name.is_empty() {
                "listing the first context".to_owned()
            } else {
                format!("listing {name}")
            };
            NsError::from(client.failed(subject, exception))
        };
        let (mut bindings, iterator) = context.list(BATCH).map_err(failed)?;
        if let Some(iterator) = iterator {
            loop {
                let (more, batch) = iterator.next_n(BATCH).map_err(failed)?;
                let is_last = !more || batch.is_empty();
                bindings.extend(batch);
                if self.bindings.len() + bindings.len() > MAX_BINDINGS {
                    return Err(NsError::TooMany(MAX_BINDINGS));
                }
                if is_last {
                    break;
                }
            }
            // The server may have ended it by itself.
            let _ = iterator.destroy();
        }
        if self.bindings.len() + bindings.len() > MAX_BINDINGS {
            return Err(NsError::TooMany(MAX_BINDINGS));
        }
        bindings.sort_by(|one, other| {
            let key = |binding: &BindingBuf| {
                let first = binding.binding_name.first();
                first.map(|component| (component.id.clone(), component.kind.clone()))
            };
            key(one).cmp(&key(other))
        });
        Ok(bindings)
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

/// Asks all objects whether they exist, several at a time.
fn check(client: &Client, bindings: &mut [ListedBinding]) {
    let asked: Vec<(usize, Object)> = bindings
        .iter_mut()
        .enumerate()
        .filter_map(|(index, binding)| Some((index, binding.object.take()?)))
        .collect();
    let next = AtomicUsize::new(0);
    let ask = || {
        let mut states = Vec::new();
        while let Some((index, object)) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
            let state = match object.non_existent() {
                Ok(false) => OK.to_owned(),
                Ok(true) => "gone: the server does not have the object".to_owned(),
                Err(exception) => format!("unreachable: {}", client.cause(exception)),
            };
            states.push((*index, state));
        }
        states
    };
    let states = thread::scope(|scope| {
        let threads: Vec<_> = (0..ASKERS.min(asked.len()))
            .map(|_| scope.spawn(ask))
            .collect();
        let states = threads.into_iter().filter_map(|thread| thread.join().ok());
        states.flatten().collect::<Vec<_>>()
    });
    for (index, state) in states {
        bindings[index].state = Some(state);
    }
}

const OK: &str = "ok";
/// The bindings of one answer of a server.
const BATCH: u32 = 1000;
/// The greatest length of a list, so that a server cannot fill the memory.
const MAX_BINDINGS: usize = 1_000_000;
/// The greatest depth of contexts in contexts.
const MAX_DEPTH: usize = 64;
/// The threads that ask objects.
const ASKERS: usize = 16;
