//! `chronorb idl model`: what it prints, and that this is what the schema says.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::{Options, json};
use serde_json::Value;

use crate::support::{chronorb, stderr, stdout};

/// The model that the command prints for a file.
fn model_of(dir: &Path, file: &str) -> Value {
    let include = corpus().join("include");
    let include = include.to_str().expect("text");
    let output = chronorb(dir, &["idl", "model", "-I", include, file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(stdout(&output)).expect("JSON")
}

fn model(text: &str) -> Value {
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join("a.idl"), text).expect("written");
    model_of(folder.path(), "a.idl")
}

/// The definition with this scoped name.
fn definition<'a>(model: &'a Value, name: &str) -> &'a Value {
    let definitions = model["definitions"].as_array().expect("a list");
    let parts: Vec<&str> = name.split("::").collect();
    definitions
        .iter()
        .find(|definition| definition["scoped_name"] == serde_json::json!(parts))
        .unwrap_or_else(|| panic!("no {name} in {model:#}"))
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../chronorb-idl/tests")
}

#[test]
fn a_definition_is_resolved_and_has_its_place_doc_and_annotations() {
    let model = model(
        "#pragma prefix \"example.org\"\nmodule Market {\n  const long MAX = 2 * 8;\n\
         \x20 /** A price. */\n  @unit(\"cent\") typedef sequence<long long, MAX> Prices;\n};\n",
    );
    assert_eq!(model["format"], "chronorb-idl-model/1");
    assert_eq!(model["files"][0]["path"], "a.idl");
    let market = definition(&model, "Market");
    let max = definition(&model, "Market::MAX");
    let prices = definition(&model, "Market::Prices");
    assert_eq!(market["repository_id"], Value::Null);
    assert_eq!(
        market["members"],
        serde_json::json!([max["id"], prices["id"]])
    );
    assert_eq!(model["roots"], serde_json::json!([market["id"]]));
    assert_eq!(
        max["value"],
        serde_json::json!({"kind": "integer", "value": "16"})
    );
    assert_eq!(prices["repository_id"], "IDL:example.org/Market/Prices:1.0");
    assert_eq!(
        prices["type"],
        serde_json::json!({"kind": "sequence", "element": {"kind": "long_long"}, "bound": 16})
    );
    assert_eq!(prices["doc"], "A price.");
    assert_eq!(prices["annotations"][0]["name"], "unit");
    assert_eq!(
        prices["annotations"][0]["params"][0]["value"]["value"],
        "cent"
    );
    assert_eq!(
        prices["location"],
        serde_json::json!({"file": 0, "line": 5, "column": 50})
    );
}

#[test]
fn an_interface_has_its_own_and_the_inherited_operations_with_their_names_on_the_wire() {
    let model = model(
        "exception Busy { };\n\
         interface Base { void stop(); readonly attribute long _long; };\n\
         interface Derived : Base {\n\
         \x20 double get(in long a, inout string<5> b) raises (Busy);\n\
         \x20 attribute boolean on;\n};\n",
    );
    let (base, derived) = (definition(&model, "Base"), definition(&model, "Derived"));
    assert_eq!(derived["bases"], serde_json::json!([base["id"]]));
    let get = &derived["operations"][0];
    assert_eq!(get["wire_name"], "get");
    assert_eq!(get["result"]["kind"], "double");
    assert_eq!(get["params"][1]["mode"], "inout");
    assert_eq!(get["raises"][0], definition(&model, "Busy")["id"]);
    assert_eq!(derived["attributes"][0]["wire_setter"], "_set_on");
    assert_eq!(base["operations"][0]["result"], Value::Null);
    assert_eq!(base["attributes"][0]["wire_getter"], "_get_long");
    assert_eq!(base["attributes"][0]["wire_setter"], Value::Null);
    assert_eq!(
        derived["inherited_operations"],
        serde_json::json!([{"from": base["id"], "name": "stop"}])
    );
}

#[test]
fn a_great_integer_keeps_all_its_digits() {
    let model = model("const unsigned long long MOST = 18446744073709551615;");
    assert_eq!(
        definition(&model, "MOST")["value"]["value"],
        "18446744073709551615"
    );
}

