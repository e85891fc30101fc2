//! The real-time annotations of operations, for the scheduling service.

use std::fmt::Write as _;

use chronorb_idl::model::{Annotation, ConstValue, DefKind, Model};

/// Returns the real-time annotations of all operations and attributes as TOML, or `None` if there
/// are none.
///
/// Each `[[operation]]` has `interface` (the repository identifier), `operation` (the name on the
/// wire), and a key for each annotation of `@rt::priority`, `@rt::lane`, `@rt::wcet`,
/// `@rt::period`, `@rt::deadline` and `@rt::max_size`. An annotation with several parameters is an
/// inline table.
pub fn real_time_annotations(model: &Model) -> Option<String> {
    let mut text = String::new();
    for (_, definition) in model.iter() {
        let DefKind::Interface(interface) = &definition.kind else {
            continue;
        };
        let id = &definition.repository_id;
        for operation in &interface.operations {
            write_operation(&mut text, id, &operation.name, &operation.annotations);
        }
        for attribute in &interface.attributes {
            let getter = format!("_get_{}", attribute.name);
            write_operation(&mut text, id, &getter, &attribute.annotations);
            if !attribute.readonly {
                let setter = format!("_set_{}", attribute.name);
                write_operation(&mut text, id, &setter, &attribute.annotations);
            }
        }
    }
    (!text.is_empty()).then_some(text)
}

fn write_operation(text: &mut String, interface: &str, name: &str, annotations: &[Annotation]) {
    let known: Vec<_> = annotations
        .iter()
        .filter_map(|annotation| {
            let key = annotation.name.strip_prefix("rt::")?;
            KEYS.contains(&key).then_some((key, annotation))
        })
        .collect();
    if known.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str("[[operation]]\n");
    // Writing into a string does not fail.
    let _ = writeln!(text, "interface = {}", quoted(interface));
    let _ = writeln!(text, "operation = {}", quoted(name));
    for (key, annotation) in known {
        let _ = writeln!(text, "{key} = {}", value_of(annotation));
    }
}

fn value_of(annotation: &Annotation) -> String {
    match annotation.params.as_slice() {
        [] => "true".to_owned(),
        [(key, value)] if key == "value" => scalar(value),
        params => {
            let params: Vec<_> = params
                .iter()
                .map(|(key, value)| format!("{key} = {}", scalar(value)))
                .collect();
            format!("{{ {} }}", params.join(", "))
        }
    }
}

fn scalar(value: &ConstValue) -> String {
    match value {
        ConstValue::Integer(value) => value.to_string(),
        ConstValue::Float(value) => format!("{value:?}"),
        ConstValue::Boolean(value) => value.to_string(),
        ConstValue::Char(value) => quoted(&char::from(*value).to_string()),
        ConstValue::WChar(value) => quoted(&value.to_string()),
        ConstValue::String(value) | ConstValue::WString(value) => quoted(value),
        ConstValue::Enumerator(_, index) => index.to_string(),
        _ => quoted(""),
    }
}

/// Returns a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

const KEYS: &[&str] = &["deadline", "lane", "max_size", "period", "priority", "wcet"];
