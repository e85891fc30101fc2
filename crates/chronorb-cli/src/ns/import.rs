//! `chronorb ns import`: the bindings of a text in a name server that runs.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use chronorb_giop::Ior;
use chronorb_naming::idl::chronorb_naming::LeasingContext;
use chronorb_naming::idl::cos_naming::{
    BindErrorBuf, NameComponentBuf, NamingContext, ResolveErrorBuf,
};
use chronorb_naming::{Binding, BindingKind, Change, ROOT, Target, Tree, name_to_text};
use chronorb_orb::{Interface as _, Object, OrbConfig};

use super::arguments::ImportArguments;
use super::names::{NameFailure, NameServer, NsError, views};
use super::serve::{MAX_IMPORT, imported, read_import};
use super::survey::HomeServer;

/// A name: its components from the root on.
type Path = Vec<NameComponentBuf>;

/// Imports a text. It is read as a whole before the first binding is made.
pub(super) fn run(arguments: &ImportArguments, config: OrbConfig) -> Result<bool, NsError> {
    let tree = read(arguments)?;
    let plan = Plan::new(&tree)?;
    let names = NameServer::connect(&arguments.server, config)?;
    let root = HomeServer::of(&names)?.root;
    let import = Import {
        names: &names,
        root: root.into_object(),
        replaces: arguments.rebind,
        plan: &plan,
    };
    let all = plan.created.len() + plan.bound.len();
    let contexts = plan.created.iter().map(|path| import.make_context(path));
    // Iterators are lazy, so contexts come before the bindings in them.
    let bindings = plan.bound.iter();
    let bindings = bindings.map(|(path, binding)| import.bind(path, binding));
    for (done, made) in contexts.chain(bindings).enumerate() {
        made.map_err(|cause| NsError::Import {
            cause: Box::new(cause),
            done,
            all,
        })?;
    }
    if plan.orphans > 0 {
        let orphans = plan.orphans;
        eprintln!("chronorb: {orphans} contexts are omitted, to which no name leads");
    }
    Ok(plan.orphans == 0)
}

fn read(arguments: &ImportArguments) -> Result<Tree, NsError> {
    let file = arguments.file.as_path();
    let data = if file.as_os_str() == "-" {
        let mut data = Vec::new();
        let mut input = io::stdin().take(MAX_IMPORT as u64 + 1);
        input.read_to_end(&mut data).and_then(|octets| {
            if octets > MAX_IMPORT {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(data)
        })
    } else {
        read_import(file)
    };
    let data = data.map_err(|source| NsError::File {
        file: file.to_owned(),
        source,
    })?;
    imported(&data).map_err(|problem| NsError::Text {
        file: file.to_owned(),
        problem,
    })
}

/// The bindings of a text in the order in which they are made.
struct Plan {
    /// The names of contexts, each after the one around it.
    created: Vec<Path>,
    /// All other bindings.
    bound: Vec<(Path, Binding)>,
    /// The names of contexts by their numbers in the text.
    paths: BTreeMap<u64, Path>,
    /// The number of contexts that no name leads to.
    orphans: usize,
}

impl Plan {
    fn new(tree: &Tree) -> Result<Self, NsError> {
        let mut contexts: BTreeMap<u64, Vec<(NameComponentBuf, Binding)>> = BTreeMap::new();
        for change in tree.changes() {
            match change {
                Change::CreateContext { context } => drop(contexts.entry(context).or_default()),
                Change::Bind {
                    context,
                    id,
                    kind,
                    binding,
                } => {
                    let component = NameComponentBuf {
                        id: text(id)?,
                        kind: text(kind)?,
                    };
                    contexts
                        .entry(context)
                        .or_default()
                        .push((component, binding));
                }
                Change::DestroyContext { .. } | Change::Unbind { .. } => {}
            }
        }
        let mut plan = Self {
            created: Vec::new(),
            bound: Vec::new(),
            paths: BTreeMap::from([(ROOT, Path::new())]),
            orphans: 0,
        };
        let mut order = vec![ROOT];
        let mut next = 0;
        while let Some(&context) = order.get(next) {
            next += 1;
            let around = plan.paths.get(&context).cloned().unwrap_or_default();
            for (component, binding) in contexts.remove(&context).unwrap_or_default() {
                let path = [&around[..], &[component]].concat();
                match binding.target {
                    Target::Context(target)
                        if binding.kind == BindingKind::Context
                            && !plan.paths.contains_key(&target) =>
                    {
                        plan.paths.insert(target, path.clone());
                        plan.created.push(path);
                        order.push(target);
                    }
                    _ => plan.bound.push((path, binding)),
                }
            }
        }
        plan.orphans = contexts.len();
        Ok(plan)
    }
}

fn text(octets: Vec<u8>) -> Result<String, NsError> {
    String::from_utf8(octets).map_err(|error| {
        let octets = error.as_bytes().escape_ascii().to_string();
        NsError::NotUtf8(octets)
    })
}

struct Import<'a> {
    names: &'a NameServer,
    root: Object,
    replaces: bool,
    plan: &'a Plan,
}

