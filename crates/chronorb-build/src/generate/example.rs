//! A servant, a server and a client of an interface, to begin a program with.

use chronorb_idl::model::{DefId, DefKind, Interface, Model, ParamMode, Type};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::codec::Form;
use super::context::{Context, ident};
use super::external::Externals;
use super::owned_servant::signature;
use super::{CheckedModel, GenerateError, GenerateOptions};
use crate::names::{Method, MethodParam, distinct_parts};
use crate::shape;

/// The source files of a server and a client, by [`Builder::example`](crate::Builder::example).
///
/// They are parts of one package, whose library has the modules `idl`, with the generated code, and
/// `servant`, from which it exports `Example`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExampleSources {
    /// The absolute name of the interface in the IDL.
    pub interface: String,
    /// The plain name by which the server registers its object.
    pub object: String,
    /// The module `servant`.
    pub servant: String,
    /// The main file of the server.
    pub server: String,
    /// The main file of the client.
    pub client: String,
}

/// Returns the programs for the first interface of the main file that a server can have; `None` if
/// there is none. `library` is the name of the library in Rust.
pub(crate) fn example(
    model: &Model,
    options: &GenerateOptions,
    library: &str,
) -> Result<Option<ExampleSources>, GenerateError> {
    let model = &*distinct_parts(model)?.0;
    let Some((id, interface)) = first_interface(model) else {
        return Ok(None);
    };
    let checked = CheckedModel::new(model, options)?;
    let externals = Externals::without_unused(model, &options.extern_paths)?;
    // No module of the IDL has this name, so that every path begins with `super`.
    let module = ["__servant".to_owned()];
    let context = checked.context(model, options, &externals);
    let context = context.within(&module);
    let object = context.names.name(id).to_owned();
    Ok(Some(ExampleSources {
        interface: format!("::{}", model.get(id).scoped_name.join("::")),
        servant: servant(context, id, interface)?,
        server: server(context, id, library, &object),
        client: client(context, id, interface, library)?,
        object,
    }))
}

/// Returns the first interface of the main file that objects can have.
fn first_interface(model: &Model) -> Option<(DefId, &Interface)> {
    model
        .iter()
        .find_map(|(id, definition)| match &definition.kind {
            DefKind::Interface(interface)
                if definition.in_main_file
                    && !interface.local
                    && !interface.is_abstract
                    && !interface.forward_only =>
            {
                Some((id, interface))
            }
            _ => None,
        })
}

