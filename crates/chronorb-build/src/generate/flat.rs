//! What lets many values of one layout be read and written in one go: the
//! runtime's `Flat`, and the use of it in `Cdr`.

use chronorb_idl::model::{DefId, Member};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::context::{Context, rt};
use super::structs::name_of;
use super::types::Lifetime;

/// The methods of `Cdr` for many values.
pub(super) fn slices() -> TokenStream {
    let rt = rt();
    quote! {
        fn encode_slice(
            items: &[Self],
            e: &mut #rt::Encoder<'_>,
        ) -> ::core::result::Result<(), #rt::CdrError> {
            e.write_flat(items)
        }

        fn decode_slice(
            d: &mut #rt::Decoder<'a>,
            n: usize,
        ) -> ::core::result::Result<&'a [Self], #rt::CdrError> {
            d.read_flat(n)
        }
    }
}

/// `Flat` for a struct: member by member.
pub(super) fn structure(context: Context<'_>, id: DefId, members: &[Member]) -> TokenStream {
    let rt = rt();
    let name = context.ident(id);
    let types = members
        .iter()
        .map(|member| context.view(&member.ty, Lifetime::A));
    let names: Vec<_> = members.iter().map(name_of).collect();
    quote! {
        impl #rt::Flat for #name {
            const LAYOUT: #rt::Layout =
                #rt::Layout::EMPTY #(.then(<#types as #rt::Flat>::LAYOUT))*;

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut #rt::FlatReader<'_, SWAP>) -> Self {
                Self { #(#names: #rt::Flat::get(r)),* }
            }

            #[inline(always)]
            fn put<const SWAP: bool>(&self, w: &mut #rt::FlatWriter<'_, SWAP>) {
                #(#rt::Flat::put(&self.#names, w);)*
            }
        }
    }
}

/// `Flat` for an enum with these enumerators: a number that is looked up.
pub(super) fn enumeration(name: &Ident, enumerators: &[Ident]) -> TokenStream {
    let rt = rt();
    let numbers = (0..enumerators.len()).map(Literal::usize_unsuffixed);
    let count = Literal::usize_unsuffixed(enumerators.len());
    let first = enumerators.first();
    quote! {
        impl #rt::Flat for #name {
            const LAYOUT: #rt::Layout = <u32 as #rt::Flat>::LAYOUT;

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut #rt::FlatReader<'_, SWAP>) -> Self {
                let number: u32 = #rt::Flat::get(r);
                r.check(number < #count);
                match number {
                    #(#numbers => Self::#enumerators,)*
                    _ => Self::#first,
                }
            }

            #[inline(always)]
            fn put<const SWAP: bool>(&self, w: &mut #rt::FlatWriter<'_, SWAP>) {
                #rt::Flat::put(&(*self as u32), w);
            }
        }
    }
}
