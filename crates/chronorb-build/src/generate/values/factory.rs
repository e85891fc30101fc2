//! The factory of a generated value type, its initializers and its registration.

use chronorb_idl::model::{DefId, ValueType};
use proc_macro2::TokenStream;
use quote::quote;

use crate::generate::codec::Form;
use crate::generate::context::{Context, ident, rt, suffixed};
use crate::generate::types::Lifetime;
use crate::names::Method;

/// Returns the trait of a factory, which creates values from their state, and by each initialiser.
pub(super) fn factory(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let rt = rt();
    let name = context.ident(id);
    let factory = suffixed(&name, "Factory");
    let doc = format!(" Makes values of the type [`{name}`].");
    let unmarshal = if value.custom {
        quote! {
            #[doc = " Reads a value in the form that its `marshal` writes."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error of the decoder, or of the value that it read."]
            fn unmarshal(
                &self,
                input: &mut #rt::DataInput<'_>,
            ) -> ::core::result::Result<::std::sync::Arc<dyn #name>, #rt::CdrError>;
        }
    } else {
        let state = suffixed(&name, "State");
        quote! {
            #[doc = " Creates the value with this state, which was received."]
            fn unmarshal(&self, state: #state) -> ::std::sync::Arc<dyn #name>;
        }
    };
    let initialisers = context.names.factories(id).iter();
    let initialisers = initialisers.map(|method| initialiser(context, id, method));
    quote! {
        #[doc = #doc]
        pub trait #factory: ::core::marker::Send + ::core::marker::Sync + 'static {
            #unmarshal
            #(#initialisers)*
        }
    }
}

fn initialiser(context: Context<'_>, id: DefId, method: &Method<'_>) -> TokenStream {
    let doc = context.doc(method.doc, &format!("IDL {}.", method.what));
    let value = context.ident(id);
    let name = method.ident();
    let params = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let ty = context.parameter(param.ty, Lifetime::Elided);
        quote! { #name: #ty }
    });
    let error = context.error_type(method, Form::Owned, Lifetime::Elided);
    quote! {
        #doc
        fn #name(
            &self,
            #(#params),*
        ) -> ::core::result::Result<::std::sync::Arc<dyn #value>, #error>;
    }
}

/// Returns the function that registers a factory.
pub(super) fn register(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let rt = rt();
    let name = context.ident(id);
    let (factory, state) = (suffixed(&name, "Factory"), suffixed(&name, "State"));
    let read = if value.custom {
        quote! { factory.unmarshal(d)? }
    } else {
        quote! { factory.unmarshal(#state::decode(d)?) }
    };
    quote! {
        #[doc = " Makes `factory` create received values of the type until the process ends."]
        #[doc = ""]
        #[doc = " # Errors"]
        #[doc = ""]
        #[doc = " An error if a factory was registered before."]
        pub fn register_factory(
            factory: impl #factory,
        ) -> ::core::result::Result<(), #rt::DuplicateRegistration> {
            #rt::register_value_factory(Self::REPOSITORY_ID, move |d| {
                let value: ::std::sync::Arc<dyn #name> = #read;
                Ok(value)
            })
        }
    }
}
