//! Requirements of all drivers.

use std::net::IpAddr;

use crate::class::{MAX_CLASSES, MAX_RULES, Rule, RuleError, Unknown};
use crate::driver::{DriverError, MAX_QUEUE};
use crate::path::TransmitError;
use chronorb_rt::forbid;

use super::subject::{Subject, class, is_readable, next, numbers, numbers_of_flows, ports, send};
use crate::tests::support::frames::{TestFrame, checksum, number_of};

const ETHERNET: usize = 14;
const TAG: usize = 4;

pub(crate) fn frames_of_a_class_come_by_its_path_and_no_others(subject: &Subject) {
    let mut one = subject.open(1, 2001);
    let mut other = subject.open(2, 2002);
    let mut sent = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        sent[0].push(subject.send(&subject.frame(2001)));
        subject.send(&subject.frame(2003));
        sent[1].push(subject.send(&subject.frame(2002)));
    }
    assert_eq!(numbers(&mut *one.receiver, 10), sent[0]);
    assert_eq!(numbers(&mut *other.receiver, 10), sent[1]);
    subject.expect_nothing_more(&mut [(&mut *one.receiver, 2001), (&mut *other.receiver, 2002)]);
}

pub(crate) fn a_frame_comes_as_it_was_sent(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let longest = longest(subject);
    let lens = [80, 81, 1000, longest - 1, longest];
    for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        for len in lens {
            let frame = subject.frame_of(2001, family).len(len);
            let number = subject.send(&frame);
            assert_eq!(next(&mut *path.receiver).octets, frame.octets(number));
        }
    }
    let counts = path.receiver.counts();
    let octets = 2 * lens.iter().sum::<usize>() as u64;
    assert_eq!((counts.frames, counts.octets), (10, octets));
    assert_eq!((counts.dropped, counts.failed), (0, 0));
}

pub(crate) fn frames_of_a_class_keep_their_order(subject: &Subject) {
    let mut path = subject.open_with(1, &[ports(1, 2001..=2001)], 256);
    for _ in 0..20 {
        let sent = subject.send_many(&subject.frame(2001), 200);
        assert_eq!(numbers(&mut *path.receiver, 200), sent);
    }
}

/// A full queue holds at least the requested number of frames. A driver with memory in pieces holds
/// more short ones.
pub(crate) fn a_full_queue_drops_what_comes_last_and_counts_it(subject: &Subject) {
    let mut full = subject.open_with(1, &[ports(1, 2001..=2001)], 16);
    let mut other = subject.open_with(2, &[ports(2, 2002..=2002)], 16);
    let (mut flood, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        flood.extend(subject.send_many(&subject.frame(2001), 16));
        sent.push(subject.send(&subject.frame(2002)));
    }
    assert_eq!(numbers(&mut *other.receiver, 16), sent);
    assert_eq!(other.receiver.counts().dropped, 0);
    let mut arrived = Vec::new();
    while is_readable(&*full.receiver) {
        arrived.extend(numbers(&mut *full.receiver, 1));
    }
    assert!((16..128).contains(&arrived.len()), "{}", arrived.len());
    assert_eq!(arrived, flood[..arrived.len()]);
    subject.expect_nothing_more(&mut [(&mut *full.receiver, 2001)]);
    let dropped = flood.len() - arrived.len();
    assert_eq!(full.receiver.counts().dropped, dropped as u64);
    // Reading the count does not change it.
    assert_eq!(full.receiver.counts().dropped, dropped as u64);
    assert_eq!(full.receiver.counts().frames, arrived.len() as u64 + 1);
}

pub(crate) fn what_is_transmitted_arrives_whole_whatever_its_length(subject: &Subject) {
    let mut path = subject.open_with(1, &[], 32);
    let longest = longest(subject);
    // Each length, or each seventh if there are many.
    let step = if longest > 2000 { 7 } else { 1 };
    let lens = || (80..=longest).rev().step_by(step);
    for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        for len in lens() {
            let frame = subject.frame_back(2001, family).len(len);
            let octets = frame.octets(len as u32);
            send(&mut *path.transmitter, &octets);
            assert!(subject.far_frame() == octets, "of {len} octets");
        }
    }
    let counts = path.transmitter.counts();
    assert_eq!(counts.frames, 2 * lens().count() as u64);
    assert_eq!(counts.octets, 2 * lens().sum::<usize>() as u64);
}

