//! Wrong uses of generated code, and the compiler's errors.
//!
//! The compiler is run alone, with the libraries that cargo has built for this program: a project
//! of its own would build all of them again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[test]
fn wrong_uses_of_generated_code_do_not_compile() {
    let libraries = Libraries::find();
    let mut files: Vec<PathBuf> = fs::read_dir(package().join("tests/refused"))
        .expect("the folder exists")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let name = file.file_stem().expect("it is a file").to_string_lossy();
        let errors = libraries.compile(&file).expect_err(&name);
        insta::assert_snapshot!(&*name, normalized(&errors));
    }
}

/// The libraries of which a user's crate is made.
struct Libraries {
    folder: PathBuf,
    chronorb: PathBuf,
    generated: PathBuf,
}

impl Libraries {
    /// Returns the libraries beside this program that were built last and fit each other: they
    /// compile a right use.
    fn find() -> Self {
        let program = env::current_exe().expect("it has a path");
        let folder = program.parent().expect("it is in a folder").to_owned();
        let right_use = package().join("tests/it/support/right_use.rs");
        let mut errors = Vec::new();
        for generated in newest_first(&folder, "libchronorb_generated_tests-") {
            for chronorb in newest_first(&folder, "libchronorb-") {
                let libraries = Self {
                    folder: folder.clone(),
                    chronorb,
                    generated: generated.clone(),
                };
                match libraries.compile(&right_use) {
                    Ok(()) => return libraries,
                    Err(error) => errors.push(error),
                }
            }
        }
        panic!("no libraries compile a right use:\n{}", errors.join("\n"));
    }

    /// Compiles a file as a user's crate, or returns the compiler's errors.
    fn compile(&self, file: &Path) -> Result<(), String> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .current_dir(package())
            .args([
                "--edition=2024",
                "--crate-type=bin",
                "--emit=metadata",
                concat!("--out-dir=", env!("CARGO_TARGET_TMPDIR")),
            ])
            .arg(format!("-Ldependency={}", self.folder.display()))
            .arg(format!("--extern=chronorb={}", self.chronorb.display()))
            .arg(format!(
                "--extern=chronorb_generated_tests={}",
                self.generated.display()
            ))
            .arg(file.strip_prefix(package()).expect("it is of this package"))
            .output()
            .expect("rustc can be run");
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn newest_first(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it can be read").flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(prefix) && name.ends_with(".rlib")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Returns errors without numbers of lines, and without what differs between machines: the folders
/// of the workspace and of generated code, and the source of the standard library.
fn normalized(errors: &str) -> String {
    let workspace = package()
        .ancestors()
        .nth(3)
        .expect("it is in the workspace");
    let workspace = format!("{}/", workspace.display());
    let mut lines = Vec::new();
    let mut is_standard = false;
    for line in errors.lines() {
        let body = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        if let Some(place) = body
            .strip_prefix("--> ")
            .or_else(|| body.strip_prefix("::: "))
        {
            let path = place.split(':').next().unwrap_or(place);
            is_standard = path.contains("/library/");
            let path = path.strip_prefix(&workspace).unwrap_or(path);
            let path = ["/library/", "/out/"]
                .iter()
                .find_map(|folder| Some(path.split_once(folder)?.1))
                .unwrap_or(path);
            lines.push(format!(" --> {path}"));
        } else if body.starts_with(['|', '~', '+']) {
            if !is_standard {
                lines.push(format!("  {body}"));
            }
        } else if LONG_TYPES.iter().all(|note| !body.starts_with(note)) {
            lines.push(line.trim().to_owned());
        }
    }
    lines.join("\n")
}

/// Notes on a file, of another name each time, that has what is too long for the terminal.
const LONG_TYPES: [&str; 2] = [
    "= note: the full name for the type has been written to",
    "= note: consider using `--verbose` to print the full type name",
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
