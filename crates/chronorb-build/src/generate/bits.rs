//! Bit masks and bit sets: unsigned integers with names for their bits.

use chronorb_idl::model::{BitFlag, DefId, Type};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::applied::Additions;
use super::context::{Context, ident, rt};
use super::flat;
use super::types::Lifetime;
use crate::{names, shape};

/// Returns a newtype with a constant for each flag.
pub(super) fn mask(
    context: Context<'_>,
    id: DefId,
    flags: &[BitFlag],
    bit_bound: u8,
) -> TokenStream {
    let rt = rt();
    let Additions {
        before,
        after,
        derives,
    } = context.applied(id);
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let carrier = format_ident!("u{}", shape::carrier_bits(bit_bound));
    let constants = flags.iter().map(|flag| {
        let fallback = format!("IDL flag `{}`.", flag.name);
        let doc = context.doc(flag.doc.as_deref(), &fallback);
        let name = ident(&names::flag(flag));
        let position = Literal::u8_unsuffixed(flag.position);
        quote! { #doc pub const #name: Self = Self(1 << #position); }
    });
    let names = flags.iter().map(|flag| {
        let (name, position) = (&flag.name, Literal::u8_unsuffixed(flag.position));
        quote! { (#name, #position) }
    });
    let operators = [
        ("BitOr", "bitor", "BitOrAssign", "bitor_assign"),
        ("BitAnd", "bitand", "BitAndAssign", "bitand_assign"),
        ("BitXor", "bitxor", "BitXorAssign", "bitxor_assign"),
    ];
    let operators = operators.map(|names| {
        let (operator, method, assignment, assign) = names;
        let (operator, method) = (ident(operator), ident(method));
        let (assignment, assign) = (ident(assignment), ident(assign));
        quote! {
            impl ::core::ops::#operator for #name {
                type Output = Self;

                fn #method(self, other: Self) -> Self {
                    Self(::core::ops::#operator::#method(self.0, other.0))
                }
            }

            impl ::core::ops::#assignment for #name {
                fn #assign(&mut self, other: Self) {
                    ::core::ops::#assignment::#assign(&mut self.0, other.0);
                }
            }
        }
    });
    let codec = flat::integer(&name, &carrier);
    let type_code = context.typed(id);
    quote! {
        #before
        #doc
        #[doc = ""]
        #[doc = " Bits without a name are kept as they are."]
        #[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd #(, #derives)*)]
        #[repr(transparent)]
        pub struct #name(#carrier);
        #after

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #(#constants)*

            #[doc = " Creates the mask of these bits."]
            pub const fn from_bits(bits: #carrier) -> Self {
                Self(bits)
            }

            #[doc = " Returns the bits."]
            pub const fn bits(self) -> #carrier {
                self.0
            }

            #[doc = " Returns whether no bit is set."]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            #[doc = " Returns whether all bits of `other` are set."]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            #[doc = " Returns the bits of both, as `|`, for constants."]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        #(#operators)*

        impl ::core::ops::Not for #name {
            type Output = Self;

            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        #[doc = " Writes the names of the set flags, separated by ` | `."]
        impl ::core::fmt::Display for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #rt::display_flags(f, ::core::convert::From::from(self.0), &[#(#names),*])
            }
        }

        impl ::core::fmt::Debug for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }

        #codec
        #type_code
    }
}

/// Returns a newtype with a getter and a setter for each field.
pub(super) fn set(context: Context<'_>, id: DefId) -> TokenStream {
    let Additions {
        before,
        after,
        derives,
    } = context.applied(id);
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let debug_name = name.to_string();
    let repository_id = &context.model.get(id).repository_id;
    let bits = shape::carrier_bits(shape::bitset_bits(context.model, id));
    let carrier = format_ident!("u{bits}");
    let mut accessors = TokenStream::new();
    let mut debugged = TokenStream::new();
    for field in shape::bit_fields(context.model, id) {
        let Some(field_name) = &field.name else {
            continue;
        };
        let rust_name = names::bit_field(field_name, &field.annotations);
        let getter = ident(&rust_name);
        let setter = format_ident!("{}", names::bit_field_setter(&rust_name));
        let fallback = format!("IDL field `{field_name}`.");
        let doc = context.doc(field.doc.as_deref(), &fallback);
        let setter_doc = format!(
            " Returns the set with another `{field_name}`, the lowest {} bits of the value.",
            field.bits
        );
        let ty = context.view(&field.ty, Lifetime::Static);
        let position = Literal::u8_unsuffixed(field.position);
        let mask = Literal::u64_unsuffixed(u64::MAX >> (64 - field.bits.clamp(1, 64)));
        let value = quote! { (self.0 >> #position & #mask) };
        let value = match shape::resolve(context.model, &field.ty) {
            Type::Boolean => quote! { #value != 0 },
            // The field's highest bit is its sign.
            Type::Int8 | Type::Short | Type::Long | Type::LongLong => {
                let unused = Literal::u8_unsuffixed(bits.saturating_sub(field.bits));
                let signed = format_ident!("i{bits}");
                quote! { ((#value << #unused) as #signed >> #unused) as #ty }
            }
            _ => quote! { #value as #ty },
        };
        accessors.extend(quote! {
            #doc
            pub const fn #getter(self) -> #ty {
                #value
            }

            #[doc = #setter_doc]
            #[must_use]
            pub const fn #setter(self, value: #ty) -> Self {
                Self(self.0 & !(#mask << #position) | (value as #carrier & #mask) << #position)
            }
        });
        debugged.extend(quote! { .field(#field_name, &self.#getter()) });
    }
    let codec = flat::integer(&name, &carrier);
    let type_code = context.typed(id);
    quote! {
        #before
        #doc
        #[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd #(, #derives)*)]
        #[repr(transparent)]
        pub struct #name(#carrier);
        #after

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #[doc = " Creates the set of these bits."]
            pub const fn from_bits(bits: #carrier) -> Self {
                Self(bits)
            }

            #[doc = " Returns all bits; the first field has the lowest."]
            pub const fn bits(self) -> #carrier {
                self.0
            }

            #accessors
        }

        impl ::core::fmt::Debug for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#debug_name) #debugged .finish()
            }
        }

        #codec
        #type_code
    }
}
