//! Related rules and frames to test programs with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::class::{ClassId, MAX_CLASSES, MAX_RULES, Rule, Rules, Unknown};
use proptest::prelude::*;
use proptest::sample::select;

/// The hardware address of the interface.
pub(crate) const HARDWARE: [u8; 6] = [2, 7, 1, 0, 0x80, 3];

/// The addresses of the interface.
pub(crate) const OWN: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7)),
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 4)),
];

/// The same addresses, with the prefix lengths of their networks.
pub(crate) fn own() -> Vec<(IpAddr, u8)> {
    OWN.map(|address| (address, 24)).to_vec()
}

fn addresses() -> impl Strategy<Value = IpAddr> {
    let others = [
        IpAddr::V4(Ipv4Addr::new(10, 1, 2, 5)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 8)),
    ];
    select([&OWN[..], &others].concat())
}

fn ports() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 78..90_u16, 1 => any::<u16>()]
}

fn class() -> impl Strategy<Value = ClassId> {
    (0..MAX_CLASSES).prop_map(|number| ClassId::new(number).expect("there are so many"))
}

fn rule() -> impl Strategy<Value = Rule> {
    let range = (ports(), ports()).prop_map(|(a, b)| a.min(b)..=a.max(b).max(1));
    (
        class(),
        prop::option::weighted(0.3, addresses()),
        prop::option::weighted(0.8, range),
        prop::option::weighted(0.2, select(vec![0, 46, 63])),
        prop::option::weighted(0.2, select(vec![0, 5, 7])),
    )
        .prop_map(|(class, to, ports, dscp, vlan_priority)| Rule {
            class,
            to,
            ports,
            dscp,
            vlan_priority,
        })
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let few = prop::collection::vec(rule(), 0..6);
    let many = prop::collection::vec(rule(), 0..MAX_RULES);
    let unknown = prop::option::of(class());
    (prop_oneof![3 => few, 1 => many], unknown).prop_map(|(list, unknown)| {
        let mut rules = Rules::new();
        for rule in list {
            rules.add(rule).expect("it is one");
        }
        rules.set_unknown(unknown.map_or(Unknown::Kernel, Unknown::Class));
        rules
    })
}

/// The maximum number of rules, with the longest programs: nested ranges, and adjacent ports.
pub(crate) fn worst_rules() -> [Rules; 3] {
    let all = |rule: fn(u16) -> Rule| {
        let mut rules = Rules::new();
        for number in 0..MAX_RULES as u16 {
            rules.add(rule(number)).expect("there are not too many");
        }
        rules
    };
    [
        all(|number| Rule {
            ports: Some(1000 + number..=9000 - number),
            ..narrow(number)
        }),
        all(|number| Rule {
            ports: Some(1000 + 2 * number..=1000 + 2 * number),
            ..narrow(number)
        }),
        all(narrow),
    ]
}

fn narrow(number: u16) -> Rule {
    let class = ClassId::new(usize::from(number) % MAX_CLASSES).expect("there are so many");
    Rule {
        class,
        to: Some(OWN[usize::from(number) % OWN.len()]),
        ports: None,
        dscp: Some(number as u8 % 64),
        vlan_priority: Some(number as u8 % 8),
    }
}

/// Valid frames, and frames with small errors.
pub(crate) fn frames() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::option::weighted(0.3, (0..80_usize, any::<u8>()));
    let frame = (hardware(), packet(), tags(), damage, 0..32_usize);
    frame.prop_map(|(hardware, (kind, packet), tags, damage, padding)| {
        let mut frame = [hardware, [2; 6]].concat();
        for (kind, priority) in tags {
            frame.extend(kind.to_be_bytes());
            frame.extend((u16::from(priority) << 13 | 5).to_be_bytes());
        }
        frame.extend(u16::to_be_bytes(kind));
        frame.extend(packet);
        frame.extend(vec![0; padding]);
        if let Some((place, octet)) = damage {
            let place = (12 + place).min(frame.len() - 1);
            frame[place] = octet;
        }
        frame
    })
}

