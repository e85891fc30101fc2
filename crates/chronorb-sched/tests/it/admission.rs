//! Sessions that are admitted to transactions which run.

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::transactions::{resources, transactions};

fn task(cost: Time, period: Time, priority: u32) -> Transaction {
    Transaction::new(period, vec![Step::new(0, cost, priority)])
}

fn control(running: Vec<Transaction>) -> AdmissionControl {
    AdmissionControl::new(vec![Resource::default()], running).unwrap()
}

fn shortfall(outcome: Result<SessionId, AdmissionError>) -> Shortfall {
    match outcome {
        Err(AdmissionError::Late(shortfall)) => *shortfall,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_shortfall_names_what_is_late_and_what_fits() {
    let mut control = control(vec![task(20, 100, 2)]);
    let mut low = task(30, 200, 1);
    low.deadline = 150;
    let first = control.admit(&[task(10, 50, 4), low]).unwrap();
    // The second task of the session: 30, and in 190 twice 20, four times 10, twice 40.
    let told = shortfall(control.admit(&[task(40, 100, 3)]));
    let [late] = told.late[..] else {
        panic!("{told:?}");
    };
    assert_eq!(late.owner, StepOwner::Session(first));
    assert_eq!((late.transaction, late.step, late.deadline), (1, 0, 150));
    assert_eq!(
        (late.response, late.excess()),
        (Response::Bounded(190), Some(40))
    );
    // With 30 it ends after 100, just as the others arrive again.
    assert_eq!(told.costs, 750_000);
    assert!(control.admit(&[task(30, 100, 3)]).is_ok());
}

#[test]
fn an_application_adapts_between_regions_of_operation() {
    // A video at 40, 20 or 10 Hz, beside other work; times in tenths of a millisecond.
    let video = |period| vec![task(100, period, 1)];
    let regions = [video(250), video(500), video(1_000)];
    let mut control = control(vec![task(50, 250, 3)]);
    let (session, region) = control.admit_first(&regions).unwrap();
    assert_eq!(region, 0, "all of it fits");

    // Important work begins: the video goes to a lower rate first.
    let alarm = [task(120, 250, 2)];
    let told = shortfall(control.admit(&alarm));
    assert_eq!(told.late[0].owner, StepOwner::Session(session));
    control.change(session, &regions[1]).unwrap();
    let alarm = control.admit(&alarm).unwrap();
    let before = control.responses(session);
    assert!(matches!(
        control.change(session, &regions[0]),
        Err(AdmissionError::Late(_))
    ));
    assert_eq!(control.responses(session), before, "it goes on as it was");

    // When that ends, there is room again.
    assert!(control.release(alarm));
    control.change(session, &regions[0]).unwrap();
    assert!(!control.release(alarm), "it is released once");
    assert!(matches!(
        control.change(alarm, &[]),
        Err(AdmissionError::NoSuchSession)
    ));
}

#[test]
fn what_cannot_be_analysed_changes_nothing() {
    let mut control = control(vec![task(20, 100, 2)]);
    let before = control.running();
    for broken in [
        task(0, 100, 9),
        task(1, 0, 9),
        Transaction::new(10, vec![Step::new(7, 1, 1)]),
    ] {
        let outcome = control.admit(&[task(1, 50, 9), broken]);
        assert!(
            matches!(outcome, Err(AdmissionError::Analysis(_))),
            "{outcome:?}"
        );
        assert_eq!(control.running(), before);
    }
    let overloaded = AdmissionControl::new(vec![Resource::default()], vec![task(20, 10, 2)]);
    let told = match overloaded {
        Err(AdmissionError::Late(told)) => told,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (told.late[0].owner, told.late[0].excess()),
        (StepOwner::Running, None)
    );
    assert!(matches!(
        control.admit_first(&[]),
        Err(AdmissionError::NoSuchSession)
    ));
}

/// Adds to a set what runs, or leaves it as it is, and returns the responses of the whole.
fn whole(sets: &[&[Transaction]]) -> HolisticAnalysis {
    analyse_sequences(&resources(), &sets.concat()).unwrap()
}

proptest! {
    // A case has several analyses.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 64,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_incremental_admission_is_an_analysis_of_the_whole(
        running in transactions(),
        sessions in vec((transactions(), any::<bool>(), any::<bool>()), 1..8),
    ) {
        let started = AdmissionControl::new(resources().to_vec(), running.clone());
        prop_assert_eq!(started.is_ok(), whole(&[&running]).schedulable);
        let Ok(mut control) = started else {
            return Ok(());
        };
        let mut admitted: Vec<(SessionId, Vec<Transaction>)> = Vec::new();
        for (session, ends_one, is_ordered) in sessions {
            let mut session = session;
            for step in session.iter_mut().flat_map(|it| &mut it.steps).filter(|_| is_ordered) {
                step.order = Some(40);
            }
            if ends_one && !admitted.is_empty() {
                let (id, _) = admitted.remove(admitted.len() / 2);
                prop_assert!(control.release(id));
            }
            let mut sets: Vec<&[Transaction]> = vec![&running];
            sets.extend(admitted.iter().map(|(_, set)| &set[..]));
            sets.push(&session);
            let expected = whole(&sets);
            match control.admit(&session) {
                Ok(id) => {
                    prop_assert!(expected.schedulable);
                    admitted.push((id, session));
                }
                Err(AdmissionError::Late(told)) => {
                    prop_assert!(!expected.schedulable);
                    prop_assert!(!told.late.is_empty());
                    let late = &told.late[0];
                    prop_assert!(!late.response.meets(late.deadline));
                    sets.pop();
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
            // All responses are those of an analysis from the start.
            let mut sets: Vec<&[Transaction]> = vec![&running];
            sets.extend(admitted.iter().map(|(_, set)| &set[..]));
            let expected = whole(&sets).responses;
            let mut all = control.running();
            for (id, _) in &admitted {
                all.extend(control.responses(*id).unwrap());
            }
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn what_would_fit_fits_and_no_more_does(
        running in vec((1..5_u64, 0..4_usize, 1..9_u32), 1..6),
        cost in 1..400_u64,
        priority in 1..9_u32,
    ) {
        let periods = [200, 300, 400, 600];
        let running = running.iter().map(|it| task(it.0 * 10, periods[it.1], it.2)).collect();
        let started = AdmissionControl::new(vec![Resource::default()], running);
        let Ok(mut control) = started else {
            return Ok(());
        };
        let session = task(cost, 500, priority);
        let Err(AdmissionError::Late(told)) = control.admit(std::slice::from_ref(&session)) else {
            return Ok(());
        };
        let with_cost = |factor: u64| {
            let mut changed = session.clone();
            changed.steps[0].cost = (cost * factor).div_ceil(MILLION);
            changed
        };
        let with_period = |factor: u64| {
            let mut changed = session.clone();
            changed.period = (500 * factor).div_ceil(MILLION);
            changed
        };
        let hundredth = MILLION / 100;
        let mut fits = |session: Transaction| {
            let admitted = control.admit(&[session]);
            let fits = admitted.is_ok();
            admitted.into_iter().for_each(|id| assert!(control.release(id)));
            fits
        };
        if told.costs > 0 {
            prop_assert!(fits(with_cost(told.costs)));
            prop_assert!(!fits(with_cost(told.costs + 1)));
        }
        if let Some(periods) = told.periods {
            prop_assert!(fits(with_period(periods)));
            prop_assert!(!fits(with_period(periods - hundredth)));
        }
    }
}
