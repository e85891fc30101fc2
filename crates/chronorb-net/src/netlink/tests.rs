//! Requests to the kernel, octet by octet, and arbitrary answers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::message::{Answer, Answers, Request};
use super::qdisc::{Discipline, Handle, Share};
use super::{LinkInfo, Neighbour, Route, address, link, neighbour, qdisc, route};

/// Builds a netlink message of this kind from a fixed part and the attributes that `fill` adds, and
/// returns what `read` makes of it as an answer of the kernel.
fn answered<T>(
    kind: u16,
    fixed: &[u8],
    fill: impl FnOnce(&mut Request),
    read: impl FnOnce(Answer<'_>) -> T,
) -> T {
    let mut message = Request::new(kind, 0, fixed);
    fill(&mut message);
    let octets = message.finish(1).expect("it is short");
    read(Answers(&octets).next().expect("one").expect("well formed"))
}

#[test]
fn a_link_is_read() {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&7_u32.to_ne_bytes());
    fixed[8..12].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    let fill = |message: &mut Request| {
        message.text(libc::IFLA_IFNAME, "rio0");
        message.attribute(libc::IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1]);
        message.number(libc::IFLA_MTU, 9000);
        message.text(libc::IFLA_IFALIAS, "the first");
        message.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "veth")
        });
    };
    let read = answered(libc::RTM_NEWLINK, &fixed, fill, link::read);
    let link = LinkInfo {
        name: "rio0".to_owned(),
        index: 7,
        hardware: Some([2, 0, 0, 0, 0, 1]),
        mtu: 9000,
        kind: Some("veth".to_owned()),
        master: None,
        is_up: true,
        is_running: false,
        alias: Some("the first".to_owned()),
    };
    assert_eq!(read, Ok(Some(link)));
}

#[test]
fn an_interface_without_an_ethernet_address_has_none() {
    let fill = |message: &mut Request| message.attribute(libc::IFLA_ADDRESS, &[127, 0, 0, 1]);
    let read = answered(libc::RTM_NEWLINK, &[0; 16], fill, link::read);
    assert_eq!(
        read.expect("it is right").expect("it is one").hardware,
        None
    );
}

#[test]
fn a_neighbour_counts_where_its_address_can_be_used() {
    let state = |state: u16| {
        let mut fixed = [0; 12];
        fixed[8..10].copy_from_slice(&state.to_ne_bytes());
        let fill = |message: &mut Request| message.attribute(libc::NDA_LLADDR, &[1, 2, 3, 4, 5, 6]);
        let read = answered(libc::RTM_NEWNEIGH, &fixed, fill, neighbour::read);
        read.expect("it is right").expect("it is one")
    };
    let known = Neighbour::Known([1, 2, 3, 4, 5, 6]);
    assert_eq!(state(libc::NUD_REACHABLE), known);
    assert_eq!(state(libc::NUD_STALE), known);
    assert_eq!(state(libc::NUD_INCOMPLETE), Neighbour::Sought);
    assert_eq!(state(libc::NUD_FAILED), Neighbour::Failed);
}

#[test]
fn a_route_may_lead_by_a_router_of_the_other_protocol() {
    let fill = |message: &mut Request| {
        message.number(libc::RTA_OIF, 3);
        // `struct rtvia`: the family, then the address.
        let mut via = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        via.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        message.attribute(18, &via);
    };
    let read = answered(libc::RTM_NEWROUTE, &[0; 12], fill, route::read);
    let route = Route {
        index: 3,
        gateway: Some("fe80::1".parse().expect("an address")),
        source: None,
    };
    assert_eq!(read, Ok(Some(route)));
}

