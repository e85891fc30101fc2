//! The contexts that riders add, and the effects of those that arrive.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Duration;

use chronorb_cdr::CharSet;
use chronorb_giop::{EndTimes, SystemExceptionKind, UtcTime, Version, contexts};

use super::*;
use crate::config::OrbConfig;
use crate::incident::Incidents;
use crate::rtcorba::scheduling::Constraint;
use crate::rtcorba::{Priority, TimeConstraint};

/// The identifier of the context that the application gives the reference.
const ITS_OWN: u32 = 4711;
const CODE_SETS: &[u8] = &[1; 12];
const LISTEN_POINTS: &[u8] = &[2; 8];

/// A request that has the contexts of all riders but of [`Scheduling`], which depends on the
/// thread.
fn departure(config: &OrbConfig, version: Version) -> Departure<'_> {
    Departure {
        config,
        version,
        announcements: Some(Announcements {
            code_sets: Some(CODE_SETS),
            listen_points: Some(LISTEN_POINTS),
            one_at_a_time: true,
            lite: true,
        }),
        priority: Priority::new(7),
        ends: EndTimes {
            request: Some(UtcTime::UNIX_EPOCH),
            reply: Some(UtcTime::UNIX_EPOCH),
        },
        of_reference: Some(ServiceContext {
            id: ITS_OWN,
            data: b"its own",
        }),
    }
}

fn identifiers(departure: &Departure<'_>) -> Vec<u32> {
    let mut room = Contexts::ROOM;
    let mut contexts = Contexts::new(&mut room);
    All::depart(&mut CallState::default(), departure, &mut contexts);
    contexts.as_slice().iter().map(|it| it.id).collect()
}

#[test]
fn the_order_of_contexts_is_that_of_the_list() {
    let config = OrbConfig::default();
    let _constraint = Constraint::enter_within(TimeConstraint::within(Duration::from_secs(1)));
    let all = [
        contexts::BI_DIR_IIOP,
        contexts::CODE_SETS,
        contexts::ONE_AT_A_TIME,
        contexts::GIOP_LITE,
        contexts::RT_CORBA_PRIORITY,
        contexts::INVOCATION_POLICIES,
        contexts::SCHEDULING,
        ITS_OWN,
    ];
    assert_eq!(identifiers(&departure(&config, Version::V1_2)), all);
}

#[test]
fn other_orbs_of_older_versions_get_what_they_know() {
    let config = OrbConfig::default();
    let known = [
        contexts::CODE_SETS,
        contexts::RT_CORBA_PRIORITY,
        contexts::INVOCATION_POLICIES,
        ITS_OWN,
    ];
    assert_eq!(identifiers(&departure(&config, Version::V1_1)), known);
}

#[test]
fn a_server_that_has_read_the_announcements_gets_none() {
    let config = OrbConfig::default();
    let mut departure = departure(&config, Version::V1_2);
    departure.announcements = None;
    departure.ends = EndTimes::default();
    assert_eq!(
        identifiers(&departure),
        [contexts::RT_CORBA_PRIORITY, ITS_OWN]
    );
}

/// A connection that notes what riders tell it.
#[derive(Default)]
struct Connection {
    narrow: Cell<Option<CharSet>>,
    one_at_a_time: Cell<bool>,
    takes_lite: bool,
    listen_points: RefCell<Vec<u8>>,
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a test")
    }
}

impl Carrier for Connection {
    fn set_narrow(&self, narrow: CharSet) {
        self.narrow.set(Some(narrow));
    }

    fn set_one_at_a_time(&self) {
        self.one_at_a_time.set(true);
    }

    fn agree_to_lite(&self) -> bool {
        self.takes_lite
    }

    fn learn_listen_points(&self, context: &[u8]) {
        *self.listen_points.borrow_mut() = context.to_vec();
    }
}

/// The contexts of a message.
type List = Vec<(u32, Vec<u8>)>;

