//! The store in a directory of the file system.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use chronorb_naming::store::{Directory, DirectoryError, Store};
use fastrand::Rng;

use super::model::{Model, recover};

#[test]
fn a_store_in_a_directory_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("names");
    let mut random = Rng::with_seed(1);
    let mut model = Model::new();
    let mut identity = None;
    for round in 0..4 {
        let files = Directory::open(&path).expect("the directory is free");
        let (mut store, state) = recover(files).expect("a whole log");
        assert_eq!(state, model.changes());
        assert_eq!(
            *identity.get_or_insert_with(|| store.identity()),
            store.identity()
        );
        store
            .append(&model.group(&mut random))
            .expect("there is room");
        if round == 1 {
            let mut state = model.changes().into_iter();
            store.write_snapshot(&mut state).expect("there is room");
            store
                .append(&model.group(&mut random))
                .expect("there is room");
        }
    }
    let mut names: Vec<_> = fs::read_dir(&path)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["names.lock", "names.log"]);
}

#[test]
fn a_second_server_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Directory::open(folder.path()).expect("the directory is free");
    let second = Directory::open(folder.path());
    let error = second.expect_err("the directory is taken");
    assert!(matches!(error, DirectoryError::Locked(_)));
    assert!(
        error
            .to_string()
            .starts_with("another process uses the names in /")
    );
    drop(first);
    Directory::open(folder.path()).expect("the directory is free again");
    let nowhere = Directory::open(folder.path().join("a/b"));
    assert!(matches!(nowhere, Err(DirectoryError::Io { .. })));
}

/// Another user could replace the files of a directory that it owns or may write to.
#[test]
fn a_directory_of_others_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("names");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    drop(Directory::open(&path).expect("the directory is free"));
    assert_eq!(mode(&path), 0o700);
    fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("it is own");
    let error = Directory::open(&path).expect_err("every user may write to it");
    let told = error.to_string();
    assert!(
        told.ends_with("is not safe: every user may write to it"),
        "{told}"
    );
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is own");
    drop(Directory::open(&path).expect("the directory is free"));
    // Only root can give it to another user.
    if chown(&path, Some(65_534), None).is_ok() {
        let error = Directory::open(&path).expect_err("it belongs to another user");
        let told = error.to_string();
        assert!(
            told.ends_with("is not safe: it belongs to another user"),
            "{told}"
        );
    }
}

#[test]
fn no_file_of_a_store_is_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other");
    fs::write(&other, "other").expect("there is room");
    for name in ["names.lock", "names.log", "names.log.new"] {
        let path = folder.path().join(name.replace('.', "-"));
        fs::create_dir(&path).expect("there is room");
        symlink(&other, path.join(name)).expect("there is room");
        let store = Directory::open(&path).ok();
        let store = store.and_then(|files| Store::open(files, |_| Ok(())).ok());
        let written = store.map(|mut store| store.write_snapshot(&mut std::iter::empty()));
        assert!(!matches!(written, Some(Ok(_))), "{name}");
        assert_eq!(fs::read_to_string(&other).expect("it is there"), "other");
    }
}

#[test]
fn a_snapshot_is_wanted_when_it_halves_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Directory::open(folder.path()).expect("the directory is free");
    let mut store = Store::open(files, |_| Ok(())).expect("an empty directory");
    let mut random = Rng::with_seed(1);
    let group: Vec<_> = (0..2_000)
        .map(|_| Model::new().group(&mut random))
        .collect();
    let group = group.concat();
    let mut groups = 0;
    while !store.wants_snapshot() {
        store.append(&group).expect("there is room");
        groups += 1;
    }
    let (length, snapshot) = store.length();
    assert!(groups > 1 && length - snapshot >= 1 << 20);
    store
        .write_snapshot(&mut group.into_iter())
        .expect("there is room");
    assert!(!store.wants_snapshot());
    let (length, snapshot) = store.length();
    assert_eq!(length, snapshot);
}
