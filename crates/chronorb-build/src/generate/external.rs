//! Definitions that other crates have generated.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use chronorb_idl::model::{DefId, DefKind, Definition, Model};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::context::ident;
use super::{GenerateError, identifier, stem_of};
use crate::names::snake;
use crate::reach;

/// The external definitions of a model.
#[derive(Debug, Default)]
pub(super) struct Externals {
    /// The external path of each definition; empty if none is external.
    of: Vec<Option<usize>>,
    externals: Vec<External>,
    /// The definitions that nothing uses.
    unused: HashSet<DefId>,
}

/// A module of Rust that represents a module of the IDL, or an IDL file.
#[derive(Debug)]
pub(super) struct External {
    source: Source,
    module: TokenStream,
}

#[derive(Debug)]
enum Source {
    /// The scoped name of a module.
    Scope(Vec<String>),
    /// A file; this is the end of its path.
    File(String),
}

impl Externals {
    /// Determines for each definition whether it is external. Definitions in the main file are not:
    /// it may reopen a module of another crate.
    pub(super) fn new(model: &Model, paths: &[(String, String)]) -> Result<Self, GenerateError> {
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let mut externals = Vec::new();
        for (idl, rust) in paths {
            externals.push(External::parse(idl, rust)?);
        }
        // The innermost named scope takes precedence, then the file.
        externals.sort_by_key(|external| match &external.source {
            Source::Scope(scope) => usize::MAX - scope.len(),
            Source::File(_) => usize::MAX,
        });
        let external = |definition: &Definition| {
            let found = |external: &External| external.source.holds(model, definition);
            let is_module = matches!(definition.kind, DefKind::Module { .. });
            let is_own = definition.in_main_file && !is_module;
            externals.iter().position(found).filter(|_| !is_own)
        };
        let of = model.definitions.iter().map(external).collect();
        Ok(Self {
            of,
            externals,
            unused: HashSet::new(),
        })
    }

    /// Returns whether nothing uses it.
    pub(super) fn is_unused(&self, id: DefId) -> bool {
        self.unused.contains(&id)
    }

    /// Returns the externals without unused definitions of built-in files, which are not generated.
    pub(super) fn without_unused(
        model: &Model,
        paths: &[(String, String)],
    ) -> Result<Self, GenerateError> {
        let unused = reach::unused_built_in(model);
        Ok(Self {
            unused,
            ..Self::new(model, paths)?
        })
    }

    /// Returns the externals for one of several files as which the model is generated. Definitions
    /// in other files that are not external yet are in the module `root::FILE`. The main file keeps
    /// the definitions that `#line` directives attribute to other files.
    pub(super) fn beside(
        model: &Model,
        paths: &[(String, String)],
        file: usize,
        root: &str,
        modules: &mut SharedModules,
    ) -> Result<Self, GenerateError> {
        let mut all = Self::new(model, paths)?;
        all.of.resize(model.definitions.len(), None);
        let first = all.externals.len();
        for path in &model.files {
            let module = format!("{root}::{}", modules.name(path));
            all.externals
                .push(External::parse(&format!("{}.idl", stem_of(path)), &module)?);
        }
        for (place, definition) in all.of.iter_mut().zip(&model.definitions) {
            let at = definition.location.file as usize;
            let at = if at < model.files.len() { at } else { 0 };
            if at == file {
                *place = None;
            } else {
                place.get_or_insert(first + at);
            }
        }
        Ok(all)
    }

    /// Returns the module of the definition, if it is external.
    pub(super) fn get(&self, id: DefId) -> Option<&External> {
        let external = *self.of.get(id.0 as usize)?;
        external.map(|external| &self.externals[external])
    }
}

impl External {
    fn parse(idl: &str, rust: &str) -> Result<Self, GenerateError> {
        let invalid = |what| GenerateError::ExternPath {
            idl: idl.to_owned(),
            rust: rust.to_owned(),
            what,
        };
        let module: syn::Path = syn::parse_str(rust).map_err(|_| invalid("no path of Rust"))?;
        let first = module.segments.first().map(|first| first.ident.to_string());
        let is_absolute = module.leading_colon.is_some() || first.is_some_and(|f| f == "crate");
        if !is_absolute || module.segments.iter().any(|s| !s.arguments.is_none()) {
            return Err(invalid(
                "no absolute path of a module: it begins with `::` or `crate::`",
            ));
        }
        let source = Source::parse(idl).ok_or_else(|| {
            invalid(
                "for something that is neither a module as `::CosNaming` nor a file as \
                `TimeBase.idl`",
            )
        })?;
        Ok(Self {
            source,
            module: module.to_token_stream(),
        })
    }

    /// Returns the path of an item that this crate would have in this module.
    pub(super) fn path(&self, module: &[String], name: &str) -> TokenStream {
        let inside = match &self.source {
            Source::Scope(scope) => module.get(scope.len()..).unwrap_or_default(),
            Source::File(_) => module,
        };
        let root = &self.module;
        let inside = inside.iter().map(|name| ident(name));
        let name = ident(name);
        quote! { #root #(::#inside)* ::#name }
    }
}

impl Source {
    fn parse(idl: &str) -> Option<Self> {
        match idl.strip_prefix("::") {
            Some(scope) if !scope.is_empty() => {
                Some(Self::Scope(scope.split("::").map(str::to_owned).collect()))
            }
            None if idl.ends_with(".idl") => Some(Self::File(idl.to_owned())),
            _ => None,
        }
    }

    fn holds(&self, model: &Model, definition: &Definition) -> bool {
        match self {
            Self::Scope(scope) => {
                definition.scoped_name.starts_with(scope)
                    && definition.scoped_name.len() > scope.len()
            }
            Self::File(name) => model
                .path(&definition.location)
                .is_some_and(|file| is_named(file, name)),
        }
    }
}

/// Returns whether the model has the module, or the file, of an external path.
pub(crate) fn is_defined(model: &Model, idl: &str) -> bool {
    match Source::parse(idl) {
        Some(Source::Scope(scope)) => model.definitions.iter().any(|d| d.scoped_name == scope),
        Some(Source::File(name)) => {
            let mut files = model.files.iter().chain(&model.line_files);
            files.any(|file| is_named(file, &name))
        }
        None => false,
    }
}

/// Returns whether a file's path ends with this name; that of a built-in file is in angle brackets.
fn is_named(file: &Path, name: &str) -> bool {
    let built_in = file.to_str().and_then(|path| path.strip_prefix('<'));
    file.ends_with(name) || built_in.and_then(|path| path.strip_suffix('>')) == Some(name)
}

/// The modules for files, if each file has one.
#[derive(Debug, Default)]
pub(crate) struct SharedModules {
    /// By the path of the file without links.
    names: HashMap<PathBuf, String>,
    taken: HashSet<String>,
}

impl SharedModules {
    /// Returns the name of a file's module: that of the file, or, if another file has that, with
    /// the name of its folder before it, and with underscores behind it if that is taken too.
    pub(crate) fn name(&mut self, path: &Path) -> String {
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let mut name = module_of(path);
        if self.taken.contains(&name)
            && let Some(folder) = key.parent().and_then(Path::file_name)
        {
            let stem = format!("{}_{}", folder.to_string_lossy(), stem_of(path));
            name = snake(&identifier(&stem));
        }
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        self.names.insert(key, name.clone());
        name
    }
}

/// Returns the name of the module for a file, if each file has one.
pub(super) fn module_of(path: &Path) -> String {
    snake(&identifier(&stem_of(path)))
}
