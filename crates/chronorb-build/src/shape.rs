//! Properties of the types of a model, independent of their names.
//!
//! A type can contain itself only through a sequence, a map, or a member that is
//! [apart](is_apart). Most functions stop there; those that look through them keep a list of
//! visited types.

use std::collections::HashSet;

use chronorb_idl::model::{BitField, ConstValue, DefId, DefKind, Member, Model, Type, Union};

use crate::ranges;

/// Returns the type behind its typedefs.
pub(crate) fn resolve<'t>(model: &'t Model, ty: &'t Type) -> &'t Type {
    let mut ty = ty;
    while let Type::Named(id) = ty
        && let DefKind::Typedef { ty: target } = &model.get(*id).kind
    {
        ty = target;
    }
    ty
}

/// Returns whether it is passed as a reference that may be nil: an object, typed or not, or a
/// value.
pub(crate) fn is_reference(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Object | Type::NonNil(_) | Type::ValueBase | Type::AbstractBase => true,
        Type::Named(id) => matches!(
            model.get(*id).kind,
            DefKind::Interface(_) | DefKind::Value(_) | DefKind::ValueBox { .. }
        ),
        _ => false,
    }
}

/// Returns whether it is or contains something that cannot leave the process: a local interface, or
/// a native type. It has only one Rust type then, which owns its contents.
pub(crate) fn is_local(model: &Model, ty: &Type) -> bool {
    some_type(model, ty, |ty| match ty {
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Interface(interface) => interface.local,
            kind => matches!(kind, DefKind::Native),
        },
        _ => false,
    })
}

/// Returns whether it is an object reference that is never nil.
pub(crate) fn is_nonnil(model: &Model, ty: &Type) -> bool {
    matches!(resolve(model, ty), Type::NonNil(_))
}

/// Returns whether a member is elsewhere in memory: a view refers to it, and an owned value has it
/// in a box. So are members with `@external` of types that contain themselves otherwise than in
/// sequences and maps.
pub(crate) fn is_apart(model: &Model, member: &Member) -> bool {
    let mut annotations = member.annotations.iter();
    let is_external = annotations.any(|annotation| {
        let word = annotation.params.first().map(|(_, value)| value);
        annotation.name == "external" && word != Some(&ConstValue::Boolean(false))
    });
    is_external
        && held_in_place(model, &member.ty).is_some_and(|id| {
            let mut seen = HashSet::new();
            let mut open = vec![id];
            while let Some(next) = open.pop() {
                for held in parts(model, next).filter_map(|part| held_in_place(model, &part.ty)) {
                    if held == id {
                        return true;
                    }
                    if seen.insert(held) {
                        open.push(held);
                    }
                }
            }
            false
        })
}

/// Returns the struct or union that a value of the type has in place.
fn held_in_place(model: &Model, ty: &Type) -> Option<DefId> {
    match resolve(model, ty) {
        Type::Array { element, .. } => held_in_place(model, element),
        Type::Named(id) => {
            let kind = &model.get(*id).kind;
            matches!(kind, DefKind::Struct { .. } | DefKind::Union(_)).then_some(*id)
        }
        _ => None,
    }
}

/// Returns whether its Rust type borrows: strings, sequences, references and all that contain one.
pub(crate) fn is_variable(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::String { .. }
        | Type::WString { .. }
        | Type::Sequence { .. }
        | Type::Map { .. }
        | Type::Any
        | Type::TypeCode
        | Type::Object
        | Type::NonNil(_)
        | Type::ValueBase
        | Type::AbstractBase => true,
        Type::Array { element, .. } => is_variable(model, element),
        Type::Named(id) => {
            is_reference(model, ty)
                || (!is_local(model, ty)
                    && parts(model, *id)
                        .any(|part| is_apart(model, part) || is_variable(model, &part.ty)))
        }
        _ => false,
    }
}

/// Returns whether it has two Rust types as a result, one borrowed and one owned. An object
/// reference by itself is always owned.
pub(crate) fn has_twin(model: &Model, ty: &Type) -> bool {
    is_variable(model, ty) && !is_reference(model, ty)
}

