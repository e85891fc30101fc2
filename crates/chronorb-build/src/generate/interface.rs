//! Interfaces, and the common parts of the signatures of handle and servant.

use chronorb_idl::model::{DefId, DefKind, Interface, ParamMode, Type};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::codec::Form;
use super::context::{Context, ident, rt, suffixed};
use super::text::Text;
use super::types::Lifetime;
use super::{
    GenerateError, abstract_interface, ami, handle, local, owned_servant, raises, servant, skeleton,
};
use crate::names::{Method, MethodParam};
use crate::shape;

/// Returns the handle, the servant's trait, the skeleton, and the types in their signatures.
///
/// Each part is written before the next one is created, so the memory use follows the largest part.
pub(super) fn items(
    context: Context<'_>,
    text: &mut Text,
    id: DefId,
    interface: &Interface,
) -> Result<(), GenerateError> {
    if interface.local {
        return text.items(local::interface(context, id, interface));
    }
    text.items(handle::handle(context, id, interface))?;
    text.items(abstract_interface::items(context, id, interface))?;
    if interface.forward_only {
        return Ok(());
    }
    text.items(servant::servant(context, id, interface))?;
    if context.options.has_owned_servants() {
        text.items(owned_servant::owned_servant(context, id, interface))?;
    }
    let own = context.names.own_methods(id);
    for method in own {
        text.items(raises::items(context, method))?;
    }
    for method in own {
        text.items(outs(context, method))?;
    }
    text.items(skeleton::skeleton(context, id, interface))?;
    text.items(ami::items(context, id, interface))
}

