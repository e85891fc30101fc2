//! Comparison of chronorb's and omniidl's models of the same files: names, repository identifiers,
//! types, values.
//!
//! omniidl prints its model by the back end `interop/omniidl/listing.py`, and reads many files in
//! one run by `each.py`.

mod generated;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use chronorb_idl::{Compilation, Failure, Options, codes, compile};

/// The directory of omniORB's and the services' IDL files in Debian's packages `omniorb-idl` and
/// `omniidl`.
const OMNIORB: &str = "/usr/share/idl/omniORB";

/// The folders of the repository that are searched for included files.
const SEARCH: [&str; 8] = [
    "crates/chronorb-idl/tests/include",
    "crates/chronorb-idl/tests/portable",
    "crates/chronorb-idl/idl",
    "crates/chronorb-build/generated-tests/idl",
    "crates/chronorb-build/extern-tests/idl",
    "crates/chronorb-build/no-alloc-tests/idl",
    "crates/chronorb-lab/idl",
    "interop/chronorb-interop/idl",
];

/// The folders of the repository with more files.
const MORE: [&str; 2] = [
    "crates/chronorb-idl/tests/accept",
    "crates/chronorb-idl/tests/lenient",
];

/// The results of omniidl for the files of the repository, which several tests use.
static REPOSITORY: LazyLock<Results> = LazyLock::new(|| {
    let folders = SEARCH.iter().chain(&MORE);
    let files: Vec<_> = folders
        .flat_map(|path| idl_files(&repository(path)))
        .collect();
    theirs(&files, &SEARCH.map(repository))
});

/// The listing of omniidl for each file, or its errors.
type Results = BTreeMap<PathBuf, Result<String, String>>;

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
    if !omniidl_is_there() {
        return;
    }
    let (files, search) = (idl_files(OMNIORB.as_ref()), [OMNIORB.into()]);
    compare(&files, &theirs(&files, &search), &search);
}

#[test]
fn the_object_services_mean_the_same() {
    if !omniidl_is_there() {
        return;
    }
    let services = Path::new(OMNIORB).join("COS");
    let search = [
        services.clone(),
        OMNIORB.into(),
        repository("crates/chronorb-idl/idl"),
    ];
    let files = idl_files(&services);
    let results = theirs(&files, &search);
    let (wrong, right): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| WRONG.iter().any(|(wrong, _)| file.ends_with(wrong)));
    compare(&right, &results, &search);
    assert_eq!(wrong.len(), WRONG.len());
    for file in wrong {
        assert!(ours(&file, &search).is_err(), "we take {file:?}");
        assert!(results[&file].is_err(), "omniidl takes {file:?}");
    }
}

#[test]
fn our_files_mean_the_same() {
    if !omniidl_is_there() {
        return;
    }
    for path in [
        "crates/chronorb-idl/idl",
        "crates/chronorb-lab/idl",
        "interop/chronorb-interop/idl",
    ] {
        let files = idl_files(&repository(path));
        compare(&files, &REPOSITORY, &SEARCH.map(repository));
    }
}

#[test]
fn what_omniidl_takes_of_the_corpus_means_the_same() {
    if !omniidl_is_there() {
        return;
    }
    let search = SEARCH.map(repository);
    let (mut taken, mut differences) = (0, String::new());
    for file in idl_files(&repository("crates/chronorb-idl/tests/accept")) {
        if DIFFERENT.iter().any(|(other, _)| file.ends_with(other)) {
            continue;
        }
        if let Ok(theirs) = &REPOSITORY[&file] {
            taken += 1;
            differences += &difference(&file, theirs, &search);
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
    let search = SEARCH.map(repository);
    let (mut refused, mut wrong) = (0, String::new());
    for (file, theirs) in REPOSITORY.iter() {
        // It has definitions for this compiler alone, which a macro of it chooses.
        if file.ends_with("built_in_macros.idl") {
            continue;
        }
        let Ok(compilation) = ours(file, &search) else {
            continue;
        };
        let name = file.display();
        let about = |text: &'static str| {
            let warnings = compilation.warnings.iter();
            warnings.filter(move |found| found.notes.iter().any(|note| note.contains(text)))
        };
        let lenient = |code| codes::LENIENT.contains(code);
        match theirs {
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

fn compare(files: &[PathBuf], results: &Results, search: &[PathBuf]) {
    assert!(!files.is_empty());
    let mut differences = String::new();
    for file in files {
        differences += &match &results[file] {
            Ok(theirs) => difference(file, theirs, search),
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
        portable: true,
        include_dirs: search.to_vec(),
        // Files of omniORB test this macro if they need extensions of omniidl.
        defines: vec![("__OMNIIDL__".to_owned(), "1".to_owned())],
        ..Options::default()
    };
    compile(file, &options)
}

/// Returns the results of omniidl for these files. One process reads them all, as its start takes
/// more time than most files.
fn theirs(files: &[PathBuf], search: &[PathBuf]) -> Results {
    let mut command = Command::new("omniidl");
    command.arg("-p").arg(repository("interop/omniidl"));
    command.args(["-b", "each", "-nf"]);
    for folder in search {
        command.arg("-I").arg(folder);
    }
    for file in files {
        command.arg(format!("-Wb{}", file.to_str().unwrap()));
    }
    // The front end itself gets nothing.
    let output = command.arg("-").stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "omniidl fails: {errors}");
    let mut rest = &output.stdout[..];
    let results = files.iter().map(|file| {
        let length = rest.iter().position(|octet| *octet == b'\n').unwrap();
        let head = str::from_utf8(&rest[..length]).unwrap();
        let numbers: Vec<usize> = head.split(' ').map(|n| n.parse().unwrap()).collect();
        let [status, listing, errors] = numbers[..] else {
            panic!("{head} instead of three numbers");
        };
        let (listing, after) = rest[length + 1..].split_at(listing);
        let (errors, after) = after.split_at(errors);
        rest = after;
        let result = if status == 0 {
            Ok(String::from_utf8(listing.to_vec()).unwrap())
        } else {
            Err(String::from_utf8_lossy(errors).into_owned())
        };
        (file.clone(), result)
    });
    let results = results.collect();
    assert!(rest.is_empty(), "omniidl prints more");
    results
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
