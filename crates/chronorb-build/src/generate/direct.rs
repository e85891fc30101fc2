//! Direct calls of a servant in the same process, without marshalling, but with the same results
//! and exceptions.

use chronorb_idl::model::{ParamMode, Type};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt};
use super::handle::encode_input;
use super::types::Lifetime;
use crate::names::{Method, MethodParam};
use crate::shape;

/// Returns a statement that calls the servant behind `object` directly and returns its result. It
/// continues if the servant cannot be called directly.
pub(super) fn direct(
    context: Context<'_>,
    method: &Method<'_>,
    object: &TokenStream,
) -> TokenStream {
    // A value in an any can only be extracted after it was marshalled.
    let mut inputs = method.inputs();
    if inputs.any(|param| shape::holds_any(context.model, param.ty)) {
        return TokenStream::new();
    }
    let rt = rt();
    let scope = method.fresh("scope");
    let servant = method.fresh("servant");
    let call = method.fresh("call");
    let answer = method.fresh("answer");
    let wire_name = &method.wire_name;
    let interface = context.path(method.interface, "Servant");
    let upcall = upcall(context, method, &servant, &call);
    let places: Vec<_> = method.inouts().map(|p| ident(&p.rust_name)).collect();
    let done = if places.is_empty() {
        quote! { return #answer?; }
    } else {
        let value = method.fresh("value");
        let new = method.inouts().map(|param| new_name(method, param));
        let new: Vec<_> = new.collect();
        quote! {
            let (#value, #(#new),*) = #answer??;
            #(*#places = #new;)*
            return Ok(#value);
        }
    };
    quote! {
        if let Some(#answer) = #object.direct(
            #scope,
            &#rt::Operation::twoway(#wire_name),
            |#servant: &::std::sync::Arc<dyn #interface>, #call, _| #upcall,
        ) {
            #done
        }
    }
}

/// Returns an expression of the servant's results: a `Result` of owned values, followed by the new
/// values of the inouts.
fn upcall(context: Context<'_>, method: &Method<'_>, servant: &Ident, call: &Ident) -> TokenStream {
    let rt = rt();
    let interface = context.path(method.interface, "Servant");
    let name = method.ident();
    let arguments = method.inputs().map(|param| {
        if param.mode == ParamMode::InOut {
            let new = new_name(method, param);
            quote! { &mut #new }
        } else if param.lazy {
            let name = ident(&param.rust_name);
            quote! { ::core::convert::From::from(#name) }
        } else {
            let name = ident(&param.rust_name);
            quote! { #name }
        }
    });
    let result = quote! { #interface::#name(&**#servant, #call, #(#arguments),*) };
    let map_error = map_error(context, method);
    let check_inputs = check_inputs(context, method);
    let check_outputs = check_outputs(context, method);
    let outputs = method.outputs();
    let is_owned = outputs
        .iter()
        .all(|(_, ty)| !shape::has_twin(context.model, ty));
    let is_unchecked = check_inputs.is_empty() && check_outputs.is_empty();
    if is_owned && is_unchecked && map_error.is_empty() && method.inouts().next().is_none() {
        return result;
    }

    let views = method
        .inouts()
        .map(|param| view_of_inout(context, method, param, call));
    let selected = method.inputs().filter_map(|param| {
        let (clause, name) = (param.clause?, ident(&param.rust_name));
        Some(quote! {
            let #name = #rt::select_context(#name, &[#(#clause),*], #call.arena())?;
        })
    });
    let names = method.value_idents();
    let names: Vec<_> = names.iter().map(|name| quote! { #name }).collect();
    let pattern = context.output_expression(method, Form::View, &names);
    let values = method.values();
    let values = values.iter().zip(&names);
    let owned: Vec<_> = values
        .map(|((_, ty), name)| context.result(ty, name, Form::Owned))
        .collect();
    let mut returned = context.output_expression(method, Form::Owned, &owned);
    let new: Vec<_> = method
        .inouts()
        .map(|param| {
            let new = new_name(method, param);
            context.result(param.ty, &quote! { #new }, Form::Owned)
        })
        .collect();
    if !new.is_empty() {
        returned = quote! { (#returned, #(#new),*) };
    }
    let error = context.error_path(method, Form::Owned);
    quote! {
        {
            #check_inputs
            #(#views)*
            #(#selected)*
            let #pattern = #result #map_error?;
            #check_outputs
            Ok::<_, #error>(#returned)
        }
    }
}

/// Returns a statement that returns an error if an argument could not be marshalled; empty if all
/// arguments can be.
fn check_inputs(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let e = method.fresh("e");
    let encode = method
        .inputs()
        .filter(|param| shape::can_be_refused(context.model, param.ty))
        .map(|param| encode_input(context, param, Form::Owned, &e))
        .collect();
    check(method, &encode, &TokenStream::new())
}

/// Returns the same check for the servant's results.
fn check_outputs(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let e = method.fresh("e");
    let encode = method
        .outputs()
        .iter()
        .filter(|(_, ty)| shape::can_be_refused(context.model, ty))
        .map(|(name, ty)| {
            let inout = method.inouts().find(|param| param.rust_name == *name);
            let name = inout.map_or_else(|| ident(name), |param| new_name(method, param));
            context.encode(ty, &ValueExpr::value(quote! { #name }), Form::View, &e)
        })
        .collect();
    check(method, &encode, &quote! { .map_err(#rt::reply_error) })
}

/// Returns code that marshals values only to check that it is possible.
fn check(method: &Method<'_>, encode: &TokenStream, map_error: &TokenStream) -> TokenStream {
    if encode.is_empty() {
        return TokenStream::new();
    }
    let rt = rt();
    let e = method.fresh("e");
    quote! {
        #rt::Scope::check(&|#e| {
            #encode
            Ok(())
        }) #map_error?;
    }
}

/// Returns the suffix of the servant's call that converts its error to an owned one.
fn map_error(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let owned = if context.has_variable_error(method) {
        quote! { error.to_owned() }
    } else {
        quote! { error }
    };
    let path = context.error_path(method, Form::View);
    let arms = context.arms(method);
    let arms: Vec<_> = arms
        .iter()
        .filter(|arm| shape::can_be_refused(context.model, &Type::Named(arm.exception)))
        .map(|arm| {
            let name = &arm.name;
            quote! { #path::#name(exception) => #rt::Cdr::encode(exception, e), }
        })
        .collect();
    if !arms.is_empty() {
        return quote! {
            .map_err(|error| {
                let checked = #rt::Scope::check(&|e| match &error {
                    #(#arms)*
                    _ => Ok(()),
                });
                match checked {
                    Ok(()) => #owned,
                    Err(refused) => ::core::convert::From::from(#rt::reply_error(refused)),
                }
            })
        };
    }
    if context.has_variable_error(method) {
        quote! { .map_err(|error| error.to_owned()) }
    } else {
        TokenStream::new()
    }
}

/// Returns the variable that the servant may change. The caller's value changes only after the call
/// has succeeded.
fn view_of_inout(
    context: Context<'_>,
    method: &Method<'_>,
    param: &MethodParam<'_>,
    call: &Ident,
) -> TokenStream {
    let name = ident(&param.rust_name);
    let new = new_name(method, param);
    let ty = context.value(param.ty, Lifetime::Elided);
    let view = if shape::is_reference(context.model, param.ty) {
        quote! { ::core::clone::Clone::clone(&*#name) }
    } else if shape::needs_arena(context.model, param.ty) {
        let view = context.as_view(param.ty, &ValueExpr::reference(quote! { owned }));
        quote! {
            {
                let (arena, owned) = (#call.arena(), &*#name);
                #view
            }
        }
    } else {
        context.as_view(param.ty, &ValueExpr::reference(quote! { #name }))
    };
    quote! { let mut #new: #ty = #view; }
}

/// Returns the variable for the new value of an inout.
pub(super) fn new_name(method: &Method<'_>, param: &MethodParam<'_>) -> Ident {
    method.fresh(&format!("new_{}", param.rust_name))
}
