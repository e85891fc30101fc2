//! Damage of a log: at the end it is the record that was being written, elsewhere it is refused.

use chronorb_naming::Change;
use chronorb_naming::store::OpenError;
use fastrand::Rng;

use super::disc::{Disc, Image};
use super::model::{Model, recover};

const LOG: &str = "names.log";

/// A log with a snapshot and records; the length of the log, and the state, after each.
fn log() -> (Vec<u8>, Vec<(usize, Vec<Change>)>) {
    let mut random = Rng::with_seed(7);
    let disc = Disc::new(Image::default(), 7);
    let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
    let mut model = Model::new();
    for _ in 0..4 {
        store
            .append(&model.group(&mut random))
            .expect("the disc works");
    }
    let mut state = model.changes().into_iter();
    store.write_snapshot(&mut state).expect("the disc works");
    let mut states = vec![(store.length().0 as usize, model.changes())];
    for _ in 0..4 {
        store
            .append(&model.group(&mut random))
            .expect("the disc works");
        states.push((store.length().0 as usize, model.changes()));
    }
    let content = disc.image().file(LOG).expect("the log").to_vec();
    (content, states)
}

fn open(content: &[u8]) -> Result<Vec<Change>, OpenError> {
    let disc = Disc::new(Image::with_file(LOG, content), 1);
    recover(disc).map(|(_, state)| state)
}

#[test]
fn a_cut_keeps_all_whole_records() {
    let (content, states) = log();
    for length in 0..=content.len() {
        let found = open(&content[..length]);
        let whole = states.iter().rev().find(|(end, _)| *end <= length);
        match (found, whole) {
            (Ok(found), Some((_, state))) => assert_eq!(&found, state, "{length}"),
            (Err(OpenError::Foreign { .. }), None) => assert!(length < 8),
            (Err(OpenError::Damaged { .. }), None) => {}
            (found, _) => panic!("{length}: {found:?}"),
        }
    }
}

#[test]
fn a_wrong_octet_is_refused_with_its_place() {
    let (content, states) = log();
    let [.., (_, last_but_one), _] = &states[..] else {
        panic!("there are records");
    };
    let start_of_last = states[states.len() - 2].0;
    for at in 0..content.len() {
        for change in [1, 0x80, 0xff] {
            let mut content = content.clone();
            content[at] ^= change;
            match open(&content) {
                Ok(state) => {
                    assert!(at >= start_of_last, "{at}");
                    assert_eq!(&state, last_but_one, "{at}");
                }
                Err(OpenError::Foreign { .. }) => assert!(at < 8),
                Err(OpenError::Version { .. }) => assert!((8..12).contains(&at)),
                Err(OpenError::Damaged { file, offset, .. }) => {
                    assert_eq!(file, LOG);
                    assert!(offset as usize <= at, "{offset} is behind {at}");
                    assert!(at < start_of_last);
                }
                Err(other) => panic!("{at}: {other}"),
            }
        }
    }
}

#[test]
fn zeros_behind_the_records_are_cut_off() {
    let (mut content, states) = log();
    content.resize(content.len() + 5_000, 0);
    assert_eq!(
        open(&content).expect("a torn end"),
        states[states.len() - 1].1
    );
}

#[test]
fn the_octets_of_another_log_are_no_records() {
    let (mut content, states) = log();
    let (other, of_other) = log();
    // The other log is of another store, so its records are torn ones here.
    content.extend(&other[of_other[0].0..]);
    assert_eq!(
        open(&content).expect("a torn end"),
        states[states.len() - 1].1
    );
}

#[test]
fn numbers_of_contexts_and_leases_survive_a_snapshot_without_them() {
    let disc = Disc::new(Image::default(), 3);
    let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
    let group = [
        Change::CreateContext { context: 9 },
        Change::DestroyContext { context: 9 },
    ];
    store.append(&group).expect("the disc works");
    store
        .write_snapshot(&mut std::iter::empty())
        .expect("the disc works");
    drop(store);
    let mut changes = Vec::new();
    let opened = chronorb_naming::store::Store::open(disc, |change| {
        changes.push(change);
        Ok(())
    });
    opened.expect("a whole log");
    assert_eq!(changes, group);
}