impl Import<'_> {
    /// Makes a context, or accepts the one that is bound to the name.
    fn make_context(&self, path: &Path) -> Result<(), NsError> {
        match self.names.root.bind_new_context(&views(path)) {
            Ok(_) => Ok(()),
            Err(BindErrorBuf::AlreadyBound(_)) if self.is_context(path)? => Ok(()),
            Err(error) => Err(self.error(path, error.into())),
        }
    }

    /// Whether names are resolved through a binding. A name that a context does not have fails at
    /// another component than a name in an object.
    fn is_context(&self, path: &Path) -> Result<bool, NsError> {
        let inner = NameComponentBuf {
            id: "chronorb".to_owned(),
            kind: "import".to_owned(),
        };
        let inside = [&path[..], &[inner]].concat();
        match self.names.root.resolve(&views(&inside)) {
            Ok(_) => Ok(true),
            Err(ResolveErrorBuf::NotFound(error)) => Ok(error.rest_of_name.len() <= 1),
            Err(error) => Err(self.error(path, error.into())),
        }
    }

    fn bind(&self, path: &Path, binding: &Binding) -> Result<(), NsError> {
        let object = self.object(path, binding)?;
        let root = &self.names.root;
        let name = &views(path)[..];
        let failure: Result<(), NameFailure> = match (binding.kind, binding.lease) {
            (BindingKind::Object, Some(lease)) => {
                let context = LeasingContext::unchecked_narrow(root.as_object());
                let (object, time) = (object.as_ref(), lease.time_to_live);
                if self.replaces {
                    let bound = context.rebind_with_lease(name, object, time);
                    bound.map(drop).map_err(NameFailure::from)
                } else {
                    let bound = context.bind_with_lease(name, object, time);
                    bound.map(drop).map_err(NameFailure::from)
                }
            }
            (BindingKind::Object, None) if self.replaces => root
                .rebind(name, object.as_ref())
                .map_err(NameFailure::from),
            (BindingKind::Object, None) => {
                root.bind(name, object.as_ref()).map_err(NameFailure::from)
            }
            (BindingKind::Context, _) => {
                let context = object.as_ref().map(NamingContext::unchecked_narrow);
                if self.replaces {
                    let bound = root.rebind_context(name, context.as_ref());
                    bound.map_err(NameFailure::from)
                } else {
                    let bound = root.bind_context(name, context.as_ref());
                    bound.map_err(NameFailure::from)
                }
            }
        };
        failure.map_err(|failure| self.error(path, failure))
    }

    /// Returns the object of a binding; `None` for a nil reference.
    fn object(&self, path: &Path, binding: &Binding) -> Result<Option<Object>, NsError> {
        let client = &self.names.client;
        match &binding.target {
            Target::Reference(octets) => {
                let ior = Ior::from_encapsulation(octets).map_err(NsError::Reference)?;
                if ior.is_nil() {
                    return Ok(None);
                }
                let object = client.orb.ior_to_object(ior);
                let failed = |exception| client.failed(text_of(path), exception).into();
                object.map(Some).map_err(failed)
            }
            Target::Context(ROOT) => Ok(Some(self.root.clone())),
            Target::Context(context) => {
                let context = self.plan.paths.get(context);
                let Some(context) = context else {
                    return Err(NsError::Orphan(text_of(path)));
                };
                let object = self.names.root.resolve(&views(context));
                object.map_err(|error| self.error(context, error.into()))
            }
        }
    }

    fn error(&self, path: &Path, failure: NameFailure) -> NsError {
        self.names.error(&text_of(path), path, failure)
    }
}

fn text_of(path: &Path) -> String {
    // A name of the text has a component.
    name_to_text(&views(path)).unwrap_or_default()
}
