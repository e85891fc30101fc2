//! Tests of the rules for attempts.

use chronorb_cdr::Endian;
use chronorb_giop::{TAG_INTERNET_IOP, TaggedProfile};

use super::*;
use crate::orb::Orb;
use crate::scope::text_within;
use AddressingDisposition::{Key, Profile};
use FailoverSemantics::{AtLeastOnce, BestEffort, OrbDefault};
use RebindMode::{NoRebind, NoReconnect, Transparent};
use SystemExceptionKind::{
    CommFailure, NoPermission, NoResponse, ObjAdapter, ObjectNotExist, Timeout, Transient,
};

/// The state of a call, and the last attempt's destination.
#[derive(Clone, Copy, Debug)]
struct Case {
    is_explicit: bool,
    forwards: u8,
    repeats: u8,
    moves: u8,
    forwarded: bool,
    rebind: RebindMode,
    failover: Option<FailoverSemantics>,
}

const FIRST: Case = Case {
    is_explicit: false,
    forwards: 0,
    repeats: 0,
    moves: 0,
    forwarded: false,
    rebind: Transparent,
    failover: None,
};
const FORWARDED: Case = Case {
    forwards: 1,
    forwarded: true,
    ..FIRST
};
const LAST: Case = Case {
    forwards: MAX_FORWARDS,
    repeats: MAX_REPEATS,
    moves: MAX_MOVES,
    ..FORWARDED
};

const fn with(rebind: RebindMode, case: Case) -> Case {
    Case { rebind, ..case }
}

const fn explicit(case: Case) -> Case {
    Case {
        is_explicit: true,
        ..with(NoReconnect, case)
    }
}

/// The object that is called, and another one, for which clients see other policies.
struct Objects {
    called: Object,
    other: Object,
}

impl Objects {
    fn new() -> Self {
        let orb = Orb::init(&mut Vec::new()).expect("the defaults are correct");
        let object = |text: &str| orb.string_to_object(text).expect("a correct text");
        let unusable = Ior {
            type_id: String::new(),
            profiles: vec![TaggedProfile {
                tag: TAG_INTERNET_IOP,
                data: Vec::new(),
            }],
        };
        Self {
            called: object("corbaloc::127.0.0.1:9/called"),
            other: object(&unusable.to_string()),
        }
    }

    fn decide(&self, case: Case, outcome: Result<Outcome, Failure>) -> (Attempt, Decision) {
        let mut attempt = Attempt {
            is_explicit: case.is_explicit,
            is_uncertain: false,
            forwards: case.forwards,
            repeats: case.repeats,
            moves: case.moves,
        };
        let decision = self.decide_next(&mut attempt, case, outcome);
        (attempt, decision)
    }

    fn decide_next(
        &self,
        attempt: &mut Attempt,
        case: Case,
        outcome: Result<Outcome, Failure>,
    ) -> Decision {
        let at = || Destination {
            target: if case.forwarded {
                self.other.clone()
            } else {
                self.called.clone()
            },
            forwarded: case.forwarded,
            rebind: case.rebind,
            addressing: Key,
            failover: case.failover.map(|semantics| {
                let policy = FailoverPolicy {
                    semantics,
                    ..FailoverPolicy::default()
                };
                Arc::new(FailoverState {
                    policy,
                    addresses: 2,
                    tried: Vec::new(),
                })
            }),
        };
        attempt.on_outcome(&self.called, at, outcome)
    }
}

fn raised(kind: SystemExceptionKind) -> Result<Outcome, Failure> {
    Ok(Outcome::Exception(SystemException::no(kind, 1)))
}

fn lost(kind: SystemExceptionKind, completed: CompletionStatus) -> Result<Outcome, Failure> {
    Err(Failure::Exception(SystemException::new(kind, 1, completed)))
}

fn ended(kind: SystemExceptionKind, cause: Cause, is_stale: bool) -> Decision {
    Decision::Failed {
        exception: SystemException::no(kind, 1),
        cause,
        is_stale,
    }
}

