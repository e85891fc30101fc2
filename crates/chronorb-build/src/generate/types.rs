//! The Rust types for the types of IDL.

use chronorb_idl::model::{DefId, DefKind, Type};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::codec::Form;
use super::context::{Context, ident, rt, suffixed};
use crate::shape;

/// A lifetime in generated code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lifetime {
    /// `'a`, of the encoded data.
    A,
    /// `'s`, of the caller's scope.
    S,
    /// `'static`, of constants.
    Static,
    /// Elided if Rust permits it, else `'_`.
    Elided,
}

impl Lifetime {
    /// Returns the lifetime behind the `&` of a reference.
    pub(super) fn of_reference(self) -> TokenStream {
        match self {
            Self::A => quote! { 'a },
            Self::S => quote! { 's },
            Self::Static => quote! { 'static },
            Self::Elided => TokenStream::new(),
        }
    }

    /// Returns the generic arguments of a type.
    pub(super) fn of_type(self) -> TokenStream {
        match self {
            Self::Elided => quote! { '_ },
            named => named.of_reference(),
        }
    }
}

/// Returns the alias for a typedef, and for its owned twin.
pub(super) fn alias(context: Context<'_>, id: DefId, ty: &Type) -> TokenStream {
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let type_code = context.alias_type_code(id, ty);
    if shape::is_reference(context.model, ty) {
        let target = context.interface_type(ty);
        return quote! { #doc pub type #name = #target; #type_code };
    }
    let view = context.view(ty, Lifetime::A);
    if !shape::is_variable(context.model, ty) {
        return quote! { #doc pub type #name = #view; #type_code };
    }
    if context.options.no_alloc {
        return quote! { #doc pub type #name<'a> = #view; #type_code };
    }
    let twin = suffixed(&name, "Buf");
    let twin_doc = format!(" The owned twin of [`{name}`].");
    let owned = context.owned(ty);
    quote! {
        #doc pub type #name<'a> = #view;
        #[doc = #twin_doc] pub type #twin = #owned;
        #type_code
    }
}

impl Context<'_> {
    /// Returns the type of a member: a view that borrows for the lifetime.
    pub(super) fn view(self, ty: &Type, lifetime: Lifetime) -> TokenStream {
        let rt = rt();
        let of_reference = lifetime.of_reference();
        if shape::is_reference(self.model, ty) {
            let interface = self.interface_type(ty);
            let reference = quote! { &#of_reference #interface };
            return self.or_nil(ty, reference);
        }
        match ty {
            // A local type has no view: a sequence of it is a slice of owned values.
            Type::Sequence { element, .. } if shape::is_local(self.model, ty) => {
                let element = self.owned(element);
                quote! { &#of_reference [#element] }
            }
            Type::Map { .. } | Type::Array { .. } if shape::is_local(self.model, ty) => {
                self.owned(ty)
            }
            Type::String { .. } | Type::WString { .. } => quote! { &#of_reference str },
            Type::Sequence { element, .. } => {
                let element = self.view(element, lifetime);
                quote! { &#of_reference [#element] }
            }
            Type::Map { key, value, .. } => {
                let (key, value) = (self.view(key, lifetime), self.view(value, lifetime));
                quote! { &#of_reference [(#key, #value)] }
            }
            Type::Array {
                element,
                dimensions,
            } => array(self.view(element, lifetime), dimensions),
            Type::Any | Type::TypeCode => {
                let (name, of_type) = (dynamic_name(ty), lifetime.of_type());
                let name = ident(name);
                quote! { #rt::#name<#of_type> }
            }
            Type::Named(id) => self.type_named(*id, Form::View, lifetime),
            basic => basic_type(basic),
        }
    }

    /// Returns the type of a member of an owned twin.
    pub(super) fn owned(self, ty: &Type) -> TokenStream {
        let rt = rt();
        if shape::is_reference(self.model, ty) {
            let interface = self.interface_type(ty);
            return self.or_nil(ty, interface);
        }
        match ty {
            Type::String { .. } | Type::WString { .. } => quote! { ::std::string::String },
            Type::Sequence { element, .. } => {
                let element = self.owned(element);
                quote! { ::std::vec::Vec<#element> }
            }
            Type::Array {
                element,
                dimensions,
            } => array(self.owned(element), dimensions),
            Type::Map { key, value, .. } => {
                let has_order = shape::has_order(self.model, key);
                let (key, value) = (self.owned(key), self.owned(value));
                if has_order {
                    quote! { ::std::collections::BTreeMap<#key, #value> }
                } else {
                    quote! { ::std::vec::Vec<(#key, #value)> }
                }
            }
            Type::Any | Type::TypeCode => {
                let name = suffixed(&ident(dynamic_name(ty)), "Buf");
                quote! { #rt::#name }
            }
            Type::Named(id) => self.type_named(*id, Form::Owned, Lifetime::Static),
            basic => basic_type(basic),
        }
    }

    /// Returns the type of a definition, with its lifetime if it is a view that borrows.
    pub(super) fn type_named(self, id: DefId, form: Form, lifetime: Lifetime) -> TokenStream {
        if !shape::has_twin(self.model, &Type::Named(id)) {
            return self.path(id, "");
        }
        match form {
            Form::Owned => self.path(id, "Buf"),
            Form::View => {
                let (path, lifetime) = (self.path(id, ""), lifetime.of_type());
                quote! { #path<#lifetime> }
            }
        }
    }

    /// Returns the type of an in parameter: larger types than a word are passed by reference.
    pub(super) fn parameter(self, ty: &Type, lifetime: Lifetime) -> TokenStream {
        if shape::is_reference(self.model, ty) {
            let interface = self.interface_type(ty);
            return self.or_nil(ty, quote! { &#interface });
        }
        let view = self.view(ty, lifetime);
        if self.is_by_reference(ty) {
            quote! { &#view }
        } else {
            view
        }
    }

    /// Returns whether an in parameter is a reference to the view.
    pub(super) fn is_by_reference(self, ty: &Type) -> bool {
        match shape::resolve(self.model, ty) {
            Type::Array { .. } | Type::Any | Type::TypeCode | Type::InlineString { .. } => true,
            Type::Named(id) => matches!(
                self.model.get(*id).kind,
                DefKind::Struct { .. } | DefKind::Exception { .. } | DefKind::Union(_)
            ),
            _ => false,
        }
    }

    /// Returns the type of a result, out or inout: the view, or for a reference the owned handle.
    pub(super) fn value(self, ty: &Type, lifetime: Lifetime) -> TokenStream {
        if shape::is_reference(self.model, ty) {
            self.owned(ty)
        } else {
            self.view(ty, lifetime)
        }
    }

    /// Returns the type of a servant's parameter for a sequence with `@rt::lazy`.
    pub(super) fn lazy(self, ty: &Type) -> TokenStream {
        let rt = rt();
        let element = match shape::resolve(self.model, ty) {
            Type::Sequence { element, .. } => self.view(element, Lifetime::A),
            other => self.view(other, Lifetime::A),
        };
        quote! { #rt::Lazy<'a, #element> }
    }

    /// Returns the handle's type behind a reference.
    fn interface_type(self, ty: &Type) -> TokenStream {
        let rt = rt();
        let id = match ty {
            Type::Named(id) => *id,
            Type::NonNil(ty) => return self.interface_type(ty),
            Type::ValueBase => return quote! { ::std::sync::Arc<dyn #rt::Value> },
            Type::AbstractBase => return quote! { ::std::sync::Arc<dyn #rt::AbstractBase> },
            _ => return quote! { #rt::Object },
        };
        let path = self.path(id, "");
        match &self.model.get(id).kind {
            DefKind::Interface(interface) if interface.local || interface.is_abstract => {
                quote! { ::std::sync::Arc<dyn #path> }
            }
            DefKind::Value(_) => quote! { ::std::sync::Arc<dyn #path> },
            DefKind::ValueBox { .. } => quote! { ::std::sync::Arc<#path> },
            _ => path,
        }
    }

    /// Returns the type of a reference; it is optional if the reference may be nil.
    fn or_nil(self, ty: &Type, reference: TokenStream) -> TokenStream {
        if shape::is_nonnil(self.model, ty) {
            reference
        } else {
            quote! { ::core::option::Option<#reference> }
        }
    }
}

/// Returns the runtime's type for a self-describing value.
fn dynamic_name(ty: &Type) -> &'static str {
    match ty {
        Type::Any => "Any",
        _ => "TypeCode",
    }
}

/// Returns nested arrays, the outermost dimension first.
fn array(element: TokenStream, dimensions: &[u32]) -> TokenStream {
    dimensions.iter().rev().fold(element, |inner, &length| {
        let length = Literal::u32_unsuffixed(length);
        quote! { [#inner; #length] }
    })
}

fn basic_type(ty: &Type) -> TokenStream {
    let rt = rt();
    match ty {
        Type::Boolean => quote! { bool },
        Type::Octet | Type::UInt8 => quote! { u8 },
        Type::Int8 => quote! { i8 },
        Type::Char => quote! { #rt::Char },
        Type::WChar => quote! { char },
        Type::Short => quote! { i16 },
        Type::UShort => quote! { u16 },
        Type::Long => quote! { i32 },
        Type::ULong => quote! { u32 },
        Type::LongLong => quote! { i64 },
        Type::ULongLong => quote! { u64 },
        Type::Float => quote! { f32 },
        Type::Double => quote! { f64 },
        Type::LongDouble => quote! { #rt::LongDouble },
        Type::InlineString { bound } => {
            let bound = Literal::u32_unsuffixed(*bound);
            quote! { #rt::InlineStr<#bound> }
        }
        Type::Fixed { digits, scale } => {
            let (digits, scale) = (
                Literal::u8_unsuffixed(*digits),
                Literal::u8_unsuffixed(*scale),
            );
            quote! { #rt::Fixed<#digits, #scale> }
        }
        _ => TokenStream::new(),
    }
}
