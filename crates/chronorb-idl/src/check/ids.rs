//! Repository identifiers (CORBA 3.3 part 1, 14.7).

use std::collections::HashMap;
use std::rc::Rc;

use super::Checker;
use super::scope::{EntityKind, ScopeId};
use crate::ast::{Ident, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind};
use crate::span::Span;

/// The greatest length in bytes of a repository identifier and of a prefix.
const MAX_ID: usize = 1000;

/// The prefix of repository identifiers at some place.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    pub(super) text: Rc<str>,
    /// The nesting depth of the scope that contains its pragma. The names of that scope and of
    /// outer ones are not part of the identifiers.
    pub(super) depth: usize,
}

impl Prefix {
    /// Returns the default identifier of a definition.
    pub(super) fn id(&self, scoped_name: &[String]) -> String {
        default_id(
            &self.text,
            scoped_name.get(self.depth..).unwrap_or(scoped_name),
        )
    }
}

fn default_id(prefix: &str, names: &[String]) -> String {
    let separator = if prefix.is_empty() { "" } else { "/" };
    format!("IDL:{prefix}{separator}{}:1.0", names.join("/"))
}

impl Checker<'_> {
    /// `#pragma ID` and `typeid`.
    pub(super) fn set_id(&mut self, scope: ScopeId, name: &ScopedName, id: &str, span: Span) {
        if !is_repository_id(id) {
            self.bad_id(
                span,
                "this is no repository identifier",
                "write for example `IDL:example.org/Module/Name:1.0`",
            );
            return;
        }
        let Some(def) = self.identified(scope, name) else {
            return;
        };
        let current = &self.definitions[def.0 as usize].repository_id;
        if let Some(&earlier) = self.explicit_ids.get(&def)
            && current != id
        {
            self.id_changed(name, span, earlier);
            return;
        }
        self.definitions[def.0 as usize].repository_id = id.to_owned();
        self.explicit_ids.insert(def, span);
    }

    /// `#pragma version`.
    pub(super) fn set_version(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        version: &str,
        span: Span,
    ) {
        if !is_version(version) {
            self.bad_id(
                span,
                "this is no version",
                "write two numbers from 0 to 65535, for example `1.1`",
            );
            return;
        }
        let Some(def) = self.identified(scope, name) else {
            return;
        };
        let current = &self.definitions[def.0 as usize].repository_id;
        let Some((stem, old)) = current.rsplit_once(':') else {
            return;
        };
        let id = format!("{stem}:{version}");
        if let Some(&earlier) = self.explicit_ids.get(&def)
            && old != version
        {
            self.id_changed(name, span, earlier);
            return;
        }
        self.definitions[def.0 as usize].repository_id = id;
        self.explicit_ids.insert(def, span);
    }

    /// `typeprefix`: the prefix of a module or interface and of everything in it.
    pub(super) fn set_type_prefix(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        prefix: &Rc<str>,
        span: Span,
    ) {
        if !self.check_prefix(prefix, span) {
            return;
        }
        if self.resolve_quietly(scope, name).is_none() && !self.is_at_end {
            self.early_type_prefixes
                .push((scope, name.clone(), Rc::clone(prefix), span));
            return;
        }
        let Some(entity) = self.resolve(scope, name) else {
            return;
        };
        let entity = self.scopes.entity(entity);
        match entity.kind {
            EntityKind::Module { def, .. }
            | EntityKind::Interface { def, .. }
            | EntityKind::Value { def, .. } => {
                let given = (Rc::clone(prefix), span);
                let (before, earlier) = self.type_prefixes.entry(def).or_insert(given);
                if **before != **prefix {
                    let earlier = *earlier;
                    self.sink.push(
                        Diagnostic::error(
                            codes::ID_CHANGED,
                            span,
                            format!("`{name}` has another prefix already"),
                            "given again here",
                        )
                        .label(earlier, "given here")
                        .hint("remove one of them"),
                    );
                }
            }
            EntityKind::Refused => {}
            _ => {
                let diagnostic = Diagnostic::error(
                    codes::NOT_A_SCOPE,
                    name.span,
                    format!("`{name}` cannot have a prefix of its own"),
                    "expected a module, an interface or a value type",
                )
                .label(entity.span, "defined here");
                self.sink.push(diagnostic);
            }
        }
    }

    /// Applies each `typeprefix` that stands before the definition that it names.
    pub(super) fn set_early_type_prefixes(&mut self) {
        self.is_at_end = true;
        for (scope, name, prefix, span) in std::mem::take(&mut self.early_type_prefixes) {
            self.set_type_prefix(scope, &name, &prefix, span);
            if let Some(entity) = self.resolve_quietly(scope, &name) {
                let diagnostic = Diagnostic::warning(
                    codes::EARLY_TYPE_PREFIX,
                    name.span,
                    format!("`{name}` is defined behind its `typeprefix`"),
                    "not defined yet",
                )
                .label(self.scopes.entity(entity).span, "defined here")
                .hint("move `typeprefix` behind it, or to its beginning");
                self.sink.push(diagnostic);
            }
        }
    }

    /// Applies the prefixes of `typeprefix` to their scopes and everything in them.
    pub(super) fn apply_type_prefixes(&mut self) {
        if self.type_prefixes.is_empty() {
            return;
        }
        for i in 0..self.definitions.len() {
            let def = DefId(i as u32);
            let definition = &self.definitions[i];
            let is_module = matches!(definition.kind, DefKind::Module { .. });
            if is_module || self.explicit_ids.contains_key(&def) {
                continue;
            }
            let mut next = Some(def);
            while let Some(def) = next {
                if let Some((prefix, _)) = self.type_prefixes.get(&def) {
                    let id = default_id(prefix, &self.definitions[i].scoped_name);
                    self.definitions[i].repository_id = id;
                    break;
                }
                next = self.definitions[def.0 as usize].parent;
            }
        }
    }

    /// Returns whether a prefix can be part of a repository identifier. Reports an error if not.
    pub(super) fn check_prefix(&mut self, prefix: &str, span: Span) -> bool {
        let good = prefix.len() <= MAX_ID
            && prefix
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b':' && b != b'\\')
            && !prefix.starts_with('/')
            && !prefix.ends_with('/');
        if !good {
            self.bad_id(
                span,
                "this is no prefix",
                "write for example `example.org`, without blanks, colons, and slashes at the ends",
            );
        }
        good
    }

    /// Reports a definition whose identifier differs from the one of its declaration.
    pub(super) fn check_declared_id(&mut self, scope: ScopeId, def: DefId, name: &Ident) {
        if self.explicit_ids.contains_key(&def) {
            return;
        }
        let definition = &self.definitions[def.0 as usize];
        let mut path = self.scopes.get(scope).path.clone();
        path.push(name.name.to_string());
        let id = self.prefix.id(&path);
        if id == definition.repository_id {
            return;
        }
        let declared = self.spans[def.0 as usize];
        if self.prefix.text.is_empty() && declared.file != name.span.file {
            // The included file has no prefix, and the identifier of the declaration holds.
            let diagnostic = Diagnostic::warning(
                codes::INCLUDED_WITHOUT_PREFIX,
                name.span,
                format!(
                    "`{}` was declared with a prefix, and has none here",
                    name.name
                ),
                format!(
                    "its repository identifier is `{}`",
                    definition.repository_id
                ),
            )
            .label(declared, "declared here")
            .hint("put the same `#pragma prefix` before both");
            self.sink.push(diagnostic);
            return;
        }
        let diagnostic = Diagnostic::error(
            codes::ID_CHANGED,
            name.span,
            format!("`{}` was declared with another prefix", name.name),
            format!("here its repository identifier is `{id}`"),
        )
        .label(
            declared,
            format!("here it is `{}`", definition.repository_id),
        )
        .hint("put the same `#pragma prefix` before both");
        self.sink.push(diagnostic);
    }

    /// Reports definitions that share an identifier.
    pub(super) fn check_ids(&mut self) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (i, definition) in self.definitions.iter().enumerate() {
            if definition.repository_id.is_empty() {
                continue;
            }
            let id = definition.repository_id.as_str();
            let Some(&earlier) = seen.get(id) else {
                seen.insert(id, i);
                continue;
            };
            // Two definitions of one name are reported as duplicates.
            if self.definitions[earlier].scoped_name == definition.scoped_name {
                continue;
            }
            let given = |i: usize| {
                let def = DefId(i as u32);
                self.explicit_ids
                    .get(&def)
                    .copied()
                    .unwrap_or(self.spans[i])
            };
            self.sink.push(
                Diagnostic::error(
                    codes::ID_CONFLICT,
                    given(i),
                    format!("two definitions have the repository identifier `{id}`"),
                    "the second one",
                )
                .label(given(earlier), "the first one")
                .hint("give each definition an identifier of its own"),
            );
        }
    }

    /// Returns the definition that a pragma names; `None` if it has no identifier in the model, and
    /// after errors.
    fn identified(&mut self, scope: ScopeId, name: &ScopedName) -> Option<DefId> {
        // The types of the language that have names have fixed identifiers.
        if self.pseudo_type(scope, name).is_some() {
            return None;
        }
        let entity = self.resolve(scope, name)?;
        let def = self.scopes.entity(entity).kind.def()?;
        let definition = &self.definitions[def.0 as usize];
        (!matches!(definition.kind, DefKind::Module { .. })).then_some(def)
    }

    fn id_changed(&mut self, name: &ScopedName, span: Span, earlier: Span) {
        self.sink.push(
            Diagnostic::error(
                codes::ID_CHANGED,
                span,
                format!("`{name}` has another repository identifier already"),
                "given again here",
            )
            .label(earlier, "given here")
            .hint("remove one of them"),
        );
    }

    fn bad_id(&mut self, span: Span, message: &str, hint: &str) {
        self.sink
            .push(Diagnostic::error(codes::BAD_ID, span, message, "malformed").hint(hint));
    }
}

fn is_repository_id(id: &str) -> bool {
    let Some((format, rest)) = id.split_once(':') else {
        return false;
    };
    if format.is_empty() || id.len() > MAX_ID || !id.bytes().all(|b| b.is_ascii_graphic()) {
        return false;
    }
    if format != "IDL" {
        return !rest.is_empty();
    }
    rest.rsplit_once(':')
        .is_some_and(|(name, version)| !name.is_empty() && is_version(version))
}

fn is_version(version: &str) -> bool {
    let number =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok();
    version
        .split_once('.')
        .is_some_and(|(major, minor)| number(major) && number(minor))
}