#[test]
fn every_outcome_has_its_decision() {
    use Cause::{Failed, Raised};
    use CompletionStatus::{Maybe, No};
    let objects = Objects::new();
    let answer = ReplyBody {
        exception: false,
        body: 24,
        endian: Endian::NATIVE,
        text: text_within(),
    };
    let maybe = Decision::Failed {
        exception: SystemException::new(CommFailure, 1, Maybe),
        cause: Failed,
        is_stale: false,
    };
    let forward = || Ok(Outcome::Forward(objects.other.ior().clone()));
    let elsewhere = || Decision::Elsewhere(objects.other.clone());
    let forbidden = || failed(FORWARD_FORBIDDEN, Failed);
    let nil = Ok(Outcome::Forward(Ior::nil()));
    let named = |mode| Ok(Outcome::Addressing(mode));
    let not_processed = || Err(Failure::NotProcessed);
    let rows = [
        (
            "an answer",
            LAST,
            Ok(Outcome::Answer(answer)),
            Decision::Done(answer),
        ),
        (
            "an exception",
            FIRST,
            raised(Transient),
            ended(Transient, Raised, false),
        ),
        (
            "a failure",
            FIRST,
            lost(Timeout, No),
            ended(Timeout, Failed, false),
        ),
        // Stale targets of forwards.
        (
            "stale 1",
            FORWARDED,
            raised(ObjectNotExist),
            Decision::Original,
        ),
        ("stale 2", FORWARDED, raised(Transient), Decision::Original),
        (
            "stale 3",
            FORWARDED,
            lost(CommFailure, No),
            Decision::Original,
        ),
        (
            "too often",
            LAST,
            raised(Transient),
            ended(Transient, Raised, true),
        ),
        ("begun", FORWARDED, lost(CommFailure, Maybe), maybe),
        (
            "refused",
            FORWARDED,
            raised(NoPermission),
            ended(NoPermission, Raised, false),
        ),
        (
            "stale under NoRebind",
            with(NoRebind, FORWARDED),
            raised(Transient),
            ended(Transient, Raised, false),
        ),
        (
            "stale under NoReconnect",
            with(NoReconnect, FORWARDED),
            raised(Transient),
            ended(Transient, Raised, false),
        ),
        (
            "bound",
            explicit(FORWARDED),
            raised(Transient),
            Decision::Original,
        ),
        // Forwards.
        ("a forward", FIRST, forward(), elsewhere()),
        ("a second one", FORWARDED, forward(), elsewhere()),
        ("a forward to nil", FIRST, nil, failed(INV_OBJREF, Failed)),
        ("a loop", LAST, forward(), failed(FORWARD_LOOP, Failed)),
        ("NoRebind", with(NoRebind, FIRST), forward(), forbidden()),
        (
            "NoRebind, alike",
            with(NoRebind, FORWARDED),
            forward(),
            elsewhere(),
        ),
        (
            "NoReconnect",
            with(NoReconnect, FIRST),
            forward(),
            forbidden(),
        ),
        ("a binding", explicit(FIRST), forward(), elsewhere()),
        // Addressing.
        (
            "by profile",
            FIRST,
            named(Profile),
            Decision::Readdress(Profile),
        ),
        ("as before", FIRST, named(Key), failed(INV_OBJREF, Failed)),
        ("again", LAST, named(Profile), failed(INV_OBJREF, Failed)),
        // Orderly closes.
        ("closed", FIRST, not_processed(), Decision::Again),
        (
            "closed at a target",
            with(NoReconnect, FORWARDED),
            not_processed(),
            Decision::Again,
        ),
        (
            "closed too often",
            LAST,
            not_processed(),
            failed(DISCARDED, Cause::Discarded),
        ),
    ];
    for (name, case, outcome, decision) in rows {
        assert_eq!(objects.decide(case, outcome).1, decision, "{name}");
    }
}

/// Each further attempt uses up one forward, one repeat or one move, whatever the state, and there
/// is none left in the end. So any sequence of outcomes ends.
#[test]
fn the_number_of_attempts_is_bounded() {
    let objects = Objects::new();
    let outcomes = [
        raised(Transient),
        raised(NoPermission),
        lost(CommFailure, CompletionStatus::No),
        Ok(Outcome::Forward(objects.other.ior().clone())),
        Ok(Outcome::Forward(Ior::nil())),
        Ok(Outcome::Addressing(Key)),
        Ok(Outcome::Addressing(Profile)),
        Err(Failure::NotProcessed),
    ];
    let states = (0..=MAX_FORWARDS).flat_map(|f| (0..=MAX_REPEATS).map(move |r| (f, r)));
    let places = [(false, false), (false, true), (true, false), (true, true)];
    let places = places.into_iter().flat_map(|place| {
        let policies = [None, Some(OrbDefault), Some(BestEffort), Some(AtLeastOnce)];
        policies.map(|failover| (place, failover))
    });
    for (forwards, repeats) in states {
        for ((forwarded, is_explicit), failover) in places.clone() {
            let case = Case {
                is_explicit,
                forwards,
                repeats,
                // One is left.
                moves: MAX_MOVES - 1,
                forwarded,
                rebind: Transparent,
                failover,
            };
            for outcome in &outcomes {
                let (after, decision) = objects.decide(case, outcome.clone());
                if !matches!(decision, Decision::Done(_) | Decision::Failed { .. }) {
                    let used = after.forwards + after.repeats + after.moves;
                    assert_eq!(used, forwards + repeats + case.moves + 1, "{case:?}");
                    assert!(used <= MAX_FORWARDS + MAX_REPEATS + MAX_MOVES, "{case:?}");
                }
            }
        }
    }
}

