//! Small IDL files: those in `accept/` compile; those in `reject/` get the error that their first
//! line names.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::{Options, Severity, compile};

#[test]
fn accepted_files_compile_without_a_warning() {
    let mut wrong = String::new();
    for file in files("accept") {
        match compile(&file, &options()) {
            Ok(compilation) => wrong += &compilation.warnings.render(false),
            Err(failure) => wrong += &format!("{}:\n{failure}", file.display()),
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn rejected_files_get_the_expected_error_and_no_other() {
    let mut wrong = String::new();
    for file in files("reject") {
        let text = fs::read_to_string(&file).unwrap();
        let expected = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("// expect: "))
            .unwrap_or_else(|| panic!("{} does not begin with `// expect:`", file.display()));
        let Err(failure) = compile(&file, &options()) else {
            wrong += &format!("{} compiles\n", file.display());
            continue;
        };
        let found: Vec<String> = failure
            .diagnostics
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .map(|error| {
                let at = &error.labels[0].location;
                format!("{} {}:{}", error.code, at.line, at.column)
            })
            .collect();
        if found != [expected] {
            let file = file.display();
            wrong += &format!("{file}: {expected} expected, found {found:?}\n{failure}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn options() -> Options {
    Options {
        include_dirs: vec![folder("include")],
        ..Options::default()
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn files(name: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "idl"))
        .collect();
    files.sort();
    assert!(files.len() >= 250, "only {} files in {name}/", files.len());
    files
}