/// Lets the riders admit a request with these contexts. Also returns the contexts of the reply.
fn arrive(
    connection: &Connection,
    contexts: &[(u32, &[u8])],
) -> (Result<Admission, SystemException>, List) {
    let context = |&(id, data)| ServiceContext { id, data };
    let list: Vec<_> = contexts.iter().map(context).collect();
    let config = OrbConfig {
        clock_skew: Some(Duration::ZERO),
        ..OrbConfig::default()
    };
    let arrival = Arrival {
        config: &config,
        incidents: &Incidents::default(),
        version: Version::V1_2,
        contexts: &list,
        carrier: connection,
    };
    let mut state = RequestState::default();
    let admitted = admit(&mut state, &arrival);
    let mut answers = Contexts::without_copies();
    All::answer(&state, &mut answers);
    let answers = answers.as_slice().iter();
    let answers: Vec<_> = answers.map(|it| (it.id, it.data.to_vec())).collect();
    assert_eq!(All::has_answer(&state), !answers.is_empty());
    (admitted, answers)
}

#[test]
fn the_first_context_of_an_identifier_counts() {
    let [first, second] = [7, 9].map(contexts::encode_priority);
    let list = [
        (contexts::RT_CORBA_PRIORITY, &first[..]),
        (contexts::RT_CORBA_PRIORITY, &second[..]),
    ];
    let (admitted, answers) = arrive(&Connection::default(), &list);
    assert_eq!(admitted.map(|it| it.priority), Ok(Priority::new(7)));
    assert_eq!(
        answers,
        [(contexts::RT_CORBA_PRIORITY, first.to_vec())],
        "the reply propagates it too"
    );
}

#[test]
fn a_request_is_refused_by_the_first_rider_and_heard_by_all() {
    // A priority is checked before the end times, and what is unreadable stops no other rider.
    let ends = EndTimes {
        request: Some(UtcTime::UNIX_EPOCH),
        reply: None,
    };
    let mut room = [0; EndTimes::LARGEST];
    let list = [
        (contexts::INVOCATION_POLICIES, ends.encode(&mut room)),
        (
            contexts::RT_CORBA_PRIORITY,
            &contexts::encode_priority(-1)[..],
        ),
        (contexts::ONE_AT_A_TIME, &contexts::ONE_AT_A_TIME_DATA[..]),
        (contexts::GIOP_LITE, &contexts::GIOP_LITE_DATA[..]),
        (contexts::BI_DIR_IIOP, LISTEN_POINTS),
    ];
    let connection = Connection {
        takes_lite: true,
        ..Connection::default()
    };
    let (admitted, answers) = arrive(&connection, &list);
    let refusal = admitted.map(|it| it.priority).unwrap_err();
    assert_eq!(refusal.kind, SystemExceptionKind::DataConversion);
    assert!(connection.one_at_a_time.get());
    assert_eq!(*connection.listen_points.borrow(), LISTEN_POINTS);
    let agreed = (contexts::GIOP_LITE, contexts::GIOP_LITE_DATA.to_vec());
    assert_eq!(answers, [agreed]);

    let (admitted, _) = arrive(&connection, &list[..1]);
    let refusal = admitted.map(|it| it.priority).unwrap_err();
    assert_eq!(refusal.kind, SystemExceptionKind::Timeout);
}

#[test]
fn unknown_contexts_are_left_to_the_application() {
    let list = [(ITS_OWN, &b"its own"[..]), (u32::MAX, b"")];
    let (admitted, answers) = arrive(&Connection::default(), &list);
    assert_eq!(admitted.map(|it| it.priority), Ok(None));
    assert!(answers.is_empty());
}

#[test]
fn the_state_of_a_request_moves_to_another_thread() {
    let connection = Connection::default();
    let data = contexts::encode_priority(7);
    let list = [ServiceContext {
        id: contexts::RT_CORBA_PRIORITY,
        data: &data,
    }];
    let config = OrbConfig::default();
    let arrival = Arrival {
        config: &config,
        incidents: &Incidents::default(),
        version: Version::V1_2,
        contexts: &list,
        carrier: &connection,
    };
    let mut state = RequestState::default();
    let admitted = admit(&mut state, &arrival);
    assert!(admitted.is_ok());
    let answered = std::thread::spawn(move || {
        let mut answers = Contexts::without_copies();
        All::answer(&state, &mut answers);
        answers.as_slice()[0].data == data
    });
    assert!(answered.join().expect("it does not panic"));
}
