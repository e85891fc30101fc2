//! The thread of a listener that processes packets on arrival, and serves the input that it finds.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::driver::wire::{Faults, Side};
use crate::engine::{ClassConfig, ClassProcessing, Listener, ListenerEvent};
use crate::tests::support::rig::wired;

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits as the thread of a lane does, and returns what it finds.
fn next(listener: &Listener) -> Option<ListenerEvent> {
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    let ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience));
    assert_eq!(ready, Ok(1), "nothing wakes the thread");
    listener.next_arrival().expect("a wire does not fail")
}

#[test]
fn a_thread_that_serves_input_is_woken_for_the_acknowledgement_of_unanswered_octets() {
    let (wire, [client, server]) = wired();
    let (near, far) = (client.subsystem(), server.subsystem());
    let class = far.open(ClassConfig {
        processing: ClassProcessing::OnArrival,
        ..ClassConfig::default()
    });
    let class = class.expect("there are classes left");
    let peers = near.open(ClassConfig::default());
    let peers = peers.expect("there are classes left");
    let listener = class.listen((server.address(), 4712).into());
    let listener = listener.expect("the port is free");
    let (at, (begin, told)) = (listener.address(), channel());
    thread::scope(|scope| {
        let peer = scope.spawn(move || {
            let deadline = Deadline::after(PATIENCE);
            let stream = peers.connect(at, deadline).expect("there is room");
            told.recv().expect("the server has it");
            stream.send(&[7; 100], &[], deadline).expect("it is open");
            stream
        });
        let stream = loop {
            if let Some(ListenerEvent::Stream(stream)) = next(&listener) {
                break stream;
            }
        };
        stream.set_token(7);
        begin.send(()).expect("the peer waits");
        while !matches!(next(&listener), Some(ListenerEvent::Input(7))) {}
        assert_eq!(stream.try_receive(&mut [0; 200]), Ok(100));
        // From now on only the timer can wake the thread.
        let loss = Faults {
            loss: 1.0,
            ..Faults::default()
        };
        let disturb = |faults| [Side::Left, Side::Right].map(|side| wire.disturb(side, faults, 1));
        disturb(loss);
        let sent = || class.counts().transmitted.frames;
        let before = sent();
        let again = listener.next_arrival().expect("a wire does not fail");
        assert!(again.is_none(), "{again:?}");
        while sent() == before {
            assert!(next(&listener).is_none());
        }
        disturb(Faults::default());
        drop(peer.join());
    });
}
