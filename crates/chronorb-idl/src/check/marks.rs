//! Annotations that change the type that they precede.

use super::Checker;
use crate::ast::{AnnotationUse, Meta, ParamDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefKind, ParamMode, Type};

impl Checker<'_> {
    /// Returns the type as changed by `@rt::inline` and `@rt::nonnil`.
    pub(super) fn marked(&mut self, ty: Type, meta: &Meta) -> Type {
        let find = |name| find(&meta.annotations, name);
        let mut ty = ty;
        if let Some(mark) = find("rt::inline") {
            ty = match ty {
                Type::Array {
                    element,
                    dimensions,
                } => Type::Array {
                    element: Box::new(self.inline(*element, mark)),
                    dimensions,
                },
                ty => self.inline(ty, mark),
            };
        }
        if let Some(mark) = find("rt::nonnil") {
            ty = self.nonnil(ty, mark);
        }
        ty
    }

    /// Reports `@rt::lazy` on anything but an incoming sequence of structs or unions.
    pub(super) fn check_lazy(&mut self, param: &ParamDef, ty: Option<&Type>) {
        let (Some(mark), Some(ty)) = (find(&param.meta.annotations, "rt::lazy"), ty) else {
            return;
        };
        if param.mode == ParamMode::In
            && let Type::Sequence { element, .. } = self.without_aliases(ty)
            && let Type::Named(id) = self.without_aliases(&element)
            && matches!(
                self.definitions[id.0 as usize].kind,
                DefKind::Struct { .. } | DefKind::Union(_)
            )
        {
            return;
        }
        self.sink.push(
            Diagnostic::error(
                codes::BAD_MARK,
                mark.span,
                "`@rt::lazy` stands before a parameter that cannot be decoded bit by bit",
                "for `in` parameters that are sequences of structs or unions only",
            )
            .hint("remove the annotation; sequences of numbers are never copied anyhow"),
        );
    }

    fn inline(&mut self, ty: Type, mark: &AnnotationUse) -> Type {
        match self.without_aliases(&ty) {
            Type::String { bound: Some(bound) } => Type::InlineString { bound },
            Type::InlineString { .. } => ty,
            _ => {
                self.sink.push(
                    Diagnostic::error(
                        codes::BAD_MARK,
                        mark.span,
                        "`@rt::inline` stands before a type that is no bounded string",
                        "for bounded strings only",
                    )
                    .hint("give the string a bound, as `string<16>`, or remove the annotation"),
                );
                ty
            }
        }
    }

    fn nonnil(&mut self, ty: Type, mark: &AnnotationUse) -> Type {
        let is_reference = match self.without_aliases(&ty) {
            Type::Object => true,
            Type::NonNil(_) => return ty,
            Type::Named(id) => match &self.definitions[id.0 as usize].kind {
                DefKind::Interface(interface) => !interface.local && !interface.is_abstract,
                _ => false,
            },
            _ => false,
        };
        if is_reference {
            return Type::NonNil(Box::new(ty));
        }
        self.sink.push(
            Diagnostic::error(
                codes::BAD_MARK,
                mark.span,
                "`@rt::nonnil` stands before a type that is no object reference",
                "for object references only",
            )
            .hint("remove the annotation"),
        );
        ty
    }
}

fn find<'a>(annotations: &'a [AnnotationUse], name: &str) -> Option<&'a AnnotationUse> {
    let mut annotations = annotations.iter();
    annotations.find(|annotation| annotation.name.to_string() == name)
}
