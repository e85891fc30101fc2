//! The state of a generated value type: its struct, its base and its default.

use chronorb_idl::model::{DefId, DefKind, ValueType};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::generate::codec::{Form, ValueExpr};
use crate::generate::context::{Context, rt, suffixed};
use crate::generate::members::name_of;
use crate::generate::types::Lifetime;
use crate::shape;

/// Returns the struct with the members: one that is the state of the base, then the type's own.
pub(super) fn state(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let rt = rt();
    let value_name = context.ident(id);
    let name = suffixed(&value_name, "State");
    let doc = format!(" The state of the value type [`{value_name}`].");
    let default = has_default(context, id).then(|| quote! { Default, });
    let (e, d) = (format_ident!("e"), format_ident!("d"));
    let base = value.concrete_base.map(|base| {
        let doc = format!(
            " The state of the base, `{}`.",
            context.model.get(base).name
        );
        (base_field(context, id), context.path(base, "State"), doc)
    });
    let members: Vec<_> = value.state.iter().map(|state| &state.member).collect();
    let names: Vec<_> = members.iter().map(|member| name_of(member)).collect();
    let fields = value.state.iter().map(|state| {
        let member = &state.member;
        let doc = context.doc_of_member(member);
        let private = (!state.public).then(|| {
            quote! { #[doc = ""] #[doc = " Private in the IDL: for the code of the value itself."] }
        });
        let name = name_of(member);
        let ty = context.member_type(member, Form::Owned, Lifetime::Static);
        quote! { #doc #private pub #name: #ty }
    });
    let base_fields = base.iter().map(|(field, path, doc)| {
        quote! { #[doc = #doc] pub #field: #path }
    });
    let encode_base = base
        .iter()
        .map(|(field, ..)| quote! { self.#field.encode(#e)?; #e.end_base_state()?; });
    let decode_base = base.iter().map(|(field, path, _)| {
        quote! { #field: #path::decode(#d)? }
    });
    let encode = members.iter().zip(&names).map(|(member, name)| {
        let place = ValueExpr::value(quote! { self.#name });
        context.encode_member(member, &place, Form::Owned, &e)
    });
    let decode = members.iter().zip(&names).map(|(member, name)| {
        let value = context.decode_member_owned(member, &d);
        quote! { #name: #value }
    });
    let decode: Vec<_> = decode_base.chain(decode).collect();
    let deref = base.iter().map(|(field, path, _)| {
        quote! {
            impl ::core::ops::Deref for #name {
                type Target = #path;

                fn deref(&self) -> &#path {
                    &self.#field
                }
            }

            impl ::core::ops::DerefMut for #name {
                fn deref_mut(&mut self) -> &mut #path {
                    &mut self.#field
                }
            }
        }
    });
    let fields: Vec<_> = base_fields.chain(fields).collect();
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, #default PartialEq)]
        pub struct #name { #(#fields),* }

        impl #name {
            #[doc = " Writes the state as a part of a value."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error of the encoder."]
            pub fn encode(
                &self,
                #e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #(#encode_base)*
                #(#encode)*
                Ok(())
            }

            #[doc = " Reads the state as a part of a value."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error of the decoder."]
            pub fn decode<'a>(
                #d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                Ok(Self { #(#decode),* })
            }
        }

        #(#deref)*
    }
}

/// Returns the field for the state of the base.
pub(super) fn base_field(context: Context<'_>, id: DefId) -> Ident {
    let DefKind::Value(value) = &context.model.get(id).kind else {
        return format_ident!("base");
    };
    let mut members = value.state.iter();
    let taken = members.any(|state| name_of(&state.member) == "base");
    format_ident!("{}", if taken { "base_" } else { "base" })
}

/// Returns whether the state has a `Default`.
pub(super) fn has_default(context: Context<'_>, id: DefId) -> bool {
    let DefKind::Value(value) = &context.model.get(id).kind else {
        return false;
    };
    let mut members = value.state.iter();
    members.all(|state| {
        let member = &state.member;
        member.optional || shape::has_default(context.model, &member.ty)
    }) && value
        .concrete_base
        .is_none_or(|base| has_default(context, base))
}