/// Returns whether the runtime's `Cdr` for its Rust type encodes it according to the IDL. It does
/// not for wide strings and for bounded types, whose Rust types are those of narrow and of
/// unbounded ones.
pub(crate) fn is_plain(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::WString { .. } | Type::Map { .. } => false,
        Type::String { bound } => bound.is_none(),
        Type::Sequence { element, bound } => bound.is_none() && is_plain(model, element),
        Type::Array { element, .. } => is_plain(model, element),
        _ => true,
    }
}

/// Returns whether all its values have the same layout on the wire, so that its Rust type has the
/// runtime's `Flat`.
pub(crate) fn is_flat(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::WChar | Type::Fixed { .. } | Type::InlineString { .. } => false,
        Type::Array { element, .. } => is_flat(model, element),
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Struct { .. } => parts(model, *id).all(|member| {
                !member.optional
                    && !is_apart(model, member)
                    && ranges::of_member(model, member).is_none()
                    && is_flat(model, &member.ty)
            }),
            DefKind::Enum { .. } | DefKind::Bitmask { .. } | DefKind::Bitset { .. } => true,
            _ => false,
        },
        _ => !is_variable(model, ty),
    }
}

/// Returns whether some values of its Rust type cannot be marshalled: text with characters that
/// CORBA or the wire does not have, values beyond a bound or a range, and unions with a
/// discriminator of another arm.
pub(crate) fn can_be_refused(model: &Model, ty: &Type) -> bool {
    some_type(model, ty, |ty| match ty {
        Type::Char
        | Type::WChar
        | Type::String { .. }
        | Type::InlineString { .. }
        | Type::WString { .. }
        | Type::Any
        | Type::TypeCode => true,
        Type::Sequence { bound, .. } | Type::Map { bound, .. } => bound.is_some(),
        Type::Named(id) => {
            matches!(model.get(*id).kind, DefKind::Union(_))
                || parts(model, *id).any(|part| ranges::of_member(model, part).is_some())
        }
        _ => false,
    })
}

/// Returns whether its values contain an `any`.
pub(crate) fn holds_any(model: &Model, ty: &Type) -> bool {
    some_type(model, ty, |ty| *ty == Type::Any)
}

/// Returns whether its values may have slices of octets or numbers that are long enough to be sent
/// without copying.
pub(crate) fn may_be_great(model: &Model, ty: &Type) -> bool {
    const GREAT: u64 = 64 << 10;
    some_type(model, ty, |ty| {
        let (element, len) = match ty {
            Type::Sequence { element, bound } => (element, *bound),
            Type::Array {
                element,
                dimensions,
            } => (element, dimensions.last().copied()),
            _ => return false,
        };
        let is_slice = matches!(
            resolve(model, element),
            Type::Boolean
                | Type::Octet
                | Type::Int8
                | Type::UInt8
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
        is_slice && len.is_none_or(|n| u64::from(n) * min_size(model, element) >= GREAT)
    })
}

/// Returns whether `is_such` holds for one of the types that its values consist of, including
/// itself and the contents of sequences and maps.
fn some_type(model: &Model, ty: &Type, is_such: impl Fn(&Type) -> bool) -> bool {
    let mut seen = HashSet::new();
    // Without recursion: a chain of types may be longer than the thread's stack is deep.
    let mut open = vec![ty];
    while let Some(ty) = open.pop() {
        let ty = resolve(model, ty);
        if is_such(ty) {
            return true;
        }
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => open.push(element),
            Type::Map { key, value, .. } => open.extend([key.as_ref(), value.as_ref()]),
            Type::Named(id) if seen.insert(*id) => {
                open.extend(parts(model, *id).map(|part| &part.ty));
            }
            _ => {}
        }
    }
    false
}