#[test]
fn what_a_queue_has_sent_is_read() {
    let mut fixed = [0; 20];
    fixed[4..8].copy_from_slice(&3_u32.to_ne_bytes());
    fixed[8..12].copy_from_slice(&Handle::new(1, 0x10).0.to_ne_bytes());
    let fill = |message: &mut Request| {
        message.text(libc::TCA_KIND, "htb");
        let share = Share {
            rate: 1_000_000,
            ceiling: 5_000_000_000,
            burst: 64_000,
            priority: 3,
            quantum: 1538,
        };
        message.nest(libc::TCA_OPTIONS, |options| share.tell(options));
        message.nest(libc::TCA_STATS2, |statistics| {
            let basic = [&5_000_000_000_u64.to_ne_bytes()[..], &10_u32.to_ne_bytes()].concat();
            statistics.attribute(1, &basic);
            statistics.attribute(3, &[4, 600, 2, 0, 9].map(u32::to_ne_bytes).concat());
            statistics.attribute(8, &6_000_000_000_u64.to_ne_bytes());
        });
    };
    let read = |answer: Answer<'_>| qdisc::read(answer, libc::RTM_NEWTCLASS);
    let class = answered(libc::RTM_NEWTCLASS, &fixed, fill, read);
    let class = class.expect("it is right").expect("it is one");
    assert_eq!(
        (&*class.kind, class.index, class.handle),
        ("htb", 3, Handle::new(1, 0x10))
    );
    let rates = class.rates.expect("it is a class of htb");
    assert_eq!((rates.rate, rates.ceiling), (1_000_000, 5_000_000_000));
    assert_eq!(rates.priority, 3);
    let sent = class.sent;
    assert_eq!((sent.octets, sent.packets), (5_000_000_000, 6_000_000_000));
    assert_eq!((sent.waiting, sent.waiting_octets), (4, 600));
    assert_eq!((sent.dropped, sent.over_rate), (2, 9));
}

#[cfg(target_endian = "little")]
#[test]
fn a_rate_is_told_in_octets_a_second() {
    let mut request = Request::new(0, 0, &[]);
    let rate = Discipline::Rate {
        rate: 0x1_0203_0405,
        burst: 0x1000,
        limit: 0x2_0000,
    };
    rate.tell(&mut request);
    let octets = request.finish(0).expect("it is short");
    #[rustfmt::skip]
    assert_eq!(octets[16..], [
        64, 0, 2, 0, // TCA_OPTIONS
        40, 0, 1, 0, // TCA_TBF_PARMS
        // Rate: Ethernet, 24 octets around a frame, 84 at least; it is greater than 32 bits hold.
        0, 1, 24, 0, 0, 0, 84, 0, 0xff, 0xff, 0xff, 0xff,
        // No peak rate, the limit, no burst as a time, no longest packet.
        0, 1, 24, 0, 0, 0, 84, 0, 0, 0, 0, 0,
        0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        12, 0, 4, 0, 5, 4, 3, 2, 1, 0, 0, 0, // TCA_TBF_RATE64
        8, 0, 6, 0, 0, 0x10, 0, 0, // TCA_TBF_BURST
    ]);
}

#[cfg(target_endian = "little")]
#[test]
fn a_share_is_told_with_its_bursts_in_ticks() {
    let mut request = Request::new(0, 0, &[]);
    let share = Share {
        rate: 1_000_000,
        ceiling: 2_000_000,
        burst: 64_000,
        priority: 3,
        quantum: 1538,
    };
    share.tell(&mut request);
    let octets = request.finish(0).expect("it is short");
    // 64,000 octets take 64 ms and 32 ms, in ticks of 64 ns.
    let [burst, burst_of_ceiling] = [1_000_000_u32, 500_000].map(u32::to_le_bytes);
    assert_eq!(octets[16..20], [48, 0, 1, 0]);
    assert_eq!(octets[44..48], burst);
    assert_eq!(octets[48..52], burst_of_ceiling);
    assert_eq!(octets[52..56], 1538_u32.to_le_bytes());
    assert_eq!(octets[60..64], [3, 0, 0, 0]);
    assert_eq!(
        octets[64..76],
        [12, 0, 6, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0]
    );
}

proptest! {
    #[test]
    fn any_answer_can_be_read(
        kind in prop::sample::select(vec![
            libc::RTM_NEWLINK, libc::RTM_NEWADDR, libc::RTM_NEWROUTE, libc::RTM_NEWNEIGH,
            libc::RTM_NEWQDISC, libc::RTM_NEWTCLASS,
        ]),
        fixed in vec(any::<u8>(), 0..24),
        attributes in vec((0..64_u16, vec(any::<u8>(), 0..40)), 0..8),
        cut in 0..200_usize,
    ) {
        let mut message = Request::new(kind, 0, &fixed);
        for (kind, value) in attributes {
            message.attribute(kind, &value);
        }
        let octets = message.finish(1).expect("it is short");
        let mut body = octets.get(16..).unwrap_or_default();
        body = &body[..cut.min(body.len())];
        let answer = Answer { kind, flags: 0, sequence: 1, body };
        let _ = (link::read(answer), address::read(answer, 1), route::read(answer));
        let _ = (neighbour::read(answer), qdisc::read(answer, kind));
    }
}
