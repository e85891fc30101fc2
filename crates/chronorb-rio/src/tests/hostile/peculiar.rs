//! Peculiar segments of real and of pretended peers: options, sizes, windows, tags and addresses
//! that TCP permits, or nearly. None of them may disturb another peer, or keep a resource.

use std::net::SocketAddrV4;

use fastrand::Rng;

use super::segments::{ACK, PSH, RST, SYN, Segment};
use super::{Scene, TARGET, against_each};

/// Returns a SYN with a maximum segment size.
fn of_segment_size(syn: Segment, size: u16) -> Segment {
    let [high, low] = size.to_be_bytes();
    Segment {
        options: [vec![2, 4, high, low], Vec::new()],
        ..syn
    }
}

/// Continues a connection with an acknowledgement of all octets that the server sends, until the
/// echo of what was sent before has come back. Returns the number of segments that had octets.
fn take_echo(scene: &mut Scene, mut next: Segment, octets: usize) -> (Segment, usize) {
    let (mut received, mut segments) = (0, 0);
    while received < octets {
        let answer = scene.attacker.answer();
        if answer.to.port() != next.from.port() || answer.payload == 0 {
            continue;
        }
        let is_next = answer.sequence == next.acknowledgement;
        if is_next {
            received += answer.payload;
            segments += 1;
            next = next.after(&answer);
        }
        scene.attacker.send(&next.frame());
    }
    (next, segments)
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn the_smallest_segment_sizes_get_segments_of_a_reasonable_size() {
    against_each(|scene, _| {
        for (size, port) in [0, 1, 64].into_iter().zip(7000..) {
            let syn = of_segment_size(scene.attacker.syn(port), size);
            let next = scene.attacker.connect_by(syn);
            let octets = [7; 960];
            let segment = next.clone().flags(ACK | PSH).payload(&octets);
            scene.attacker.send(&segment.frame());
            let next = Segment {
                sequence: next.sequence.wrapping_add(960),
                ..next
            };
            let (next, segments) = take_echo(scene, next, 960);
            assert!(segments <= 960 / 48, "{size}: {segments}");
            scene.attacker.send(&next.flags(RST | ACK).frame());
        }
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn a_window_of_one_octet_delays_its_own_peer_alone() {
    against_each(|scene, _| {
        let mut next = scene.attacker.connect(7000, 1);
        for _ in 0..20 {
            let segment = next.clone().flags(ACK | PSH).payload(&[7; 500]);
            next.sequence = next.sequence.wrapping_add(500);
            scene.attacker.send(&segment.frame());
        }
        scene.assert_serves(TARGET);
        let reset = next.flags(RST);
        scene.attacker.send(&reset.frame());
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn packets_in_the_name_of_the_server_start_no_connection() {
    against_each(|scene, wire| {
        let before = scene.target.counts();
        let own = SocketAddrV4::new(scene.attacker.server.into(), TARGET);
        let segment = Segment {
            from: own,
            to: own,
            ..scene.attacker.syn(0)
        };
        let kinds = [SYN, ACK, SYN | ACK, RST].map(|flags| segment.clone().flags(flags).frame());
        let frames: Vec<_> = kinds.into_iter().cycle().take(1000).collect();
        assert!(scene.send_paced(wire, &frames) >= 1000);
        let after = scene.target.counts();
        assert_eq!(after.connections, before.connections, "{after:?}");
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn acknowledgements_with_any_selection_change_no_stream() {
    against_each(|scene, wire| {
        let next = scene.attacker.connect(7000, 8192);
        let segment = next.clone().flags(ACK | PSH).payload(&[7; 1000]);
        scene.attacker.send(&segment.frame());
        let next = Segment {
            sequence: next.sequence.wrapping_add(1000),
            ..next
        };
        let mut frames = Vec::new();
        let mut random = Rng::with_seed(4);
        for _ in 0..3000 {
            let mut options = vec![1, 1, 5, 2 + 3 * 8];
            for _ in 0..6 {
                let near = next.acknowledgement.wrapping_add(random.u32(..3000));
                let edge = if random.bool() { near } else { random.u32(..) };
                options.extend(edge.to_be_bytes());
            }
            let mut selective = Segment {
                options: [options, Vec::new()],
                ..next.clone()
            };
            selective.acknowledgement = match random.u8(..3) {
                0 => next.acknowledgement,
                1 => next.acknowledgement.wrapping_sub(random.u32(..5000)),
                // Of octets that were never sent.
                _ => next
                    .acknowledgement
                    .wrapping_add(1 + random.u32(1000..1 << 30)),
            };
            frames.push(selective.frame());
        }
        assert!(scene.send_paced(wire, &frames) >= 3000);
        // The echo is still there, from the first octet on.
        let (next, _) = take_echo(scene, next, 1000);
        scene.attacker.send(&next.flags(RST | ACK).frame());
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn options_of_any_kind_and_length_do_no_harm() {
    against_each(|scene, wire| {
        let mut frames = Vec::new();
        let mut random = Rng::with_seed(5);
        let mut options = |longest: usize| {
            let len = 4 * random.usize(..=longest / 4);
            (0..len).map(|_| random.u8(..)).collect::<Vec<u8>>()
        };
        for number in 0..3000 {
            let segment = Segment {
                options: [options(40), options(if number % 2 == 0 { 0 } else { 40 })],
                ..scene.attacker.syn(7000 + number % 1000)
            };
            let flags = [SYN, ACK, SYN, ACK | PSH][usize::from(number) % 4];
            frames.push(segment.flags(flags).frame());
        }
        // The classifier may leave a packet with options of IP to the kernel.
        let processed = scene.send_paced(wire, &frames);
        assert!(processed >= 1000, "{processed}");
        scene.assert_serves(TARGET);
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn stacks_of_vlan_tags_are_bounded() {
    against_each(|scene, wire| {
        let mut frames = Vec::new();
        for number in 0..1000 {
            let segment = Segment {
                tags: usize::from(number) % 21,
                ..scene.attacker.syn(7000 + number)
            };
            frames.push(segment.frame());
        }
        let processed = scene.send_paced(wire, &frames);
        assert!(processed > 0);
        scene.assert_serves(TARGET);
    });
}