fn servant(
    context: Context<'_>,
    id: DefId,
    interface: &Interface,
) -> Result<String, GenerateError> {
    let all = interface.all_bases.iter().copied().chain([id]);
    let implementations = all.map(|id| {
        let owned = context.path(id, "OwnedServant");
        let methods = context.names.own_methods(id).iter();
        let methods = methods.map(|method| servant_method(context, method));
        quote! { impl #owned for Example { #(#methods)* } }
    });
    let has_methods = !context.names.all_methods(id, interface).is_empty();
    let prelude = has_methods.then(|| quote! { use chronorb::prelude::*; });
    let items = quote! {
        #prelude
        use crate::idl;

        #[doc = " Prints the calls, and returns empty results."]
        #[derive(Debug, Default)]
        pub struct Example;

        #(#implementations)*
    };
    let name = context.names.name(id);
    let items = formatted(items)?;
    Ok(format!(
        "//! A servant of the interface `{name}`.\n\n{items}"
    ))
}

fn servant_method(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let signature = signature(context, method, &quote! { _ });
    let shown: Vec<_> = method
        .inputs()
        .map(|param| ident(&param.rust_name))
        .collect();
    let form = vec!["{:?}"; shown.len()].join(", ");
    let form = format!("{}({form})", method.rust_name);
    let values = method.values();
    let has_default = |ty: &Type| shape::has_default(context.model, ty);
    let returned = if values.iter().all(|(_, ty)| has_default(ty)) {
        let names = method.value_idents();
        let defaults: Vec<_> = names
            .iter()
            .map(|_| quote! { Default::default() })
            .collect();
        let output = context.output_expression(method, Form::Owned, &defaults);
        quote! { Ok(#output) }
    } else {
        // A reference that is never nil, for example, has no empty value.
        let into = method.error.is_some().then(|| quote! { .into() });
        quote! {
            Err(SystemException::no(SystemExceptionKind::NoImplement, 0) #into)
        }
    };
    quote! {
        #signature {
            println!(#form, #(#shown),*);
            #returned
        }
    }
}

fn server(context: Context<'_>, id: DefId, library: &str, object: &str) -> String {
    let skeleton = text_of(context.path(id, "Skeleton"));
    format!(
        "\
//! Serves an object: `server [-ORBListenEndpoints iiop://127.0.0.1:2809 …]`.

use std::error::Error;

use chronorb::prelude::*;
use {library}::{{Example, idl}};

fn main() -> Result<(), Box<dyn Error>> {{
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let object = root.serve({skeleton}::new(Example))?;
    orb.register_initial_reference(\"{object}\", &object)?;
    root.manager().activate()?;
    orb.catch_signals()?;
    println!(\"{{}}\", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}}
"
    )
}

fn client(
    context: Context<'_>,
    id: DefId,
    interface: &Interface,
    library: &str,
) -> Result<String, GenerateError> {
    let handle = context.handle_path(id);
    let name = context.names.name(id);
    let methods = context.names.all_methods(id, interface);
    let calls = methods
        .iter()
        .map(|method| client_call(context, id, method));
    let calls: Vec<_> = calls.collect();
    let library = ident(library);
    let target = if calls.is_empty() {
        format_ident!("_target")
    } else {
        format_ident!("target")
    };
    let no_such = format!("the object is no {name}");
    let items = quote! {
        use std::error::Error;
        use chronorb::prelude::*;
        use #library::idl;

        fn main() -> Result<(), Box<dyn Error>> {
            let mut args = std::env::args().collect();
            let orb = Orb::init(&mut args)?;
            let reference = args.get(1).ok_or("usage: client REFERENCE")?;
            let object = orb.string_to_object(reference)?;
            let #target = #handle::narrow(&object)?.ok_or(#no_such)?;
            #(#calls)*
            Ok(())
        }
    };
    let items = formatted(items)?;
    Ok(format!(
        "//! Calls each operation of an object: `client REFERENCE`.\n\n{items}"
    ))
}

/// Returns the statements that call the method and print its results.
fn client_call(context: Context<'_>, id: DefId, method: &Method<'_>) -> TokenStream {
    let shown = context.names.in_handle(id, method);
    let name = ident(shown);
    let inputs: Option<Vec<_>> = method
        .inputs()
        .map(|param| argument(context, param))
        .collect();
    let Some(arguments) = inputs else {
        let text = format!("{shown}: not called, because it needs a reference that is not nil");
        return quote! { println!(#text); };
    };
    let inouts: Vec<_> = method.inouts().map(variable).collect();
    if inouts.is_empty() {
        let form = format!("{shown}: {{:?}}");
        return quote! { println!(#form, target.#name(#(#arguments),*)); };
    }
    let form = method
        .inouts()
        .map(|param| format!(", {}: {{:?}}", param.rust_name));
    let form = format!("{shown}: {{:?}}{}", form.collect::<String>());
    quote! {
        {
            #(let mut #inouts = Default::default();)*
            let result = target.#name(#(#arguments),*);
            println!(#form, result, #(#inouts),*);
        }
    }
}

/// Returns the client's variable for an inout parameter.
fn variable(param: &MethodParam<'_>) -> proc_macro2::Ident {
    format_ident!("{}_value", param.rust_name)
}

/// Returns an argument for the parameter; `None` if the example cannot make one.
fn argument(context: Context<'_>, param: &MethodParam<'_>) -> Option<TokenStream> {
    let has_default = shape::has_default(context.model, param.ty);
    if param.mode == ParamMode::InOut {
        let variable = variable(param);
        return has_default.then(|| quote! { &mut #variable });
    }
    if shape::is_reference(context.model, param.ty) {
        return (!shape::is_nonnil(context.model, param.ty)).then(|| quote! { None });
    }
    if let Some(literal) = literal(context, param.ty) {
        return Some(literal);
    }
    match shape::resolve(context.model, param.ty) {
        Type::Sequence { element, .. } => {
            let element = literal(context, element);
            Some(element.map_or_else(|| quote! { &[] }, |element| quote! { &[#element] }))
        }
        Type::Map { .. } => Some(quote! { &[] }),
        _ if !has_default => None,
        _ if context.is_by_reference(param.ty) => Some(quote! { &Default::default() }),
        _ => Some(quote! { Default::default() }),
    }
}

/// Returns a value of a basic type or a string.
fn literal(context: Context<'_>, ty: &Type) -> Option<TokenStream> {
    const TEXT: &str = "text";
    match shape::resolve(context.model, ty) {
        Type::Boolean => Some(quote! { true }),
        Type::Float | Type::Double => Some(quote! { 1.5 }),
        Type::String { bound } | Type::WString { bound } => {
            let length = bound.map_or(TEXT.len(), |n| TEXT.len().min(n as usize));
            let text = Literal::string(&TEXT[..length]);
            Some(quote! { #text })
        }
        Type::Octet
        | Type::Int8
        | Type::UInt8
        | Type::Short
        | Type::UShort
        | Type::Long
        | Type::ULong
        | Type::LongLong
        | Type::ULongLong => Some(quote! { 1 }),
        _ => None,
    }
}

/// Returns items as people write them: by short names, with empty lines between the items.
fn formatted(items: TokenStream) -> Result<String, GenerateError> {
    let invalid = |error: syn::Error| GenerateError::Internal(error.to_string());
    let items = short(&items.to_string());
    let file: syn::File = syn::parse_str(&items).map_err(invalid)?;
    let text = prettyplease::unparse(&file);
    let mut spaced = String::with_capacity(text.len() + 64);
    let mut last = "";
    for line in text.lines() {
        let begins_item = ["///", "#[", "impl", "fn main", "    fn ", "    ///"]
            .iter()
            .any(|start| line.starts_with(start));
        let ends_item = matches!(last, "}" | "    }") || last.starts_with("use ");
        let ends_imports_of_std = last.starts_with("use std::");
        if (begins_item && ends_item) || ends_imports_of_std {
            spaced.push('\n');
        }
        spaced.push_str(line);
        spaced.push('\n');
        last = line;
    }
    Ok(spaced)
}

/// Returns the text of a path as people write it.
fn text_of(path: TokenStream) -> String {
    short(&path.to_string()).replace(' ', "")
}

/// Replaces the full paths of generated code, which are right among all names, by the names that a
/// program has.
fn short(tokens: &str) -> String {
    const NAMES: [(&str, &str); 13] = [
        (":: core :: result :: Result", "Result"),
        (":: core :: option :: Option", "Option"),
        (":: std :: string :: String", "String"),
        (":: std :: vec :: Vec", "Vec"),
        (":: std :: sync :: Arc", "std :: sync :: Arc"),
        (":: std :: collections", "std :: collections"),
        ("__rt :: SystemException", "SystemException"),
        ("__rt :: Call", "Call"),
        ("__rt :: Object", "Object"),
        ("__rt :: Value", "chronorb :: values :: Value"),
        ("__rt :: AbstractBase", "chronorb :: values :: AbstractBase"),
        ("__rt ::", "chronorb :: data ::"),
        // In a servant's module and in a program the generated code has this name.
        ("super ::", "idl ::"),
    ];
    NAMES.iter().fold(tokens.to_owned(), |text, (full, short)| {
        text.replace(full, short)
    })
}