/// Returns whether a view of the owned twin needs room in an arena: for a sequence whose elements
/// are views, for members that are [apart](is_apart), and for types with a special owned form.
pub(crate) fn needs_arena(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Map { .. } | Type::Any | Type::TypeCode => true,
        Type::Sequence { element, .. } => is_variable(model, element),
        Type::Array { element, .. } => needs_arena(model, element),
        Type::Named(id) => {
            parts(model, *id).any(|part| is_apart(model, part) || needs_arena(model, &part.ty))
        }
        _ => false,
    }
}

/// Returns whether its Rust types have a `Default`.
pub(crate) fn has_default(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Array {
            element,
            dimensions,
        } => dimensions.iter().all(|&n| n <= 32) && has_default(model, element),
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Union(union) => union
                .cases
                .first()
                .is_some_and(|case| member_has_default(model, &case.member)),
            DefKind::Native => false,
            _ => parts(model, *id).all(|member| member_has_default(model, member)),
        },
        Type::NonNil(_) => false,
        _ => true,
    }
}

/// As [`has_default`] for a member, which `@default` and `@optional` can give one.
pub(crate) fn member_has_default(model: &Model, member: &Member) -> bool {
    member.optional
        || ranges::default_of(model, member).is_some()
        || (!is_apart(model, member) && has_default(model, &member.ty))
}

/// Returns whether its owned Rust type has a total order, as the keys of maps need.
pub(crate) fn has_order(model: &Model, ty: &Type) -> bool {
    match resolve(model, ty) {
        Type::Boolean
        | Type::Octet
        | Type::Int8
        | Type::UInt8
        | Type::Char
        | Type::WChar
        | Type::Short
        | Type::UShort
        | Type::Long
        | Type::ULong
        | Type::LongLong
        | Type::ULongLong
        | Type::String { .. }
        | Type::InlineString { .. }
        | Type::WString { .. } => true,
        Type::Named(id) => matches!(
            model.get(*id).kind,
            DefKind::Enum { .. } | DefKind::Bitmask { .. } | DefKind::Bitset { .. }
        ),
        _ => false,
    }
}

/// Returns the fewest octets that a value takes on the wire, padding not counted.
pub(crate) fn min_size(model: &Model, ty: &Type) -> u64 {
    match resolve(model, ty) {
        Type::Boolean | Type::Octet | Type::Int8 | Type::UInt8 | Type::Char | Type::WChar => 1,
        Type::Short | Type::UShort => 2,
        Type::LongLong | Type::ULongLong | Type::Double | Type::Object | Type::NonNil(_) => 8,
        Type::LongDouble => 16,
        Type::AbstractBase => 5,
        Type::Fixed { digits, .. } => u64::from(digits / 2 + 1),
        Type::Array {
            element,
            dimensions,
        } => dimensions
            .iter()
            .fold(min_size(model, element), |size, &n| {
                size.saturating_mul(u64::from(n))
            }),
        Type::Named(id) => match &model.get(*id).kind {
            DefKind::Interface(interface) if interface.is_abstract => 5,
            DefKind::Interface(_) => 8,
            DefKind::Value(_) | DefKind::ValueBox { .. } => 4,
            DefKind::Enum { bit_bound, .. } => u64::from(enum_bits(*bit_bound) / 8),
            DefKind::Bitmask { bit_bound, .. } => u64::from(carrier_bits(*bit_bound) / 8),
            DefKind::Bitset { .. } => u64::from(carrier_bits(bitset_bits(model, *id)) / 8),
            DefKind::Union(union) => min_size(model, &union.discriminator),
            _ => parts(model, *id).fold(0, |size, member| {
                let least = if member.optional {
                    1
                } else {
                    min_size(model, &member.ty)
                };
                size.saturating_add(least)
            }),
        },
        _ => 4,
    }
}

/// Returns the bits that an enum of this bit bound has on the wire: 8, 16 or 32.
pub(crate) fn enum_bits(bit_bound: u8) -> u8 {
    carrier_bits(bit_bound).min(32)
}

