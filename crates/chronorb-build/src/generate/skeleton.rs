//! The skeleton: from a request on the wire to a method of the servant.

use chronorb_idl::model::{DefId, Interface, ParamMode, Type};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::codec::{Form, Place};
use super::context::{Context, ident, rt, suffixed};
use super::interface::fresh;
use super::types::Lifetime;
use crate::names::Method;
use crate::perfect_hash;
use crate::shape;

/// Up to so many operations are told apart by comparing their names.
const FEW: usize = 4;

pub(super) fn skeleton(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let rt = rt();
    let handle = context.ident(id);
    let name = suffixed(&handle, "Skeleton");
    let servant = suffixed(&handle, "Servant");
    let doc = format!(" Dispatches requests for the interface [`{handle}`] to its servant.");
    let repository_id = &context.model.get(id).repository_id;
    let ids = interface.all_bases.iter().chain([&id]);
    let ids = ids.map(|&id| &context.model.get(id).repository_id);
    let methods = context.names.all_methods(id, interface);
    let locals = Locals::new(context, &methods);
    let Locals {
        s,
        call,
        operation,
        d,
        reply,
    } = &locals;
    let body = body(context, &methods, &locals);
    quote! {
        #[doc = #doc]
        #[derive(Debug)]
        pub struct #name<#s>(::std::sync::Arc<#s>);

        impl<#s: #servant> #name<#s> {
            #[doc = " A skeleton for this servant."]
            pub fn new(servant: #s) -> Self {
                Self(::std::sync::Arc::new(servant))
            }

            #[doc = " A skeleton for a servant that is shared with others."]
            pub fn from_arc(servant: ::std::sync::Arc<#s>) -> Self {
                Self(servant)
            }

            #[doc = " The servant."]
            pub fn servant(&self) -> &#s {
                &self.0
            }
        }

        impl<#s: #servant> #rt::Skeleton for #name<#s> {
            fn repository_id(&self) -> &'static str {
                #repository_id
            }

            fn is_a(&self, id: &str) -> bool {
                ::core::matches!(id, #(#ids)|*)
            }

            fn dispatch<'a>(
                &self,
                #call: &#rt::Call<'a>,
                #operation: &[u8],
                #d: &mut #rt::Decoder<'a>,
                #reply: &mut #rt::ReplyWriter<'_>,
            ) -> ::core::result::Result<(), #rt::SystemException> {
                #body
            }
        }
    }
}

/// The servant's type, and the names of the parameters of `dispatch`; no
/// parameter of an operation, which becomes a variable in it, has one of them.
struct Locals {
    s: Ident,
    call: Ident,
    operation: Ident,
    d: Ident,
    reply: Ident,
}

impl Locals {
    fn new(context: Context<'_>, methods: &[&Method<'_>]) -> Self {
        Self {
            s: context.type_parameter("S"),
            call: fresh("call", methods),
            operation: fresh("operation", methods),
            d: fresh("d", methods),
            reply: fresh("reply", methods),
        }
    }
}

/// Finds the operation, by a perfect hash where there are more than a few.
fn body(context: Context<'_>, methods: &[&Method<'_>], locals: &Locals) -> TokenStream {
    let rt = rt();
    let operation = &locals.operation;
    let arms = methods.iter().map(|method| arm(context, method, locals));
    let names: Vec<_> = methods.iter().map(|method| &method.wire_name).collect();
    let hash = if methods.len() > FEW {
        perfect_hash::find(&names)
    } else {
        None
    };
    let Some(hash) = hash else {
        let names = names
            .iter()
            .map(|name| Literal::byte_string(name.as_bytes()));
        return quote! {
            match #operation {
                #(#names => #arms)*
                _ => Err(#rt::bad_operation()),
            }
        };
    };
    let seed = Literal::u64_unsuffixed(hash.seed);
    let slots = hash.slots.iter().map(|slot| {
        if *slot == perfect_hash::EMPTY {
            quote! { #rt::OperationTable::EMPTY }
        } else {
            let slot = Literal::u16_unsuffixed(*slot);
            quote! { #slot }
        }
    });
    let numbers = (0..methods.len()).map(Literal::usize_unsuffixed);
    quote! {
        static OPERATIONS: #rt::OperationTable =
            #rt::OperationTable::new(#seed, &[#(#slots),*], &[#(#names),*]);
        match OPERATIONS.find(#operation) {
            #(Some(#numbers) => #arms)*
            _ => Err(#rt::bad_operation()),
        }
    }
}

/// Decodes the arguments, calls the servant, encodes the reply.
fn arm(context: Context<'_>, method: &Method<'_>, locals: &Locals) -> TokenStream {
    let Locals {
        s, call, d, reply, ..
    } = locals;
    let servant = context.path(method.interface, "Servant");
    let name = method.ident();
    let decoded = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let mutable = (param.mode == ParamMode::InOut).then(|| quote! { mut });
        let decode = context.decode_value(param.ty, d);
        let ty = context.value(param.ty, Lifetime::A);
        quote! { let #mutable #name: #ty = #decode?; }
    });
    let arguments = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        if param.mode == ParamMode::InOut {
            quote! { &mut #name }
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
    let encode = encode(context, method, reply);
    let errors = errors(context, method, reply);
    quote! {
        {
            #(#decoded)*
            match <#s as #servant>::#name(&self.0, #call, #(#arguments),*) {
                Ok(#pattern) => { #encode }
                #errors
            }
        }
    }
}

/// Encodes result, outs and inouts, in the order of their declaration.
fn encode(context: Context<'_>, method: &Method<'_>, reply: &Ident) -> TokenStream {
    let rt = rt();
    let e = method.fresh("e");
    let values = method.values();
    let result = values.first().filter(|_| method.result.is_some());
    let outputs = method.params.iter().filter(|p| p.mode != ParamMode::In);
    let outputs: Vec<(&str, &Type)> = result
        .copied()
        .into_iter()
        .chain(outputs.map(|p| (p.rust_name.as_str(), p.ty)))
        .collect();
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
        context.encode(ty, &Place::value(quote! { #name }), form, &e)
    });
    quote! {
        let encode = |#e: &mut #rt::Encoder<'_>| -> ::core::result::Result<(), #rt::CdrError> {
            #(#encoded)*
            Ok(())
        };
        encode(#reply.normal()?).map_err(#rt::reply_error)
    }
}

/// The arms for what the servant fails with.
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
