//! The generator from the checked model to Rust.

mod abstract_interface;
mod allocating;
mod ami;
mod applied;
mod bits;
mod codec;
mod consts;
mod context;
mod convert;
mod demux;
mod direct;
mod doc;
mod enums;
mod error;
mod example;
mod external;
mod flat;
mod handle;
mod interface;
mod limits;
mod local;
mod members;
mod owned_servant;
mod raises;
mod servant;
mod signature;
mod skeleton;
mod structs;
mod text;
mod type_codes;
mod types;
mod unions;
mod value_boxes;
mod values;

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use chronorb_idl::model::{DefId, DefKind, Model, Type};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

pub use error::GenerateError;
pub use example::ExampleSources;
pub(crate) use example::example;
pub(crate) use external::{SharedModules, is_defined};

use crate::names::{Names, SecondName, distinct_parts};
use crate::operation_demux::OperationDemux;
use crate::recursion::Recursion;
use crate::shape;
use context::Context;
use external::{Externals, module_of};
use text::Text;

/// The options of [`generate`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// Leaves out the documentation comments of the IDL.
    pub disable_comments: bool,
    /// The lookup of operations in skeletons.
    pub operation_demux: OperationDemux,
    /// Generates only code that never allocates: no owned twins, and, for operations whose results
    /// or exceptions borrow, only the methods that take a scope.
    pub no_alloc: bool,
    /// Generates methods for asynchronous calls of all operations and attributes, except for those
    /// with `@ami(FALSE)`. Without it, only those have them that are annotated with `@ami`, or
    /// whose interface or module is. With [`no_alloc`](Self::no_alloc) there are none.
    pub ami: bool,
    /// Generates a second trait for each interface, `QuoterOwnedServant` beside `QuoterServant`,
    /// whose results are owned values. A type with this trait has the other one too. With
    /// [`no_alloc`](Self::no_alloc) there are none.
    pub owned_servants: bool,
    /// Refuses `@verbatim(language="rust")`, whose text becomes Rust code unchanged.
    pub no_verbatim: bool,
    /// The external paths: modules of the IDL (`::CosNaming`) or IDL files (`TimeBase.idl`), each
    /// with the Rust module of its definitions.
    pub extern_paths: Vec<(String, String)>,
}

impl GenerateOptions {
    /// Returns whether operations without an annotation about it can be called asynchronously.
    fn has_ami(&self) -> bool {
        self.ami && !self.no_alloc
    }

    /// Returns whether interfaces have a trait for servants with owned values.
    fn has_owned_servants(&self) -> bool {
        self.owned_servants && !self.no_alloc
    }
}

/// Returns the Rust text for all definitions of a model, including those of included files.
///
/// It is a private module and the export of all its content, so that `include!` works everywhere.
/// It calls the runtime in `::chronorb::__runtime::v1` by a name that nothing in the IDL can have.
///
/// # Errors
///
/// [`GenerateError`] if a name given by `@rust::name("x")` is taken. Types of more than 200 levels
/// or 65536 parts are refused. Of two IDL names that would become one Rust name the later one gets
/// an underscore; [`second_names`] lists these.
pub fn generate(model: &Model, options: &GenerateOptions) -> Result<String, GenerateError> {
    let model = &*distinct_parts(model)?.0;
    let checked = CheckedModel::new(model, options)?;
    let externals = Externals::without_unused(model, &options.extern_paths)?;
    let context = checked.context(model, options, &externals);
    file(context, main_file(model))
}

/// Checks a model as [`generate`] does, except for the size of the whole code, and generates none.
/// Returns the definitions that have another Rust name than their IDL name gives, because it is
/// taken.
///
/// # Errors
///
/// Those of [`generate`].
pub fn second_names(
    model: &Model,
    options: &GenerateOptions,
) -> Result<Vec<SecondName>, GenerateError> {
    let (model, mut second_names) = distinct_parts(model)?;
    let checked = CheckedModel::new(&model, options)?;
    Externals::without_unused(&model, &options.extern_paths)?;
    second_names.extend(checked.names.into_second_names());
    Ok(second_names)
}

