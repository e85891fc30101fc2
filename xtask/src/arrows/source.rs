//! The names that the files of a crate declare, import and use, read from their tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, Punct, Spacing, TokenStream, TokenTree, token_stream};

/// The modules of a crate, by path; that of the root is empty.
pub(super) type Modules = BTreeMap<String, Module>;

/// A module: a file, or an inline module of one.
#[derive(Default)]
pub(super) struct Module {
    /// The module whose file it is in.
    pub(super) file: String,
    /// The names of its items, other than modules.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: BTreeSet<Import>,
    /// The paths in its code, single names among them.
    pub(super) paths: BTreeSet<Vec<String>>,
}

/// One path of a `use`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name that it declares; `None` for all names of a module.
    pub(super) name: Option<String>,
    /// Whether it is a re-export, of any visibility.
    pub(super) is_public: bool,
}

/// The files of a crate that have been read.
#[derive(Default)]
pub(super) struct Files {
    modules: Modules,
    /// The modules behind `#[cfg(test)]`.
    tests: BTreeSet<String>,
    /// The exported macros, which are items of the root.
    macros: BTreeSet<Import>,
}

impl Files {
    /// Reads the files below `folder`, which is that of the module `name`.
    pub(super) fn read_folder(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let stem = stem.unwrap_or_default();
            if path.is_dir() {
                self.read_folder(&path, &super::child(name, stem))?;
            } else if path.extension().is_some_and(|it| it == "rs") {
                let module = match stem {
                    "mod" | "lib" | "main" => name.to_owned(),
                    stem => super::child(name, stem),
                };
                let bad = |error: String| format!("{}: {error}", path.display());
                let text = fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
                self.read(&module, &text).map_err(bad)?;
            }
        }
        Ok(())
    }

    /// Reads the file of a module.
    pub(super) fn read(&mut self, module: &str, text: &str) -> Result<(), String> {
        let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        self.read_module(module, module, tokens);
        Ok(())
    }

    /// Returns the modules without those of tests.
    pub(super) fn into_modules(self) -> Modules {
        let mut modules = self.modules;
        let is_test = |name: &str| self.tests.iter().any(|test| super::is_in(name, test));
        modules.retain(|name, _| !is_test(name));
        if let Some(root) = modules.get_mut("") {
            root.imports.extend(self.macros);
        }
        modules
    }

    fn read_module(&mut self, file: &str, name: &str, tokens: TokenStream) {
        let mut content = Module::default();
        file.clone_into(&mut content.file);
        let mut reader = Reader {
            files: self,
            file,
            name,
            content,
        };
        reader.read(tokens, true);
        let content = reader.content;
        self.modules.insert(name.to_owned(), content);
    }
}

/// The reader of a module.
struct Reader<'a> {
    files: &'a mut Files,
    file: &'a str,
    name: &'a str,
    content: Module,
}

