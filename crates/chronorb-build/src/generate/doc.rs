//! Documentation comments of the IDL as those of Rust.

use chronorb_idl::model::{ConstValue, DefId, Member};
use proc_macro2::TokenStream;
use quote::quote;

use super::context::Context;
use crate::markdown::{is_unfit, tamed};
use crate::shape;

impl Context<'_> {
    /// Returns the comment of a definition, or a line that describes it.
    pub(super) fn doc_of(self, id: DefId) -> TokenStream {
        let definition = self.model.get(id);
        let what = shape::kind_name(&definition.kind);
        let fallback = format!("IDL {what} `{}`.", definition.name);
        self.doc(definition.doc.as_deref(), &fallback)
    }

    /// Returns the comment of a member, or a line that describes it, and its unit.
    pub(super) fn doc_of_member(self, member: &Member) -> TokenStream {
        let fallback = format!("IDL member `{}`.", member.name);
        let doc = self.doc(member.doc.as_deref(), &fallback);
        let unit = member.annotations.iter().find(|a| a.name == "unit");
        let unit = unit.and_then(|unit| unit.params.first());
        match unit {
            Some((_, ConstValue::String(unit))) => {
                let unit = format!("In {}.", unit.trim().trim_end_matches('.'));
                let unit = lines(&tamed(&unit));
                quote! { #doc #[doc = ""] #unit }
            }
            _ => doc,
        }
    }

    /// Returns the comment of the IDL, or the fallback.
    pub(super) fn doc(self, doc: Option<&str>, fallback: &str) -> TokenStream {
        let doc = doc.filter(|doc| !self.options.disable_comments && !doc.trim().is_empty());
        lines(&doc.map_or_else(|| fallback.to_owned(), tamed))
    }
}

/// Returns a `#[doc]` attribute for each line.
pub(super) fn lines(text: &str) -> TokenStream {
    let lines = text.trim().lines().map(|line| match line {
        "" => String::new(),
        line => format!(" {}", line.replace(is_unfit, " ")),
    });
    quote! { #(#[doc = #lines])* }
}