/// Returns the definitions that are not external, as a file with the name of this one.
fn file(context: Context<'_>, path: &Path) -> Result<String, GenerateError> {
    let wrapper = format_ident!("__{}", module_of(path));
    let rt = context::rt();
    let allow = allow();
    let mut text = Text::default();
    text.open(quote! { #[allow(#allow)] mod #wrapper })?;
    text.items(quote! { use ::chronorb::__runtime::v1 as #rt; })?;
    items(context, &mut text, &context.model.roots)?;
    text.close();
    text.items(quote! {
        #[allow(
            ambiguous_glob_reexports,
            hidden_glob_reexports,
            unreachable_pub,
            unused_imports,
            clippy::allow_attributes,
            reason = "generated code"
        )]
        pub use self::#wrapper::*;
    })?;
    Ok(format!("{}{}", heading(path), text.finish()))
}

/// A file of the IDL as a separate module.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedModule {
    /// The module's name.
    pub(crate) name: String,
    /// The IDL file.
    pub(crate) source: PathBuf,
    /// The content of the module's file.
    pub(crate) text: String,
}

/// Returns a module for each of the model's files that has none yet, all of them in the module
/// `root`.
pub(crate) fn generate_each(
    model: &Model,
    options: &GenerateOptions,
    root: &str,
    names: &mut SharedModules,
    is_present: impl Fn(&str) -> bool,
) -> Result<Vec<GeneratedModule>, GenerateError> {
    let model = &*distinct_parts(model)?.0;
    let checked = CheckedModel::new(model, options)?;
    let mut modules = Vec::new();
    for (i, source) in model.files.iter().enumerate() {
        let name = names.name(source);
        if is_present(&name) {
            continue;
        }
        let externals = Externals::beside(model, &options.extern_paths, i, root, names)?;
        let context = checked.context(model, options, &externals);
        if i > 0 && !model.roots.iter().any(|&id| context.is_generated(id)) {
            continue;
        }
        modules.push(GeneratedModule {
            name,
            source: source.clone(),
            text: file(context, source)?,
        });
    }
    Ok(modules)
}

/// A file of Rust text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GeneratedFile {
    /// The path relative to the directory for generated files.
    pub path: PathBuf,
    /// The content.
    pub text: String,
}

