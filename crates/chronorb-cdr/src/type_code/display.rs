//! Type codes as text, in the syntax of IDL.

use std::fmt;

use super::TypeCode;

/// Formats the type as IDL. Only the outermost constructed type shows its content; those within it
/// are shown by name.
impl fmt::Display for TypeCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Struct { name, members, .. } | Self::Except { name, members, .. } => {
                let keyword = match self {
                    Self::Struct { .. } => "struct",
                    _ => "exception",
                };
                write!(f, "{keyword} {name} {{ ")?;
                for member in *members {
                    write!(f, "{} {}; ", Short(&member.type_code), member.name)?;
                }
                f.write_str("}")
            }
            Self::Union {
                name,
                discriminator,
                default_index,
                members,
                ..
            } => {
                write!(f, "union {name} switch ({}) {{ ", Short(discriminator))?;
                for (index, member) in (0..).zip(*members) {
                    match default_index {
                        Some(default) if *default == index => f.write_str("default: ")?,
                        _ => write!(f, "case {}: ", Label(discriminator, member.label))?,
                    }
                    write!(f, "{} {}; ", Short(&member.type_code), member.name)?;
                }
                f.write_str("}")
            }
            Self::Enum { name, members, .. } => {
                write!(f, "enum {name} {{")?;
                for (index, member) in members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {member}")?;
                }
                f.write_str(" }")
            }
            Self::Alias { name, target, .. } => write!(f, "typedef {} {name}", Short(target)),
            Self::Value {
                name,
                base,
                members,
                ..
            }
            | Self::Event {
                name,
                base,
                members,
                ..
            } => {
                let keyword = match self {
                    Self::Value { .. } => "valuetype",
                    _ => "eventtype",
                };
                write!(f, "{keyword} {name} ")?;
                if let Some(base) = base {
                    write!(f, ": {} ", Short(base))?;
                }
                f.write_str("{ ")?;
                for member in *members {
                    let visibility = if member.is_public {
                        "public"
                    } else {
                        "private"
                    };
                    write!(
                        f,
                        "{visibility} {} {}; ",
                        Short(&member.type_code),
                        member.name
                    )?;
                }
                f.write_str("}")
            }
            Self::ValueBox { name, target, .. } => {
                write!(f, "valuetype {name} {}", Short(target))
            }
            Self::ObjRef { name, .. } => write!(f, "interface {name}"),
            Self::AbstractInterface { name, .. } => write!(f, "abstract interface {name}"),
            Self::LocalInterface { name, .. } => write!(f, "local interface {name}"),
            Self::Native { name, .. } => write!(f, "native {name}"),
            Self::Component { name, .. } => write!(f, "component {name}"),
            Self::Home { name, .. } => write!(f, "home {name}"),
            _ => Short(self).fmt(f),
        }
    }
}

/// A type as it is told within another.
struct Short<'t>(&'t TypeCode<'t>);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            TypeCode::Null => "null",
            TypeCode::Void => "void",
            TypeCode::Short => "short",
            TypeCode::Long => "long",
            TypeCode::UShort => "unsigned short",
            TypeCode::ULong => "unsigned long",
            TypeCode::Float => "float",
            TypeCode::Double => "double",
            TypeCode::Boolean => "boolean",
            TypeCode::Char => "char",
            TypeCode::Octet => "octet",
            TypeCode::Any => "any",
            TypeCode::TypeCode => "TypeCode",
            TypeCode::Principal => "Principal",
            TypeCode::LongLong => "long long",
            TypeCode::ULongLong => "unsigned long long",
            TypeCode::LongDouble => "long double",
            TypeCode::WChar => "wchar",
            TypeCode::String { bound: 0 } => "string",
            TypeCode::WString { bound: 0 } => "wstring",
            TypeCode::String { bound } => return write!(f, "string<{bound}>"),
            TypeCode::WString { bound } => return write!(f, "wstring<{bound}>"),
            TypeCode::Fixed { digits, scale } => return write!(f, "fixed<{digits}, {scale}>"),
            TypeCode::Sequence { element, bound: 0 } => {
                return write!(f, "sequence<{}>", Short(element));
            }
            TypeCode::Sequence { element, bound } => {
                return write!(f, "sequence<{}, {bound}>", Short(element));
            }
            TypeCode::Array { element, length } => return array(f, element, *length),
            TypeCode::Recursive { id } => id,
            // An anonymous one, or one whose sender left the name out.
            other => match other.name() {
                Some("") | None => other.id().unwrap_or_default(),
                Some(name) => name,
            },
        };
        f.write_str(text)
    }
}

/// The outer index comes first, so the element's type has to be looked for behind all of them.
fn array(f: &mut fmt::Formatter<'_>, element: &TypeCode<'_>, length: u32) -> fmt::Result {
    let mut innermost = element;
    while let TypeCode::Array { element, .. } = innermost {
        innermost = element;
    }
    write!(f, "{}[{length}]", Short(innermost))?;
    let mut rest = element;
    while let TypeCode::Array { element, length } = rest {
        write!(f, "[{length}]")?;
        rest = element;
    }
    Ok(())
}

/// A label of a union whose discriminator has this type.
struct Label<'t>(&'t TypeCode<'t>, i64);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(discriminator, label) = *self;
        let index = usize::try_from(label).unwrap_or(usize::MAX);
        let character = u32::try_from(label).ok().and_then(char::from_u32);
        match (discriminator.unaliased(), character) {
            (TypeCode::Boolean, _) if label == 0 => f.write_str("FALSE"),
            (TypeCode::Boolean, _) => f.write_str("TRUE"),
            (TypeCode::Char, Some(c)) => write!(f, "{c:?}"),
            (TypeCode::WChar, Some(c)) => write!(f, "L{c:?}"),
            (TypeCode::ULongLong, _) => write!(f, "{}", label.cast_unsigned()),
            (TypeCode::Enum { members, .. }, _) if index < members.len() => {
                f.write_str(members[index])
            }
            _ => write!(f, "{label}"),
        }
    }
}
