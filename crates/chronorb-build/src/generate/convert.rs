//! The conversions between the two Rust types of a value: from borrowed to owned and back.

use chronorb_idl::model::Type;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::codec::ValueExpr;
use super::context::{Context, rt};
use crate::shape;

impl Context<'_> {
    /// Returns an expression for the owned form of a view.
    pub(super) fn to_owned(self, ty: &Type, view: &ValueExpr) -> TokenStream {
        let receiver = view.receiver();
        if !shape::is_variable(self.model, ty) {
            return view.by_value();
        }
        match shape::resolve(self.model, ty) {
            Type::String { .. } | Type::WString { .. } => {
                let view = view.by_value();
                quote! { ::std::string::String::from(#view) }
            }
            Type::Sequence { element, .. } if !shape::is_variable(self.model, element) => {
                quote! { #receiver.to_vec() }
            }
            Type::Sequence { element, .. } => {
                let item = self.to_owned(element, &ValueExpr::reference(quote! { item }));
                quote! { #receiver.iter().map(|item| #item).collect() }
            }
            Type::Array {
                element,
                dimensions,
            } => self.array_to_owned(element, dimensions, view),
            Type::Map { key, value, .. } => {
                let key = self.to_owned(key, &ValueExpr::reference(quote! { key }));
                let value = self.to_owned(value, &ValueExpr::reference(quote! { value }));
                quote! { #receiver.iter().map(|(key, value)| (#key, #value)).collect() }
            }
            _ if shape::is_nonnil(self.model, ty) => {
                let reference = view.by_value();
                quote! { ::core::clone::Clone::clone(#reference) }
            }
            _ if shape::is_reference(self.model, ty) => quote! { #receiver.cloned() },
            _ => quote! { #receiver.to_owned() },
        }
    }

    fn array_to_owned(self, element: &Type, dimensions: &[u32], view: &ValueExpr) -> TokenStream {
        let receiver = view.receiver();
        let item = ValueExpr::value(quote! { item });
        let item = match dimensions {
            [] | [_] => self.to_owned(element, &item),
            [_, inner @ ..] => self.array_to_owned(element, inner, &item),
        };
        quote! { #receiver.map(|item| #item) }
    }

    /// Returns an expression for the view of an owned value. If the type needs it, the expression
    /// allocates from `arena`, a variable in scope, and returns an error with `?` if that is full.
    pub(super) fn as_view(self, ty: &Type, owned: &ValueExpr) -> TokenStream {
        let receiver = owned.receiver();
        if !shape::is_variable(self.model, ty) {
            return owned.by_value();
        }
        match shape::resolve(self.model, ty) {
            Type::String { .. } | Type::WString { .. } => quote! { #receiver.as_str() },
            Type::Sequence { element, .. } if !shape::is_variable(self.model, element) => {
                quote! { #receiver.as_slice() }
            }
            Type::Sequence { element, .. } => {
                let items = owned.by_reference();
                let item = self.as_view(element, &ValueExpr::reference(quote! { item }));
                quote! {
                    {
                        let items = #items;
                        arena.fill(items.len(), |index| {
                            let item = &items[index];
                            Ok(#item)
                        })?
                    }
                }
            }
            Type::Array {
                element,
                dimensions,
            } => self.array_as_view(element, dimensions, owned),
            Type::Map { key, value, .. } => self.map_as_view([key, value], owned),
            _ if shape::is_nonnil(self.model, ty) => owned.by_reference(),
            _ if shape::is_reference(self.model, ty) => quote! { #receiver.as_ref() },
            _ if shape::needs_arena(self.model, ty) => quote! { #receiver.as_view_in(arena)? },
            _ => quote! { #receiver.as_view() },
        }
    }

    fn map_as_view(self, [key, value]: [&Type; 2], owned: &ValueExpr) -> TokenStream {
        let rt = rt();
        let items = owned.by_reference();
        let key = self.as_view(key, &ValueExpr::reference(quote! { key }));
        let value = self.as_view(value, &ValueExpr::reference(quote! { value }));
        quote! {
            {
                let items = #items;
                let mut entries = items.iter();
                arena.fill(items.len(), |_| {
                    let (key, value) = entries.next().ok_or(#rt::CdrError::ArenaFull)?;
                    Ok((#key, #value))
                })?
            }
        }
    }

    fn array_as_view(self, element: &Type, dimensions: &[u32], owned: &ValueExpr) -> TokenStream {
        let item = ValueExpr::reference(quote! { item });
        let view = match dimensions {
            [] | [_] => self.as_view(element, &item),
            [_, inner @ ..] => self.array_as_view(element, inner, &item),
        };
        if !shape::needs_arena(self.model, element) {
            let receiver = owned.receiver();
            return quote! { #receiver.each_ref().map(|item| #view) };
        }
        // A closure of `map` cannot leave the function where the arena is full.
        let items = owned.by_reference();
        let length = Literal::u32_unsuffixed(dimensions.first().copied().unwrap_or(1));
        quote! {
            {
                let items = #items;
                let item = &items[0];
                let mut views = [#view; #length];
                for (view, item) in views.iter_mut().zip(items).skip(1) {
                    *view = #view;
                }
                views
            }
        }
    }
}
