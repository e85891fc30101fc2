//! Enums.

use chronorb_idl::model::{DefId, Enumerator};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::applied::Additions;
use super::context::{Context, ident, rt};
use super::flat;
use crate::{names, shape};

/// The parts of an enum.
pub(super) struct Enumeration {
    pub(super) name: Ident,
    /// The enumerators.
    pub(super) idents: Vec<Ident>,
    /// The numbers of the enumerators.
    pub(super) numbers: Vec<u32>,
    /// The unsigned integer type on the wire.
    pub(super) carrier: Ident,
    /// The variant for unknown numbers of an appendable enum.
    pub(super) unknown: Option<Ident>,
    /// The index of the default enumerator.
    default: usize,
}

pub(super) fn enumeration(
    context: Context<'_>,
    id: DefId,
    enumerators: &[Enumerator],
    default: u32,
    bit_bound: u8,
) -> TokenStream {
    let unknown = shape::is_appendable(context.model, id).then(|| names::unknown(enumerators));
    let numbers = enumerators.iter().map(|enumerator| enumerator.value);
    let idents = enumerators.iter();
    let idents =
        idents.map(|enumerator| ident(&names::variant(&enumerator.name, &enumerator.annotations)));
    let enumeration = Enumeration {
        name: context.ident(id),
        idents: idents.collect(),
        numbers: numbers.collect(),
        carrier: format_ident!("u{}", shape::enum_bits(bit_bound)),
        unknown: unknown.map(|name| ident(&name)),
        default: default as usize,
    };
    enumeration.items(context, id, enumerators)
}

impl Enumeration {
    fn items(&self, context: Context<'_>, id: DefId, enumerators: &[Enumerator]) -> TokenStream {
        let Additions {
            before,
            after,
            derives,
        } = context.applied(id);
        let doc = context.doc_of(id);
        let name = &self.name;
        let repository_id = &context.model.get(id).repository_id;
        let repr = self.unknown.is_none().then(|| quote! { #[repr(u32)] });
        let variants = self.variants(context, enumerators);
        let number = self.number_method();
        let codec = self.codec();
        let flat = flat::enumeration(self);
        let type_code = context.typed(id);
        quote! {
            #before
            #doc
            #[derive(
                Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd #(, #derives)*
            )]
            #repr
            pub enum #name { #variants }
            #after

            impl #name {
                #[doc = " The repository identifier."]
                pub const REPOSITORY_ID: &'static str = #repository_id;

                #number
            }

            #codec
            #flat
            #type_code
        }
    }

    fn variants(&self, context: Context<'_>, enumerators: &[Enumerator]) -> TokenStream {
        let counts = self
            .numbers
            .iter()
            .copied()
            .eq(0..self.numbers.len() as u32);
        let variants = enumerators.iter().enumerate().map(|(index, enumerator)| {
            let fallback = format!("IDL enumerator `{}`.", enumerator.name);
            let doc = context.doc(enumerator.doc.as_deref(), &fallback);
            let default = (index == self.default).then(|| quote! { #[default] });
            let ident = &self.idents[index];
            let number = (!counts && self.unknown.is_none()).then(|| {
                let number = Literal::u32_unsuffixed(self.numbers[index]);
                quote! { = #number }
            });
            quote! { #doc #default #ident #number, }
        });
        let carrier = &self.carrier;
        let unknown = self.unknown.iter().map(|unknown| {
            quote! {
                #[doc = " A number that is unknown in this version of the IDL."]
                #unknown(#carrier),
            }
        });
        quote! { #(#variants)* #(#unknown)* }
    }

    /// Returns the method of an appendable enum for the number of the value.
    fn number_method(&self) -> Option<TokenStream> {
        let unknown = self.unknown.as_ref()?;
        let (idents, carrier) = (&self.idents, &self.carrier);
        let numbers = self.numbers.iter().copied().map(Literal::u32_unsuffixed);
        Some(quote! {
            #[doc = " Returns the number on the wire."]
            pub const fn number(self) -> #carrier {
                match self {
                    #(Self::#idents => #numbers,)*
                    Self::#unknown(number) => number,
                }
            }
        })
    }

    /// Returns an expression for the number of `self`, a reference.
    pub(super) fn number(&self) -> TokenStream {
        let carrier = &self.carrier;
        match self.unknown {
            Some(_) => quote! { self.number() },
            None => quote! { *self as #carrier },
        }
    }

    fn codec(&self) -> TokenStream {
        let rt = rt();
        let name = &self.name;
        let size = Literal::usize_unsuffixed(self.octets());
        let write = format_ident!("write_{}", self.carrier);
        let read = format_ident!("read_{}", self.carrier);
        let number = self.number();
        let numbers = self.numbers.iter().copied().map(Literal::u32_unsuffixed);
        let idents = &self.idents;
        let rest = match &self.unknown {
            Some(unknown) => quote! { number => Ok(Self::#unknown(number)), },
            None => quote! { _ => Err(#rt::CdrError::InvalidEnum), },
        };
        let slices = flat::slices();
        quote! {
            impl<'a> #rt::Cdr<'a> for #name {
                const MIN_SIZE: usize = #size;

                fn encode(
                    &self,
                    e: &mut #rt::Encoder<'_>,
                ) -> ::core::result::Result<(), #rt::CdrError> {
                    e.#write(#number)
                }

                fn decode(
                    d: &mut #rt::Decoder<'a>,
                ) -> ::core::result::Result<Self, #rt::CdrError> {
                    match d.#read()? {
                        #(#numbers => Ok(Self::#idents),)*
                        #rest
                    }
                }

                #slices
            }
        }
    }

    fn octets(&self) -> usize {
        match self.carrier.to_string().as_str() {
            "u8" => 1,
            "u16" => 2,
            _ => 4,
        }
    }
}
