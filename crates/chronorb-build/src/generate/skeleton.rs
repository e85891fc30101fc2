//! The skeleton: from a request on the wire to a method of the servant.

use chronorb_idl::model::{DefId, Interface, ParamMode};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt, suffixed};
use super::demux::demux;
use super::types::Lifetime;
use crate::names::Method;
use crate::shape;

pub(super) fn skeleton(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let rt = rt();
    let handle = context.ident(id);
    let name = suffixed(&handle, "Skeleton");
    let servant = suffixed(&handle, "Servant");
    let debug_name = name.to_string();
    let doc = format!(" Dispatches requests for the interface [`{handle}`] to its servant.");
    let repository_id = &context.model.get(id).repository_id;
    let ids = interface.all_bases.iter().chain([&id]);
    let ids = ids.map(|&id| &context.model.get(id).repository_id);
    let methods = context.names.all_methods(id, interface);
    let s = context.type_parameter("S");
    let arms = methods.iter().map(|method| {
        let base = context.path(method.interface, "Skeleton");
        let function = function_name(method);
        quote! { #base::<#s>::#function(&self.0, call, d, reply), }
    });
    let arms: Vec<_> = arms.collect();
    let body = demux(context, &methods, &arms);
    let own = context.names.own_methods(id);
    let functions = own.iter().map(|method| function(context, method, &s));
    // An operation of a base is called directly as one of the base.
    let servants = [id].into_iter().chain(interface.all_bases.iter().copied());
    let servants: Vec<_> = servants
        .map(|id| {
            let path = context.path(id, "Servant");
            quote! { ::std::sync::Arc<dyn #path> }
        })
        .collect();
    let clones = servants.iter().map(|_| quote! { servant.clone() });
    let places: Vec<_> = (1..=servants.len())
        .map(Literal::usize_unsuffixed)
        .collect();
    quote! {
        #[doc = #doc]
        pub struct #name<#s>(::std::sync::Arc<#s>, #(#servants),*);

        impl<#s: #servant> #name<#s> {
            #[doc = " Creates a skeleton for this servant."]
            pub fn new(servant: #s) -> Self {
                Self::from_arc(::std::sync::Arc::new(servant))
            }

            #[doc = " Creates a skeleton for a shared servant."]
            pub fn from_arc(servant: ::std::sync::Arc<#s>) -> Self {
                Self(#(#clones,)* servant)
            }

            #[doc = " Returns the servant."]
            pub fn servant(&self) -> &#s {
                &self.0
            }

            #(#functions)*
        }

        impl<#s: ::core::fmt::Debug> ::core::fmt::Debug for #name<#s> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_tuple(#debug_name).field(&self.0).finish()
            }
        }

        impl<#s: #servant> #rt::Skeleton for #name<#s> {
            fn repository_id(&self) -> &'static str {
                #repository_id
            }

            fn is_a(&self, id: &str) -> bool {
                ::core::matches!(id, #(#ids)|*)
            }

            fn identity(&self) -> usize {
                ::std::sync::Arc::as_ptr(&self.0).addr()
            }

            fn servant_as(
                &self,
                servant: ::core::any::TypeId,
            ) -> ::core::option::Option<&dyn ::core::any::Any> {
                #(
                    if servant == ::core::any::TypeId::of::<#servants>() {
                        return Some(&self.#places);
                    }
                )*
                None
            }

            fn dispatch<'a>(
                &self,
                call: &#rt::Call<'a>,
                operation: &[u8],
                d: &mut #rt::Decoder<'a>,
                reply: &mut #rt::ReplyWriter<'_>,
            ) -> ::core::result::Result<(), #rt::SystemException> {
                #body
            }
        }
    }
}

/// Returns the name of the function with a method's code, which exists once and serves the
/// skeletons of derived interfaces too.
fn function_name(method: &Method<'_>) -> Ident {
    format_ident!("__{}", method.rust_name)
}

