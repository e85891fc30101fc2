//! What the types of a model are like, whatever their names.

use chronorb_idl::model::{DefId, DefKind, Member, Model, Type};

/// The type behind its typedefs.
pub(crate) fn resolve<'t>(model: &'t Model, ty: &'t Type) -> &'t Type {
    let mut ty = ty;
    while let Type::Named(id) = ty
        && let DefKind::Typedef { ty: target } = &model.get(*id).kind
    {
        ty = target;
    }
    ty
}

/// Whether it is an object reference, typed or not.
pub(crate) fn is_reference(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Object => true,
        Type::Named(id) => matches!(model.get(*id).kind, DefKind::Interface(_)),
        _ => false,
    }
}

/// Whether its Rust type borrows: strings, sequences, references and all that
/// holds one.
pub(crate) fn is_variable(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::String { .. } | Type::WString { .. } | Type::Sequence { .. } | Type::Object => true,
        Type::Array { element, .. } => is_variable(model, element),
        Type::Named(id) => match members(model, *id) {
            Some(members) => is_variable_struct(model, members),
            None => is_reference(model, ty),
        },
        _ => false,
    }
}

/// [`is_variable`] for a struct or exception with these members.
pub(crate) fn is_variable_struct(model: &Model, members: &[Member]) -> bool {
    members.iter().any(|member| is_variable(model, &member.ty))
}

/// Whether it has two Rust types as a result, one borrowed and one owned; an
/// object reference by itself is always owned.
pub(crate) fn has_twin(model: &Model, ty: &Type) -> bool {
    is_variable(model, ty) && !is_reference(model, ty)
}

/// Whether the runtime's `Cdr` for its Rust type reads and writes it as the
/// IDL says. It does not for wide strings and for what is bounded, whose Rust
/// types are those of narrow and of unbounded ones.
pub(crate) fn is_plain(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::WString { .. } => false,
        Type::String { bound } => bound.is_none(),
        Type::Sequence { element, bound } => bound.is_none() && is_plain(model, element),
        Type::Array { element, .. } => is_plain(model, element),
        _ => true,
    }
}

/// Whether all its values have the same layout on the wire, so that its Rust type has the
/// runtime's `Flat`.
pub(crate) fn is_flat(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::WChar => false,
        Type::Array { element, .. } => is_flat(model, element),
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Struct { members, .. } => is_flat_struct(model, members),
            DefKind::Enum { .. } => true,
            _ => false,
        },
        _ => !is_variable(model, ty),
    }
}

/// [`is_flat`] for a struct with these members.
pub(crate) fn is_flat_struct(model: &Model, members: &[Member]) -> bool {
    members.iter().all(|member| is_flat(model, &member.ty))
}

/// Whether there are values of its Rust type that cannot be marshalled: text with characters that
/// CORBA or the wire has not, and what is longer than its bound.
pub(crate) fn can_be_refused(model: &Model, ty: &Type) -> bool {
    fn within<'m>(model: &'m Model, ty: &'m Type, seen: &mut Vec<DefId>) -> bool {
        match resolve(model, ty) {
            Type::Char | Type::WChar | Type::String { .. } | Type::WString { .. } => true,
            Type::Sequence { bound: Some(_), .. } => true,
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                within(model, element, seen)
            }
            Type::Named(id) if !seen.contains(id) => {
                seen.push(*id);
                let mut members = members(model, *id).unwrap_or_default().iter();
                members.any(|member| within(model, &member.ty, seen))
            }
            _ => false,
        }
    }
    within(model, ty, &mut Vec::new())
}

/// Whether its values may have slices of octets or numbers that are great enough to be sent from
/// where they are.
pub(crate) fn may_be_great(model: &Model, ty: &Type) -> bool {
    const GREAT: u64 = 64 << 10;
    fn within<'m>(model: &'m Model, ty: &'m Type, seen: &mut Vec<DefId>) -> bool {
        let (element, len) = match resolve(model, ty) {
            Type::Sequence { element, bound } => (element, *bound),
            Type::Array {
                element,
                dimensions,
            } => (element, dimensions.last().copied()),
            Type::Named(id) if !seen.contains(id) => {
                seen.push(*id);
                let mut members = members(model, *id).unwrap_or_default().iter();
                return members.any(|member| within(model, &member.ty, seen));
            }
            _ => return false,
        };
        let is_slice = matches!(
            resolve(model, element),
            Type::Boolean
                | Type::Octet
                | Type::Char
                | Type::Short
                | Type::UShort
                | Type::Long
                | Type::ULong
                | Type::LongLong
                | Type::ULongLong
                | Type::Float
                | Type::Double
        );
        let is_long = || len.is_none_or(|n| u64::from(n) * min_size(model, element) >= GREAT);
        (is_slice && is_long()) || within(model, element, seen)
    }
    within(model, ty, &mut Vec::new())
}

/// Whether a view of the owned twin needs room in an arena, for a sequence
/// whose elements are themselves views.
pub(crate) fn needs_arena(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Sequence { element, .. } => is_variable(model, element),
        Type::Array { element, .. } => needs_arena(model, element),
        Type::Named(id) => members(model, *id)
            .is_some_and(|members| members.iter().any(|m| needs_arena(model, &m.ty))),
        _ => false,
    }
}

/// Whether its Rust types have a `Default`.
pub(crate) fn has_default(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Array {
            element,
            dimensions,
        } => dimensions.iter().all(|&n| n <= 32) && has_default(model, element),
        Type::Named(id) => members(model, *id)
            .is_none_or(|members| members.iter().all(|m| has_default(model, &m.ty))),
        _ => true,
    }
}

/// The fewest octets that a value takes on the wire, padding not counted.
pub(crate) fn min_size(model: &Model, ty: &Type) -> u64 {
    match resolve(model, ty) {
        Type::Boolean | Type::Octet | Type::Char | Type::WChar => 1,
        Type::Short | Type::UShort => 2,
        Type::LongLong | Type::ULongLong | Type::Double | Type::Object => 8,
        Type::LongDouble => 16,
        Type::Array {
            element,
            dimensions,
        } => dimensions
            .iter()
            .fold(min_size(model, element), |size, &n| {
                size.saturating_mul(u64::from(n))
            }),
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Interface(_) => 8,
            DefKind::Enum { .. } => 4,
            _ => members(model, *id).map_or(0, |members| min_size_of_struct(model, members)),
        },
        _ => 4,
    }
}

/// [`min_size`] of a struct or exception with these members.
pub(crate) fn min_size_of_struct(model: &Model, members: &[Member]) -> u64 {
    members.iter().fold(0, |size, member| {
        size.saturating_add(min_size(model, &member.ty))
    })
}

/// The members of a struct or exception.
pub(crate) fn members(model: &Model, id: DefId) -> Option<&[Member]> {
    match &model.get(id).kind {
        DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => Some(members),
        _ => None,
    }
}

/// What people call a definition of this kind.
pub(crate) fn kind_name(kind: &DefKind) -> &'static str {
    match kind {
        DefKind::Module { .. } => "module",
        DefKind::Interface(_) => "interface",
        DefKind::Struct { .. } => "struct",
        DefKind::Exception { .. } => "exception",
        DefKind::Enum { .. } => "enum",
        DefKind::Typedef { .. } => "typedef",
        DefKind::Const { .. } => "constant",
        _ => "definition",
    }
}
