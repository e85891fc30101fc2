//! Tests of the rules for attempts.

use chronorb_cdr::Endian;
use chronorb_giop::{TAG_INTERNET_IOP, TaggedProfile};

use super::*;
use crate::orb::Orb;
use crate::scope::text_within;
use AddressingDisposition::{Key, Profile};
use RebindMode::{NoRebind, NoReconnect, Transparent};
use SystemExceptionKind::{CommFailure, NoPermission, ObjectNotExist, Timeout, Transient};

/// The state of a call, and the last attempt's destination.
#[derive(Clone, Copy, Debug)]
struct Case {
    is_explicit: bool,
    forwards: u32,
    repeats: u32,
    forwarded: bool,
    rebind: RebindMode,
}

const FIRST: Case = Case {
    is_explicit: false,
    forwards: 0,
    repeats: 0,
    forwarded: false,
    rebind: Transparent,
};
const FORWARDED: Case = Case {
    forwards: 1,
    forwarded: true,
    ..FIRST
};
const LAST: Case = Case {
    forwards: MAX_FORWARDS,
    repeats: MAX_REPEATS,
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
            forwards: case.forwards,
            repeats: case.repeats,
        };
        let at = || Destination {
            target: if case.forwarded {
                self.other.clone()
            } else {
                self.called.clone()
            },
            forwarded: case.forwarded,
            rebind: case.rebind,
            addressing: Key,
        };
        let decision = attempt.on_outcome(&self.called, at, outcome);
        (attempt, decision)
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

/// Each further attempt uses up one forward or one repeat, whatever the state, and there is
/// none left in the end. So any sequence of outcomes ends.
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
    for (forwards, repeats) in states {
        for (forwarded, is_explicit) in [(false, false), (false, true), (true, false), (true, true)]
        {
            let case = Case {
                is_explicit,
                forwards,
                repeats,
                forwarded,
                rebind: Transparent,
            };
            for outcome in &outcomes {
                let (after, decision) = objects.decide(case, outcome.clone());
                if !matches!(decision, Decision::Done(_) | Decision::Failed { .. }) {
                    let used = after.forwards + after.repeats;
                    assert_eq!(used, forwards + repeats + 1, "{case:?}");
                    assert!(used <= MAX_FORWARDS + MAX_REPEATS, "{case:?}");
                }
            }
        }
    }
}