/// Mostly the hardware address of the interface; otherwise a similar one, or a multicast one.
fn hardware() -> impl Strategy<Value = [u8; 6]> {
    let other = (0..6_usize, 0..8_u8).prop_map(|(place, bit)| {
        let mut other = HARDWARE;
        other[place] ^= 1 << bit;
        other
    });
    let many = select(vec![[0xff; 6], [0x33, 0x33, 0, 0, 0, 1]]);
    prop_oneof![8 => Just(HARDWARE), 2 => other, 1 => many]
}

fn tags() -> impl Strategy<Value = Vec<(u16, u8)>> {
    let tag = (
        prop_oneof![9 => Just(0x8100_u16), 1 => Just(0x88a8)],
        0..8_u8,
    );
    prop_oneof![
        6 => Just(Vec::new()),
        3 => tag.clone().prop_map(|tag| vec![tag]),
        1 => (tag.clone(), tag).prop_map(|(a, b)| vec![a, b]),
    ]
}

fn packet() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let protocol = prop_oneof![9 => Just(6_u8), 1 => Just(17)];
    let dscp = select(vec![0_u8, 46, 63, 11]);
    (
        addresses(),
        segment(),
        protocol,
        dscp,
        0..11_usize,
        any::<u8>(),
    )
        .prop_map(|(to, segment, protocol, dscp, extras, odd)| match to {
            IpAddr::V4(to) => (0x0800, ipv4(to, &segment, protocol, dscp, extras, odd)),
            IpAddr::V6(to) => (0x86dd, ipv6(to, &segment, protocol, dscp, extras, odd)),
        })
}

fn ipv4(to: Ipv4Addr, segment: &[u8], protocol: u8, dscp: u8, options: usize, odd: u8) -> Vec<u8> {
    let words = 5 + options.min(10);
    let len = (4 * words + segment.len()) as u16;
    // More fragments, an offset, or only the flag that forbids fragments.
    let fragment = match odd {
        0..16 => 0x2000_u16,
        16..32 => 3,
        32..128 => 0x4000,
        _ => 0,
    };
    let mut packet = vec![0x40 | words as u8, dscp << 2 | odd & 3];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 1, 2, 9]);
    packet.extend(to.octets());
    packet.resize(4 * words, 1);
    packet.extend(segment);
    packet
}

fn ipv6(
    to: Ipv6Addr,
    segment: &[u8],
    protocol: u8,
    dscp: u8,
    extensions: usize,
    odd: u8,
) -> Vec<u8> {
    let count = if odd < 128 { 0 } else { extensions };
    let kinds: Vec<u8> = (0..count)
        .map(|number| [0, 60, 43, 60, 60, 44, 0, 60][(number + usize::from(odd)) % 8])
        .filter(|kind| *kind != 44 || odd.is_multiple_of(4))
        .collect();
    let mut rest = Vec::new();
    for (place, _) in kinds.iter().enumerate() {
        let next = kinds.get(place + 1).copied().unwrap_or(protocol);
        let words = (odd >> 4 & 1) * 2;
        let segments_left = u8::from(odd.is_multiple_of(5));
        rest.extend([next, words, 0, segments_left, 0, 0, 0, 0]);
        rest.extend(vec![0; 8 * usize::from(words)]);
    }
    rest.extend(segment);
    let first = kinds.first().copied().unwrap_or(protocol);
    let traffic = dscp << 2 | odd & 3;
    let mut packet = vec![0x60 | traffic >> 4, traffic << 4, 0, 0];
    packet.extend((rest.len() as u16).to_be_bytes());
    packet.extend([first, 64]);
    packet.extend(Ipv6Addr::LOCALHOST.octets());
    packet.extend(to.octets());
    packet.extend(rest);
    packet
}

/// A TCP header with some octets, whose length may be wrong.
fn segment() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![6 => Just(5_u8), 2 => 5..16_u8, 1 => 0..16_u8];
    (ports(), ports(), words, 0..80_usize).prop_map(|(from, to, words, len)| {
        let mut segment = [from.to_be_bytes(), to.to_be_bytes()].concat();
        segment.extend([
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            words << 4,
            0x10,
            0xff,
            0xff,
            0,
            0,
            0,
            0,
        ]);
        segment.resize(20 + len, 3);
        segment
    })
}