/// The shortest Ethernet frame carries a TCP packet of IPv4 without payload.
pub(crate) fn the_shortest_frame_arrives_both_ways(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let short = |frame: TestFrame| {
        let mut octets = frame.len(80).octets(0);
        octets.truncate(60);
        let len = 60 - ETHERNET as u8;
        octets[17] = len;
        octets[24..26].fill(0);
        let sum = checksum(&[&octets[14..34]]);
        octets[24..26].copy_from_slice(&sum);
        octets
    };
    let there = short(subject.frame(2001));
    subject.send_octets(&there);
    assert_eq!(next(&mut *path.receiver).octets, there);
    let back = short(subject.frame_back(2001, IpAddr::is_ipv4));
    send(&mut *path.transmitter, &back);
    assert_eq!(subject.far_frame(), back);
}

pub(crate) fn several_frames_go_with_one_flush(subject: &Subject) {
    let mut path = subject.open_with(1, &[], 64);
    for number in 0..64 {
        let octets = subject
            .frame_back(2001, IpAddr::is_ipv4)
            .len(80 + 20 * number as usize)
            .octets(number);
        path.transmitter
            .transmit(octets.len(), &mut |room| room.copy_from_slice(&octets))
            .expect("there is room");
    }
    path.transmitter.flush().expect("the interface is there");
    for number in 0..64 {
        assert_eq!(number_of(&subject.far_frame()), Some(number));
    }
}

pub(crate) fn a_frame_that_is_too_long_is_refused(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let longest = longest(subject) + TAG;
    let mut was_written = false;
    let refused = path
        .transmitter
        .transmit(longest + 1, &mut |_| was_written = true);
    match refused {
        Err(TransmitError::TooLong { len, max }) => {
            assert_eq!(len, longest + 1);
            assert!((longest - TAG..=longest).contains(&max));
        }
        other => panic!("{other:?}"),
    }
    assert!(!was_written);
    assert_eq!(path.transmitter.counts().frames, 0);
}

pub(crate) fn a_full_transmit_queue_refuses_and_counts(subject: &Subject) {
    let mut path = subject.open_with(1, &[], 64);
    let frame = subject.frame_back(2001, IpAddr::is_ipv4);
    let mut queued = 0;
    while path.transmitter.has_room() {
        let octets = frame.octets(queued);
        path.transmitter
            .transmit(octets.len(), &mut |room| room.copy_from_slice(&octets))
            .expect("it has said so");
        queued += 1;
    }
    assert_eq!(queued, 64);
    let refused = path.transmitter.transmit(100, &mut |_| ());
    assert!(matches!(refused, Err(TransmitError::Full)), "{refused:?}");
    assert_eq!(path.transmitter.counts().full, 1);
    path.transmitter.flush().expect("the interface is there");
    for number in 0..64 {
        assert_eq!(number_of(&subject.far_frame()), Some(number));
    }
    assert!(path.transmitter.has_room());
}

pub(crate) fn the_descriptor_is_readable_while_frames_are_there(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let mut other = subject.open(2, 2002);
    for _ in 0..3 {
        assert!(!is_readable(&*path.receiver));
        subject.send_many(&subject.frame(2001), 3);
        subject.expect_nothing_more(&mut [(&mut *other.receiver, 2002)]);
        for _ in 0..3 {
            assert!(is_readable(&*path.receiver));
            assert!(!is_readable(&*other.receiver));
            numbers(&mut *path.receiver, 1);
        }
        assert!(!is_readable(&*path.receiver));
        let is_there = path.receiver.receive(&mut |_| ());
        assert!(!is_there.expect("the interface is there"));
    }
}

