//! Rust names that are given outside of the IDL: by the builder, and by a file beside the IDL.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use chronorb_idl::model::{Annotation, ConstValue, DefKind, Model, Operation, Param};

use crate::builder::BuildError;

/// The largest file with renames in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Returns the paths of the files with renames beside the IDL files of a model: `quoter.rename`
/// beside `quoter.idl`. Most have none.
pub fn rename_files(model: &Model) -> Vec<PathBuf> {
    let files = model.files_on_disk();
    let files = files.map(|file| file.with_extension("rename"));
    files.filter(|path| path.is_file()).collect()
}

/// Returns the model with its renames as annotations `@rust::name`, and the names that the given
/// renames used. A given rename takes precedence over one of a file, and that over an annotation.
pub(crate) fn renamed<'m>(
    model: &'m Model,
    given: &[(String, String)],
) -> Result<(Cow<'m, Model>, HashSet<String>), BuildError> {
    let mut model = Cow::Borrowed(model);
    for path in rename_files(&model) {
        let entries = read(&path)?;
        let used = apply(model.to_mut(), &entries);
        if let Some((idl, _)) = entries.iter().find(|(idl, _)| !used.contains(idl)) {
            return Err(BuildError::UnusedRename {
                idl: idl.clone(),
                file: Some(path),
            });
        }
    }
    if given.is_empty() {
        return Ok((model, HashSet::new()));
    }
    let used = apply(model.to_mut(), given);
    Ok((model, used))
}

/// Reads lines of the form `::Market::Quoter::getQuote = fetch`. Comments begin with `#`.
fn read(path: &Path) -> Result<Vec<(String, String)>, BuildError> {
    let cannot_read = |source| BuildError::ReadRenames {
        path: path.to_owned(),
        source,
    };
    if fs::metadata(path).map_err(cannot_read)?.len() > MAX_FILE {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB");
        return Err(cannot_read(error));
    }
    let text = fs::read_to_string(path).map_err(cannot_read)?;
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
        if line.is_empty() {
            continue;
        }
        let bad = |what| BuildError::BadRename {
            path: path.to_owned(),
            line: number + 1,
            what,
        };
        let (idl, rust) = line.split_once('=').ok_or_else(|| bad("has no `=`"))?;
        let (idl, rust) = (idl.trim(), rust.trim());
        if idl.is_empty() || rust.is_empty() {
            return Err(bad("has no name on one side of `=`"));
        }
        if !seen.insert(absolute(idl)) {
            return Err(bad("renames a second time"));
        }
        entries.push((idl.to_owned(), rust.to_owned()));
    }
    Ok(entries)
}

/// Adds the annotations, and returns the names that the model has.
fn apply(model: &mut Model, entries: &[(String, String)]) -> HashSet<String> {
    let names = entries.iter();
    let names = names.map(|(idl, rust)| (absolute(idl), (idl.as_str(), rust.as_str())));
    let mut renamer = Renamer {
        names: names.collect(),
        used: HashSet::new(),
    };
    for definition in &mut model.definitions {
        let path = format!("::{}", definition.scoped_name.join("::"));
        renamer.rename(path.clone(), &mut definition.annotations);
        renamer.parts(&path, &mut definition.kind);
    }
    renamer.used
}

fn absolute(name: &str) -> String {
    format!("::{}", name.trim_start_matches("::"))
}

/// The renames of a model that is being changed.
struct Renamer<'r> {
    /// By absolute name: the name as it was given, and the Rust name.
    names: HashMap<String, (&'r str, &'r str)>,
    /// The names that were found, as they were given.
    used: HashSet<String>,
}

impl Renamer<'_> {
    fn rename(&mut self, path: String, annotations: &mut Vec<Annotation>) {
        let Some((given, rust)) = self.names.get(&path) else {
            return;
        };
        self.used.insert((*given).to_owned());
        // The first annotation of a name counts.
        annotations.insert(
            0,
            Annotation {
                name: "rust::name".to_owned(),
                params: vec![("value".to_owned(), ConstValue::String((*rust).to_owned()))],
            },
        );
    }

    /// Renames what has a name within a definition and is none itself.
    fn parts(&mut self, path: &str, kind: &mut DefKind) {
        let mut part = |name: &str, annotations: &mut Vec<Annotation>| {
            self.rename(format!("{path}::{name}"), annotations);
        };
        match kind {
            DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => {
                for member in members {
                    part(&member.name, &mut member.annotations);
                }
            }
            DefKind::Union(union) => {
                for case in &mut union.cases {
                    part(&case.member.name, &mut case.member.annotations);
                }
            }
            DefKind::Enum { enumerators, .. } => {
                for enumerator in enumerators {
                    part(&enumerator.name, &mut enumerator.annotations);
                }
            }
            DefKind::Bitmask { flags, .. } => {
                for flag in flags {
                    part(&flag.name, &mut flag.annotations);
                }
            }
            DefKind::Bitset { fields, .. } => {
                for field in fields {
                    if let Some(name) = &field.name {
                        part(name, &mut field.annotations);
                    }
                }
            }
            DefKind::Interface(interface) => {
                for attribute in &mut interface.attributes {
                    part(&attribute.name, &mut attribute.annotations);
                }
                self.operations(path, &mut interface.operations);
            }
            DefKind::Value(value) => {
                for state in &mut value.state {
                    part(&state.member.name, &mut state.member.annotations);
                }
                for attribute in &mut value.attributes {
                    part(&attribute.name, &mut attribute.annotations);
                }
                for factory in &mut value.factories {
                    let path = format!("{path}::{}", factory.name);
                    self.rename(path.clone(), &mut factory.annotations);
                    self.params(&path, &mut factory.params);
                }
                self.operations(path, &mut value.operations);
            }
            _ => {}
        }
    }

    fn operations(&mut self, path: &str, operations: &mut [Operation]) {
        for operation in operations {
            let path = format!("{path}::{}", operation.name);
            self.rename(path.clone(), &mut operation.annotations);
            self.params(&path, &mut operation.params);
        }
    }

    fn params(&mut self, path: &str, params: &mut [Param]) {
        for param in params {
            self.rename(format!("{path}::{}", param.name), &mut param.annotations);
        }
    }
}
