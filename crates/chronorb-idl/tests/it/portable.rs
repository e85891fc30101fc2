//! Warnings of IDL that other compilers refuse: files in `portable/`, whose first line names them.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::{Diagnostic, Options, compile, compile_text};

#[test]
fn each_feature_gets_its_warning_where_it_stands() {
    let mut wrong = String::new();
    let files = files();
    assert!(files.len() > 75, "only {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap();
        let expected = first
            .trim_start_matches('\u{feff}')
            .strip_prefix("// warns: ");
        let found = match compile(&file, &options()) {
            Ok(compilation) => compilation.warnings.iter().map(place).collect::<Vec<_>>(),
            Err(failure) => vec![failure.to_string()],
        };
        let found = match found.as_slice() {
            [] => "nothing".to_owned(),
            found => found.join(", "),
        };
        if expected != Some(&found) {
            wrong += &format!("{}: {expected:?} expected, found {found}\n", file.display());
        }
        // Without the option there is no such warning.
        let compilation = compile(&file, &Options::default()).unwrap();
        assert!(
            compilation
                .warnings
                .iter()
                .all(|found| found.code < "W0030")
        );
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_feature_is_told_once_for_each_file_with_its_number_of_uses() {
    let text = "#pragma prefix \"example.org\"\nstruct S { @key long a; @key long b; };\n";
    let warnings = compile_text("main.idl", text, &options()).unwrap().warnings;
    let found: Vec<_> = warnings.iter().map(place).collect();
    assert_eq!(found, ["W0031 2:12"]);
    let shown = warnings.render(false);
    for part in [
        "omniidl 4.3 and JacORB 3.9 refuse it",
        "2 uses in this file",
        "__CHRONORB_IDL__",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn built_in_files_get_no_warning() {
    let text = "#include <CosNotifyComm.idl>\n#include <PortableServer.idl>\n";
    let warnings = compile_text("main.idl", text, &options()).unwrap().warnings;
    assert!(warnings.is_empty(), "{}", warnings.render(false));
}

fn place(finding: &Diagnostic) -> String {
    let at = &finding.labels[0].location;
    format!("{} {}:{}", finding.code, at.line, at.column)
}

fn options() -> Options {
    Options {
        portable: true,
        ..Options::default()
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/portable");
    let entries = folder.read_dir().unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
