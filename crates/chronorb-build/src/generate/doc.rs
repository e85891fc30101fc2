//! Documentation comments of the IDL as those of Rust.

use chronorb_idl::model::{ConstValue, DefId, Member};
use proc_macro2::TokenStream;
use quote::quote;

use super::context::Context;
use crate::shape;

impl Context<'_> {
    /// The comment of a definition, or a line that says what it is.
    pub(super) fn doc_of(self, id: DefId) -> TokenStream {
        let definition = self.model.get(id);
        let what = shape::kind_name(&definition.kind);
        let fallback = format!("IDL {what} `{}`.", definition.name);
        self.doc(definition.doc.as_deref(), &fallback)
    }

    /// The comment of a member, or a line that says what it is, and its unit.
    pub(super) fn doc_of_member(self, member: &Member) -> TokenStream {
        let fallback = format!("IDL member `{}`.", member.name);
        let doc = self.doc(member.doc.as_deref(), &fallback);
        let unit = member.annotations.iter().find(|a| a.name == "unit");
        let unit = unit.and_then(|unit| unit.params.first());
        match unit {
            Some((_, ConstValue::String(unit))) => {
                let unit = lines(&format!("In {}.", unit.trim().trim_end_matches('.')));
                quote! { #doc #[doc = ""] #unit }
            }
            _ => doc,
        }
    }

    /// A comment of the IDL, or the fallback.
    pub(super) fn doc(self, doc: Option<&str>, fallback: &str) -> TokenStream {
        let doc = doc.filter(|doc| !self.options.disable_comments && !doc.trim().is_empty());
        lines(&doc.map_or_else(|| fallback.to_owned(), tamed))
    }
}

/// A `#[doc]` attribute for each line.
pub(super) fn lines(text: &str) -> TokenStream {
    let lines = text.trim().lines().map(|line| match line {
        "" => String::new(),
        line => format!(" {}", line.replace(is_unfit, " ")),
    });
    quote! { #(#[doc = #lines])* }
}

/// Whether a character may not stand in a comment of Rust: controls, and those
/// that turn the direction of the text.
fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text without what would make Rust's documentation tests compile it:
/// indented lines, and code blocks that name no language.
fn tamed(text: &str) -> String {
    let mut block: Option<&str> = None;
    let mut tamed = String::new();
    for line in text.lines() {
        let fence = ["```", "~~~"]
            .into_iter()
            .find(|fence| line.trim().starts_with(fence));
        match (block, fence) {
            (None, Some(fence)) => {
                block = Some(fence);
                tamed.push_str(fence);
                tamed.push_str("text");
            }
            (Some(open), Some(fence)) if open == fence => {
                block = None;
                tamed.push_str(fence);
            }
            (Some(_), _) => tamed.push_str(line.trim_end()),
            (None, None) => tamed.push_str(line.trim()),
        }
        tamed.push('\n');
    }
    if let Some(open) = block {
        tamed.push_str(open);
    }
    tamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_comments_is_not_compiled_as_rust() {
        let tamed = tamed("Use:\n\n    quoter.ping(1);\n```\n  x;\n```\nend");
        assert_eq!(tamed, "Use:\n\nquoter.ping(1);\n```text\n  x;\n```\nend\n");
    }
}