/// Returns the function that decodes the arguments, calls the servant and encodes the reply.
fn function(context: Context<'_>, method: &Method<'_>, s: &Ident) -> TokenStream {
    let rt = rt();
    let function = function_name(method);
    let object = method.fresh("servant");
    let call = method.fresh("call");
    let d = method.fresh("d");
    let reply = method.fresh("reply");
    let servant = context.path(method.interface, "Servant");
    let name = method.ident();
    let decoded = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let mutable = (param.mode == ParamMode::InOut).then(|| quote! { mut });
        if param.lazy {
            let (ty, decode) = (context.lazy(param.ty), context.decode_lazy(param.ty, &d));
            return quote! { let #name: #ty = #decode?; };
        }
        let decode = match param.clause {
            Some(_) => quote! { #rt::decode_context(#d) },
            None => context.decode_value(param.ty, &d),
        };
        let ty = context.value(param.ty, Lifetime::A);
        quote! { let #mutable #name: #ty = #decode?; }
    });
    let arguments = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        if param.mode == ParamMode::InOut {
            quote! { &mut #name }
        } else if shape::is_nonnil(context.model, param.ty) {
            quote! { &#name }
        } else if shape::is_reference(context.model, param.ty) {
            quote! { #name.as_ref() }
        } else if context.is_by_reference(param.ty) {
            quote! { &#name }
        } else {
            quote! { #name }
        }
    });
    let values: Vec<_> = method
        .value_idents()
        .iter()
        .map(|name| quote! { #name })
        .collect();
    let pattern = context.output_expression(method, Form::View, &values);
    let encode = encode(context, method, &reply);
    let errors = errors(context, method, &reply);
    quote! {
        #[doc(hidden)]
        pub fn #function<'a>(
            #object: &#s,
            #call: &#rt::Call<'a>,
            #d: &mut #rt::Decoder<'a>,
            #reply: &mut #rt::ReplyWriter<'_>,
        ) -> ::core::result::Result<(), #rt::SystemException> {
            #(#decoded)*
            match <#s as #servant>::#name(#object, #call, #(#arguments),*) {
                Ok(#pattern) => { #encode }
                #errors
            }
        }
    }
}

/// Returns code that encodes result, outs and inouts in the order of their declaration.
fn encode(context: Context<'_>, method: &Method<'_>, reply: &Ident) -> TokenStream {
    let rt = rt();
    let e = method.fresh("e");
    let outputs = method.outputs();
    if outputs.is_empty() {
        return quote! { #reply.normal()?; Ok(()) };
    }
    let encoded = outputs.iter().map(|(name, ty)| {
        let name = ident(name);
        let is_reference = shape::is_reference(context.model, ty);
        let form = if is_reference {
            Form::Owned
        } else {
            Form::View
        };
        context.encode(ty, &ValueExpr::value(quote! { #name }), form, &e)
    });
    let write = if outputs
        .iter()
        .any(|(_, ty)| shape::may_be_great(context.model, ty))
    {
        quote! { #reply.results(&encode) }
    } else {
        quote! { encode(#reply.normal()?).map_err(#rt::reply_error) }
    };
    quote! {
        let encode = |#e: &mut #rt::Encoder<'_>| -> ::core::result::Result<(), #rt::CdrError> {
            #(#encoded)*
            Ok(())
        };
        #write
    }
}

/// Returns the arms for the servant's errors.
fn errors(context: Context<'_>, method: &Method<'_>, reply: &Ident) -> TokenStream {
    let rt = rt();
    if method.error.is_none() {
        return quote! { Err(exception) => Err(exception), };
    }
    let error = context.error_path(method, Form::View);
    let arms = context.arms(method);
    let arms = arms.iter().map(|arm| {
        let name = &arm.name;
        let path = context.path(arm.exception, "");
        quote! {
            Err(#error::#name(exception)) => {
                let encoder = #reply.user_exception(#path::REPOSITORY_ID)?;
                #rt::Cdr::encode(&exception, encoder).map_err(#rt::reply_error)
            }
        }
    });
    quote! {
        #(#arms)*
        Err(#error::System(exception)) => Err(exception),
    }
}
