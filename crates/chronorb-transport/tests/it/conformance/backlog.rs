//! Connections that are not accepted.

use std::thread;

use chronorb_transport::ConnectError;

use super::subject::{Subject, accept, first_message, hello, patience, setup, soon};

pub(crate) fn a_full_backlog_holds_nobody_longer_than_its_deadline(subject: &Subject) {
    let acceptor = subject.listen();
    let address = &acceptor.published()[0];
    // As short as the kernel makes it, so that a few fill it.
    rustix::net::listen(&acceptor, 0).expect("it is a listening socket");
    let mut waiting = Vec::new();
    let error = loop {
        match subject.transport.connect(address, setup(), soon()) {
            Ok(connection) => waiting.push(connection),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100, "the backlog has no end");
    };
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
    drop(waiting);

    // A patient client is accepted after those that have given up.
    thread::scope(|scope| {
        let patient = scope.spawn(|| {
            let near = subject.connect(address);
            near.send_all(&hello(), patience()).expect("it is taken");
            near
        });
        while first_message(&*accept(&*acceptor)) != Ok(hello()) {}
        patient.join().expect("no panic");
    });
}