/// The rules of the three values, as a table over the exception, its completion and its origin.
#[test]
fn a_call_moves_on_exactly_as_its_policy_says() {
    use CompletionStatus::{Maybe, No, Yes};
    let objects = Objects::new();
    let kinds = [
        CommFailure,
        Transient,
        NoResponse,
        ObjAdapter,
        Timeout,
        NoPermission,
        ObjectNotExist,
    ];
    for policy in [None, Some(OrbDefault), Some(BestEffort), Some(AtLeastOnce)] {
        for (kind, completed) in kinds
            .into_iter()
            .flat_map(|kind| [No, Maybe, Yes].map(|completed| (kind, completed)))
        {
            for cause in [Cause::Raised, Cause::Failed] {
                let exception = SystemException::new(kind, 1, completed);
                let outcome = match cause {
                    Cause::Raised => Ok(Outcome::Exception(exception)),
                    _ => Err(Failure::Exception(exception)),
                };
                let case = Case {
                    failover: policy,
                    ..FIRST
                };
                let (_, decision) = objects.decide(case, outcome);
                let is_condition =
                    matches!(kind, CommFailure | Transient | NoResponse | ObjAdapter);
                let moves = match policy {
                    Some(BestEffort) => is_condition && completed == No,
                    Some(AtLeastOnce) => {
                        let is_late = kind == Timeout && cause == Cause::Failed;
                        (is_condition || is_late) && completed != Yes
                    }
                    _ => false,
                };
                let what = format!("{policy:?} {kind:?} {completed:?} {cause:?}");
                match decision {
                    Decision::NextAddress {
                        exception: of_call,
                        is_first,
                        ..
                    } => {
                        assert!(moves, "{what}");
                        assert_eq!((of_call, is_first), (exception, true), "{what}");
                    }
                    Decision::Failed {
                        exception: of_call, ..
                    } => {
                        assert!(!moves, "{what}");
                        assert_eq!(of_call, exception, "{what}");
                    }
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_call_that_may_have_been_executed_does_not_end_as_one_that_was_not() {
    let objects = Objects::new();
    let case = Case {
        failover: Some(AtLeastOnce),
        ..FIRST
    };
    let mut attempt = Attempt::default();
    let lost = || lost(CommFailure, CompletionStatus::Maybe);
    let first = objects.decide_next(&mut attempt, case, lost());
    assert!(matches!(
        first,
        Decision::NextAddress { is_first: true, .. }
    ));
    let maybe = CompletionStatus::Maybe;
    for kind in [NoPermission, ObjectNotExist] {
        let Decision::Failed { exception, .. } =
            objects.decide_next(&mut attempt, case, raised(kind))
        else {
            panic!("{kind:?} is no condition");
        };
        assert_eq!(exception, SystemException::new(kind, 1, maybe));
    }
    let next = objects.decide_next(&mut attempt, case, raised(Transient));
    let Decision::NextAddress {
        exception,
        is_first,
        ..
    } = next
    else {
        panic!("a busy server is a condition");
    };
    assert!(!is_first);
    assert_eq!(exception, SystemException::new(Transient, 1, maybe));
    let completed = |e: SystemException| attempt.of_all_attempts(e).completed;
    let yes = SystemException::new(Transient, 1, CompletionStatus::Yes);
    assert_eq!(completed(yes), CompletionStatus::Yes);
    assert_eq!(completed(SystemException::no(Transient, 1)), maybe);
}

#[test]
fn a_server_that_closes_each_connection_is_left_for_another_address() {
    let objects = Objects::new();
    let case = Case {
        failover: Some(BestEffort),
        repeats: MAX_REPEATS,
        ..FIRST
    };
    let (_, decision) = objects.decide(case, Err(Failure::NotProcessed));
    assert!(matches!(
        decision,
        Decision::NextAddress {
            exception: DISCARDED,
            cause: Cause::Discarded,
            ..
        }
    ));
}