impl Reader<'_> {
    /// Reads tokens, which declare items of the module if they are outside of all braces.
    fn read(&mut self, tokens: TokenStream, is_outermost: bool) {
        let mut tokens = tokens.into_iter().peekable();
        let mut before = Before::Other;
        let mut is_public = false;
        let mut is_test = false;
        let mut is_exported = false;
        while let Some(token) = tokens.next() {
            let previous = std::mem::take(&mut before);
            match token {
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    tokens.next_if(|token| is_punct(token, '!'));
                    if let Some(TokenTree::Group(group)) = tokens.next_if(is_group) {
                        is_test |= is_cfg_test(&group.stream());
                        is_exported |= group.stream().to_string() == "macro_export";
                        self.read(group.stream(), false);
                    }
                }
                TokenTree::Punct(p) if p.as_char() == ';' => is_test = false,
                TokenTree::Punct(p) => before = previous.then(&p),
                TokenTree::Group(group) if is_public && is_visibility(group.stream()) => {}
                TokenTree::Group(group) => {
                    if !is_test {
                        self.read(group.stream(), false);
                    }
                    is_test &= group.delimiter() != Delimiter::Brace;
                }
                TokenTree::Ident(ident) => {
                    let ident = ident.to_string();
                    let is_public = std::mem::replace(&mut is_public, ident == "pub");
                    match ident.as_str() {
                        "use" => {
                            let tree = tokens.by_ref().take_while(|token| !is_punct(token, ';'));
                            let tree: TokenStream = tree.collect();
                            if !std::mem::take(&mut is_test) {
                                self.read_branches(tree, &[], is_public);
                            }
                        }
                        "mod" => self.read_inner(&mut tokens, std::mem::take(&mut is_test)),
                        _ if is_test || previous.is_owner() => {}
                        "macro_rules" => {
                            tokens.next_if(|token| is_punct(token, '!'));
                            let name = tokens.next_if(is_ident);
                            self.declare_macro(name, std::mem::take(&mut is_exported));
                        }
                        keyword if ITEMS.contains(&keyword) => {
                            let name = tokens.next_if(is_ident).filter(|_| is_outermost);
                            let name = name.map(|name| name.to_string());
                            self.content.items.extend(name);
                        }
                        _ => {
                            let path = path(ident, &mut tokens);
                            self.content.paths.insert(path);
                        }
                    }
                }
                TokenTree::Literal(_) => {}
            }
        }
    }

    /// Reads `mod name;` or `mod name { … }`.
    fn read_inner(&mut self, tokens: &mut Tokens, is_test: bool) {
        let Some(name) = tokens.next_if(is_ident) else {
            return;
        };
        let name = super::child(self.name, &name.to_string());
        if let Some(TokenTree::Group(group)) = tokens.next_if(is_group) {
            if !is_test {
                self.files.read_module(self.file, &name, group.stream());
            }
        } else if is_test {
            self.files.tests.insert(name);
        }
    }

    fn declare_macro(&mut self, name: Option<TokenTree>, is_exported: bool) {
        let Some(name) = name.map(|name| name.to_string()) else {
            return;
        };
        if is_exported {
            let module = self.name.split("::").filter(|name| !name.is_empty());
            let path = ["crate"].into_iter().chain(module).chain([name.as_str()]);
            self.files.macros.insert(Import {
                path: path.map(str::to_owned).collect(),
                name: Some(name.clone()),
                is_public: true,
            });
        }
        self.content.items.insert(name);
    }

    /// Reads the paths of a `use`, all of which begin with `prefix`.
    fn read_branches(&mut self, tree: TokenStream, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut tokens = tree.into_iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if ident == "as" => name = tokens.next(),
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => {
                    self.read_branches(group.stream(), &path, is_public);
                    path.truncate(prefix.len());
                }
                TokenTree::Punct(p) if p.as_char() == '*' => path.push(GLOB.to_owned()),
                TokenTree::Punct(p) if p.as_char() == ',' => {
                    let path = std::mem::replace(&mut path, prefix.to_vec());
                    self.import(path, name.take(), prefix.len(), is_public);
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.import(path, name, prefix.len(), is_public);
    }

    /// Notes one path of a `use`, unless it is only the prefix of others.
    fn import(
        &mut self,
        mut path: Vec<String>,
        name: Option<TokenTree>,
        prefix: usize,
        is_public: bool,
    ) {
        if path.len() == prefix {
            return;
        }
        path.pop_if(|last| prefix > 0 && last == "self");
        let is_glob = path.pop_if(|last| last == GLOB).is_some();
        let name = name.map(|name| name.to_string());
        let name = name.or_else(|| path.last().cloned()).filter(|_| !is_glob);
        self.content.imports.insert(Import {
            path,
            name,
            is_public,
        });
    }
}

/// The words that the name of an item follows.
const ITEMS: [&str; 8] = [
    "const", "enum", "fn", "static", "struct", "trait", "type", "union",
];

const GLOB: &str = "*";

/// The end of the tokens before a name.
#[derive(Clone, Copy, Default, PartialEq)]
enum Before {
    #[default]
    Other,
    Dot,
    Colon,
    /// `::`, which no name precedes.
    Path,
}

impl Before {
    fn then(self, next: &Punct) -> Self {
        match (self, next.as_char()) {
            // `..` begins an expression.
            (Self::Dot, '.') => Self::Other,
            (_, '.') => Self::Dot,
            (Self::Colon, ':') => Self::Path,
            (_, ':') if next.spacing() == Spacing::Joint => Self::Colon,
            _ => Self::Other,
        }
    }

    /// Whether the name is one of a value or of a type: a field or method, or an associated item.
    fn is_owner(self) -> bool {
        matches!(self, Self::Dot | Self::Path)
    }
}

/// Reads the rest of a path in code.
fn path(first: String, tokens: &mut Tokens) -> Vec<String> {
    let is_joint =
        |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.spacing() == Spacing::Joint);
    let mut path = vec![first];
    while tokens
        .next_if(|token| is_punct(token, ':') && is_joint(token))
        .is_some()
    {
        tokens.next();
        let Some(name) = tokens.next_if(is_ident) else {
            break;
        };
        path.push(name.to_string());
    }
    path
}

type Tokens = Peekable<token_stream::IntoIter>;

fn is_cfg_test(attribute: &TokenStream) -> bool {
    let mut text = attribute.to_string();
    text.retain(|c| !c.is_whitespace());
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Whether these are the tokens in the parentheses of `pub(…)`.
fn is_visibility(tokens: TokenStream) -> bool {
    let first = tokens.into_iter().next().map(|token| token.to_string());
    first.is_some_and(|first| ["crate", "in", "self", "super"].contains(&first.as_str()))
}

fn is_group(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(_))
}

fn is_ident(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_))
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}
