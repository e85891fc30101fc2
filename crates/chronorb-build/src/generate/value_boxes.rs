//! Value boxes: a struct around the boxed content, which is a complete value.

use chronorb_idl::model::{DefId, Type};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::codec::{Form, ValueExpr};
use super::context::{Context, rt};
use super::values::by_arc;
use crate::shape;

pub(super) fn value_box(context: Context<'_>, id: DefId, ty: &Type) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let content = context.owned(ty);
    let default = shape::has_default(context.model, ty).then(|| quote! { Default, });
    let (e, d) = (format_ident!("e"), format_ident!("d"));
    let encode = context.encode(ty, &ValueExpr::value(quote! { self.0 }), Form::Owned, &e);
    let decode = context.decode_owned(ty, &d);
    let by_arc = by_arc(&quote! { #name });
    let type_code = context.type_code_of(id, &quote! { #name });
    let register_doc =
        " Registers the type, so that boxes can be read where any value (`ValueBase`) is expected.";
    quote! {
        #doc
        #[derive(Clone, Debug, #default PartialEq)]
        pub struct #name(pub #content);

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #[doc = " Returns the value as one of this type; `None` if it is of another."]
            pub fn narrow<V: #rt::ValueType + ?Sized>(
                value: &::std::sync::Arc<V>,
            ) -> ::core::option::Option<::std::sync::Arc<Self>> {
                #rt::narrow_value(&V::into_value(value.clone()))
            }

            #[doc = #register_doc]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error if it was registered before."]
            pub fn register() -> ::core::result::Result<(), #rt::DuplicateRegistration> {
                #rt::register_value_factory(Self::REPOSITORY_ID, Self::__read)
            }

            #[doc(hidden)]
            pub fn __read<'a>(
                #d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<::std::sync::Arc<dyn #rt::Value>, #rt::CdrError> {
                Ok(::std::sync::Arc::new(Self(#decode)))
            }
        }

        impl ::core::ops::Deref for #name {
            type Target = #content;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::core::convert::From<#content> for #name {
            fn from(content: #content) -> Self {
                Self(content)
            }
        }

        impl #rt::Value for #name {
            fn info(&self) -> &'static #rt::ValueInfo {
                <Self as #rt::ValueType>::INFO
            }

            fn encode_state(
                &self,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #rt::ValueType::encode_state(self, e)
            }

            fn narrow_to(self: ::std::sync::Arc<Self>, to: &mut #rt::Narrow<'_>) {
                to.offer(self);
            }

            fn equals(&self, other: &dyn #rt::Value) -> bool {
                let other: &dyn ::core::any::Any = other;
                other.downcast_ref::<Self>() == Some(self)
            }
        }

        impl #rt::ValueType for #name {
            const INFO: &'static #rt::ValueInfo = &#rt::ValueInfo {
                repository_id: #repository_id,
                truncatable_to: &[],
                custom: false,
            };

            fn encode_state(
                &self,
                #e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #encode
                Ok(())
            }

            fn offer(this: ::std::sync::Arc<Self>, to: &mut #rt::Narrow<'_>) {
                to.offer(this);
            }

            fn has_state_of(&self, other: &Self) -> bool {
                self == other
            }

            fn into_value(this: ::std::sync::Arc<Self>) -> ::std::sync::Arc<dyn #rt::Value> {
                this
            }

            fn known(repository_id: &str) -> ::core::option::Option<#rt::ReadState> {
                let read: #rt::ReadState = Self::__read;
                (repository_id == #repository_id).then_some(read)
            }
        }

        #by_arc
        #type_code
    }
}
