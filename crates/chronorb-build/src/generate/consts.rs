//! Constants.

use chronorb_idl::model::{ConstValue, DefId, DefKind, Type};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::{Context, ident, rt};
use super::types::Lifetime;
use crate::{names, shape};

pub(super) fn constant(
    context: Context<'_>,
    id: DefId,
    ty: &Type,
    value: &ConstValue,
) -> TokenStream {
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let ty = shape::resolve(context.model, ty);
    let rust_type = context.view(ty, Lifetime::Static);
    let value = context.literal(ty, value);
    quote! { #doc pub const #name: #rust_type = #value; }
}

impl Context<'_> {
    /// Returns a value of the type, which is resolved, as an expression. It is a pattern too if the
    /// type is an integer, an enum or similar.
    pub(super) fn literal(self, ty: &Type, value: &ConstValue) -> TokenStream {
        let rt = rt();
        match value {
            ConstValue::Integer(value) => self.integer(ty, *value),
            ConstValue::Float(value) if *ty == Type::LongDouble => long_double(*value),
            ConstValue::Float(value) => {
                let magnitude = value.abs();
                if *ty == Type::Float {
                    let infinite = (magnitude as f32).is_infinite();
                    let magnitude = if infinite { f32::MAX } else { magnitude as f32 };
                    return number(Literal::f32_unsuffixed(magnitude), value.is_sign_negative());
                }
                let magnitude = magnitude.min(f64::MAX);
                number(Literal::f64_unsuffixed(magnitude), value.is_sign_negative())
            }
            ConstValue::Fixed {
                unscaled, scale, ..
            } => fixed(ty, *unscaled, *scale),
            ConstValue::Boolean(value) => quote! { #value },
            ConstValue::Char(value) => {
                let value = Literal::byte_character(*value);
                quote! { #rt::Char(#value) }
            }
            ConstValue::WChar(value) => quote! { #value },
            ConstValue::String(value) | ConstValue::WString(value) => quote! { #value },
            ConstValue::Enumerator(id, index) => {
                let path = self.path(*id, "");
                let enumerator = match &self.model.get(*id).kind {
                    DefKind::Enum { enumerators, .. } => enumerators.get(*index as usize),
                    _ => None,
                };
                let name = enumerator.map(|enumerator| {
                    ident(&names::variant(&enumerator.name, &enumerator.annotations))
                });
                quote! { #path::#name }
            }
            _ => TokenStream::new(),
        }
    }

    /// Returns an integer literal, which is valid for a number of any type.
    fn integer(self, ty: &Type, value: i128) -> TokenStream {
        let literal = number(Literal::i128_unsuffixed(value.wrapping_abs()), value < 0);
        match ty {
            Type::LongDouble => long_double(value as f64),
            Type::Float => quote! { #literal as f32 },
            Type::Double => quote! { #literal as f64 },
            Type::Fixed { .. } => fixed(ty, value, 0),
            Type::Named(id) => {
                let path = self.path(*id, "");
                quote! { #path::from_bits(#literal) }
            }
            _ => literal,
        }
    }
}

/// Returns a decimal number with the type's digits behind the point.
fn fixed(ty: &Type, unscaled: i128, scale: u8) -> TokenStream {
    let rt = rt();
    let Type::Fixed {
        digits,
        scale: wanted,
    } = *ty
    else {
        return TokenStream::new();
    };
    let ten = |power: u8| 10_i128.saturating_pow(power.into());
    let unscaled = if wanted >= scale {
        unscaled.saturating_mul(ten(wanted - scale))
    } else {
        unscaled / ten(scale - wanted)
    };
    let unscaled = number(
        Literal::i128_unsuffixed(unscaled.wrapping_abs()),
        unscaled < 0,
    );
    let (digits, scale) = (
        Literal::u8_unsuffixed(digits),
        Literal::u8_unsuffixed(wanted),
    );
    // No value in the checked model has more digits than its type.
    quote! { const { #rt::Fixed::<#digits, #scale>::from_unscaled(#unscaled).unwrap() } }
}

fn number(magnitude: Literal, negative: bool) -> TokenStream {
    if negative {
        quote! { -#magnitude }
    } else {
        quote! { #magnitude }
    }
}

/// Returns a `long double` of this value, as the bits of IEEE binary128.
fn long_double(value: f64) -> TokenStream {
    let rt = rt();
    let bits = value.to_bits();
    let sign = u128::from(bits >> 63) << 127;
    let exponent = (bits >> 52) & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    // 15 bits of exponent with a bias of 16,383 instead of 11 with 1,023.
    let (exponent, fraction) = match exponent {
        0 if fraction == 0 => (0, 0),
        0 => {
            let shift = u64::from(fraction.leading_zeros()) - 11;
            (
                16_383 - 1_022 - shift,
                (fraction << shift) & ((1 << 52) - 1),
            )
        }
        0x7ff => (0x7fff, fraction),
        _ => (exponent + 16_383 - 1_023, fraction),
    };
    let bits = sign | (u128::from(exponent) << 112) | (u128::from(fraction) << 60);
    let bits = Literal::u128_unsuffixed(bits);
    quote! { #rt::LongDouble::from_bits(#bits) }
}
