//! Abstract interfaces: a trait that both references and values implement.

use chronorb_idl::model::{DefId, DefKind, Interface};
use proc_macro2::TokenStream;
use quote::quote;

use super::context::{Context, rt};
use super::local::declarations;
use super::signature::Signature;

/// Returns the trait of an abstract interface, and the implementations that make a reference one of
/// the abstract interfaces that it is or inherits from.
pub(super) fn items(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let is_abstract = |id: &DefId| match &context.model.get(*id).kind {
        DefKind::Interface(interface) => interface.is_abstract,
        _ => false,
    };
    let own = interface
        .is_abstract
        .then(|| definition(context, id, interface));
    let all = interface.all_bases.iter().copied().chain([id]);
    let abstracts: Vec<_> = all.filter(is_abstract).collect();
    if abstracts.is_empty() {
        return TokenStream::new();
    }
    let rt = rt();
    let handle = context.handle_ident(id);
    let implementations = abstracts.iter().map(|&abstract_| {
        let path = context.path(abstract_, "");
        let methods = context.names.own_methods(abstract_);
        let methods = methods
            .iter()
            .map(|method| Signature::plain_of(context, id, method).forwarding());
        quote! { impl #path for #handle { #(#methods)* } }
    });
    let paths = abstracts.iter().map(|&id| context.path(id, ""));
    quote! {
        #own
        #(#implementations)*

        impl #rt::Abstract for #handle {
            fn encode_abstract(
                self: ::std::sync::Arc<Self>,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                e.write_bool(true)?;
                #rt::Reference::encode_reference(Some(&*self), e)
            }

            fn narrow_abstract_to(self: ::std::sync::Arc<Self>, to: &mut #rt::Narrow<'_>) {
                #(to.offer::<dyn #paths>(self.clone());)*
                to.offer(self);
            }
        }
    }
}

fn definition(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let handle = context.handle_ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let bases = interface.bases.iter().map(|&base| context.path(base, ""));
    let bases: Vec<_> = bases.collect();
    let bounds = if bases.is_empty() {
        quote! { #rt::Abstract }
    } else {
        quote! { #(#bases)+* }
    };
    let methods = declarations(context, context.names.own_methods(id).iter());
    let type_code = context.type_code_of(id, &quote! { dyn #name });
    quote! {
        #doc
        #[doc = ""]
        #[doc = " The implementation is an object or a value."]
        pub trait #name: #bounds { #methods }

        impl dyn #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #[doc = " Returns it as a `V`: a typed reference, the struct of a value box, or the"]
            #[doc = " trait of a value type. `None` if it is of another type."]
            pub fn narrow<V: ?Sized + 'static>(
                this: &::std::sync::Arc<Self>,
            ) -> ::core::option::Option<::std::sync::Arc<V>> {
                #rt::narrow_abstract(this.clone())
            }
        }

        #[doc = " Returns whether both are the same object or value."]
        impl ::core::cmp::PartialEq for dyn #name {
            fn eq(&self, other: &Self) -> bool {
                ::core::ptr::addr_eq(self, other)
            }
        }

        impl #rt::AbstractType for dyn #name {
            fn into_abstract(
                this: ::std::sync::Arc<Self>,
            ) -> ::std::sync::Arc<dyn #rt::Abstract> {
                this
            }

            fn decode_object(
                d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<::std::sync::Arc<Self>>,
                #rt::CdrError,
            > {
                let object: ::core::option::Option<#handle> =
                    #rt::Reference::decode_reference(d)?;
                Ok(object.map(|object| -> ::std::sync::Arc<Self> {
                    ::std::sync::Arc::new(object)
                }))
            }

            fn known(_: &str) -> ::core::option::Option<#rt::ReadState> {
                None
            }
        }

        impl #rt::ByArc for dyn #name {
            const MIN_SIZE: usize = 5;

            fn encode_arc(
                this: ::core::option::Option<&::std::sync::Arc<Self>>,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                e.write_abstract(this)
            }

            fn decode_arc(
                d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<::std::sync::Arc<Self>>,
                #rt::CdrError,
            > {
                d.read_abstract()
            }
        }

        #type_code
    }
}
