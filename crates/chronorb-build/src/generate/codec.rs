//! The statements that encode a value, and the expressions that decode one.
//!
//! The Rust type alone does not determine the encoding: a wide string and a narrow one are both
//! `&str`, a bounded sequence and an unbounded one are both slices. Therefore the code follows the
//! IDL type, and uses the runtime's `Cdr` if that has the same encoding.

use chronorb_idl::model::Type;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::context::{Context, rt};
use crate::shape;

/// An expression in generated code for a value that exists there.
#[derive(Clone)]
pub(super) struct ValueExpr {
    tokens: TokenStream,
    is_reference: bool,
}

impl ValueExpr {
    /// Creates an expression of the value itself.
    pub(super) fn value(tokens: TokenStream) -> Self {
        Self {
            tokens,
            is_reference: false,
        }
    }

    /// Creates an expression of a reference to the value.
    pub(super) fn reference(tokens: TokenStream) -> Self {
        Self {
            tokens,
            is_reference: true,
        }
    }

    /// Returns the value itself, which must be `Copy` behind a reference.
    pub(super) fn by_value(&self) -> TokenStream {
        let tokens = &self.tokens;
        if self.is_reference {
            quote! { *#tokens }
        } else {
            tokens.clone()
        }
    }

    /// Returns a reference to the value.
    pub(super) fn by_reference(&self) -> TokenStream {
        let tokens = &self.tokens;
        if self.is_reference {
            tokens.clone()
        } else {
            quote! { &#tokens }
        }
    }

    /// Returns the receiver of a method call on the value.
    pub(super) fn receiver(&self) -> &TokenStream {
        &self.tokens
    }
}

/// The choice between the two Rust types of a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// The borrowed one.
    View,
    /// The owned one.
    Owned,
}

impl Context<'_> {
    /// Returns a statement that encodes the value into the encoder `e`, a variable of type `&mut
    /// Encoder`, and returns an error with `?`.
    pub(super) fn encode(self, ty: &Type, value: &ValueExpr, form: Form, e: &Ident) -> TokenStream {
        let rt = rt();
        let resolved = shape::resolve(self.model, ty);
        let variable = shape::is_variable(self.model, ty);
        if let Some(name) = basic_name(resolved) {
            let (write, value) = (format_ident!("write_{name}"), value.by_value());
            return quote! { #e.#write(#value)?; };
        }
        match resolved {
            Type::String { bound } => self.encode_string("write_str", *bound, value, form, e),
            Type::WString { bound } => self.encode_string("write_wstr", *bound, value, form, e),
            Type::Sequence { element, bound } => {
                self.encode_sequence(element, *bound, value, form, e)
            }
            Type::Map {
                key,
                value: item,
                bound,
            } => self.encode_map([key, item], *bound, value, form, e),
            Type::Array {
                element,
                dimensions,
            } if !shape::is_plain(self.model, element) || (variable && form == Form::Owned) => {
                self.encode_array(element, dimensions, value, form, e)
            }
            _ if shape::is_nonnil(self.model, ty) => {
                let value = match form {
                    Form::View => value.by_value(),
                    Form::Owned => value.by_reference(),
                };
                quote! { #rt::Reference::encode_reference(Some(#value), #e)?; }
            }
            _ if shape::is_reference(self.model, ty) => {
                let value = match form {
                    Form::View => value.by_value(),
                    Form::Owned => {
                        let value = value.receiver();
                        quote! { #value.as_ref() }
                    }
                };
                quote! { #rt::Reference::encode_reference(#value, #e)?; }
            }
            _ if variable && form == Form::Owned => {
                let value = value.receiver();
                quote! { #value.encode(#e)?; }
            }
            _ => {
                let value = value.by_reference();
                quote! { #rt::Cdr::encode(#value, #e)?; }
            }
        }
    }

    fn encode_string(
        self,
        write: &str,
        bound: Option<u32>,
        value: &ValueExpr,
        form: Form,
        e: &Ident,
    ) -> TokenStream {
        let value = match form {
            Form::View => value.by_value(),
            Form::Owned => value.by_reference(),
        };
        match bound {
            None => {
                let write = format_ident!("{write}");
                quote! { #e.#write(#value)?; }
            }
            Some(bound) => {
                let write = format_ident!("{write}_bounded");
                let bound = Literal::u32_unsuffixed(bound);
                quote! { #e.#write(#value, #bound)?; }
            }
        }
    }

    fn encode_sequence(
        self,
        element: &Type,
        bound: Option<u32>,
        value: &ValueExpr,
        form: Form,
        e: &Ident,
    ) -> TokenStream {
        let items = match form {
            Form::View => value.by_value(),
            Form::Owned => value.by_reference(),
        };
        let in_one = shape::is_plain(self.model, element)
            && (form == Form::View || !shape::is_variable(self.model, element));
        let is_octets = is_octet(shape::resolve(self.model, element));
        let bound = bound.map(Literal::u32_unsuffixed);
        match bound {
            None if in_one && is_octets => return quote! { #e.write_octet_seq(#items)?; },
            None if in_one => return quote! { #e.write_seq(#items)?; },
            Some(bound) if in_one => return quote! { #e.write_seq_bounded(#items, #bound)?; },
            _ => {}
        }
        let check = check_bound(bound.as_ref());
        let item = self.encode(element, &ValueExpr::reference(quote! { item }), form, e);
        quote! {
            {
                let items = #items;
                #check
                #e.write_len(items.len())?;
                for item in items { #item }
            }
        }
    }

    /// Encodes a map as a sequence of its entries.
    fn encode_map(
        self,
        [key, value]: [&Type; 2],
        bound: Option<u32>,
        map: &ValueExpr,
        form: Form,
        e: &Ident,
    ) -> TokenStream {
        let items = match form {
            Form::View => map.by_value(),
            Form::Owned => map.by_reference(),
        };
        let check = check_bound(bound.map(Literal::u32_unsuffixed).as_ref());
        let key = self.encode(key, &ValueExpr::reference(quote! { key }), form, e);
        let value = self.encode(value, &ValueExpr::reference(quote! { value }), form, e);
        quote! {
            {
                let items = #items;
                #check
                #e.write_len(items.len())?;
                for (key, value) in items { #key #value }
            }
        }
    }

    fn encode_array(
        self,
        element: &Type,
        dimensions: &[u32],
        value: &ValueExpr,
        form: Form,
        e: &Ident,
    ) -> TokenStream {
        let items = value.by_reference();
        let item = ValueExpr::reference(quote! { item });
        let item = match dimensions {
            [] | [_] => self.encode(element, &item, form, e),
            [_, inner @ ..] => self.encode_array(element, inner, &item, form, e),
        };
        quote! { for item in #items { #item } }
    }

    /// Returns an expression, a `Result` with `CdrError`, that decodes a view from the decoder `d`,
    /// a variable of type `&mut Decoder`. The surrounding code must determine the type.
    pub(super) fn decode(self, ty: &Type, d: &Ident) -> TokenStream {
        let rt = rt();
        let resolved = shape::resolve(self.model, ty);
        if let Some(name) = basic_name(resolved) {
            let read = format_ident!("read_{name}");
            return quote! { #d.#read() };
        }
        match resolved {
            Type::String { bound: None } => quote! { #d.read_str() },
            Type::String { bound: Some(bound) } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { #d.read_str_bounded(#bound) }
            }
            Type::WString { bound: None } => quote! { #d.read_wstr() },
            Type::WString { bound: Some(bound) } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { #d.read_wstr_bounded(#bound) }
            }
            Type::Sequence { element, bound } => self.decode_sequence(element, *bound, d),
            Type::Map { key, value, bound } => {
                let bound = optional(*bound);
                let size = shape::min_size(self.model, key)
                    .saturating_add(shape::min_size(self.model, value));
                let size = Literal::u64_unsuffixed(size);
                let (key, value) = (self.decode(key, d), self.decode(value, d));
                quote! { #d.read_seq_with(#bound, #size, |#d| Ok((#key?, #value?))) }
            }
            Type::Array {
                element,
                dimensions,
            } if !shape::is_plain(self.model, element) => self.decode_array(element, dimensions, d),
            _ => quote! { #rt::Cdr::decode(#d) },
        }
    }

    /// As [`Self::decode`] for a parameter or result, where references are owned.
    pub(super) fn decode_value(self, ty: &Type, d: &Ident) -> TokenStream {
        let rt = rt();
        if shape::is_nonnil(self.model, ty) {
            quote! { #rt::Reference::decode_nonnil(#d) }
        } else if shape::is_reference(self.model, ty) {
            quote! { #rt::Reference::decode_reference(#d) }
        } else {
            self.decode(ty, d)
        }
    }

    /// As [`Self::decode`] for a sequence that is decoded element by element.
    pub(super) fn decode_lazy(self, ty: &Type, d: &Ident) -> TokenStream {
        let rt = rt();
        let bound = match shape::resolve(self.model, ty) {
            Type::Sequence {
                bound: Some(bound), ..
            } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { Some(#bound) }
            }
            _ => quote! { None },
        };
        quote! { #rt::Lazy::decode(#d, #bound) }
    }

    fn decode_sequence(self, element: &Type, bound: Option<u32>, d: &Ident) -> TokenStream {
        if shape::is_plain(self.model, element) {
            let bound = bound.map(Literal::u32_unsuffixed);
            let is_octets = is_octet(shape::resolve(self.model, element));
            return match bound {
                None if is_octets => quote! { #d.read_octet_seq() },
                None => quote! { #d.read_seq() },
                Some(bound) => quote! { #d.read_seq_bounded(#bound) },
            };
        }
        let bound = optional(bound);
        let size = Literal::u64_unsuffixed(shape::min_size(self.model, element));
        let item = self.decode(element, d);
        quote! { #d.read_seq_with(#bound, #size, |#d| #item) }
    }

    fn decode_array(self, element: &Type, dimensions: &[u32], d: &Ident) -> TokenStream {
        let item = match dimensions {
            [] | [_] => self.decode(element, d),
            [_, inner @ ..] => self.decode_array(element, inner, d),
        };
        quote! { #d.read_array_with(|#d| #item) }
    }
}

/// Returns a statement that returns an error if `items` are more than the bound.
fn check_bound(bound: Option<&Literal>) -> Option<TokenStream> {
    let rt = rt();
    bound.map(|bound| {
        quote! {
            if items.len() > #bound {
                return Err(#rt::CdrError::BoundExceeded);
            }
        }
    })
}

/// Returns an expression of an `Option` with the bound.
fn optional(bound: Option<u32>) -> TokenStream {
    match bound.map(Literal::u32_unsuffixed) {
        None => quote! { None },
        Some(bound) => quote! { Some(#bound) },
    }
}

fn is_octet(ty: &Type) -> bool {
    matches!(ty, Type::Octet | Type::UInt8)
}

/// Returns the suffix of the runtime's `read_` and `write_` methods for a basic type.
fn basic_name(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Boolean => "bool",
        Type::Octet | Type::UInt8 => "u8",
        Type::Int8 => "i8",
        Type::Char => "char",
        Type::WChar => "wchar",
        Type::Short => "i16",
        Type::UShort => "u16",
        Type::Long => "i32",
        Type::ULong => "u32",
        Type::LongLong => "i64",
        Type::ULongLong => "u64",
        Type::Float => "f32",
        Type::Double => "f64",
        Type::LongDouble => "long_double",
        _ => return None,
    })
}
