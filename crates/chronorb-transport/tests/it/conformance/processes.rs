//! Events between processes: sudden death, and lack of resources.

use std::fs::File;
use std::thread;

use chronorb_transport::{AcceptError, Acceptor, Connection, IoError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::process::{Other, from_word, tell, to_word, told};
use super::subject::{
    Subject, accept, first_message, hello, message, patience, receive, until_readable,
};

pub(crate) fn a_killed_peer_is_the_end_of_the_stream(subject: &Subject) {
    let Some((_acceptor, far)) = far_of_one_to_be_killed(subject) else {
        return;
    };
    let end = far.recv(&mut [0], patience());
    assert!(
        matches!(end, Err(IoError::Ended | IoError::Closed)),
        "{end:?}"
    );
    assert!(far.is_stale());
}

pub(crate) fn a_killed_peer_holds_up_no_other(subject: &Subject) {
    let Some((acceptor, _far)) = far_of_one_to_be_killed(subject) else {
        return;
    };
    let near = subject.connect(&acceptor.published()[0]);
    near.send_all(&hello(), patience()).expect("it is taken");
    // Transports where all peers come by one connection have no further one to accept.
    let far = match _far.carriage() {
        chronorb_transport::Carriage::Messages {
            many_peers: true, ..
        } => _far,
        _ => accept(&*acceptor),
    };
    assert_eq!(first_message(&*far), Ok(hello()));
    near.send_all(&message(99, 1), patience())
        .expect("it is taken");
    assert!(receive(&*far, 99) == message(99, 1));
}

/// The connection of another process, which has been killed; `None` in that process.
fn far_of_one_to_be_killed(subject: &Subject) -> Option<(Box<dyn Acceptor>, Box<dyn Connection>)> {
    if let Some(address) = told() {
        let near = subject.connect(&from_word(&address));
        near.send_all(&hello(), patience()).expect("it is taken");
        loop {
            thread::park();
        }
    }
    let acceptor = subject.listen();
    let other = Other::start(subject, &to_word(&acceptor.published()[0]));
    let far = accept(&*acceptor);
    assert_eq!(first_message(&*far), Ok(hello()));
    other.kill();
    Some((acceptor, far))
}

pub(crate) fn without_descriptors_a_connection_stays_outside(subject: &Subject) {
    if told().is_some() {
        return listen_without_descriptors(subject);
    }
    let mut other = Other::start(subject, "listen");
    let near = subject.connect(&from_word(&other.word()));
    near.send_all(&hello(), patience()).expect("it is taken");
    other.finish();
}

fn listen_without_descriptors(subject: &Subject) {
    let limit = Rlimit {
        current: Some(100),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).expect("less is allowed");
    let acceptor = subject.listen();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    tell(&to_word(&acceptor.published()[0]));
    until_readable(&acceptor);
    for _ in 0..3 {
        let refused = acceptor.accept().map(|connection| connection.is_some());
        assert_eq!(refused, Err(AcceptError::Exhausted));
    }
    drop(files);
    let far = accept(&*acceptor);
    assert_eq!(first_message(&*far), Ok(hello()), "nothing was lost");
}
