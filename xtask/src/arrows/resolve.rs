//! The modules in which the items of paths are defined.

use std::collections::BTreeSet;

use super::source::{Import, Modules};
use super::{Arrows, child, parent};

/// Returns the arrows between the modules that are files.
pub(super) fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for (name, module) in modules {
        let mut resolver = Resolver::new(modules);
        let mut targets = Targets::new();
        for import in module.imports.iter().filter(|import| !import.is_public) {
            let found = resolver.resolve(name, &import.path).into_iter();
            // The traits of a glob import may be used without their names.
            targets.extend(found.filter(|target| target.is_item() || import.name.is_none()));
        }
        for path in &module.paths {
            let found = resolver.resolve(name, path).into_iter();
            targets.extend(found.filter(Target::is_item));
        }
        let files = targets.iter().filter_map(|it| modules.get(it.module()));
        let files = files.map(|target| &target.file);
        let others = files.filter(|file| **file != module.file).cloned();
        let arrows = arrows.entry(module.file.clone()).or_default();
        arrows.extend(others);
    }
    arrows
}

/// A thing that a path names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(String),
    /// An item of a module, or one of another crate that the module imports.
    Item(String),
}

impl Target {
    fn is_item(&self) -> bool {
        matches!(self, Self::Item(_))
    }

    fn module(&self) -> &str {
        match self {
            Self::Module(module) | Self::Item(module) => module,
        }
    }
}

/// All things of one path: names of modules, types and values are apart, and imports may depend on
/// features.
type Targets = BTreeSet<Target>;

struct Resolver<'a> {
    modules: &'a Modules,
    /// The names that are being looked up, by module. Imports may lead back to themselves.
    pending: Vec<(String, String)>,
}

impl<'a> Resolver<'a> {
    fn new(modules: &'a Modules) -> Self {
        Self {
            modules,
            pending: Vec::new(),
        }
    }

    /// Returns what `path` names in a module; nothing if that is outside the crate.
    fn resolve(&mut self, module: &str, path: &[String]) -> Targets {
        let Some((first, rest)) = path.split_first() else {
            return Targets::new();
        };
        let start = match first.as_str() {
            "crate" => Targets::from([Target::Module(String::new())]),
            "self" => Targets::from([Target::Module(module.to_owned())]),
            "super" => Targets::from([Target::Module(parent(module).to_owned())]),
            name => self.look_up(module, name),
        };
        rest.iter()
            .fold(start, |targets, name| self.enter(targets, name))
    }

    /// Returns what `name` is in these things. What is in a type belongs to the type's module.
    fn enter(&mut self, targets: Targets, name: &str) -> Targets {
        let modules = targets.iter().filter(|target| !target.is_item());
        let modules: Vec<_> = modules.map(Target::module).collect();
        if modules.is_empty() {
            return targets;
        }
        let mut inner = Targets::new();
        for module in modules {
            if name == "super" {
                inner.insert(Target::Module(parent(module).to_owned()));
                continue;
            }
            let found = self.look_up(module, name);
            if found.is_empty() && !self.is_pending(module, name) {
                // A macro defines it.
                inner.insert(Target::Item(module.to_owned()));
            }
            inner.extend(found);
        }
        inner
    }

    /// Returns what a module calls by that name; nothing if it does not declare it.
    fn look_up(&mut self, module: &str, name: &str) -> Targets {
        let mut targets = Targets::new();
        let inner = child(module, name);
        if self.modules.contains_key(&inner) {
            targets.insert(Target::Module(inner));
        }
        let Some(content) = self.modules.get(module) else {
            return targets;
        };
        if self.is_pending(module, name) {
            return targets;
        }
        self.pending.push((module.to_owned(), name.to_owned()));
        let mut is_declared = content.items.contains(name);
        if is_declared {
            targets.insert(Target::Item(module.to_owned()));
        }
        let (globs, named): (Vec<_>, Vec<_>) = content
            .imports
            .iter()
            .partition(|import| import.name.is_none());
        for Import { path, .. } in named.iter().filter(|it| it.name.as_deref() == Some(name)) {
            is_declared = true;
            let found = self.resolve(module, path);
            if found.is_empty() && !is_relative(path) {
                // Another crate defines it.
                targets.insert(Target::Item(module.to_owned()));
            }
            targets.extend(found);
        }
        if !is_declared {
            for Import { path, .. } in globs {
                for target in self.resolve(module, path) {
                    if let Target::Module(other) = target {
                        targets.extend(self.look_up(&other, name));
                    }
                }
            }
        }
        self.pending.pop();
        targets
    }

    fn is_pending(&self, module: &str, name: &str) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|(of, it)| of == module && it == name)
    }
}

/// Whether a path can only lead into its own crate.
fn is_relative(path: &[String]) -> bool {
    let first = path.first().map(String::as_str);
    first.is_some_and(|first| ["crate", "self", "super"].contains(&first))
}
