//! Encoding and decoding of many values of one layout at once: the runtime's `Flat`, and its use in
//! `Cdr`.

use chronorb_idl::model::Member;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::context::{Context, rt};
use super::enums::Enumeration;
use super::members::name_of;
use super::types::Lifetime;

/// Returns the members of `Cdr` for many values.
pub(super) fn slices() -> TokenStream {
    let rt = rt();
    quote! {
        const NESTS: bool = false;

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

/// Returns `Flat` for a struct, member by member.
pub(super) fn structure(context: Context<'_>, name: &Ident, members: &[&Member]) -> TokenStream {
    let rt = rt();
    let types = members
        .iter()
        .map(|member| context.view(&member.ty, Lifetime::A));
    let names: Vec<_> = members.iter().map(|member| name_of(member)).collect();
    quote! {
        impl #rt::Flat for #name {
            const LAYOUT: #rt::Layout =
                #rt::Layout::EMPTY #(.then(<#types as #rt::Flat>::LAYOUT))*;

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut #rt::FlatReader<'_, SWAP>) -> Self {
                Self { #(#names: #rt::Flat::get(r)),* }
            }

            #[inline(always)]
            fn put(&self, w: &mut #rt::FlatWriter<'_>) {
                #(#rt::Flat::put(&self.#names, w);)*
            }
        }
    }
}

/// Returns `Flat` for an enum, whose numbers are checked.
pub(super) fn enumeration(enumeration: &Enumeration) -> TokenStream {
    let rt = rt();
    let Enumeration {
        name,
        idents,
        numbers,
        carrier,
        unknown,
        ..
    } = enumeration;
    let literals = numbers.iter().copied().map(Literal::u32_unsuffixed);
    let literals: Vec<_> = literals.collect();
    let first = idents.first();
    let number = enumeration.number();
    let (check, rest) = match unknown {
        Some(unknown) => (None, quote! { number => Self::#unknown(number), }),
        None => {
            let is_known = if numbers.iter().copied().eq(0..numbers.len() as u32) {
                let count = Literal::usize_unsuffixed(numbers.len());
                quote! { number < #count }
            } else {
                quote! { ::core::matches!(number, #(#literals)|*) }
            };
            (
                Some(quote! { r.check(#is_known); }),
                quote! { _ => Self::#first, },
            )
        }
    };
    quote! {
        impl #rt::Flat for #name {
            const LAYOUT: #rt::Layout = <#carrier as #rt::Flat>::LAYOUT;

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut #rt::FlatReader<'_, SWAP>) -> Self {
                let number: #carrier = #rt::Flat::get(r);
                #check
                match number {
                    #(#literals => Self::#idents,)*
                    #rest
                }
            }

            #[inline(always)]
            fn put(&self, w: &mut #rt::FlatWriter<'_>) {
                #rt::Flat::put(&(#number), w);
            }
        }
    }
}

/// Returns `Flat` and `Cdr` for a type with a single integer of which all values are valid.
pub(super) fn integer(name: &Ident, carrier: &Ident) -> TokenStream {
    let rt = rt();
    let slices = slices();
    quote! {
        impl<'a> #rt::Cdr<'a> for #name {
            const MIN_SIZE: usize = <#carrier as #rt::Cdr<'static>>::MIN_SIZE;

            fn encode(
                &self,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #rt::Cdr::encode(&self.0, e)
            }

            fn decode(
                d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                Ok(Self(#rt::Cdr::decode(d)?))
            }

            #slices
        }

        impl #rt::Flat for #name {
            const LAYOUT: #rt::Layout = <#carrier as #rt::Flat>::LAYOUT;

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut #rt::FlatReader<'_, SWAP>) -> Self {
                Self(#rt::Flat::get(r))
            }

            #[inline(always)]
            fn put(&self, w: &mut #rt::FlatWriter<'_>) {
                #rt::Flat::put(&self.0, w);
            }
        }
    }
}
