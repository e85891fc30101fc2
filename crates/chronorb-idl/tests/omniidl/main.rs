//! Our model and omniidl's, of the same files: names, repository identifiers, types, values.
//!
//! omniidl prints what it has understood by a back end of ours, `interop/omniidl/listing.py`.

mod listing;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use chronorb_idl::{Options, compile};

/// Where Debian's packages `omniorb-idl` and `omniidl` put the IDL of omniORB and of the services.
const OMNIORB: &str = "/usr/share/idl/omniORB";

/// Files of the services that no compiler of CORBA 3 takes, and why. Both of us have to refuse them.
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

#[test]
fn the_files_of_omniorb_mean_the_same() {
    compare(&idl_files(OMNIORB.as_ref()), &[OMNIORB.into()]);
}

#[test]
fn the_object_services_mean_the_same() {
    let services = Path::new(OMNIORB).join("COS");
    let search = [services.clone(), OMNIORB.into(), repository("idl/omg")];
    compare(&idl_files(&services), &search);
}

#[test]
fn our_files_mean_the_same() {
    let search = [repository("idl/omg"), repository("idl")];
    for folder in &search {
        compare(&idl_files(folder), &search);
    }
}

fn compare(files: &[PathBuf], search: &[PathBuf]) {
    if !omniidl_is_there() {
        return;
    }
    assert!(!files.is_empty());
    let mut differences = String::new();
    for file in files {
        differences += &difference(file, search);
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// What the two make differently of a file, as text.
fn difference(file: &Path, search: &[PathBuf]) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    let options = Options {
        include_dirs: search.to_vec(),
        // Files of omniORB ask for it where they need what compilers of CORBA 2 do not have.
        defines: vec![("__OMNIIDL__".to_owned(), "1".to_owned())],
    };
    let ours = compile(file, &options);
    let theirs = omniidl(file, search);
    if let Some((_, why)) = WRONG.iter().find(|(wrong, _)| *wrong == name) {
        return match (ours, theirs) {
            (Err(_), Err(_)) => String::new(),
            (ours, theirs) => format!(
                "{name} {why}; refused by us: {}, by omniidl: {}\n",
                ours.is_err(),
                theirs.is_err()
            ),
        };
    }
    let ours = match ours {
        Ok(compilation) => compilation.model,
        Err(failure) => return format!("{name} does not compile:\n{failure}\n"),
    };
    let theirs = match theirs {
        Ok(listing) => listing,
        Err(errors) => return format!("{name} is refused by omniidl:\n{errors}\n"),
    };
    let ours: BTreeSet<String> = listing::of(&ours).into_iter().collect();
    let theirs: BTreeSet<String> = theirs.lines().map(str::to_owned).collect();
    assert!(
        !theirs.is_empty() || name == "orb.idl",
        "{name} defines nothing"
    );
    let mut text = String::new();
    for line in ours.difference(&theirs) {
        text += &format!("{name}: ours:   {line}\n");
    }
    for line in theirs.difference(&ours) {
        text += &format!("{name}: theirs: {line}\n");
    }
    text
}

/// The listing, or the errors.
fn omniidl(file: &Path, search: &[PathBuf]) -> Result<String, String> {
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

/// Whether it is; where it has to be, that it is.
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