/// Returns the bits of the unsigned integer that carries as many: 8, 16, 32 or 64.
pub(crate) fn carrier_bits(bits: u8) -> u8 {
    match bits {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Returns the bits of a bit set, those of its bases counted.
pub(crate) fn bitset_bits(model: &Model, id: DefId) -> u8 {
    let fields = bit_fields(model, id);
    let ends = fields
        .iter()
        .map(|field| field.position.saturating_add(field.bits));
    ends.max().unwrap_or(0)
}

/// Returns the fields of a bit set, those of its bases first.
pub(crate) fn bit_fields(model: &Model, id: DefId) -> Vec<&BitField> {
    let DefKind::Bitset { base, fields } = &model.get(id).kind else {
        return Vec::new();
    };
    let inherited = base.map_or_else(Vec::new, |base| bit_fields(model, base));
    inherited.into_iter().chain(fields).collect()
}

/// Returns whether some values of the discriminator select no member of the union.
pub(crate) fn has_implicit_default(model: &Model, union: &Union) -> bool {
    if union.cases.iter().any(|case| case.is_default) {
        return false;
    }
    // The numbers that an appendable enum does not know are in no label.
    let is_open = match resolve(model, &union.discriminator) {
        Type::Named(id) => is_appendable(model, *id),
        _ => false,
    };
    union.unlabelled.is_some() || is_open
}

/// Returns whether an enum has a variant for unknown numbers.
pub(crate) fn is_appendable(model: &Model, id: DefId) -> bool {
    model.get(id).annotations.iter().any(|annotation| {
        let word = annotation.params.first().map(|(_, value)| value);
        match (annotation.name.as_str(), word) {
            ("appendable" | "mutable", _) => true,
            ("extensibility", Some(ConstValue::String(kind))) => kind != "FINAL",
            // The enumerators of the standard annotation: FINAL, APPENDABLE, MUTABLE.
            ("extensibility", Some(ConstValue::Enumerator(_, index))) => *index != 0,
            _ => false,
        }
    })
}

/// Returns the types that a value of the definition is made of, one for each member: those of the
/// bases of a struct first, those of a union by its cases. Other definitions have none.
pub(crate) fn parts(model: &Model, id: DefId) -> impl Iterator<Item = &Member> {
    let (members, cases) = match &model.get(id).kind {
        DefKind::Union(union) => (Vec::new(), union.cases.as_slice()),
        _ => (members(model, id).unwrap_or_default(), &[][..]),
    };
    let cases = cases.iter().map(|case| &case.member);
    members.into_iter().chain(cases)
}

/// Returns the members of a struct or exception, those of its bases first.
pub(crate) fn members(model: &Model, id: DefId) -> Option<Vec<&Member>> {
    match &model.get(id).kind {
        DefKind::Exception { members, .. } => Some(members.iter().collect()),
        DefKind::Struct { base, members, .. } => {
            let own = members.iter();
            let inherited = base.and_then(|base| self::members(model, base));
            Some(
                inherited
                    .unwrap_or_default()
                    .into_iter()
                    .chain(own)
                    .collect(),
            )
        }
        _ => None,
    }
}

/// Returns the usual name of a definition's kind.
pub(crate) fn kind_name(kind: &DefKind) -> &'static str {
    match kind {
        DefKind::Module { .. } => "module",
        DefKind::Interface(_) => "interface",
        DefKind::Struct { .. } => "struct",
        DefKind::Exception { .. } => "exception",
        DefKind::Union(_) => "union",
        DefKind::Enum { .. } => "enum",
        DefKind::Bitmask { .. } => "bitmask",
        DefKind::Bitset { .. } => "bitset",
        DefKind::Value(value) if value.event => "eventtype",
        DefKind::Value(_) => "valuetype",
        DefKind::ValueBox { .. } => "value box",
        DefKind::Native => "native type",
        DefKind::Annotation { .. } => "annotation",
        DefKind::Typedef { .. } => "typedef",
        DefKind::Const { .. } => "constant",
        _ => "definition",
    }
}
