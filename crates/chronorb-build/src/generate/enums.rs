//! Enums.

use chronorb_idl::model::{DefId, Enumerator};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::{Context, ident, rt};
use super::flat;
use crate::names::pascal;

pub(super) fn enumeration(
    context: Context<'_>,
    id: DefId,
    enumerators: &[Enumerator],
) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let idents: Vec<_> = enumerators
        .iter()
        .map(|enumerator| ident(&pascal(&enumerator.name)))
        .collect();
    let variants = enumerators.iter().enumerate().map(|(index, enumerator)| {
        let fallback = format!("IDL enumerator `{}`.", enumerator.name);
        let doc = context.doc(enumerator.doc.as_deref(), &fallback);
        let default = (index == 0).then(|| quote! { #[default] });
        let ident = &idents[index];
        quote! { #doc #default #ident }
    });
    let slices = flat::slices();
    let flat = flat::enumeration(&name, &idents);
    let numbers = (0..enumerators.len()).map(Literal::usize_unsuffixed);
    quote! {
        #doc
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u32)]
        pub enum #name { #(#variants),* }

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;
        }

        impl<'a> #rt::Cdr<'a> for #name {
            const MIN_SIZE: usize = 4;

            fn encode(
                &self,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                e.write_u32(*self as u32)
            }

            fn decode(
                d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                match d.read_u32()? {
                    #(#numbers => Ok(Self::#idents),)*
                    _ => Err(#rt::CdrError::InvalidEnum),
                }
            }

            #slices
        }

        #flat
    }
}
