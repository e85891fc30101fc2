//! Asynchronous calls: methods of the handle that send a request without waiting for the reply, and
//! the trait of reply handlers.

use chronorb_idl::model::{DefId, DefKind, Interface, ParamMode};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::codec::Form;
use super::context::{Context, ident, rt, suffixed};
use super::handle::{encode_input, exceptions};
use super::types::Lifetime;
use crate::names::{Method, MethodParam};

/// Returns the methods `begin_…` and `send_…` of the handle, the trait `…ReplyHandler`, and the
/// structs for replies.
pub(super) fn items(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let all = context.names.all_methods(id, interface);
    let all: Vec<_> = all
        .into_iter()
        .filter(|method| context.is_asynchronous(method))
        .collect();
    if all.is_empty() {
        return TokenStream::new();
    }
    let name = context.ident(id);
    let methods = all.iter().map(|method| methods(context, id, method));
    let replies = all.iter().filter(|method| method.interface == id);
    let replies = replies.map(|method| reply(context, method));
    let handler = context
        .has_handler(id)
        .then(|| handler(context, id, interface));
    quote! {
        impl #name { #(#methods)* }
        #handler
        #(#replies)*
    }
}

impl Context<'_> {
    fn is_asynchronous(self, method: &Method<'_>) -> bool {
        // The options that another crate was generated with are not known here.
        let by_default = self.options.ami && !self.is_external(method.interface);
        !self.options.no_alloc && method.is_asynchronous(by_default)
    }

    /// Whether the interface has a `…ReplyHandler`: it declares an operation or attribute that can
    /// be called asynchronously.
    fn has_handler(self, id: DefId) -> bool {
        let mut own = self.names.own_methods(id).iter();
        own.any(|method| self.is_asynchronous(method))
    }

    /// Returns the nearest of the interface's bases that have a `…ReplyHandler`.
    fn handlers_of_bases(self, interface: &Interface) -> Vec<DefId> {
        let mut found = Vec::new();
        for &base in &interface.bases {
            if self.has_handler(base) {
                found.push(base);
            } else if let DefKind::Interface(base) = &self.model.get(base).kind {
                found.extend(self.handlers_of_bases(base));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the type of a whole reply: result, outs and inouts, owned.
    fn reply_type(self, method: &Method<'_>) -> TokenStream {
        if let Some(reply) = &method.reply {
            return self.path_beside(method.interface, reply);
        }
        if method.inouts().next().is_none() {
            return self.output_type(method, Form::Owned, Lifetime::Elided);
        }
        let outputs = method.outputs();
        let types: Vec<_> = outputs.iter().map(|(_, ty)| self.owned(ty)).collect();
        match types.as_slice() {
            [one] => one.clone(),
            _ => quote! { (#(#types),*) },
        }
    }

    /// Returns a value of that type, made of owned values by their names.
    fn reply_value(self, method: &Method<'_>) -> TokenStream {
        let outputs = method.outputs();
        let names: Vec<_> = outputs.iter().map(|(name, _)| ident(name)).collect();
        let values: Vec<_> = outputs
            .iter()
            .zip(&names)
            .map(|((_, ty), name)| self.result(ty, &quote! { #name }, Form::Owned))
            .collect();
        if let Some(reply) = &method.reply {
            let path = self.path_beside(method.interface, reply);
            return quote! { #path { #(#names: #values),* } };
        }
        if method.inouts().next().is_none() {
            return self.output_expression(method, Form::Owned, &values);
        }
        match values.as_slice() {
            [one] => one.clone(),
            _ => quote! { (#(#values),*) },
        }
    }
}

/// Returns both methods for an operation, or for the reading or setting of an attribute.
fn methods(context: Context<'_>, id: DefId, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let plain = context.names.in_handle(id, method);
    let (begin, send) = (begin_name(plain), send_name(plain));
    let handler = method.fresh("handler");
    let reply = method.fresh("reply");
    let inputs: Vec<_> = method.inputs().map(as_in).collect();
    let names: Vec<_> = inputs.iter().map(|p| ident(&p.rust_name)).collect();
    let params: Vec<_> = inputs
        .iter()
        .map(|param| context.parameter(param.ty, Lifetime::Elided))
        .collect();
    let output = context.reply_type(method);
    let error = context.error_type(method, Form::Owned, Lifetime::Elided);
    let trait_path = context.path(method.interface, "ReplyHandler");
    let operation = method.ident();

    let begin_doc = format!(
        " As [`{plain}`](Self::{plain}), without waiting for the reply. The result is taken from \
        the returned value when the reply has arrived."
    );
    let send_doc = format!(
        " As [`{begin}`](Self::{begin}), with a handler that is called once with the reply."
    );
    let body = if method.interface == id || context.is_external(method.interface) {
        begin_body(context, method, &inputs)
    } else {
        let base = context.path(method.interface, "");
        let begin = begin_name(&method.rust_name);
        quote! {
            <#base as ::core::convert::From<Self>>::from(::core::clone::Clone::clone(self))
                .#begin(#(#names),*)
        }
    };
    quote! {
        #[doc = #begin_doc]
        pub fn #begin(
            &self,
            #(#names: #params),*
        ) -> ::core::result::Result<#rt::PendingReply<#output, #error>, #rt::SystemException> {
            #body
        }

        #[doc = #send_doc]
        pub fn #send(
            &self,
            #handler: ::std::sync::Arc<dyn #trait_path>,
            #(#names: #params),*
        ) -> ::core::result::Result<(), #rt::SystemException> {
            self.#begin(#(#names),*)?
                .on_reply(move |#reply| #trait_path::#operation(&*#handler, #reply))
        }
    }
}

/// Generates the body of a `begin_…` method: it sends the request, and registers a function that
/// decodes the reply.
fn begin_body(
    context: Context<'_>,
    method: &Method<'_>,
    inputs: &[MethodParam<'_>],
) -> TokenStream {
    let rt = rt();
    let (e, d) = (method.fresh("e"), method.fresh("d"));
    let reply = method.fresh("reply");
    let wire_name = &method.wire_name;
    let arguments = inputs
        .iter()
        .map(|param| encode_input(context, param, Form::View, &e));
    let outputs = method.outputs();
    let decoded = outputs.iter().map(|(name, ty)| {
        let name = ident(name);
        let decode = context.decode_value(ty, &d);
        let ty = context.value(ty, Lifetime::Elided);
        quote! { let #name: #ty = #decode.map_err(#rt::reply_error)?; }
    });
    let value = context.reply_value(method);
    let output = context.reply_type(method);
    let error = context.error_type(method, Form::Owned, Lifetime::Elided);
    let exceptions = exceptions(context, method, Form::Owned);
    quote! {
        #rt::PendingReply::begin(
            &self.object,
            &#rt::Operation::twoway(#wire_name),
            &|#e: &mut #rt::Encoder<'_>| {
                #(#arguments)*
                Ok(())
            },
            |#reply: #rt::Reply<'_>| -> ::core::result::Result<#output, #error> {
                match #reply {
                    #rt::Reply::Normal(mut #d) => {
                        let #d = &mut #d;
                        #(#decoded)*
                        Ok(#value)
                    }
                    #exceptions
                }
            },
        )
    }
}

/// Returns the trait of reply handlers.
fn handler(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let handle = context.ident(id);
    let name = suffixed(&handle, "ReplyHandler");
    let standard = &context.model.get(id).name;
    let doc = format!(
        " A handler of the replies to asynchronous calls of [`{handle}`], with a method for each \
        operation: `AMI_{standard}Handler` of the standard."
    );
    let bases = context.handlers_of_bases(interface);
    let bounds = if bases.is_empty() {
        quote! { ::core::marker::Send + ::core::marker::Sync + 'static }
    } else {
        let bases = bases.iter().map(|&base| context.path(base, "ReplyHandler"));
        quote! { #(#bases)+* }
    };
    let own = context.names.own_methods(id).iter();
    let methods = own.filter(|method| context.is_asynchronous(method));
    let methods = methods.map(|method| {
        let doc = format!(" Handles the reply to {}.", method.what);
        let name = method.ident();
        let output = context.reply_type(method);
        let error = context.error_type(method, Form::Owned, Lifetime::Elided);
        quote! {
            #[doc = #doc]
            fn #name(&self, reply: ::core::result::Result<#output, #error>);
        }
    });
    quote! {
        #[doc = #doc]
        pub trait #name: #bounds { #(#methods)* }
    }
}

/// Returns the struct for a reply with too many values for a tuple.
fn reply(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let Some(name) = &method.reply else {
        return TokenStream::new();
    };
    let name = ident(name);
    let doc = format!(" The reply to {}.", method.what);
    let outputs = method.outputs();
    let fields = outputs.iter().map(|(name, ty)| {
        let doc = format!(" The value of `{name}`.");
        let (name, ty) = (ident(name), context.owned(ty));
        quote! { #[doc = #doc] pub #name: #ty }
    });
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, PartialEq)]
        pub struct #name { #(#fields),* }
    }
}

/// Converts an inout to an in parameter; its new value is part of the reply.
fn as_in<'m>(param: &MethodParam<'m>) -> MethodParam<'m> {
    MethodParam {
        mode: ParamMode::In,
        ..param.clone()
    }
}

fn begin_name(method: &str) -> Ident {
    format_ident!("begin_{method}")
}

fn send_name(method: &str) -> Ident {
    format_ident!("send_{method}")
}
