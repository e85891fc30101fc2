//! Comparison of chronorb's and omniidl's models of the same files: names, repository identifiers,
//! types, values.
//!
//! omniidl prints its model by the back end `interop/omniidl/listing.py`.

mod listing;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use chronorb_idl::{Compilation, Failure, Options, codes, compile};

/// The directory of omniORB's and the services' IDL files in Debian's packages `omniorb-idl` and
/// `omniidl`.
const OMNIORB: &str = "/usr/share/idl/omniORB";

/// Files of the services that no compiler of CORBA 3 accepts, with the reasons. Both compilers must
/// refuse them.
const WRONG: [(&str, &str); 9] = [
    (
        "CosTSPortability.idl",
        "uses CORBA::Environment, which is no type",
    ),
    ("NRService.idl", "includes Security.idl"),
    ("SECIOP.idl", "includes Security.idl"),
    ("SSLIOP.idl", "includes Security.idl"),
    ("Security.idl", "struct Right has a member `right`"),
    ("SecurityAdmin.idl", "includes Security.idl"),
    ("SecurityLevel1.idl", "includes Security.idl"),
    ("SecurityLevel2.idl", "includes Security.idl"),
    ("SecurityReplaceable.idl", "includes Security.idl"),
];

/// Files of the corpus that omniidl accepts and interprets differently, with the reasons.
const DIFFERENT: [(&str, &str); 2] = [
    (
        "byte_order_mark.idl",
        "omniidl finds nothing in a file that begins with the mark",
    ),
    (
        "inheritance_through_typedefs.idl",
        "omniidl lists typedefs as bases, we what they stand for",
    ),
];

#[test]
fn the_files_of_omniorb_mean_the_same() {
    compare(&idl_files(OMNIORB.as_ref()), &[OMNIORB.into()]);
}

#[test]
fn the_object_services_mean_the_same() {
    let services = Path::new(OMNIORB).join("COS");
    let search = [
        services.clone(),
        OMNIORB.into(),
        repository("crates/chronorb-idl/idl"),
    ];
    let (wrong, right): (Vec<_>, Vec<_>) = idl_files(&services)
        .into_iter()
        .partition(|file| WRONG.iter().any(|(wrong, _)| file.ends_with(wrong)));
    compare(&right, &search);
    if omniidl_is_there() {
        assert_eq!(wrong.len(), WRONG.len());
        for file in wrong {
            assert!(ours(&file, &search).is_err(), "we take {file:?}");
            assert!(theirs(&file, &search).is_err(), "omniidl takes {file:?}");
        }
    }
}

#[test]
fn our_files_mean_the_same() {
    let search = [
        "crates/chronorb-idl/idl",
        "crates/chronorb-lab/idl",
        "interop/chronorb-interop/idl",
    ]
    .map(repository);
    for folder in &search {
        compare(&idl_files(folder), &search);
    }
}