pub(crate) fn frames_that_wait_are_counted(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let mut other = subject.open(2, 2002);
    for _ in 0..3 {
        assert_eq!(path.receiver.waiting(), 0);
        subject.send_many(&subject.frame(2001), 5);
        subject.expect_nothing_more(&mut [(&mut *other.receiver, 2002)]);
        assert_eq!(other.receiver.waiting(), 0);
        for left in (0..5).rev() {
            numbers(&mut *path.receiver, 1);
            assert_eq!(path.receiver.waiting(), left);
        }
    }
}

pub(crate) fn dropping_a_receiver_gives_its_packets_back(subject: &Subject) {
    let mut rest = subject.open(2, 2002);
    let unknown = Unknown::Class(class(2));
    subject.near.set_unknown(unknown).expect("it is open");
    let mut path = subject.open(1, 2001);
    let first = subject.send(&subject.frame(2001));
    assert_eq!(numbers(&mut *path.receiver, 1), [first]);
    drop(path);
    let second = subject.send(&subject.frame(2001));
    assert_eq!(numbers(&mut *rest.receiver, 1), [second]);
    // The class is free again, with other rules.
    let mut path = subject.open(1, 2003);
    let third = subject.send(&subject.frame(2001));
    let fourth = subject.send(&subject.frame(2003));
    assert_eq!(numbers(&mut *rest.receiver, 1), [third]);
    assert_eq!(numbers(&mut *path.receiver, 1), [fourth]);
}

pub(crate) fn what_a_receiver_leaves_is_forgotten(subject: &Subject) {
    let path = subject.open(1, 2001);
    let mut other = subject.open(2, 2002);
    subject.send_many(&subject.frame(2001), 5);
    subject.expect_nothing_more(&mut [(&mut *other.receiver, 2002)]);
    drop(path);
    let mut path = subject.open(1, 2001);
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
}

pub(crate) fn unknown_packets_go_where_they_are_told(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    subject.send(&subject.frame(2009));
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
    let unknown = Unknown::Class(class(1));
    subject.near.set_unknown(unknown).expect("it is open");
    let sent = subject.send(&subject.frame(2009));
    assert_eq!(numbers(&mut *path.receiver, 1), [sent]);
    // Packets of other protocols still go to the kernel.
    subject.send(&subject.frame(2009).protocol(17));
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
    let unknown = Unknown::Kernel;
    subject.near.set_unknown(unknown).expect("it is there");
    subject.send(&subject.frame(2009));
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
    let closed = subject.near.set_unknown(Unknown::Class(class(7)));
    assert!(
        matches!(&closed, Err(DriverError::Closed(it)) if *it == class(7)),
        "{closed:?}"
    );
}

pub(crate) fn rules_come_and_go_while_it_is_open(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    for round in 0..5 {
        let rule = ports(1, 3000 + round..=3001 + round);
        subject.send(&subject.frame(3001 + round));
        subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
        subject.near.add(&rule).expect("there is room");
        let sent = subject.send(&subject.frame(3001 + round));
        assert_eq!(numbers(&mut *path.receiver, 1), [sent]);
        subject.near.remove(&rule);
    }
    subject.send(&subject.frame(3001));
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
}

pub(crate) fn the_oldest_rule_that_matches_wins(subject: &Subject) {
    let mut old = subject.open_with(5, &[ports(5, 2000..=2005)], 16);
    let mut young = subject.open_with(1, &[ports(1, 2005..=2010)], 16);
    let sent = [2000, 2005, 2006, 2010, 2011].map(|port| subject.send(&subject.frame(port)));
    assert_eq!(numbers_of_flows(&mut *old.receiver, 2), sent[..2]);
    assert_eq!(numbers_of_flows(&mut *young.receiver, 2), sent[2..4]);
    subject.near.remove(&ports(5, 2000..=2005));
    let sent = subject.send(&subject.frame(2005));
    assert_eq!(numbers(&mut *young.receiver, 1), [sent]);
    subject
        .near
        .add(&ports(5, 2000..=2005))
        .expect("it was there before");
    let sent = [2004, 2005].map(|port| subject.send(&subject.frame(port)));
    assert_eq!(numbers(&mut *old.receiver, 1), sent[..1]);
    assert_eq!(numbers(&mut *young.receiver, 1), sent[1..]);
}

