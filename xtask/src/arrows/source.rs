//! The paths in the files of a crate, read from their tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

/// The paths of each module, by the module's own path; that of the root is empty. Inline modules
/// are parts of their file.
pub(super) type Modules = BTreeMap<String, BTreeSet<Vec<String>>>;

/// Reads the files below `src`, without modules of tests.
pub(super) fn modules(src: &Path) -> Result<Modules, String> {
    let mut crate_ = Crate::default();
    crate_.folder(src, "")?;
    let Crate { mut modules, tests } = crate_;
    modules.retain(|name, _| !tests.iter().any(|test| super::is_in(name, test)));
    Ok(modules)
}

#[derive(Default)]
struct Crate {
    modules: Modules,
    /// Modules behind `#[cfg(test)]`.
    tests: BTreeSet<String>,
}

impl Crate {
    fn folder(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let stem = stem.unwrap_or_default();
            if path.is_dir() {
                self.folder(&path, &super::child(name, stem))?;
            } else if path.extension().is_some_and(|it| it == "rs") {
                let module = match stem {
                    "mod" | "lib" | "main" => name.to_owned(),
                    stem => super::child(name, stem),
                };
                let bad = |error: String| format!("{}: {error}", path.display());
                let text = fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
                let file = File::parse(&text).map_err(bad)?;
                let tests = file.tests.iter().map(|test| super::child(&module, test));
                self.tests.extend(tests);
                self.modules.insert(module, file.paths);
            }
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct File {
    pub(super) paths: BTreeSet<Vec<String>>,
    /// The modules behind `#[cfg(test)]`, in files of their own.
    pub(super) tests: BTreeSet<String>,
}

impl File {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut file = Self::default();
        let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        file.read(tokens, 0);
        Ok(file)
    }

    /// Reads tokens within `depth` inline modules.
    fn read(&mut self, tokens: TokenStream, depth: usize) {
        let mut tokens = tokens.into_iter().peekable();
        let mut is_public = false;
        let mut is_test = false;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.peek() {
                        is_test |= is_cfg_test(&group.stream());
                        tokens.next();
                    }
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    if !std::mem::take(&mut is_test) {
                        self.read(group.stream(), depth);
                    }
                }
                TokenTree::Group(group) if is_public => drop(group),
                TokenTree::Group(group) => self.read(group.stream(), depth),
                TokenTree::Ident(ident) => {
                    let ident = ident.to_string();
                    match ident.as_str() {
                        "use" => {
                            let tree = tokens.by_ref().take_while(|token| !is_punct(token, ';'));
                            let tree: TokenStream = tree.collect();
                            if !is_public && !is_test {
                                self.branches(tree, &[], depth);
                            }
                            is_test = false;
                        }
                        "mod" => self.inner(&mut tokens, depth, std::mem::take(&mut is_test)),
                        "crate" | "super" if !is_test => {
                            let path = path(&ident, &mut tokens);
                            self.paths.extend(outward(path, depth));
                        }
                        _ => {}
                    }
                    is_public = ident == "pub";
                }
                TokenTree::Punct(p) if p.as_char() == ';' => is_test = false,
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Reads `mod name;` or `mod name { … }`.
    fn inner(&mut self, tokens: &mut Tokens, depth: usize, is_test: bool) {
        let Some(TokenTree::Ident(name)) = tokens.next() else {
            return;
        };
        if let Some(TokenTree::Group(group)) = tokens.peek() {
            let content = group.stream();
            tokens.next();
            if !is_test {
                self.read(content, depth + 1);
            }
        } else if is_test {
            self.tests.insert(name.to_string());
        }
    }

    /// Reads the paths of a `use`, all of which begin with `prefix`.
    fn branches(&mut self, tree: TokenStream, prefix: &[String], depth: usize) {
        let mut tokens = tree.into_iter();
        let mut path = prefix.to_vec();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if ident == "as" => drop(tokens.next()),
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => {
                    self.branches(group.stream(), &path, depth);
                    path.truncate(prefix.len());
                }
                TokenTree::Punct(p) if p.as_char() == ',' => self.branch(&mut path, prefix, depth),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.branch(&mut path, prefix, depth);
    }

    /// Notes one path of a `use`, and takes it back to its prefix.
    fn branch(&mut self, path: &mut Vec<String>, prefix: &[String], depth: usize) {
        if path.len() > prefix.len() {
            self.paths.extend(outward(path.clone(), depth));
            path.truncate(prefix.len());
        }
    }
}

/// Reads the rest of a path in code.
fn path(first: &str, tokens: &mut Tokens) -> Vec<String> {
    let mut path = vec![first.to_owned()];
    while tokens.next_if(|token| is_punct(token, ':')).is_some() {
        tokens.next_if(|token| is_punct(token, ':'));
        let Some(TokenTree::Ident(ident)) = tokens.next_if(is_ident) else {
            break;
        };
        path.push(ident.to_string());
    }
    path
}

/// Turns a path within `depth` inline modules into one of their file; `None` where it stays within
/// them.
fn outward(mut path: Vec<String>, depth: usize) -> Option<Vec<String>> {
    for _ in 0..depth {
        match path.first().map(String::as_str) {
            Some("crate") => break,
            Some("super") => drop(path.remove(0)),
            _ => return None,
        }
    }
    Some(path)
}

type Tokens = Peekable<token_stream::IntoIter>;

fn is_cfg_test(attribute: &TokenStream) -> bool {
    let mut text = attribute.to_string();
    text.retain(|c| !c.is_whitespace());
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn is_ident(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_))
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}