/// As [`generate`], in several files that are checked in rather than included: `NAME.rs`, which a
/// program includes by `mod NAME;`, and beside it `NAME/MODULE.rs` for each module of the IDL at
/// file level.
///
/// # Errors
///
/// Those of [`generate`].
pub fn generate_files(
    model: &Model,
    options: &GenerateOptions,
) -> Result<Vec<GeneratedFile>, GenerateError> {
    let model = &*distinct_parts(model)?.0;
    let checked = CheckedModel::new(model, options)?;
    let externals = Externals::without_unused(model, &options.extern_paths)?;
    let context = checked.context(model, options, &externals);
    let main = main_file(model);
    let stem = PathBuf::from(stem_of(main));
    let (rt, heading, allow) = (context::rt(), heading(main), allow());
    let mut root = Text::default();
    root.items(quote! {
        #![cfg_attr(rustfmt, rustfmt_skip)]
        #![allow(#allow)]
        use ::chronorb::__runtime::v1 as #rt;
    })?;
    let mut files = vec![GeneratedFile {
        path: stem.with_extension("rs"),
        text: String::new(),
    }];
    for &id in &model.roots {
        let DefKind::Module { members } = &model.get(id).kind else {
            items(context, &mut root, &[id])?;
            continue;
        };
        if !context.is_generated(id) {
            continue;
        }
        let (doc, name) = (context.doc_of(id), context.ident(id));
        root.items(quote! { #doc pub mod #name; })?;
        let mut text = Text::default();
        text.items(quote! {
            #![cfg_attr(rustfmt, rustfmt_skip)]
            use super::#rt;
        })?;
        items(
            context.within(&[context.names.name(id).to_owned()]),
            &mut text,
            members,
        )?;
        files.push(GeneratedFile {
            path: stem.join(format!("{}.rs", context.names.name(id))),
            text: format!("{heading}{}", text.finish()),
        });
    }
    files[0].text = format!("{heading}{}", root.finish());
    Ok(files)
}

/// The results of the checks before text is generated.
struct CheckedModel<'m> {
    names: Names<'m>,
    bases: HashSet<DefId>,
    recursion: Recursion,
    room: Cell<usize>,
}

impl<'m> CheckedModel<'m> {
    fn new(model: &'m Model, options: &GenerateOptions) -> Result<Self, GenerateError> {
        error::refuse_unsupported(model)?;
        let recursion = Recursion::new(model);
        limits::refuse_too_many_parts(model)?;
        limits::refuse_too_large(model, &recursion)?;
        applied::refuse_invalid(model, options)?;
        if options.no_alloc {
            let externals = Externals::new(model, &options.extern_paths)?;
            allocating::refuse(model, &externals)?;
        }
        Ok(Self {
            names: Names::new(model, options.has_ami(), options.has_owned_servants())?,
            bases: bases(model),
            recursion,
            room: Cell::new(limits::MAX_TEXT),
        })
    }

    /// Returns the context for code at file level.
    fn context<'c>(
        &'c self,
        model: &'c Model,
        options: &'c GenerateOptions,
        externals: &'c Externals,
    ) -> Context<'c> {
        Context {
            model,
            names: &self.names,
            options,
            externals,
            recursion: &self.recursion,
            bases: &self.bases,
            room: &self.room,
            module: &[],
        }
    }
}

/// Returns the interfaces that others are derived from.
fn bases(model: &Model) -> HashSet<DefId> {
    let interfaces = model.definitions.iter().filter_map(|d| match &d.kind {
        DefKind::Interface(interface) => Some(interface),
        _ => None,
    });
    interfaces
        .flat_map(|i| i.all_bases.iter().copied())
        .collect()
}

/// Returns the lints that do not apply to generated code.
fn allow() -> TokenStream {
    quote! {
        nonstandard_style,
        single_use_lifetimes,
        unreachable_pub,
        unused,
        unused_lifetimes,
        unused_qualifications,
        clippy::all,
        clippy::nursery,
        clippy::pedantic,
        clippy::restriction,
        rustdoc::all,
        reason = "generated code"
    }
}

/// Returns the main file of the model.
fn main_file(model: &Model) -> &Path {
    let main = model.files.first();
    main.map_or_else(|| Path::new("idl"), PathBuf::as_path)
}

/// Returns the name of a file without its extension; that of a built-in one without its brackets.
fn stem_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.trim_start_matches('<').to_owned()
}

/// Returns the comment at the beginning of each file.
fn heading(path: &Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(char::is_control, " ");
    format!("// @generated by chronorb-build {version} from `{name}`. Do not edit.\n\n")
}

/// Adds the items of one Rust module.
fn items(context: Context<'_>, text: &mut Text, ids: &[DefId]) -> Result<(), GenerateError> {
    for &id in ids {
        if !context.is_generated(id) {
            continue;
        }
        match &context.model.get(id).kind {
            DefKind::Module { members } => module(context, text, id, members)?,
            _ => item(context, text, id)?,
        }
    }
    Ok(())
}

