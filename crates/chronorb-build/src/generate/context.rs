//! The context that all parts of the generator share.

use std::cell::Cell;
use std::collections::HashSet;

use chronorb_idl::model::{DefId, DefKind, Model};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::GenerateOptions;
use super::external::Externals;
use crate::names::Names;
use crate::recursion::Recursion;

/// The model, its names, and the Rust module that code is generated for.
#[derive(Clone, Copy)]
pub(super) struct Context<'g> {
    pub(super) model: &'g Model,
    pub(super) names: &'g Names<'g>,
    pub(super) options: &'g GenerateOptions,
    pub(super) externals: &'g Externals,
    pub(super) recursion: &'g Recursion,
    /// The interfaces that others are derived from.
    pub(super) bases: &'g HashSet<DefId>,
    /// The octets of text that may still be generated.
    pub(super) room: &'g Cell<usize>,
    /// The Rust module that code is generated for.
    pub(super) module: &'g [String],
}

impl<'g> Context<'g> {
    /// Returns the context for code inside the Rust module of this path.
    pub(super) fn within<'h>(self, module: &'h [String]) -> Context<'h>
    where
        'g: 'h,
    {
        Context { module, ..self }
    }

    /// Returns the name of the definition's item.
    pub(super) fn ident(self, id: DefId) -> Ident {
        ident(self.names.name(id))
    }

    /// Returns the path of the definition's item, or of an item with a suffix:
    /// `super::market::Quote` + suffix.
    pub(super) fn path(self, id: DefId, suffix: &str) -> TokenStream {
        let name = format!("{}{suffix}", self.names.name(id));
        self.path_beside(id, &name)
    }

    /// Returns the name of an interface's typed reference. The name of an abstract interface is
    /// that of a trait.
    pub(super) fn handle_ident(self, id: DefId) -> Ident {
        format_ident!("{}{}", self.ident(id), self.handle_suffix(id))
    }

    /// Returns the path of an interface's typed reference.
    pub(super) fn handle_path(self, id: DefId) -> TokenStream {
        self.path(id, self.handle_suffix(id))
    }

    fn handle_suffix(self, id: DefId) -> &'static str {
        match &self.model.get(id).kind {
            DefKind::Interface(interface) if interface.is_abstract => "Ref",
            _ => "",
        }
    }

    /// Returns the path of an item in the same module as the definition's.
    pub(super) fn path_beside(self, id: DefId, name: &str) -> TokenStream {
        let module = self.names.module(id);
        match self.externals.get(id) {
            Some(external) => external.path(module, name),
            None => self.path_to(module, name),
        }
    }

    /// Returns whether another crate generated it.
    pub(super) fn is_external(self, id: DefId) -> bool {
        self.externals.get(id).is_some()
    }

    /// Returns whether something is generated for it: it is not external, or it is a module with
    /// content that is not external.
    pub(super) fn is_generated(self, id: DefId) -> bool {
        match &self.model.get(id).kind {
            DefKind::Module { members } if !members.is_empty() => {
                members.iter().any(|&member| self.is_generated(member))
            }
            _ => !self.is_external(id) && !self.externals.is_unused(id),
        }
    }

    /// Returns a name for a generic parameter that would hide no generated type.
    pub(super) fn type_parameter(self, name: &str) -> Ident {
        if self.names.is_taken(name) {
            format_ident!("{name}_")
        } else {
            format_ident!("{name}")
        }
    }

    fn path_to(self, module: &[String], name: &str) -> TokenStream {
        let shared = self
            .module
            .iter()
            .zip(module)
            .take_while(|(a, b)| a == b)
            .count();
        let up = (shared..self.module.len()).map(|_| quote! { super:: });
        let down = module[shared..].iter().map(|name| {
            let name = ident(name);
            quote! { #name:: }
        });
        let name = ident(name);
        quote! { #(#up)* #(#down)* #name }
    }
}

/// Returns an identifier, raw where an edition of Rust has a keyword of that name.
pub(super) fn ident(name: &str) -> Ident {
    match syn::parse_str(name) {
        Ok(ident) if name != "gen" => ident,
        _ => Ident::new_raw(name, Span::call_site()),
    }
}

/// Returns the name of the runtime in each generated module. No name from the IDL begins with two
/// underscores.
pub(super) fn rt() -> TokenStream {
    quote! { __rt }
}

/// Returns `Name` + suffix as one identifier.
pub(super) fn suffixed(name: &Ident, suffix: &str) -> Ident {
    format_ident!("{name}{suffix}")
}
