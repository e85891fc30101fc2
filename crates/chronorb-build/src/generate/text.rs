//! The text of the generated code.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, File, Item, ItemMod, parse_quote};

use super::GenerateError;

/// Rust text that grows by items inside modules.
///
/// Items are formatted one by one: a syntax tree of a large IDL file's whole code would take
/// gigabytes.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    /// The number of open modules.
    depth: usize,
}

impl Text {
    /// Adds items to the module that was opened last.
    pub(super) fn items(&mut self, items: TokenStream) -> Result<(), GenerateError> {
        let parsed = Parser::parse2(|input: ParseStream<'_>| self.parsed(input), items);
        parsed.map_err(|error| GenerateError::Internal(error.to_string()))
    }

    /// Parses, formats and drops one item after the other.
    fn parsed(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let attrs = input.call(Attribute::parse_inner)?;
        if !attrs.is_empty() {
            self.format(attrs, Vec::new());
        }
        while !input.is_empty() {
            let item = input.parse()?;
            self.format(Vec::new(), vec![item]);
        }
        Ok(())
    }

    fn format(&mut self, attrs: Vec<Attribute>, items: Vec<Item>) {
        let mut file: File = parse_quote! {};
        (file.attrs, file.items) = (attrs, items);
        // The formatter needs the indentation of the lines.
        for _ in 0..self.depth {
            let mut module: ItemMod = parse_quote! { mod m {} };
            module.content = Some((Default::default(), file.items));
            file.items = vec![Item::Mod(module)];
        }
        let formatted = prettyplease::unparse(&file);
        let lines = formatted.lines().count();
        for line in formatted.lines().take(lines - self.depth).skip(self.depth) {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Returns the length of the text so far in octets.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Opens a module. `head` has its attributes, visibility and name.
    pub(super) fn open(&mut self, head: TokenStream) -> Result<(), GenerateError> {
        self.items(quote! { #head {} })?;
        self.text.truncate(self.text.trim_end().len() - 1);
        self.text.push('\n');
        self.depth += 1;
        Ok(())
    }

    /// Closes the module that was opened last.
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str("}\n");
    }

    /// Returns the whole text, with empty lines between the items.
    pub(super) fn finish(self) -> String {
        let mut spaced = String::with_capacity(self.text.len() + self.text.len() / 32);
        let mut lines = self.text.lines().peekable();
        while let Some(line) = lines.next() {
            spaced.push_str(line);
            spaced.push('\n');
            let next = lines.peek().map_or("", |next| next.trim_start());
            let ends_item = line.trim_start() == "}" || line.ends_with("{}") || line.ends_with(';');
            let begins_item = ["#[", "///", "fn ", "impl", "pub ", "pub("]
                .iter()
                .any(|start| next.starts_with(start));
            if ends_item && begins_item {
                spaced.push('\n');
            }
        }
        spaced
    }
}