fn module(
    context: Context<'_>,
    text: &mut Text,
    id: DefId,
    members: &[DefId],
) -> Result<(), GenerateError> {
    let (doc, name, rt) = (context.doc_of(id), context.ident(id), context::rt());
    let mut path = context.names.module(id).to_vec();
    path.push(context.names.name(id).to_owned());
    text.open(quote! { #doc pub mod #name })?;
    text.items(quote! { use super::#rt; })?;
    items(context.within(&path), text, members)?;
    text.close();
    Ok(())
}

fn item(context: Context<'_>, text: &mut Text, id: DefId) -> Result<(), GenerateError> {
    let definition = context.model.get(id);
    let none: &[DefId] = &[];
    let before = text.len();
    let nested = match &definition.kind {
        DefKind::Interface(interface) => {
            interface::items(context, text, id, interface)?;
            &interface.nested[..]
        }
        DefKind::Struct { nested, .. } => {
            text.items(if shape::is_local(context.model, &Type::Named(id)) {
                local::structure(context, id)
            } else {
                structs::structure(context, id)
            })?;
            &nested[..]
        }
        DefKind::Exception { nested, .. } => {
            text.items(structs::exception(context, id))?;
            &nested[..]
        }
        DefKind::Union(union) => {
            text.items(unions::union(context, id, union))?;
            &union.nested[..]
        }
        DefKind::Enum {
            enumerators,
            default,
            bit_bound,
        } => {
            let default = *default;
            let enumeration = enums::enumeration(context, id, enumerators, default, *bit_bound);
            text.items(enumeration)?;
            none
        }
        DefKind::Bitmask { flags, bit_bound } => {
            text.items(bits::mask(context, id, flags, *bit_bound))?;
            none
        }
        DefKind::Bitset { .. } => {
            text.items(bits::set(context, id))?;
            none
        }
        DefKind::Value(value) => {
            text.items(values::value_type(context, id, value))?;
            &value.nested[..]
        }
        DefKind::ValueBox { ty, nested } => {
            text.items(value_boxes::value_box(context, id, ty))?;
            &nested[..]
        }
        DefKind::Native => {
            text.items(local::native(context, id))?;
            none
        }
        DefKind::Typedef { ty } => {
            text.items(types::alias(context, id, ty))?;
            none
        }
        DefKind::Const { ty, value } => {
            text.items(consts::constant(context, id, ty, value))?;
            none
        }
        _ => none,
    };
    limits::charge(context, text.len() - before, id)?;
    self::nested(context, text, id, nested)
}

/// Returns the module for the definitions inside an interface, struct or exception.
fn nested(
    context: Context<'_>,
    text: &mut Text,
    owner: DefId,
    ids: &[DefId],
) -> Result<(), GenerateError> {
    let Some(&first) = ids.first() else {
        return Ok(());
    };
    let path = context.names.module(first);
    let Some(name) = path.last().map(|name| context::ident(name)) else {
        return Ok(());
    };
    let doc = format!(" Defined inside `{}`.", context.model.get(owner).name);
    let rt = context::rt();
    text.open(quote! { #[doc = #doc] pub mod #name })?;
    text.items(quote! { use super::#rt; })?;
    for &id in ids {
        item(context.within(path), text, id)?;
    }
    text.close();
    Ok(())
}

/// Returns the characters of a file name that an identifier may have.
fn identifier(stem: &str) -> String {
    stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_all_definitions_together_is_bounded() {
        let idl = "struct a { long x; }; module m { interface i { struct b { long x; }; }; };";
        let compiled = chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default());
        let model = compiled.unwrap().model;
        let options = GenerateOptions::default();
        let checked = CheckedModel::new(&model, &options).unwrap();
        let externals = Externals::without_unused(&model, &[]).unwrap();
        let context = checked.context(&model, &options, &externals);
        let text = file(context, main_file(&model)).unwrap();
        let taken = limits::MAX_TEXT - checked.room.get();
        assert!(taken <= text.len() && text.len() < 2 * taken, "{taken}");

        checked.room.set(taken);
        assert_eq!(file(context, main_file(&model)), Ok(text));
        checked.room.set(taken - 1);
        let error = file(context, main_file(&model)).unwrap_err().to_string();
        assert!(error.contains("struct `b` (x.idl:1:"), "{error}");
    }
}