#[test]
fn what_omniidl_takes_of_the_corpus_means_the_same() {
    if !omniidl_is_there() {
        return;
    }
    let search = [
        repository("crates/chronorb-idl/tests/include"),
        repository("crates/chronorb-idl/idl"),
    ];
    let (mut taken, mut differences) = (0, String::new());
    for file in idl_files(&repository("crates/chronorb-idl/tests/accept")) {
        if DIFFERENT.iter().any(|(other, _)| file.ends_with(other)) {
            continue;
        }
        if let Ok(theirs) = theirs(&file, &search) {
            taken += 1;
            differences += &difference(&file, &theirs, &search);
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
    // The others have annotations, components, maps, sequences as parameters, or other features of
    // CORBA 3 and IDL 4.
    assert!(taken >= 150, "omniidl takes {taken} files only");
}

#[test]
fn what_omniidl_refuses_is_warned_of() {
    if !omniidl_is_there() {
        return;
    }
    let search = [
        "crates/chronorb-idl/tests/include",
        "crates/chronorb-idl/tests/portable",
        "crates/chronorb-idl/idl",
        "crates/chronorb-build/generated-tests/idl",
        "crates/chronorb-build/extern-tests/idl",
        "crates/chronorb-build/no-alloc-tests/idl",
        "crates/chronorb-lab/idl",
        "interop/chronorb-interop/idl",
    ]
    .map(repository);
    let more = ["accept", "lenient"].map(|name| format!("crates/chronorb-idl/tests/{name}"));
    let folders = search
        .iter()
        .cloned()
        .chain(more.iter().map(|path| repository(path)));
    let (mut refused, mut wrong) = (0, String::new());
    for file in folders.flat_map(|folder| idl_files(&folder)) {
        // It has definitions for this compiler alone, which a macro of it chooses.
        if file.ends_with("built_in_macros.idl") {
            continue;
        }
        let Ok(compilation) = ours(&file, &search) else {
            continue;
        };
        let name = file.display();
        let about = |text: &'static str| {
            let warnings = compilation.warnings.iter();
            warnings.filter(move |found| found.notes.iter().any(|note| note.contains(text)))
        };
        let lenient = |code| codes::LENIENT.contains(code);
        match theirs(&file, &search) {
            Ok(_) => {
                for found in about("omniidl 4.3 refuses it").chain(about("omniidl 4.3 and JacORB"))
                {
                    if found.notes[0].ends_with("refuses it")
                        || found.notes[0].ends_with("refuse it")
                    {
                        wrong += &format!("{name}: omniidl takes {}\n", found.message);
                    }
                }
            }
            Err(errors) => {
                refused += 1;
                let is_lenient = compilation
                    .warnings
                    .iter()
                    .any(|found| lenient(&found.code));
                if about("omniidl").next().is_none() && !is_lenient {
                    wrong += &format!("{name} is refused by omniidl:\n{errors}\n");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(refused >= 120, "omniidl refuses {refused} files only");
}

fn compare(files: &[PathBuf], search: &[PathBuf]) {
    if !omniidl_is_there() {
        return;
    }
    assert!(!files.is_empty());
    let mut differences = String::new();
    for file in files {
        differences += &match theirs(file, search) {
            Ok(theirs) => difference(file, &theirs, search),
            Err(errors) => format!("{} is refused by omniidl:\n{errors}\n", file.display()),
        };
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// Returns the difference between the two models of a file as text.
fn difference(file: &Path, theirs: &str, search: &[PathBuf]) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    let ours = match ours(file, search) {
        Ok(compilation) => listing::of(&compilation.model),
        Err(failure) => return format!("{name} does not compile:\n{failure}\n"),
    };
    let ours: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
    let theirs: BTreeSet<&str> = theirs.lines().collect();
    let mut text = String::new();
    for line in ours.difference(&theirs) {
        text += &format!("{name}: ours:   {line}\n");
    }
    for line in theirs.difference(&ours) {
        text += &format!("{name}: theirs: {line}\n");
    }
    text
}

fn ours(file: &Path, search: &[PathBuf]) -> Result<Compilation, Failure> {
    let options = Options {
        strict: false,
        portable: true,
        include_dirs: search.to_vec(),
        // Files of omniORB test this macro if they need extensions of omniidl.
        defines: vec![("__OMNIIDL__".to_owned(), "1".to_owned())],
    };
    compile(file, &options)
}

/// Returns omniidl's listing, or its errors.
fn theirs(file: &Path, search: &[PathBuf]) -> Result<String, String> {
    let mut command = Command::new("omniidl");
    command.arg("-p").arg(repository("interop/omniidl"));
    command.args(["-b", "listing", "-nf"]);
    for folder in search {
        command.arg("-I").arg(folder);
    }
    let output = command.arg(file).output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns whether omniidl is installed. Panics if it is missing and required.
fn omniidl_is_there() -> bool {
    let there = Command::new("omniidl").arg("-V").output().is_ok() && Path::new(OMNIORB).is_dir();
    if !there {
        let why =
            "the comparison with omniidl: it is not installed, or the files of omniorb-idl are not";
        let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(!required, "CHRONORB_PEERS=required, but {why}");
        println!("NOT RUN: {why}");
    }
    there
}

fn idl_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "idl"))
        .collect();
    files.sort();
    files
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}
