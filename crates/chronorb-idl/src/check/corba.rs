//! Predefined names: the types of the module `CORBA` that are no definitions, and `import`.

use super::Checker;
use super::scope::{EntityKind, ScopeId, Scopes};
use crate::ast::{Import, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefKind, Type};

impl Checker<'_> {
    /// Resolves `CORBA::TypeCode` and similar names; in the module `CORBA`, also `TypeCode`.
    pub(super) fn pseudo_type(&self, scope: ScopeId, name: &ScopedName) -> Option<Type> {
        let ty = match &*name.parts.last()?.name {
            "TypeCode" => Type::TypeCode,
            "Object" => Type::Object,
            "ValueBase" => Type::ValueBase,
            "AbstractBase" => Type::AbstractBase,
            _ => return None,
        };
        let is_corba = match name.parts.as_slice() {
            [_] => !name.absolute && self.scopes.outermost(scope) == Some("CORBA"),
            [module, _] => *module.name == *"CORBA",
            _ => false,
        };
        (is_corba && self.resolve_quietly(scope, name).is_none()).then_some(ty)
    }

    /// Checks `import ::M;` or `import "IDL:M:1.0";`. There is no repository besides the files that
    /// were read, so one of them must define the name.
    pub(super) fn import(&mut self, import: &Import) {
        let (known, shown) = match &import.what {
            Ok(name) => {
                let found = self.resolve_quietly(Scopes::FILE, name);
                if let Some(entity) = found {
                    let entity = self.scopes.entity(entity);
                    if !matches!(
                        entity.kind,
                        EntityKind::Module { .. }
                            | EntityKind::Interface { .. }
                            | EntityKind::Value { .. }
                            | EntityKind::Refused
                    ) {
                        let diagnostic = Diagnostic::error(
                            codes::BAD_IMPORT,
                            import.span,
                            format!("`{name}` is {}", entity.kind.describe()),
                            "cannot be imported",
                        )
                        .label(entity.span, "defined here")
                        .hint("modules, interfaces and value types can be imported");
                        self.sink.push(diagnostic);
                        return;
                    }
                }
                let is_corba = matches!(name.parts.as_slice(), [only] if &*only.name == "CORBA");
                (found.is_some() || is_corba, name.to_string())
            }
            Err(id) => {
                let mut definitions = self.definitions.iter();
                let module = path_of(id);
                let found = definitions.any(|definition| match definition.kind {
                    // Modules have no identifiers in the model.
                    DefKind::Module { .. } => module.as_ref() == Some(&definition.scoped_name),
                    _ => *definition.repository_id == **id,
                });
                (found, id.to_string())
            }
        };
        if !known {
            self.sink.push(
                Diagnostic::error(
                    codes::BAD_IMPORT,
                    import.span,
                    format!("no file that was read defines `{shown}`"),
                    "imported here",
                )
                .hint("include the file that defines it before this, with `#include`"),
            );
        }
    }
}

/// Returns the scoped name in a repository identifier, without the prefix.
fn path_of(id: &str) -> Option<Vec<String>> {
    let path = id.strip_prefix("IDL:")?.split(':').next()?;
    let names = path.split('/').skip_while(|part| part.contains('.'));
    Some(names.map(str::to_owned).collect())
}