pub(crate) fn rules_may_name_addresses_code_points_and_priorities(subject: &Subject) {
    let v4 = subject.frame(0).to;
    let v6 = subject.frame_of(0, IpAddr::is_ipv6).to;
    let rules = |number: usize, narrow: fn(Rule) -> Rule| [narrow(Rule::all(class(number)))];
    let mut expedited = subject.open_with(
        1,
        &rules(1, |all| Rule {
            dscp: Some(46),
            ..all
        }),
        16,
    );
    let tagged = |all| Rule {
        vlan_priority: Some(6),
        ..all
    };
    let mut tagged = subject.open_with(2, &rules(2, tagged), 16);
    let to = |number, to| Rule {
        to: Some(to),
        ..Rule::all(class(number))
    };
    let mut by_4 = subject.open_with(3, &[to(3, v4)], 16);
    let mut by_6 = subject.open_with(4, &[to(4, v6)], 16);
    for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let frame = subject.frame_of(2001, family);
        let sent = subject.send(&frame.clone().dscp(46));
        assert_eq!(numbers(&mut *expedited.receiver, 1), [sent]);
        let sent = subject.send(&frame.clone().vlan(6, 0));
        assert_eq!(numbers(&mut *tagged.receiver, 1), [sent]);
        let sent = [
            subject.send(&frame.clone().dscp(45)),
            subject.send(&frame.clone().vlan(5, 0)),
            subject.send(&frame),
        ];
        let receiver = if frame.to.is_ipv4() {
            &mut by_4.receiver
        } else {
            &mut by_6.receiver
        };
        assert_eq!(numbers_of_flows(&mut **receiver, 3), sent);
    }
}

pub(crate) fn a_vlan_tag_stays_in_its_frame_both_ways(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        for len in [84, 1000, longest(subject) + TAG] {
            let frame = subject.frame_of(2001, family).vlan(5, 0).len(len);
            let number = subject.send(&frame);
            assert_eq!(next(&mut *path.receiver).octets, frame.octets(number));
            let frame = subject.frame_back(2001, family).vlan(3, 0).len(len);
            send(&mut *path.transmitter, &frame.octets(number));
            assert_eq!(subject.far_frame(), frame.octets(number));
        }
    }
}

pub(crate) fn fragments_and_other_protocols_are_the_kernels(subject: &Subject) {
    let mut path = subject.open_with(1, &[Rule::all(class(1))], 16);
    subject.send(&subject.frame(2001).fragment());
    for protocol in [1, 17, 58, 132] {
        subject.send(&subject.frame(2001).protocol(protocol));
        subject.send(&subject.frame_of(2001, IpAddr::is_ipv6).protocol(protocol));
    }
    let mut no_ip = subject.frame(2001).octets(0);
    no_ip[12..14].copy_from_slice(&[0x88, 0xb5]);
    subject.send_octets(&no_ip);
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
}

pub(crate) fn packets_to_other_hosts_are_no_class_s(subject: &Subject) {
    let mut path = subject.open_with(1, &[Rule::all(class(1))], 16);
    let mut frame = subject.frame(2001);
    frame.to = [192, 0, 2, 1].into();
    subject.send(&frame);
    let mut frame = subject.frame_of(2001, IpAddr::is_ipv6);
    frame.to = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into();
    subject.send(&frame);
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
}

/// A promiscuous interface sees them, as the end of a wire does; otherwise their packets match a
/// class.
pub(crate) fn frames_to_other_interfaces_and_to_many_are_no_class_s(subject: &Subject) {
    let mut path = subject.open_with(1, &[Rule::all(class(1))], 16);
    let unknown = Unknown::Class(class(1));
    subject.near.set_unknown(unknown).expect("it is open");
    let own = subject.near.link().hardware;
    let mut others = own.map(|_| own);
    for (place, other) in others.iter_mut().enumerate() {
        other[place] ^= 4;
    }
    let many = [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];
    for to in others.into_iter().chain(many) {
        for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
            let mut frame = subject.frame_of(2001, family);
            frame.hardware[0] = to;
            subject.send(&frame);
        }
    }
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
    assert_eq!(path.receiver.counts().frames, 1);
}

