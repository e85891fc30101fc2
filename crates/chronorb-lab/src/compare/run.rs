//! The figures of one run, read from a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::claims::RecordedClaim;
use crate::error::LabError;

/// The contents of a file of figures.
#[derive(Clone, Debug)]
pub(super) struct RecordedRun {
    /// The name of the file.
    pub(super) name: String,
    pub(super) experiment: String,
    pub(super) rows: Vec<Fields>,
    pub(super) claims: Vec<RecordedClaim>,
    pub(super) environment: Fields,
    pub(super) plan: Fields,
}

/// Fields by their names. Those of an inner object have its name and a dot before theirs.
pub(super) type Fields = BTreeMap<String, Field>;

/// The value of a field. Fields with `null` are left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    /// A number, and whether it is whole.
    Number(f64, bool),
    /// A text or a truth value.
    Word(String),
    /// A list, as JSON.
    List(String),
}

impl RecordedRun {
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
            claims: claims.filter_map(RecordedClaim::parse).collect(),
            environment: fields(&value["environment"]),
            plan: fields(&value["plan"]),
        })
    }
}

impl Field {
    /// Formats the value for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Number(number, _) => number.to_string(),
            Self::Word(text) | Self::List(text) => text.clone(),
        }
    }
}

/// Returns all fields of an object, with those of inner objects.
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
    fn inner_objects_are_flattened() {
        let run = RecordedRun::parse(
            "a.json",
            &json!({
                "experiment": "whitebox",
                "rows": [{
                    "case": "twoway",
                    "system_calls": {"sendto": 1.0, "more": {"deep": 2}},
                    "none": null,
                }],
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
    fn files_of_no_experiment_are_refused() {
        for (value, part) in [
            (json!([1, 2]), "\"experiment\" is no text"),
            (
                json!({"experiment": 3, "rows": []}),
                "\"experiment\" is no text",
            ),
            (json!({"experiment": "waits"}), "\"rows\" are no list"),
            (json!({"experiment": "waits", "rows": [1]}), "are objects"),
        ] {
            let error = RecordedRun::parse("x.json", &value)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("x.json has no figures") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let error = RecordedRun::read(&path).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
        for rubbish in [&b"{\"experiment\": "[..], b"\xff\xfe", b"", b"[[1e999]]"] {
            fs::write(&path, rubbish).unwrap();
            let error = RecordedRun::read(&path).unwrap_err();
            assert!(error.to_string().contains("no JSON"), "{error}");
            assert!(error.to_string().contains("a.json"), "{error}");
        }
    }
}
