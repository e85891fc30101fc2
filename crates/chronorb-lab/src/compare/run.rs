//! The figures of one run, read from a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::claims::Said;
use crate::error::LabError;

/// What a file says of one run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The name of the file.
    pub(super) name: String,
    pub(super) experiment: String,
    pub(super) rows: Vec<Fields>,
    pub(super) claims: Vec<Said>,
    pub(super) environment: Fields,
    pub(super) plan: Fields,
}

/// Fields by their names. Those of an object within have its name and a dot before theirs.
pub(super) type Fields = BTreeMap<String, Field>;

/// What a field holds; one that holds nothing (`null`) is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    /// A number, and whether it is whole.
    Number(f64, bool),
    /// A text or a truth.
    Word(String),
    /// A list, as JSON.
    List(String),
}

impl Run {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, LabError> {
        let name = path.display().to_string();
        let octets = fs::read(path);
        let octets = octets.map_err(LabError::work(format!("{name} cannot be read")))?;
        let value = serde_json::from_slice(&octets);
        let value = value.map_err(LabError::work(format!("{name} is no JSON")))?;
        Self::parse(&name, &value)
    }

    /// Reads the figures of an experiment.
    pub(super) fn parse(name: &str, value: &Value) -> Result<Self, LabError> {
        let missing = |missing: &str| {
            LabError::Request(format!(
                "{name} has no figures of an experiment: {missing}. `chronorb lab EXPERIMENT \
                 --json` writes them, and each report has them beside it"
            ))
        };
        let experiment = value["experiment"].as_str();
        let experiment = experiment.ok_or_else(|| missing("its \"experiment\" is no text"))?;
        let rows = value["rows"].as_array();
        let rows = rows.ok_or_else(|| missing("its \"rows\" are no list"))?;
        if !rows.iter().all(Value::is_object) {
            return Err(missing("not all of its \"rows\" are objects"));
        }
        let claims = value["claims"].as_array().into_iter().flatten();
        Ok(Self {
            name: name.to_owned(),
            experiment: experiment.to_owned(),
            rows: rows.iter().map(fields).collect(),
            claims: claims.filter_map(Said::parse).collect(),
            environment: fields(&value["environment"]),
            plan: fields(&value["plan"]),
        })
    }
}

impl Field {
    /// For people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Number(number, _) => number.to_string(),
            Self::Word(text) | Self::List(text) => text.clone(),
        }
    }
}

/// All that an object holds.
fn fields(value: &Value) -> Fields {
    let mut fields = Fields::new();
    gather(&mut fields, "", value);
    fields
}

fn gather(fields: &mut Fields, name: &str, value: &Value) {
    let field = match value {
        Value::Null => return,
        Value::Object(members) => {
            for (member, value) in members {
                let name = match name {
                    "" => member.clone(),
                    outer => format!("{outer}.{member}"),
                };
                gather(fields, &name, value);
            }
            return;
        }
        Value::Bool(truth) => Field::Word(truth.to_string()),
        Value::Number(number) => match number.as_f64() {
            Some(float) => Field::Number(float, !number.is_f64()),
            None => return,
        },
        Value::String(text) => Field::Word(text.clone()),
        Value::Array(_) => Field::List(value.to_string()),
    };
    fields.insert(name.to_owned(), field);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_within_are_flattened_and_nothing_is_left_out() {
        let run = Run::parse(
            "a.json",
            &json!({
                "experiment": "whitebox",
                "rows": [{"case": "twoway", "system_calls": {"sendto": 1.0, "more": {"deep": 2}}, "none": null}],
                "plan": {"sizes": [1, 10]},
            }),
        )
        .unwrap();
        let row: Vec<_> = run.rows[0].iter().collect();
        assert_eq!(row.len(), 3);
        assert_eq!(run.rows[0]["case"], Field::Word("twoway".to_owned()));
        assert_eq!(
            run.rows[0]["system_calls.sendto"],
            Field::Number(1.0, false)
        );
        assert_eq!(
            run.rows[0]["system_calls.more.deep"],
            Field::Number(2.0, true)
        );
        assert_eq!(run.plan["sizes"].shown(), "[1,10]");
        assert!(run.environment.is_empty() && run.claims.is_empty());
    }

    #[test]
    fn what_is_not_of_an_experiment_is_said_to_be_so() {
        for (value, part) in [
            (json!([1, 2]), "\"experiment\" is no text"),
            (
                json!({"experiment": 3, "rows": []}),
                "\"experiment\" is no text",
            ),
            (json!({"experiment": "waits"}), "\"rows\" are no list"),
            (json!({"experiment": "waits", "rows": [1]}), "are objects"),
        ] {
            let error = Run::parse("x.json", &value).unwrap_err().to_string();
            assert!(
                error.starts_with("x.json has no figures") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_that_is_none_or_no_json_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let error = Run::read(&path).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
        for rubbish in [&b"{\"experiment\": "[..], b"\xff\xfe", b"", b"[[1e999]]"] {
            fs::write(&path, rubbish).unwrap();
            let error = Run::read(&path).unwrap_err();
            assert!(error.to_string().contains("no JSON"), "{error}");
            assert!(error.to_string().contains("a.json"), "{error}");
        }
    }
}
