//! The values that `@range`, `@min` and `@max` allow, and those of `@default`.

use chronorb_idl::model::{Annotation, ConstValue, DefKind, Member, Model, Type};

use crate::shape;

/// The least and the greatest allowed value, if they are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) min: Option<ConstValue>,
    pub(crate) max: Option<ConstValue>,
}

/// Returns the range of a member: its own, or that of the typedef that it names.
pub(crate) fn of_member(model: &Model, member: &Member) -> Option<Range> {
    of(model, &member.annotations, &member.ty)
}

/// Returns the range of a value with these annotations and this type; only numbers have one.
pub(crate) fn of(model: &Model, annotations: &[Annotation], ty: &Type) -> Option<Range> {
    let mut range = Range::default();
    range.narrow(annotations);
    let mut ty = ty;
    while let Type::Named(id) = ty
        && let definition = model.get(*id)
        && let DefKind::Typedef { ty: target } = &definition.kind
    {
        range.narrow(&definition.annotations);
        ty = target;
    }
    (is_number(ty) && range != Range::default()).then_some(range)
}

/// Returns the value that `@default` gives to a member whose type has constants.
pub(crate) fn default_of<'m>(model: &Model, member: &'m Member) -> Option<&'m ConstValue> {
    let annotation = member.annotations.iter().find(|a| a.name == "default")?;
    let (_, value) = annotation.params.first()?;
    let ty = shape::resolve(model, &member.ty);
    let has_constants = match ty {
        Type::Boolean | Type::Char | Type::WChar | Type::String { .. } | Type::WString { .. } => {
            true
        }
        Type::LongDouble => true,
        Type::Named(id) => matches!(model.get(*id).kind, DefKind::Enum { .. }),
        other => is_number(other),
    };
    (has_constants && !member.optional).then_some(value)
}

impl Range {
    /// Adopts the limits in the annotations, unless an inner definition has set them.
    fn narrow(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            for (key, value) in &annotation.params {
                match (annotation.name.as_str(), key.as_str()) {
                    ("min", _) | ("range", "min") => self.min.get_or_insert_with(|| value.clone()),
                    ("max", _) | ("range", "max") => self.max.get_or_insert_with(|| value.clone()),
                    _ => continue,
                };
            }
        }
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Octet
            | Type::Int8
            | Type::UInt8
            | Type::Short
            | Type::UShort
            | Type::Long
            | Type::ULong
            | Type::LongLong
            | Type::ULongLong
            | Type::Float
            | Type::Double
            | Type::Fixed { .. }
    )
}

/// Returns whether all values of the integer type are on one side of the bound, so that no check is
/// needed.
pub(crate) fn is_limit_of(ty: &Type, bound: &ConstValue) -> bool {
    let ConstValue::Integer(bound) = *bound else {
        return false;
    };
    let (least, greatest) = match ty {
        Type::Octet | Type::UInt8 => (0, u8::MAX.into()),
        Type::Int8 => (i8::MIN.into(), i8::MAX.into()),
        Type::Short => (i16::MIN.into(), i16::MAX.into()),
        Type::UShort => (0, u16::MAX.into()),
        Type::Long => (i32::MIN.into(), i32::MAX.into()),
        Type::ULong => (0, u32::MAX.into()),
        Type::LongLong => (i64::MIN.into(), i64::MAX.into()),
        Type::ULongLong => (0, u64::MAX.into()),
        _ => return false,
    };
    bound == least || bound == greatest
}
