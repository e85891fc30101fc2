//! Types that do not leave the process: local interfaces, native types, and the structs that
//! contain them. Without marshalling, each has one Rust form, which owns its contents.

use chronorb_idl::model::{DefId, DefKind, Interface, Type};
use proc_macro2::TokenStream;
use quote::quote;

use super::codec::Form;
use super::context::{Context, rt};
use super::interface::types_of_methods;
use super::members::name_of;
use super::signature::Signature;
use super::types::Lifetime;
use crate::names::Method;
use crate::shape;

/// Returns the trait of a local interface: its operations are plain methods.
pub(super) fn interface(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let kind_of = |base: &DefId| match &context.model.get(*base).kind {
        DefKind::Interface(base) => (base.local, base.is_abstract),
        _ => (false, false),
    };
    let supers: Vec<_> = interface
        .bases
        .iter()
        .filter(|base| kind_of(base) != (false, false))
        .map(|&base| context.path(base, ""))
        .collect();
    let bounds = if supers.is_empty() {
        quote! { ::core::marker::Send + ::core::marker::Sync + 'static }
    } else {
        quote! { #(#supers)+* }
    };
    // An interface that is neither local nor abstract has no trait to inherit.
    let remote = remote_bases(context, interface);
    let local = interface.bases.iter().filter(|base| kind_of(base).0);
    let inherited: Vec<_> = local
        .filter_map(|base| match &context.model.get(*base).kind {
            DefKind::Interface(base) => Some(remote_bases(context, base)),
            _ => None,
        })
        .flatten()
        .collect();
    let remote = remote.iter().filter(|base| !inherited.contains(base));
    let remote = remote.flat_map(|&base| context.names.own_methods(base));
    let own = context.names.own_methods(id);
    let methods = remote
        .chain(own)
        .map(|method| Signature::plain(context, method).declaration());
    let is_abstract = interface.all_bases.iter().any(|base| kind_of(base).1);
    let text = name.to_string();
    // A trait of an abstract interface already requires `Debug`.
    let debug = (!is_abstract).then(|| {
        quote! {
            impl ::core::fmt::Debug for dyn #name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#text).finish_non_exhaustive()
                }
            }
        }
    });
    let types = types_of_methods(context, own);
    quote! {
        #doc
        pub trait #name: #bounds { #(#methods)* }

        impl dyn #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;
        }

        #debug
        #types
    }
}

/// Returns the bases of a local interface that are neither local nor abstract.
fn remote_bases(context: Context<'_>, interface: &Interface) -> Vec<DefId> {
    let bases = interface.all_bases.iter().copied();
    bases
        .filter(|&base| match &context.model.get(base).kind {
            DefKind::Interface(base) => !base.local && !base.is_abstract,
            _ => false,
        })
        .collect()
}

/// Returns the methods that a trait requires for interfaces, as plain methods.
pub(super) fn declarations<'m>(
    context: Context<'_>,
    methods: impl Iterator<Item = &'m Method<'m>>,
) -> TokenStream {
    methods
        .map(|method| Signature::plain(context, method).declaration())
        .collect()
}

/// Returns a native type.
pub(super) fn native(context: Context<'_>, id: DefId) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    quote! { #doc pub type #name = #rt::Native; }
}

/// Returns a struct with local members.
pub(super) fn structure(context: Context<'_>, id: DefId) -> TokenStream {
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let has_default = shape::has_default(context.model, &Type::Named(id));
    let default = has_default.then(|| quote! { , Default });
    let fields = shape::parts(context.model, id).map(|member| {
        let doc = context.doc_of_member(member);
        let name = name_of(member);
        let ty = context.member_type(member, Form::Owned, Lifetime::Static);
        quote! { #doc pub #name: #ty }
    });
    quote! {
        #doc
        #[derive(Clone, Debug #default)]
        pub struct #name { #(#fields),* }

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;
        }
    }
}
