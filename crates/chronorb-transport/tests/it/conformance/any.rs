//! Octets from the connecting side to the accepting side, and endpoints.

use chronorb_transport::{Address, ConnectError, parse_endpoints};

use super::subject::{Subject, message, patience, receive, setup, soon};

pub(crate) fn what_is_sent_arrives_in_order(subject: &Subject) {
    let (near, far) = subject.pair();
    for number in 1..100 {
        let sent = message(12 + 9 * number, number);
        if number % 2 == 0 {
            near.send_all(&sent, patience()).expect("it is taken");
        } else {
            assert_eq!(near.try_send(&sent), Ok(sent.len()), "there is room");
        }
        assert!(receive(&*far, sent.len()) == sent, "message {number}");
    }
}

pub(crate) fn two_pieces_arrive_as_one(subject: &Subject) {
    let (near, far) = subject.pair();
    let whole = message(600, 1);
    for cut in [0, 1, 11, 12, 13, 300, 599, 600] {
        let (first, second) = whole.split_at(cut);
        near.send_both(first, second, patience())
            .expect("it is taken");
        assert!(receive(&*far, whole.len()) == whole, "cut at {cut}");
        assert_eq!(near.try_send_both(first, second), Ok(whole.len()));
        assert!(receive(&*far, whole.len()) == whole, "cut at {cut}");
    }
}

pub(crate) fn every_published_address_can_be_connected_to(subject: &Subject) {
    let acceptor = subject.listen();
    assert!(!acceptor.published().is_empty());
    for address in acceptor.published() {
        let (near, far) = subject.pair_at(&*acceptor, address);
        let sent = message(100, 1);
        near.send_all(&sent, patience()).expect("it is taken");
        assert!(receive(&*far, sent.len()) == sent, "{address}");
    }
}

pub(crate) fn endpoints_do_not_hear_of_each_other(subject: &Subject) {
    let acceptors = [subject.listen_at(0), subject.listen_at(1)];
    let [first, second] = acceptors.each_ref().map(|acceptor| {
        let address = &acceptor.published()[0];
        subject.pair_at(&**acceptor, address)
    });
    for (number, (near, far)) in [second, first].iter().enumerate() {
        let sent = message(100 + number, number);
        near.send_all(&sent, patience()).expect("it is taken");
        assert!(receive(&**far, sent.len()) == sent);
        assert!(far.recv(&mut [0], soon()).is_err(), "nothing else came");
    }
}

pub(crate) fn what_an_endpoint_cannot_be_is_refused_by_name(subject: &Subject) {
    let scheme = subject.transport.scheme();
    let unknown = format!("{scheme}://|colour=red");
    let unknown = match subject.listen().published()[0] {
        Address::Host { .. } => unknown.replace('|', "/"),
        Address::Path(_) => unknown,
    };
    let wrong = subject.wrong.iter().copied();
    for (text, word) in wrong.chain([(unknown.as_str(), "colour")]) {
        let endpoints = parse_endpoints(text).expect("an endpoint");
        let error = subject.transport.check(&endpoints[0]).expect_err(text);
        assert!(error.to_string().contains(word), "{text}: {error}");
        assert_eq!(error.text, endpoints[0].to_string());
    }
}

pub(crate) fn addresses_of_another_form_are_refused(subject: &Subject) {
    let address = match subject.listen().published()[0] {
        Address::Host { .. } => Address::Path("/no/host".to_owned()),
        Address::Path(_) => Address::host("localhost", 1),
    };
    let refused = subject.transport.connect(&address, setup(), patience());
    let error = refused.expect_err("it is no address of this transport");
    assert!(
        matches!(error, ConnectError::Refused { .. }),
        "it was not tried: {error}"
    );
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

pub(crate) fn a_connection_knows_its_properties(subject: &Subject) {
    let (near, far) = subject.pair();
    for end in [near, far] {
        end.options().expect("it is open");
        assert_ne!(end.peer(), "");
        assert!(end.is_established());
    }
}

pub(crate) fn an_acceptor_without_peers_gives_nothing_and_does_not_wait(subject: &Subject) {
    let acceptor = subject.listen();
    let _first = subject.pair_at(&*acceptor, &acceptor.published()[0]);
    for _ in 0..2 {
        assert!(acceptor.accept().expect("it is open").is_none());
    }
}