/// Returns the types that are only used in the signatures of methods.
pub(super) fn types_of_methods(context: Context<'_>, methods: &[Method<'_>]) -> TokenStream {
    let errors = methods.iter().map(|method| raises::items(context, method));
    let outs = methods.iter().map(|method| outs(context, method));
    quote! { #(#errors)* #(#outs)* }
}

impl Context<'_> {
    /// Returns the type of a method's results.
    pub(super) fn output_type(
        self,
        method: &Method<'_>,
        form: Form,
        lifetime: Lifetime,
    ) -> TokenStream {
        if let Some(outs) = &method.outs {
            let variable = self.has_variable_values(method);
            return match form {
                Form::Owned if variable => {
                    let name = format!("{outs}Buf");
                    self.path_beside(method.interface, &name)
                }
                Form::View if variable => {
                    let path = self.path_beside(method.interface, outs);
                    let lifetime = lifetime.of_type();
                    quote! { #path<#lifetime> }
                }
                _ => self.path_beside(method.interface, outs),
            };
        }
        let types: Vec<_> = method
            .values()
            .iter()
            .map(|(_, ty)| self.output(ty, form, lifetime))
            .collect();
        match types.as_slice() {
            [one] => one.clone(),
            _ => quote! { (#(#types),*) },
        }
    }

    /// Returns the type of one of the values that a method returns.
    pub(super) fn output(self, ty: &Type, form: Form, lifetime: Lifetime) -> TokenStream {
        match form {
            Form::View => self.value(ty, lifetime),
            Form::Owned => self.owned(ty),
        }
    }

    /// Returns the error type of a method.
    pub(super) fn error_type(
        self,
        method: &Method<'_>,
        form: Form,
        lifetime: Lifetime,
    ) -> TokenStream {
        let path = self.error_path(method, form);
        if form == Form::View && self.has_variable_error(method) {
            let lifetime = lifetime.of_type();
            quote! { #path<#lifetime> }
        } else {
            path
        }
    }

    /// As [`Self::error_type`] without its lifetime, to name a variant.
    pub(super) fn error_path(self, method: &Method<'_>, form: Form) -> TokenStream {
        let Some(error) = &method.error else {
            let rt = rt();
            return quote! { #rt::SystemException };
        };
        let suffix = match form {
            Form::Owned if self.has_variable_error(method) => "Buf",
            _ => "",
        };
        self.path_beside(method.interface, &format!("{}{suffix}", error.rust_name))
    }

    /// Returns whether one of the method's exceptions borrows.
    pub(super) fn has_variable_error(self, method: &Method<'_>) -> bool {
        let error = method.error.as_ref();
        !self.has_native_error(method)
            && error.is_some_and(|error| {
                let mut raises = error.raises.iter();
                raises.any(|&id| shape::is_variable(self.model, &Type::Named(id)))
            })
    }

    /// Returns whether the method raises a native type. Its errors have one form, which owns.
    pub(super) fn has_native_error(self, method: &Method<'_>) -> bool {
        let error = method.error.as_ref();
        error.is_some_and(|error| error.raises.iter().any(|&id| self.is_native(id)))
    }

    pub(super) fn is_native(self, id: DefId) -> bool {
        matches!(self.model.get(id).kind, DefKind::Native)
    }

    /// Returns whether the handle has the method with results, or exceptions, that borrow from a
    /// scope.
    pub(super) fn has_borrowing(self, method: &Method<'_>) -> bool {
        let is_only = self.options.no_alloc && self.has_variable_error(method);
        !method.oneway && (is_only || method.has_twin(self.model))
    }

    /// Returns whether the handle has the method with owned results.
    pub(super) fn has_plain(self, method: &Method<'_>) -> bool {
        !(self.options.no_alloc && self.has_borrowing(method))
    }

    /// Returns whether result or outs borrow.
    fn has_variable_values(self, method: &Method<'_>) -> bool {
        let values = method.values();
        values.iter().any(|(_, ty)| shape::has_twin(self.model, ty))
    }

    /// Returns the values that a method returns as one expression, or, with plain names as values,
    /// as a pattern.
    pub(super) fn output_expression(
        self,
        method: &Method<'_>,
        form: Form,
        values: &[TokenStream],
    ) -> TokenStream {
        if let Some(outs) = &method.outs {
            let suffix = match form {
                Form::Owned if self.has_variable_values(method) => "Buf",
                _ => "",
            };
            let path = self.path_beside(method.interface, &format!("{outs}{suffix}"));
            let fields = method.value_idents().into_iter().zip(values);
            let fields = fields.map(|(name, value)| {
                if name == value.to_string() {
                    quote! { #name }
                } else {
                    quote! { #name: #value }
                }
            });
            return quote! { #path { #(#fields),* } };
        }
        match values {
            [one] => one.clone(),
            _ => quote! { (#(#values),*) },
        }
    }
}

impl Method<'_> {
    pub(super) fn ident(&self) -> Ident {
        ident(&self.rust_name)
    }

    /// Returns the names of result and outs.
    pub(super) fn value_idents(&self) -> Vec<Ident> {
        self.values().iter().map(|(name, _)| ident(name)).collect()
    }

    /// Returns a name for a generated item that no parameter has.
    pub(super) fn fresh(&self, name: &str) -> Ident {
        let is_taken = |name: &str| self.params.iter().any(|p| p.rust_name == name);
        let mut name = name.to_owned();
        while is_taken(&name) {
            name.push('_');
        }
        format_ident!("{name}")
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &MethodParam<'_>> {
        self.params.iter().filter(|p| p.mode != ParamMode::Out)
    }
}

/// Returns the struct for more than three results and outs, and its owned twin.
fn outs(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let Some(outs) = &method.outs else {
        return TokenStream::new();
    };
    let name = ident(outs);
    let doc = format!(" The results of {}.", method.what);
    let names = method.value_idents();
    let docs: Vec<_> = method
        .values()
        .iter()
        .map(|(name, _)| format!(" The value of `{name}`."))
        .collect();
    let types = |form| {
        let values = method.values();
        values
            .iter()
            .map(|(_, ty)| context.output(ty, form, Lifetime::A))
            .collect::<Vec<_>>()
    };
    let views = types(Form::View);
    let variable = context.has_variable_values(method);
    let generics = variable.then(|| quote! { <'a> });
    let has_twin = variable && !context.options.no_alloc;
    let twin = has_twin.then(|| {
        let twin = suffixed(&name, "Buf");
        let doc = format!(" The owned twin of [`{name}`].");
        let owned = types(Form::Owned);
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            pub struct #twin { #(#[doc = #docs] pub #names: #owned),* }
        }
    });
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, PartialEq)]
        pub struct #name #generics { #(#[doc = #docs] pub #names: #views),* }

        #twin
    }
}
