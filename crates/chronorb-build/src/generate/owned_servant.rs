//! The servant's trait with owned results, and its adapter to the borrowing one.

use chronorb_idl::model::{DefId, Interface, ParamMode, Type};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt, suffixed};
use super::servant::{borrowing_signature, hint};
use super::types::Lifetime;
use crate::names::{Method, MethodParam};
use crate::shape;

/// Returns the trait, and the implementation of the borrowing trait for all types that have it.
pub(super) fn owned_servant(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let handle = context.ident(id);
    let borrowing = suffixed(&handle, "Servant");
    let name = suffixed(&handle, "OwnedServant");
    let doc = format!(
        " An implementation of the interface [`{handle}`] whose results are owned values. A type \
         with this trait has [`{borrowing}`] too."
    );
    let bases = interface.bases.iter();
    let bases: Vec<_> = bases
        .map(|&base| context.path(base, "OwnedServant"))
        .collect();
    let bounds = if bases.is_empty() {
        quote! { ::core::marker::Send + ::core::marker::Sync + 'static }
    } else {
        quote! { #(#bases)+* }
    };
    let methods = context.names.own_methods(id);
    let declarations = methods.iter().map(|method| declaration(context, method));
    let t = context.type_parameter("T");
    let adapters = methods
        .iter()
        .map(|method| adapter(context, method, &name, &t));
    let hint = hint(&handle, &name);
    quote! {
        #[doc = #doc]
        #hint
        pub trait #name: #bounds { #(#declarations)* }

        impl<#t: #name> #borrowing for #t { #(#adapters)* }
    }
}

fn declaration(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let doc = context.doc(method.doc, &format!("IDL {}.", method.what));
    let call = method.fresh("call");
    let signature = signature(context, method, &quote! { #call });
    quote! { #doc #signature; }
}

/// Returns the method of the trait without documentation and end. It has the parameters and results
/// of the handle's plain method.
pub(super) fn signature(
    context: Context<'_>,
    method: &Method<'_>,
    call: &TokenStream,
) -> TokenStream {
    let rt = rt();
    let name = method.ident();
    let params = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let ty = if param.lazy {
            context.lazy(param.ty)
        } else if param.mode == ParamMode::In {
            context.parameter(param.ty, Lifetime::Elided)
        } else {
            let ty = context.owned(param.ty);
            quote! { &mut #ty }
        };
        quote! { #name: #ty }
    });
    // The type of a sequence that is decoded element by element names the message's lifetime twice.
    let has_lazy = method.params.iter().any(|param| param.lazy);
    let (generics, lifetime) = if has_lazy {
        (Some(quote! { <'a> }), quote! { 'a })
    } else {
        (None, quote! { '_ })
    };
    let output = context.output_type(method, Form::Owned, Lifetime::Elided);
    let error = context.error_type(method, Form::Owned, Lifetime::Elided);
    quote! {
        fn #name #generics(
            &self,
            #call: &#rt::Call<#lifetime>,
            #(#params),*
        ) -> ::core::result::Result<#output, #error>
    }
}

/// Returns the method of the borrowing trait that calls that of the owned one.
fn adapter(context: Context<'_>, method: &Method<'_>, owned: &Ident, t: &Ident) -> TokenStream {
    let has_twin = |ty: &Type| shape::has_twin(context.model, ty);
    let name = method.ident();
    let call = method.fresh("call");
    // The parameters with two Rust types, and the variables for their owned values.
    let inouts = method.inouts().filter(|param| has_twin(param.ty));
    let inouts: Vec<(&MethodParam<'_>, Ident)> = inouts
        .enumerate()
        .map(|(index, param)| (param, method.fresh(&format!("new_{index}"))))
        .collect();
    let before = inouts.iter().map(|(param, new)| {
        let name = ident(&param.rust_name);
        let value = context.to_owned(param.ty, &ValueExpr::reference(quote! { #name }));
        let ty = context.owned(param.ty);
        quote! { let mut #new: #ty = #value; }
    });
    let arguments = method.inputs().map(|param| {
        let new = inouts.iter().find(|(p, _)| p.rust_name == param.rust_name);
        match new {
            Some((_, new)) => quote! { &mut #new },
            None => ident_tokens(&param.rust_name),
        }
    });
    let called = quote! { <#t as #owned>::#name(self, #call, #(#arguments),*) };
    let signature = borrowing_signature(context, method);
    let values = method.values();
    let has_variable_error = context.has_variable_error(method);
    if inouts.is_empty() && !has_variable_error && !values.iter().any(|(_, ty)| has_twin(ty)) {
        return quote! { #signature { #called } };
    }
    let view = |ty: &Type, value: &Ident| {
        if has_twin(ty) {
            kept(context, ty, value, &call)
        } else {
            quote! { #value }
        }
    };
    let names = method.value_idents();
    let plain: Vec<_> = names.iter().map(|name| quote! { #name }).collect();
    let pattern = context.output_expression(method, Form::Owned, &plain);
    let views: Vec<_> = values
        .iter()
        .zip(&names)
        .map(|((_, ty), name)| view(ty, name))
        .collect();
    let returned = context.output_expression(method, Form::View, &views);
    let after = inouts.iter().map(|(param, new)| {
        let name = ident(&param.rust_name);
        let view = view(param.ty, new);
        quote! { *#name = #view; }
    });
    let called = if has_variable_error {
        let errors = errors(context, method, &call);
        let values = format_ident!("values");
        quote! { match #called { Ok(#values) => #values, Err(error) => #errors } }
    } else {
        quote! { #called? }
    };
    quote! {
        #signature {
            #(#before)*
            let #pattern = #called;
            #(#after)*
            Ok(#returned)
        }
    }
}

fn ident_tokens(name: &str) -> TokenStream {
    let name = ident(name);
    quote! { #name }
}

/// Returns an expression for the view of a value that the call keeps until the reply is sent.
fn kept(context: Context<'_>, ty: &Type, value: &Ident, call: &Ident) -> TokenStream {
    let view = context.as_view(ty, &ValueExpr::reference(quote! { owned }));
    let arena =
        shape::needs_arena(context.model, ty).then(|| quote! { let arena = #call.arena(); });
    quote! { { let owned = #call.keep(#value); #arena #view } }
}

/// Returns the expression that leaves the method with the view of `error`.
fn errors(context: Context<'_>, method: &Method<'_>, call: &Ident) -> TokenStream {
    let owned = context.error_path(method, Form::Owned);
    let view = context.error_path(method, Form::View);
    let arms = context.arms(method);
    let arms = arms.iter().map(|arm| {
        let (name, ty) = (&arm.name, Type::Named(arm.exception));
        let exception = format_ident!("exception");
        let value = if shape::is_variable(context.model, &ty) {
            kept(context, &ty, &exception, call)
        } else {
            quote! { #exception }
        };
        quote! { #owned::#name(#exception) => #view::#name(#value), }
    });
    quote! {
        return Err(match error {
            #(#arms)*
            #owned::System(exception) => #view::System(exception),
        })
    }
}
