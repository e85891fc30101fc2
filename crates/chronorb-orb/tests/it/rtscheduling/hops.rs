//! Distributable threads over several nodes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::{
    IiopProfile, MessageType, RequestHeader, ResponseFlags, SchedulingContext, ServiceContext,
    Target, Version, contexts, encode_request, finish_message, start_message,
};
use chronorb_orb::rtcorba::{LaneOrder, TimeConstraint};
use chronorb_orb::rtscheduling::{
    EarliestDeadlineScheduler, Guid, MaximumUrgencyScheduler, Monotonic, SchedulingCurrent,
    SchedulingParameter,
};
use chronorb_orb::{Incident, Object, Operation, SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, PiMutex};

use super::nodes::{Node, begin, fixed, perform};
use crate::support::{Latch, PATIENCE, orb_with};

type Ids = Arc<PiMutex<Vec<(&'static str, Guid)>>>;

fn note(ids: &Ids, node: &'static str, current: &SchedulingCurrent) {
    let id = current.id().expect("the request has brought a thread");
    ids.lock().push((node, id));
}

#[test]
fn a_call_carries_the_thread_to_other_nodes_and_back_into_the_first() {
    let (a, b, c) = (Node::new(), Node::new(), Node::new());
    let ids = Ids::default();
    let noted = ids.clone();
    let last = a.serve(move |call| {
        note(&noted, "a", &call.orb().scheduling_current());
        Ok(())
    });
    let (noted, onward) = (ids.clone(), c.see(&a, &last));
    let third = c.serve(move |call| {
        note(&noted, "c", &call.orb().scheduling_current());
        perform(&onward, "go").map(drop)
    });
    let (noted, onward) = (ids.clone(), b.see(&c, &third));
    let second = b.serve(move |call| {
        let current = call.orb().scheduling_current();
        note(&noted, "b", &current);
        let segment = current
            .segment("at b", None, None)
            .expect("it is supported");
        note(&noted, "b", &current);
        assert_eq!(current.current_scheduling_segment_names()?, ["at b"]);
        drop(segment);
        perform(&onward, "go").map(drop)
    });
    let object = a.see(&b, &second);
    let current = a.orb.scheduling_current();
    let _segment = current.segment("root", Some(&fixed(10)), None).unwrap();
    let id = current.id().unwrap();
    assert_eq!(perform(&object, "go"), Ok(false));
    let expected = ["b", "b", "c", "a"].map(|node| (node, id));
    assert_eq!(*ids.lock(), expected);
    assert_eq!(current.id(), Ok(id));
    let told = a.told.take();
    let expected = [
        "begin root 10",
        "SendRequest",
        "ReceiveRequest",
        "SendReply",
        "ReceiveReply",
    ];
    assert_eq!(told, expected);
    let expected = [
        "ReceiveRequest",
        "nest at b -1",
        "end at b to -1",
        "SendRequest",
        "ReceiveReply",
        "SendReply",
    ];
    let told = b.told.take();
    // Without a propagated priority the servant's parameter is that of its own segments.
    assert_eq!(told, expected);
    assert!(b.orb.scheduling_current().lookup(id).is_none());
}

#[test]
fn a_segment_that_a_servant_leaves_open_is_ended_and_reported() {
    let (client, server) = (Node::new(), Node::new());
    let object = server.serve(|call| {
        let current = call.orb().scheduling_current();
        for name in ["outer", "inner"] {
            let begun = current.begin_scheduling_segment(name, None, None);
            begun.expect("it is supported");
        }
        Ok(())
    });
    let object = client.see(&server, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", None, None).unwrap();
    for _ in 0..2 {
        assert_eq!(perform(&object, "go"), Ok(false));
        let expected = [
            "ReceiveRequest",
            "nest outer -1",
            "nest inner -1",
            "end inner to -1",
            "end outer to -1",
            "SendReply",
        ];
        assert_eq!(server.told.take(), expected);
    }
    let incidents = server.orb.snapshot().incidents;
    let mut counts = incidents.iter();
    let open = counts.find(|(incident, _)| *incident == Incident::OpenSegments);
    assert_eq!(open.expect("it has a count").1, 2);
}

#[test]
fn a_call_within_the_process_stays_in_the_thread() {
    let node = Node::new();
    let object = node.serve(|call| {
        let current = call.orb().scheduling_current();
        let names = current.current_scheduling_segment_names()?;
        assert_eq!(names, ["root"]);
        let begun = current.begin_scheduling_segment("left open", None, None);
        begun.expect("it is supported");
        Ok(())
    });
    let current = node.orb.scheduling_current();
    let _segment = current.segment("root", None, None).unwrap();
    assert_eq!(perform(&object, "go"), Ok(false));
    let names = current.current_scheduling_segment_names();
    assert_eq!(names.unwrap(), ["root"]);
}

#[test]
fn a_oneway_call_makes_a_thread_with_the_implicit_parameter() {
    let client = Node::new();
    let server = orb_with(|_| {});
    server
        .set_scheduler(Arc::new(EarliestDeadlineScheduler))
        .unwrap();
    let (tell, told) = mpsc::channel();
    let served = Node::new();
    let object = served.serve(move |call| {
        let current = call.orb().scheduling_current();
        let names = current.current_scheduling_segment_names()?;
        let _ = tell.send((current.id()?, names));
        Ok(())
    });
    let object = client.see(&served, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", Some(&fixed(10)), Some(&fixed(5)));
    let id = current.id().unwrap();
    let sent = object.invoke_oneway(&Operation::oneway("go"), &|_| Ok(()));
    sent.unwrap();
    let (there, names) = told.recv_timeout(PATIENCE).unwrap();
    assert_ne!(there, id);
    assert!(names.is_empty());
    assert_eq!(current.id(), Ok(id));
    assert_eq!(current.scheduling_parameter(), Ok(Some(fixed(10))));
    let priority = client.orb.rt_current().priority().unwrap();
    assert_eq!(priority.value(), 10, "the caller keeps its priority");
    let expected = ["begin root 10", "SendRequest", "ReceiveOther"];
    assert_eq!(client.told.take(), expected);
    server.shutdown(true).unwrap();
}

#[test]
fn an_asynchronous_call_makes_a_thread_with_the_implicit_parameter() {
    let (client, server) = (Node::new(), Node::new());
    let (tell, told) = mpsc::channel();
    let object = server.serve(move |call| {
        let current = call.orb().scheduling_current();
        let _ = tell.send((current.id()?, call.orb().rt_current().time_left()));
        Ok(())
    });
    let object = client.see(&server, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", Some(&fixed(10)), Some(&fixed(5)));
    let id = current.id().unwrap();
    let pending = begin(&object).unwrap();
    let (there, left) = told.recv_timeout(PATIENCE).unwrap();
    assert_ne!(there, id);
    assert_eq!(left, None);
    assert_eq!(pending.wait(), Ok(()));
    assert_eq!(current.id(), Ok(id));
    let priority = client.orb.rt_current().priority().unwrap();
    assert_eq!(priority.value(), 10, "the caller keeps its priority");
    let expected = [
        "begin root 10",
        "SendRequest",
        "ReceiveOther",
        "SendPoll",
        "ReceiveReply",
    ];
    assert_eq!(client.told.take(), expected);
    let _until = client
        .orb
        .rt_current()
        .constrain(TimeConstraint::within(PATIENCE));
    assert_eq!(begin(&object).unwrap().wait(), Ok(()));
    let (again, left) = told.recv_timeout(PATIENCE).unwrap();
    assert!(again != id && again != there, "each is a thread of its own");
    assert!(left.is_some_and(|left| left > 0), "the deadline travels");
}

#[test]
fn a_deadline_within_a_segment_of_fixed_priority_travels() {
    let (client, server) = (Node::new(), Node::new());
    let (tell, told) = mpsc::channel();
    let object = server.serve(move |call| {
        let id = call.orb().scheduling_current().id()?;
        let _ = tell.send((id, call.orb().rt_current().time_left()));
        Ok(())
    });
    let object = client.see(&server, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", Some(&fixed(10)), None);
    let id = current.id().unwrap();
    assert_eq!(perform(&object, "go"), Ok(false));
    assert_eq!(told.recv_timeout(PATIENCE), Ok((id, None)));
    let constraint = TimeConstraint::within(PATIENCE);
    let until = client.orb.rt_current().constrain(constraint);
    assert_eq!(perform(&object, "go"), Ok(false));
    let (there, left) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(there, id);
    assert!(left.is_some_and(|left| left > 0));
    drop(until);
    assert_eq!(perform(&object, "go"), Ok(false));
    assert_eq!(told.recv_timeout(PATIENCE), Ok((id, None)));
}

#[test]
fn exceptions_of_a_server_do_not_cancel() {
    let (client, server) = (Node::new(), Node::new());
    let object = server.serve(|call| match call.operation() {
        b"fail" => Err(SystemException::maybe(SystemExceptionKind::Unknown, 7)),
        b"panic" => panic!("as a test"),
        _ => Ok(()),
    });
    let object = client.see(&server, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", None, None).unwrap();
    let id = current.id().unwrap();
    assert_eq!(
        perform(&object, "refuse"),
        Ok(true),
        "an exception of the user"
    );
    for operation in ["fail", "panic"] {
        let failed = perform(&object, operation).unwrap_err();
        assert_eq!(failed.kind, SystemExceptionKind::Unknown, "{operation}");
    }
    assert_eq!(current.id(), Ok(id));
    assert_eq!(client.told.cancellations(), 0);
    assert_eq!(server.told.cancellations(), 0);
    assert_eq!(perform(&object, "go"), Ok(false), "the lane lives");
}

#[test]
fn a_panic_of_a_servant_ends_its_segments() {
    let (client, server) = (Node::new(), Node::new());
    let object = server.serve(|call| {
        let current = call.orb().scheduling_current();
        let _segment = current.segment("guarded", None, None);
        let begun = current.begin_scheduling_segment("open", None, None);
        begun.expect("it is supported");
        panic!("as a test");
    });
    let object = client.see(&server, &object);
    let current = client.orb.scheduling_current();
    let _segment = current.segment("root", None, None).unwrap();
    let failed = perform(&object, "go").unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::Unknown);
    let told = server.told.take();
    let expected = [
        "ReceiveRequest",
        "nest guarded -1",
        "nest open -1",
        "end open to -1",
        "end guarded to -1",
        "SendException",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_call_outside_of_segments_brings_no_thread() {
    let (client, server) = (Node::new(), Node::new());
    let object = server.serve(|call| {
        assert!(call.orb().scheduling_current().id().is_err());
        Ok(())
    });
    let object = client.see(&server, &object);
    assert_eq!(perform(&object, "go"), Ok(false));
    let current = client.orb.scheduling_current();
    drop(current.segment("root", None, None));
    assert_eq!(perform(&object, "go"), Ok(false));
    assert!(server.told.take().is_empty());
}

#[test]
fn requests_that_wait_are_served_by_the_urgency_of_their_threads() {
    let server = Node::with(|config| {
        config.lane_order = LaneOrder::Urgency;
        config.threads = 1.into();
    });
    let gate = Arc::new(Latch::default());
    let (tell, told) = mpsc::channel();
    let (entered, held) = (gate.clone(), gate.clone());
    let object = server.serve(move |call| {
        if call.operation() == b"hold" {
            entered.set(1);
            held.reach(2);
        } else {
            let _ = tell.send(call.operation().to_vec());
        }
        Ok(())
    });
    let client = orb_with(|_| {});
    client
        .set_scheduler(Arc::new(MaximumUrgencyScheduler))
        .unwrap();
    let text = server.orb.object_to_string(&object);
    let object = client.string_to_object(&text).unwrap();
    let current = client.scheduling_current();
    let send = |operation| object.invoke_oneway(&Operation::oneway(operation), &|_| Ok(()));
    send("hold").unwrap();
    gate.reach(1);
    let now = Monotonic::now();
    let urgency = |criticality, seconds| SchedulingParameter::MaximumUrgency {
        deadline: now + Duration::from_secs(seconds),
        estimated_initial_execution_time: Duration::from_millis(1),
        criticality,
    };
    for (operation, criticality, seconds) in [("low", 1, 600), ("late", 5, 1800), ("soon", 5, 1200)]
    {
        let parameter = urgency(criticality, seconds);
        let segment = current.segment("root", Some(&parameter), Some(&parameter));
        let _segment = segment.unwrap();
        send(operation).unwrap();
    }
    let waiting = || {
        let pools = server.orb.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.queued).sum::<u32>()
    };
    let deadline = Deadline::after(PATIENCE);
    while waiting() < 3 && !deadline.has_passed() {
        std::thread::yield_now();
    }
    gate.set(2);
    for expected in ["soon", "late", "low"] {
        let served = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(String::from_utf8_lossy(&served), expected);
    }
    client.shutdown(true).unwrap();
}

/// Sends a request with these contexts, and reads its reply. Returns the status of the reply.
fn status_of_reply(object: &Object, contexts: &[ServiceContext<'_>]) -> u8 {
    let profile = IiopProfile::decode(&object.ior().profiles[0].data).expect("it is IIOP");
    let mut frame = Frame::new(512, usize::MAX);
    let header = RequestHeader {
        request_id: 7,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(&profile.object_key),
        operation: b"go",
        contexts,
    };
    let version = Version::V1_2;
    let mut e = start_message(&mut frame, version, MessageType::Request).expect("room");
    encode_request(&mut e, version, &header).expect("room");
    finish_message(&mut frame);
    let stream = TcpStream::connect((profile.host.as_str(), profile.port));
    let mut stream = stream.expect("it listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket has a time-out");
    stream.write_all(frame.as_slice()).expect("it is open");
    let mut reply = [0; 24];
    stream.read_exact(&mut reply).expect("there is a reply");
    assert_eq!(reply[12], 7, "the id of the request");
    reply[16]
}

#[test]
fn contexts_of_others_and_of_unknown_versions_have_no_effect() {
    let server = Node::new();
    let object = server.serve(|call| {
        assert!(call.orb().scheduling_current().id().is_err());
        Ok(())
    });
    let known = SchedulingContext {
        guid: [1; 16],
        ..SchedulingContext::default()
    };
    let mut unknown = known.encode();
    unknown[1] = 200;
    let without_a_thread = SchedulingContext::default().encode();
    let of_tao = [0, 0, 0, 0, 0, 0, 0, 9];
    let contents: [(u32, &[u8]); 3] = [
        (contexts::SCHEDULING, &unknown),
        (contexts::SCHEDULING, &without_a_thread),
        (30, &of_tao),
    ];
    for (id, data) in contents {
        let status = status_of_reply(&object, &[ServiceContext { id, data }]);
        assert_eq!(status, 0, "context {id:#x}");
    }
    // What cannot be read is refused.
    let data = &known.encode()[..40];
    let id = contexts::SCHEDULING;
    let status = status_of_reply(&object, &[ServiceContext { id, data }]);
    assert_eq!(status, 2, "a system exception");
    assert!(server.told.take().is_empty());
}

#[test]
fn a_deadline_travels_as_the_time_that_is_left() {
    let (client, server) = (orb_with(|_| {}), orb_with(|_| {}));
    for orb in [&client, &server] {
        orb.set_scheduler(Arc::new(EarliestDeadlineScheduler))
            .unwrap();
    }
    let (tell, told) = mpsc::channel();
    let server = Node {
        orb: server,
        told: Arc::default(),
    };
    let object = server.serve(move |call| {
        let current = call.orb().scheduling_current();
        let _ = tell.send((current.scheduling_parameter()?, Monotonic::now()));
        Ok(())
    });
    let text = server.orb.object_to_string(&object);
    let object = client.string_to_object(&text).unwrap();
    let current = client.scheduling_current();
    let ahead = Duration::from_secs(5);
    for deadline in [
        Monotonic::now() + ahead,
        Monotonic::from_nanos(Monotonic::now().as_nanos() - 1_000_000),
    ] {
        let parameter = SchedulingParameter::EarliestDeadline {
            deadline,
            importance: -3,
        };
        let _segment = current.segment("root", Some(&parameter), None).unwrap();
        // The second call has a header that was prepared by the first one.
        for _ in 0..2 {
            let begun = Monotonic::now();
            assert_eq!(perform(&object, "go"), Ok(false));
            let (there, arrived) = told.recv_timeout(PATIENCE).unwrap();
            let Some(SchedulingParameter::EarliestDeadline {
                deadline: there,
                importance: -3,
            }) = there
            else {
                panic!("{there:?}");
            };
            assert!(there >= deadline, "it is never earlier");
            let late = there.since(deadline);
            assert!(
                late <= arrived.since(begun),
                "late by the way there at most"
            );
        }
    }
    client.shutdown(true).unwrap();
}