pub(crate) fn what_is_refused_changes_nothing(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let again = subject.near.open(class(1), &[ports(1, 2002..=2002)], 16);
    assert!(matches!(again, Err(DriverError::Open(_))), "{again:?}");
    let closed = subject.near.add(&ports(2, 2002..=2002));
    assert!(matches!(closed, Err(DriverError::Closed(_))), "{closed:?}");
    let wrong = Rule {
        dscp: Some(64),
        ..Rule::all(class(2))
    };
    let rules = [ports(2, 2002..=2002), wrong];
    let refused = subject.near.open(class(2), &rules, 16);
    let is_dscp = |error: &DriverError| matches!(error, DriverError::Rule(RuleError::Dscp(64)));
    assert!(refused.as_ref().is_err_and(is_dscp), "{refused:?}");
    for long in [MAX_QUEUE + 1, usize::MAX] {
        let refused = subject.near.open(class(2), &[], long);
        let is_long = |error: &DriverError| matches!(error, DriverError::LongQueue(_));
        assert!(refused.as_ref().is_err_and(is_long), "{refused:?}");
    }
    let many: Vec<_> = (0..MAX_RULES as u16)
        .map(|n| ports(2, 4000 + n..=4000 + n))
        .collect();
    let refused = subject.near.open(class(2), &many, 16);
    let is_many = |error: &DriverError| matches!(error, DriverError::Rule(RuleError::TooMany));
    assert!(refused.as_ref().is_err_and(is_many), "{refused:?}");
    subject.send(&subject.frame(2002));
    subject.send(&subject.frame(4000));
    subject.expect_nothing_more(&mut [(&mut *path.receiver, 2001)]);
    // One fewer fits beside the class that is open.
    let mut second = subject.open_with(2, &many[1..], 16);
    let sent = subject.send(&subject.frame(4000 + MAX_RULES as u16 - 1));
    assert_eq!(numbers(&mut *second.receiver, 1), [sent]);
}

pub(crate) fn all_classes_can_be_open_at_once(subject: &Subject) {
    let port = |number: usize| 2000 + number as u16;
    let open =
        |number| subject.open_with(number, &[ports(number, port(number)..=port(number))], 16);
    let mut paths: Vec<_> = (0..MAX_CLASSES).map(open).collect();
    for (number, path) in paths.iter_mut().enumerate() {
        let sent = subject.send(&subject.frame(port(number)));
        assert_eq!(numbers(&mut *path.receiver, 1), [sent]);
        let octets = subject
            .frame_back(port(number), IpAddr::is_ipv4)
            .octets(sent);
        send(&mut *path.transmitter, &octets);
        assert_eq!(subject.far_frame(), octets);
    }
}

pub(crate) fn no_frame_allocates(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let tagged = subject.frame(2001).vlan(5, 0).octets(1);
    let back = subject.frame_back(2001, IpAddr::is_ipv4).octets(1);
    for _ in 0..100 {
        subject.send_octets(&tagged);
        let mut octets = 0;
        while octets == 0 {
            forbid(|| {
                let mut take = |frame: crate::path::Frame<'_>| octets = frame.octets.len();
                path.receiver.receive(&mut take).map(|_| ())
            })
            .expect("the interface is there");
        }
        assert_eq!(octets, tagged.len());
        forbid(|| {
            let mut write = |room: &mut [u8]| room.copy_from_slice(&back);
            path.transmitter.transmit(back.len(), &mut write)?;
            path.transmitter.flush()?;
            Ok::<_, TransmitError>(())
        })
        .expect("the interface is there");
        assert_eq!(subject.far_frame(), back);
    }
}

/// The length of the longest frame without a tag, in octets.
fn longest(subject: &Subject) -> usize {
    subject.near.link().mtu + ETHERNET
}
