//! Random histories: after a stop at any moment, all that was answered is there, and nothing half.

use chronorb_naming::Change;
use chronorb_naming::store::{Store, WriteError};
use fastrand::Rng;

use super::disc::{Disc, Image, Moment};
use super::model::{Model, recover};

/// The number of histories; the environment variable asks for more.
fn count() -> u64 {
    let asked = std::env::var("CHRONORB_STORE_HISTORIES");
    asked.map_or(300, |count| count.parse().expect("a number of histories"))
}

/// A history: a store that is opened, and groups and snapshots that follow.
fn run(random: &mut Rng) -> (Disc, Vec<Vec<Change>>) {
    let disc = Disc::new(Image::default(), random.u64(..));
    let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
    let mut model = Model::new();
    let mut states = vec![model.changes()];
    for _ in 0..random.usize(1..10) {
        if random.u8(..4) == 0 {
            snapshot(&mut store, &model).expect("the disc works");
        } else {
            let group = model.group(random);
            // The state after the group may be found before it is answered.
            states.push(model.changes());
            store.append(&group).expect("the disc works");
            disc.set_answered(states.len() - 1);
        }
    }
    (disc, states)
}

fn snapshot(store: &mut Store<Disc>, model: &Model) -> Result<(), WriteError> {
    store.write_snapshot(&mut model.changes().into_iter())
}

/// Opens an image, and checks that it has the state of some groups: all that were answered, and at
/// most one other.
fn check(image: Image, moment: &Moment, states: &[Vec<Change>], seed: u64) -> Disc {
    let disc = Disc::new(image, seed);
    let (_, state) = recover(disc.clone()).expect("the log is whole");
    let possible = &states[moment.answered..states.len().min(moment.answered + 2)];
    assert!(
        possible.contains(&state),
        "answered {}: {state:?} is none of {possible:?}",
        moment.answered
    );
    disc
}

#[test]
fn a_stop_at_any_moment_loses_nothing_that_was_answered() {
    for seed in 0..count() {
        let mut random = Rng::with_seed(seed);
        let (disc, states) = run(&mut random);
        for moment in disc.moments() {
            // The process is killed; the machine goes on, and loses its power later.
            let killed = check(moment.image.clone(), &moment, &states, seed);
            let after_kill = killed.image().after_power_loss(&mut random);
            let (_, before) = recover(Disc::new(killed.image(), seed)).expect("a whole log");
            let (_, after) = recover(Disc::new(after_kill, seed)).expect("a whole log");
            assert_eq!(before, after, "seed {seed}: a state that was found is lost");
            for _ in 0..2 {
                let image = moment.image.after_power_loss(&mut random);
                let recovered = check(image, &moment, &states, seed);
                // The power goes once more, at any moment of the recovery.
                let again = random.choice(recovered.moments()).expect("a moment");
                let image = again.image.after_power_loss(&mut random);
                let disc = check(image, &moment, &states, seed);
                goes_on(disc.image(), &mut random);
            }
        }
    }
}

/// A recovered store takes further groups, and keeps them.
fn goes_on(image: Image, random: &mut Rng) {
    let disc = Disc::new(image, random.u64(..));
    let (mut store, state) = recover(disc.clone()).expect("a whole log");
    let mut model = Model::new();
    for change in &state {
        model.apply(change);
    }
    let group = model.group(random);
    store.append(&group).expect("the disc works");
    let image = disc.image().after_power_loss(random);
    let (_, state) = recover(Disc::new(image, 0)).expect("a whole log");
    assert_eq!(state, model.changes());
}

#[test]
fn a_failing_disc_leaves_the_state_as_it_was_answered() {
    for seed in 0..count() {
        let mut random = Rng::with_seed(seed);
        let disc = Disc::new(Image::default(), seed);
        let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
        let first = random.u64(..30);
        let number = random.choice([1, 1, 2, 3, 100]).expect("a number");
        disc.fail(first..first + number);
        let mut model = Model::new();
        // The state that a group made whose writing failed, until another one succeeds.
        let mut refused: Option<Model> = None;
        let mut in_doubt = false;
        for _ in 0..12 {
            if random.u8(..4) == 0 {
                let before = disc.operations();
                match snapshot(&mut store, &model) {
                    Ok(()) => assert!(!in_doubt),
                    Err(WriteError::Doubtful) => assert_eq!(disc.operations(), before),
                    Err(_) => {}
                }
            } else {
                let mut after = model.clone();
                let group = after.group(&mut random);
                match store.append(&group) {
                    Ok(()) => {
                        assert!(!in_doubt, "seed {seed}: a change after a refusal for good");
                        (model, refused) = (after, None);
                    }
                    Err(WriteError::Doubtful) => in_doubt = true,
                    Err(_) => refused = Some(after),
                }
            }
            let image = disc.image().after_power_loss(&mut random);
            let (_, state) = recover(Disc::new(image, seed)).expect("the log is whole");
            let is_refused = refused
                .as_ref()
                .is_some_and(|model| model.changes() == state);
            assert!(state == model.changes() || is_refused, "seed {seed}");
        }
        // A disc that failed once only, as a full one, is used again.
        if number == 1 && !in_doubt {
            let group = model.group(&mut random);
            disc.fail(0..0);
            if store.append(&group).is_ok() {
                let image = disc.image().after_power_loss(&mut random);
                let (_, state) = recover(Disc::new(image, seed)).expect("the log is whole");
                assert_eq!(state, model.changes());
            }
        }
    }
}

#[test]
fn a_full_disc_refuses_a_change_and_takes_the_next_one() {
    let mut random = Rng::with_seed(1);
    // The write fails, or the synchronisation after it.
    for operation in 0..2 {
        let disc = Disc::new(Image::default(), 1);
        let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
        let mut model = Model::new();
        disc.fail(operation..operation + 1);
        let refused = Model::new().group(&mut random);
        assert!(matches!(store.append(&refused), Err(WriteError::Io { .. })));
        store
            .append(&model.group(&mut random))
            .expect("there is room again");
        let image = disc.image().after_power_loss(&mut random);
        let (_, state) = recover(Disc::new(image, 1)).expect("the log is whole");
        assert_eq!(state, model.changes());
    }
    // What was written cannot be taken back either.
    let disc = Disc::new(Image::default(), 1);
    let (mut store, _) = recover(disc.clone()).expect("an empty disc is opened");
    disc.fail(0..2);
    let group = Model::new().group(&mut random);
    assert!(matches!(store.append(&group), Err(WriteError::Io { .. })));
    assert!(matches!(store.append(&group), Err(WriteError::Doubtful)));
}