#[test]
fn files_that_only_line_markers_name_are_told_apart() {
    let model = model("#line 7 \"original.idl\"\nstruct S { long a; };\n");
    assert_eq!(
        model["files"],
        serde_json::json!([
            {"path": "a.idl", "read": true},
            {"path": "original.idl", "read": false}
        ])
    );
    assert_eq!(
        definition(&model, "S")["location"],
        serde_json::json!({"file": 1, "line": 7, "column": 8})
    );
}

#[test]
fn a_wrong_file_has_no_model() {
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join("a.idl"), "struct S { Foo a; };").expect("written");
    let output = chronorb(folder.path(), &["idl", "model", "a.idl"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("E0200"), "{}", stderr(&output));
}

#[test]
fn every_model_of_the_corpus_is_what_the_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/idl-model.schema.json");
    let text = fs::read_to_string(path).expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let options = Options {
        include_dirs: vec![corpus().join("include")],
        ..Options::default()
    };
    let mut files = 0;
    for entry in fs::read_dir(corpus().join("accept")).expect("the corpus is there") {
        let file = entry.expect("readable").path();
        // The command prints the same model; a process for each file would take most of the time.
        let compilation = chronorb_idl::compile(&file, &options);
        let compilation = compilation.unwrap_or_else(|failure| panic!("{failure}"));
        let mut model = Vec::new();
        json::write_model(&compilation.model, &mut model).expect("it is written");
        let model: Value = serde_json::from_slice(&model).expect("JSON");
        if let Err(difference) = agrees(&schema, &schema, &model, "") {
            panic!("{}: {difference}", file.display());
        }
        files += 1;
    }
    assert!(files >= 50, "only {files} files");
}

#[test]
fn what_the_schema_does_not_say_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"oneOf": [{"const": 1}, {"$ref": "#/$defs/t"}]}},
        "$defs": {"t": {"type": "string", "pattern": "^-?[0-9]+$"}},
    });
    let agree = |value: Value| agrees(&schema, &schema, &value, "").is_ok();
    assert!(agree(serde_json::json!({"a": 1})));
    assert!(agree(serde_json::json!({"a": "-12"})));
    for wrong in [
        serde_json::json!({}),
        serde_json::json!({"a": 2}),
        serde_json::json!({"a": "x"}),
        serde_json::json!({"a": 1, "b": 1}),
        serde_json::json!([]),
    ] {
        assert!(!agree(wrong.clone()), "{wrong}");
    }
}

/// Whether a value is what a schema says, of JSON Schema as far as ours needs it.
fn agrees(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = match schema["$ref"].as_str() {
        Some(name) => root
            .pointer(name.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("no {name} in the schema")),
        None => schema,
    };
    let keywords = schema.as_object().expect("a schema is an object");
    for (keyword, said) in keywords {
        let holds = match keyword.as_str() {
            "type" => is_a(value, said.as_str().expect("one type")),
            "const" => value == said,
            "enum" => said.as_array().expect("a list").contains(value),
            "minimum" => value.as_u64() >= said.as_u64(),
            // The only one of the schema.
            "pattern" => value
                .as_str()
                .is_some_and(|text| text.parse::<i128>().is_ok()),
            "required" => names(said).all(|name| value.get(name).is_some()),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                let known = &schema["properties"];
                object.keys().all(|name| known.get(name).is_some())
            }),
            "oneOf" | "anyOf" => {
                let schemas = said.as_array().expect("a list").iter();
                let agreeing = schemas
                    .filter(|s| agrees(root, s, value, at).is_ok())
                    .count();
                agreeing == 1 || agreeing > 1 && keyword == "anyOf"
            }
            "properties" => {
                for (name, schema) in said.as_object().expect("an object") {
                    if let Some(value) = value.get(name) {
                        agrees(root, schema, value, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (i, value) in value.as_array().into_iter().flatten().enumerate() {
                    agrees(root, said, value, &format!("{at}[{i}]"))?;
                }
                true
            }
            "$schema" | "$defs" | "title" | "description" => true,
            _ => panic!("the schema has {keyword}, which this test does not know"),
        };
        if !holds {
            return Err(format!("{at}: {value} does not have the {keyword} {said}"));
        }
    }
    Ok(())
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => panic!("the schema has the type {name}"),
    }
}
