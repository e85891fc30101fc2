//! The store in a directory of the file system.

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
    let mut names: Vec<_> = std::fs::read_dir(&path)
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
