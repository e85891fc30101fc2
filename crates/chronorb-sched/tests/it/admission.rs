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

/// Work of one step each on a processor, some of it with jitter, an order, or a blocking.
fn single_steps() -> impl Strategy<Value = Vec<Transaction>> {
    let kind = (1..9_u64, 0..5_usize, 1..4_u32, 0..12_u64, 0..6_u8);
    vec(kind, 1..12).prop_map(|all| {
        let one = |(cost, period, priority, extra, kind): (u64, usize, u32, u64, u8)| {
            let mut it = task(cost, [20, 30, 60, 70, 140][period], priority);
            match kind {
                0 => it.jitter = extra,
                1 => it.steps[0].blocking = extra,
                2 => it.deadline += extra,
                _ => {}
            }
            it
        };
        all.into_iter().map(one).collect()
    })
}

/// The task of a transaction of one step.
fn as_task(it: &Transaction) -> Task {
    Task::new(it.steps[0].cost, it.period)
        .with_deadline(it.deadline)
        .with_jitter(it.jitter)
        .with_blocking(it.steps[0].blocking)
        .with_priority(it.steps[0].priority)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The responses that transactions of a level share are those of each by itself.
    #[test]
    fn transactions_of_one_step_have_the_responses_of_tasks(set in single_steps()) {
        let tasks: Vec<_> = set.iter().map(as_task).collect();
        let Ok(expected) = responses(&tasks, Preemption::Preemptive) else {
            return Ok(());
        };
        let analysis = analyse_sequences(&[Resource::default()], &set).unwrap();
        let meets = expected.iter().zip(&tasks).all(|(it, task)| it.meets(task.deadline));
        prop_assert_eq!(analysis.schedulable, meets);
        let all: Vec<_> = analysis.responses.into_iter().map(|it| it[0]).collect();
        // A transaction that has ended before its period is over does not delay itself.
        let is_shorter = |(it, plain): (&Response, &Response)| it <= plain;
        prop_assert!(all.iter().zip(&expected).all(is_shorter), "{all:?} {expected:?}");
        if meets {
            prop_assert_eq!(all, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 64,
        ..ProptestConfig::default()
    })]

    /// With any bound of its work, a control says what one without a bound says, or that the bound
    /// is used up.
    #[test]
    fn results_within_a_bound_are_those_without(
        running in transactions(),
        sessions in vec((transactions(), any::<bool>()), 1..6),
        steps in prop_oneof![0..500_u64, 0..20_000_u64, 0..2_000_000_u64],
    ) {
        let used_up = AdmissionError::Analysis(AnalysisError::TooComplex);
        let free = AdmissionControl::new(resources().to_vec(), running.clone());
        let bounded = AdmissionControl::bounded(resources().to_vec(), running, steps);
        let (mut free, mut bounded) = match (free, bounded) {
            (free, Err(error)) if error == used_up => {
                prop_assert!(!matches!(free, Err(error) if error == used_up));
                return Ok(());
            }
            (Ok(free), Ok(bounded)) => (free, bounded),
            (free, bounded) => {
                prop_assert_eq!(free.unwrap_err(), bounded.unwrap_err());
                return Ok(());
            }
        };
        let mut last = None;
        for (session, ends_one) in sessions {
            let left = bounded.steps_left();
            if let Some(id) = last.take_if(|_| ends_one) {
                prop_assert!(free.release(id) && bounded.release(id));
            }
            let before = bounded.running();
            let outcome = bounded.admit(&session);
            prop_assert!(bounded.steps_left() <= left);
            if outcome == Err(used_up.clone()) {
                prop_assert_eq!(bounded.steps_left(), 0);
                prop_assert_eq!(bounded.running(), before);
                prop_assert_eq!(bounded.admit(&[]), Err(used_up));
                return Ok(());
            }
            prop_assert_eq!(&outcome, &free.admit(&session));
            last = outcome.ok().or(last);
            prop_assert_eq!(bounded.running(), free.running());
        }
    }
}

/// The steps of an admission to as many tasks of two levels, with different periods.
fn steps_among(tasks: u64) -> u64 {
    let running = (0..tasks).map(|it| task(1, 100 * tasks + it, (it % 2) as u32));
    let bound = u64::from(u32::MAX);
    let control = AdmissionControl::bounded(vec![Resource::default()], running.collect(), bound);
    let mut control = control.unwrap();
    control.admit(&[task(10, 100 * tasks, 1)]).unwrap();
    bound - control.steps_left()
}

#[test]
fn the_work_of_an_admission_grows_as_the_tasks() {
    let (few, many) = (steps_among(200), steps_among(1_000));
    assert!(many <= 6 * few, "{few} and {many}");
}
