//! The JSON form of types and constants.

use serde::Serialize;

use crate::model::{ConstValue, DefId, DefKind, Model, Type};

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum JsonType {
    Boolean,
    Octet,
    Char,
    Wchar,
    Short,
    UnsignedShort,
    Long,
    UnsignedLong,
    LongLong,
    UnsignedLongLong,
    Int8,
    Uint8,
    Float,
    Double,
    LongDouble,
    Fixed {
        digits: u8,
        scale: u8,
    },
    Any,
    TypeCode,
    String {
        bound: Option<u32>,
    },
    Wstring {
        bound: Option<u32>,
    },
    Sequence {
        element: Box<Self>,
        bound: Option<u32>,
    },
    Array {
        element: Box<Self>,
        dimensions: Vec<u32>,
    },
    Map {
        key: Box<Self>,
        value: Box<Self>,
        bound: Option<u32>,
    },
    Object,
    ValueBase,
    AbstractBase,
    Named {
        id: u32,
        name: String,
    },
}

impl JsonType {
    pub(super) fn new(model: &Model, ty: &Type) -> Self {
        let inner = |ty: &Type| Box::new(Self::new(model, ty));
        match ty {
            Type::Boolean => Self::Boolean,
            Type::Octet => Self::Octet,
            Type::Char => Self::Char,
            Type::WChar => Self::Wchar,
            Type::Short => Self::Short,
            Type::UShort => Self::UnsignedShort,
            Type::Long => Self::Long,
            Type::ULong => Self::UnsignedLong,
            Type::LongLong => Self::LongLong,
            Type::ULongLong => Self::UnsignedLongLong,
            Type::Int8 => Self::Int8,
            Type::UInt8 => Self::Uint8,
            Type::Float => Self::Float,
            Type::Double => Self::Double,
            Type::LongDouble => Self::LongDouble,
            &Type::Fixed { digits, scale } => Self::Fixed { digits, scale },
            Type::Any => Self::Any,
            Type::TypeCode => Self::TypeCode,
            &Type::String { bound } => Self::String { bound },
            // The effect of annotations on a type is in the annotations.
            &Type::InlineString { bound } => Self::String { bound: Some(bound) },
            Type::NonNil(reference) => Self::new(model, reference),
            &Type::WString { bound } => Self::Wstring { bound },
            Type::Sequence { element, bound } => Self::Sequence {
                element: inner(element),
                bound: *bound,
            },
            Type::Array {
                element,
                dimensions,
            } => Self::Array {
                element: inner(element),
                dimensions: dimensions.clone(),
            },
            Type::Map { key, value, bound } => Self::Map {
                key: inner(key),
                value: inner(value),
                bound: *bound,
            },
            Type::Object => Self::Object,
            Type::ValueBase => Self::ValueBase,
            Type::AbstractBase => Self::AbstractBase,
            &Type::Named(id) => Self::Named {
                id: id.0,
                name: scoped_name(model, id),
            },
        }
    }
}

/// A constant. Integers are texts, because many readers of JSON have no integers above 2⁵³.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum JsonValue<'a> {
    Integer {
        value: String,
    },
    Float {
        value: f64,
    },
    Fixed {
        unscaled: String,
        digits: u8,
        scale: u8,
    },
    Boolean {
        value: bool,
    },
    Char {
        value: char,
    },
    Wchar {
        value: char,
    },
    String {
        value: &'a str,
    },
    Wstring {
        value: &'a str,
    },
    Enumerator {
        id: u32,
        index: u32,
        name: &'a str,
    },
}

impl<'a> JsonValue<'a> {
    pub(super) fn new(model: &'a Model, value: &'a ConstValue) -> Self {
        match value {
            ConstValue::Integer(value) => Self::Integer {
                value: value.to_string(),
            },
            &ConstValue::Float(value) => Self::Float { value },
            ConstValue::Fixed {
                unscaled,
                digits,
                scale,
            } => Self::Fixed {
                unscaled: unscaled.to_string(),
                digits: *digits,
                scale: *scale,
            },
            &ConstValue::Boolean(value) => Self::Boolean { value },
            &ConstValue::Char(value) => Self::Char {
                value: value.into(),
            },
            &ConstValue::WChar(value) => Self::Wchar { value },
            ConstValue::String(value) => Self::String { value },
            ConstValue::WString(value) => Self::Wstring { value },
            &ConstValue::Enumerator(id, index) => Self::Enumerator {
                id: id.0,
                index,
                name: enumerator(model, id, index),
            },
        }
    }
}

fn enumerator(model: &Model, id: DefId, index: u32) -> &str {
    match &model.get(id).kind {
        DefKind::Enum { enumerators, .. } => enumerators
            .get(index as usize)
            .map_or("", |enumerator| &enumerator.name),
        _ => "",
    }
}

/// `Market::Quote`
pub(super) fn scoped_name(model: &Model, id: DefId) -> String {
    model.get(id).scoped_name.join("::")
}
