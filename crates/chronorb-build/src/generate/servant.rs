//! The trait that a servant implements.

use chronorb_idl::model::{DefId, Interface, ParamMode};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::codec::Form;
use super::context::{Context, ident, rt, suffixed};
use super::types::Lifetime;
use crate::names::Method;
use crate::shape;

pub(super) fn servant(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let handle = context.ident(id);
    let name = suffixed(&handle, "Servant");
    let doc = format!(" An implementation of the interface [`{handle}`].");
    let bases: Vec<_> = interface
        .bases
        .iter()
        .map(|&base| context.path(base, "Servant"))
        .collect();
    let bounds = if bases.is_empty() {
        quote! { ::core::marker::Send + ::core::marker::Sync + 'static }
    } else {
        quote! { #(#bases)+* }
    };
    let methods = context.names.own_methods(id);
    let methods = methods.iter().map(|method| {
        let doc = context.doc(method.doc, &format!("IDL {}.", method.what));
        let signature = borrowing_signature(context, method);
        quote! { #doc #signature; }
    });
    let hint = hint(&handle, &name);
    quote! {
        #[doc = #doc]
        #hint
        pub trait #name: #bounds { #(#methods)* }
    }
}

/// Returns the attribute with the compiler's message where a type without the trait is a servant.
pub(super) fn hint(handle: &Ident, servant: &Ident) -> TokenStream {
    let message = format!("`{{Self}}` is no servant of the interface `{handle}`");
    let label = format!("`{servant}` is not implemented");
    let note = format!("a servant in an `Arc` is passed to `{handle}Skeleton::from_arc`");
    quote! {
        #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
    }
}

/// Returns the method of the trait, without documentation and end.
pub(super) fn borrowing_signature(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let name = method.ident();
    let call = method.fresh("call");
    let borrows = |ty| shape::has_twin(context.model, ty);
    let uses_lifetime = method.params.iter().any(|param| param.lazy)
        || context.has_variable_error(method)
        || method.result.is_some_and(borrows)
        || method.params.iter().any(|param| borrows(param.ty));
    let (generics, call_lifetime) = if uses_lifetime {
        (Some(quote! { <'a> }), quote! { 'a })
    } else {
        (None, quote! { '_ })
    };
    let params = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let ty = if param.lazy {
            context.lazy(param.ty)
        } else if param.mode == ParamMode::In {
            context.parameter(param.ty, Lifetime::A)
        } else {
            let ty = context.value(param.ty, Lifetime::A);
            quote! { &mut #ty }
        };
        quote! { #name: #ty }
    });
    let output = context.output_type(method, Form::View, Lifetime::A);
    let error = context.error_type(method, Form::View, Lifetime::A);
    quote! {
        fn #name #generics(
            &self,
            #call: &#rt::Call<#call_lifetime>,
            #(#params),*
        ) -> ::core::result::Result<#output, #error>
    }
}
