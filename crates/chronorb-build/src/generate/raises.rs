//! The error enums of operations that raise exceptions.

use std::collections::HashSet;

use chronorb_idl::model::{DefId, Type};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt, suffixed};
use super::types::Lifetime;
use crate::names::{Method, pascal};
use crate::shape;

/// An exception in an error enum.
pub(super) struct Arm {
    pub(super) exception: DefId,
    pub(super) name: Ident,
}

impl Context<'_> {
    /// Returns the variants of the method's error enum, except for system exceptions.
    pub(super) fn arms(self, method: &Method<'_>) -> Vec<Arm> {
        let raises = method.error.as_ref().map_or(&[][..], |e| &e.raises);
        let mut taken = HashSet::from(["System".to_owned()]);
        raises
            .iter()
            .map(|&exception| {
                let mut name = self.names.name(exception).to_owned();
                let mut owner = self.model.get(exception).parent;
                while !taken.insert(name.clone()) {
                    // Exceptions with the same name are distinguished by their parents.
                    name = match owner {
                        Some(id) => pascal(&self.model.get(id).name) + &name,
                        None => format!("User{name}"),
                    };
                    owner = owner.and_then(|id| self.model.get(id).parent);
                }
                Arm {
                    exception,
                    name: ident(&name),
                }
            })
            .collect()
    }
}

/// Returns the enum of the method and its owned twin, or aliases of those of an
/// earlier method.
pub(super) fn items(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let Some(error) = &method.error else {
        return TokenStream::new();
    };
    let name = ident(&error.rust_name);
    let twin = suffixed(&name, "Buf");
    let doc = format!(" The errors of {}.", method.what);
    let variable = context.has_variable_error(method);

    if let Some(target) = &error.alias_of {
        let target = ident(target);
        if !variable {
            return quote! { #[doc = #doc] pub type #name = #target; };
        }
        if context.options.no_alloc {
            return quote! { #[doc = #doc] pub type #name<'a> = #target<'a>; };
        }
        let target_twin = suffixed(&target, "Buf");
        let twin_doc = format!(" The owned twin of [`{name}`].");
        return quote! {
            #[doc = #doc] pub type #name<'a> = #target<'a>;
            #[doc = #twin_doc] pub type #twin = #target_twin;
        };
    }

    let arms = context.arms(method);
    if context.has_native_error(method) {
        return enumeration(context, &arms, &name, &doc, Form::Owned, variable);
    }
    let view = enumeration(context, &arms, &name, &doc, Form::View, variable);
    if !variable || context.options.no_alloc {
        return view;
    }
    let doc = format!(" The owned twin of [`{name}`].");
    let owned = enumeration(context, &arms, &twin, &doc, Form::Owned, variable);
    let to_owned = to_owned(context, &arms, &name, &twin);
    quote! { #view #to_owned #owned }
}

fn enumeration(
    context: Context<'_>,
    arms: &[Arm],
    name: &Ident,
    doc: &str,
    form: Form,
    variable: bool,
) -> TokenStream {
    let rt = rt();
    let generics = (variable && form == Form::View).then(|| quote! { <'a> });
    let anonymous = generics.as_ref().map(|_| quote! { <'_> });
    let copy = (form == Form::View).then(|| quote! { Copy, });
    let names: Vec<_> = arms.iter().map(|arm| &arm.name).collect();
    let docs: Vec<_> = arms
        .iter()
        .map(|arm| {
            let exception = &context.model.get(arm.exception).scoped_name;
            format!(" The exception `{}`.", exception.join("::"))
        })
        .collect();
    let type_of = |arm: &Arm| context.output(&Type::Named(arm.exception), form, Lifetime::A);
    let types: Vec<_> = arms.iter().map(type_of).collect();
    // A native type is an alias of one Rust type, which can be neither compared nor displayed.
    let is_native = |arm: &&Arm| context.is_native(arm.exception);
    let (natives, exceptions): (Vec<_>, Vec<_>) = arms.iter().partition(is_native);
    let compare = natives.is_empty().then(|| quote! { , PartialEq });
    let native_names: Vec<_> = natives.iter().map(|arm| &arm.name).collect();
    let native_texts = native_names.iter().map(|name| name.to_string());
    let exception_names: Vec<_> = exceptions.iter().map(|arm| &arm.name).collect();
    let exception_types: Vec<_> = exceptions.iter().map(|arm| type_of(arm)).collect();
    quote! {
        #[doc = #doc]
        #[derive(Clone, #copy Debug #compare)]
        pub enum #name #generics {
            #(#[doc = #docs] #names(#types),)*
            #[doc = " A system exception."]
            System(#rt::SystemException),
        }

        #(
            impl #generics ::core::convert::From<#exception_types> for #name #generics {
                fn from(exception: #exception_types) -> Self {
                    Self::#exception_names(exception)
                }
            }
        )*

        impl ::core::convert::From<#rt::SystemException> for #name #anonymous {
            fn from(exception: #rt::SystemException) -> Self {
                Self::System(exception)
            }
        }

        impl ::core::convert::From<#rt::CdrError> for #name #anonymous {
            fn from(error: #rt::CdrError) -> Self {
                Self::System(::core::convert::From::from(error))
            }
        }

        impl ::core::fmt::Display for #name #anonymous {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    #(
                        Self::#exception_names(exception) => {
                            ::core::fmt::Display::fmt(exception, f)
                        }
                    )*
                    #(Self::#native_names(_) => f.write_str(#native_texts),)*
                    Self::System(exception) => ::core::fmt::Display::fmt(exception, f),
                }
            }
        }

        impl ::std::error::Error for #name #anonymous {}
    }
}

fn to_owned(context: Context<'_>, arms: &[Arm], name: &Ident, twin: &Ident) -> TokenStream {
    let doc = format!(" Returns a copy that owns its contents, see [`{twin}`].");
    let names = arms.iter().map(|arm| &arm.name);
    let values = arms.iter().map(|arm| {
        let ty = Type::Named(arm.exception);
        if shape::is_variable(context.model, &ty) {
            context.to_owned(&ty, &ValueExpr::reference(quote! { exception }))
        } else {
            quote! { *exception }
        }
    });
    quote! {
        impl #name<'_> {
            #[doc = #doc]
            pub fn to_owned(&self) -> #twin {
                match self {
                    #(Self::#names(exception) => #twin::#names(#values),)*
                    Self::System(exception) => #twin::System(*exception),
                }
            }
        }
    }
}
