//! Members of structs, exceptions and unions: values of their types, as modified by annotations.

use chronorb_idl::model::Member;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt};
use super::types::Lifetime;
use crate::{names, ranges, shape};

impl Context<'_> {
    /// Returns the Rust type of the member.
    pub(super) fn member_type(
        self,
        member: &Member,
        form: Form,
        lifetime: Lifetime,
    ) -> TokenStream {
        let ty = match form {
            Form::View => self.view(&member.ty, lifetime),
            Form::Owned => self.owned(&member.ty),
        };
        let ty = match form {
            _ if !shape::is_apart(self.model, member) => ty,
            Form::View => {
                let of_reference = lifetime.of_reference();
                quote! { &#of_reference #ty }
            }
            Form::Owned => quote! { ::std::boxed::Box<#ty> },
        };
        if member.optional {
            quote! { ::core::option::Option<#ty> }
        } else {
            ty
        }
    }

    /// Returns a statement that encodes the member; see [`Self::encode`].
    pub(super) fn encode_member(
        self,
        member: &Member,
        value: &ValueExpr,
        form: Form,
        e: &Ident,
    ) -> TokenStream {
        if !member.optional {
            let value = self.in_place(member, value);
            let check = self.range_check(member, &value.by_value());
            let encode = self.encode(&member.ty, &value, form, e);
            return quote! { #check #encode };
        }
        let value = value.by_reference();
        let item = self.in_place(member, &ValueExpr::reference(quote! { item }));
        let check = self.range_check(member, &item.by_value());
        let encode = self.encode(&member.ty, &item, form, e);
        quote! {
            match #value {
                None => #e.write_bool(false)?,
                Some(item) => {
                    #e.write_bool(true)?;
                    #check
                    #encode
                }
            }
        }
    }

    /// Returns an expression for the view of the member, which returns an error with `?`.
    pub(super) fn decode_member(self, member: &Member, d: &Ident) -> TokenStream {
        let decode = self.decode(&member.ty, d);
        let check = self.range_check(member, &quote! { value });
        let value = if shape::is_apart(self.model, member) {
            quote! { #d.read_apart_with(|#d| #decode)? }
        } else if check.is_empty() {
            quote! { #decode? }
        } else {
            let ty = self.view(&member.ty, Lifetime::A);
            quote! {
                {
                    let value: #ty = #decode?;
                    #check
                    value
                }
            }
        };
        if member.optional {
            quote! { if #d.read_bool()? { Some(#value) } else { None } }
        } else {
            value
        }
    }

    /// See [`Self::to_owned`].
    pub(super) fn member_to_owned(self, member: &Member, view: &ValueExpr) -> TokenStream {
        let to_owned = |view: &ValueExpr| {
            let value = self.to_owned(&member.ty, &self.in_place(member, view));
            if shape::is_apart(self.model, member) {
                quote! { ::std::boxed::Box::new(#value) }
            } else {
                value
            }
        };
        if !member.optional {
            return to_owned(view);
        }
        let value = to_owned(&ValueExpr::value(quote! { item }));
        let receiver = view.receiver();
        quote! { #receiver.map(|item| #value) }
    }

    /// See [`Self::as_view`].
    pub(super) fn member_as_view(self, member: &Member, owned: &ValueExpr) -> TokenStream {
        let as_view = |owned: &ValueExpr| {
            let value = self.as_view(&member.ty, &self.in_place(member, owned));
            if shape::is_apart(self.model, member) {
                quote! { arena.alloc(#value)? }
            } else {
                value
            }
        };
        if !member.optional {
            return as_view(owned);
        }
        let view = as_view(&ValueExpr::reference(quote! { item }));
        let owned = owned.by_reference();
        quote! {
            match #owned {
                Some(item) => Some(#view),
                None => None,
            }
        }
    }

    /// Returns the expression of a member's value, given that of the member, which may refer to the
    /// value or be its box.
    fn in_place(self, member: &Member, value: &ValueExpr) -> ValueExpr {
        if !shape::is_apart(self.model, member) {
            return value.clone();
        }
        let value = value.by_value();
        ValueExpr::value(quote! { (*#value) })
    }

    /// Returns an expression for the default value of the member.
    pub(super) fn member_default(self, member: &Member, form: Form) -> TokenStream {
        let Some(value) = ranges::default_of(self.model, member) else {
            return quote! { ::core::default::Default::default() };
        };
        let ty = shape::resolve(self.model, &member.ty);
        let value = self.literal(ty, value);
        if form == Form::Owned && shape::is_variable(self.model, ty) {
            quote! { ::std::string::String::from(#value) }
        } else {
            value
        }
    }

    /// Returns a statement that returns an error if the value is out of the member's range; empty
    /// if it has no range.
    fn range_check(self, member: &Member, value: &TokenStream) -> TokenStream {
        let rt = rt();
        let Some(range) = ranges::of_member(self.model, member) else {
            return TokenStream::new();
        };
        let ty = shape::resolve(self.model, &member.ty);
        let bounds = [(range.min, quote! { >= }), (range.max, quote! { <= })];
        let conditions = bounds.into_iter().filter_map(|(bound, operator)| {
            let bound = bound.filter(|bound| !ranges::is_limit_of(ty, bound))?;
            let bound = self.literal(ty, &bound);
            Some(quote! { #value #operator #bound })
        });
        let conditions: Vec<_> = conditions.collect();
        if conditions.is_empty() {
            return TokenStream::new();
        }
        // NaN is in no range.
        quote! {
            if !(#(#conditions)&&*) {
                return Err(#rt::CdrError::OutOfRange);
            }
        }
    }
}

/// Returns the name of the field.
pub(super) fn name_of(member: &Member) -> Ident {
    ident(&names::field(member))
}
