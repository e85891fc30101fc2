//! Small IDL files: those in `accept/` compile; those in `reject/` get the error that their first
//! line names, those in `lenient/` the warning.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::{Diagnostic, Options, Severity, compile};

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
            .map(place)
            .collect();
        if found != [expected] {
            let file = file.display();
            wrong += &format!("{file}: {expected} expected, found {found:?}\n{failure}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn lenient_files_get_the_expected_warning_which_is_an_error_if_strict() {
    let mut wrong = String::new();
    for file in files("lenient") {
        let text = fs::read_to_string(&file).unwrap();
        let expected = text.lines().next().unwrap().strip_prefix("// warns: ");
        let found: Vec<String> = match compile(&file, &options()) {
            Ok(compilation) => compilation.warnings.iter().map(place).collect(),
            Err(failure) => vec![failure.to_string()],
        };
        if found.iter().map(String::as_str).ne(expected) {
            wrong += &format!(
                "{}: {expected:?} expected, found {found:?}\n",
                file.display()
            );
        }
        let options = Options {
            strict: true,
            ..options()
        };
        match compile(&file, &options) {
            Ok(_) => wrong += &format!("{}: not an error if strict\n", file.display()),
            Err(failure) => {
                let mut findings = failure.diagnostics.iter();
                assert!(findings.all(|finding| finding.severity == Severity::Error));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Returns the code and the place of a finding.
fn place(finding: &Diagnostic) -> String {
    let at = &finding.labels[0].location;
    format!("{} {}:{}", finding.code, at.line, at.column)
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
    let least = if name == "lenient" { 7 } else { 250 };
    assert!(
        files.len() >= least,
        "only {} files in {name}/",
        files.len()
    );
    files
}
