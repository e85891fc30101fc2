//! The program that classifies packets that leave the host.

use super::tree::Tree;
use crate::bpf::AssembleError;
use crate::bpf::classic::{Code, Instruction, Op, ScratchSlot, Size, Source, Tag, Test};
use crate::plan::Reservation;

/// Returns a program that returns the handle of the first class that matches a packet. It matches
/// source and destination ports, because both servers and clients of the class send, then the DSCP
/// and the VLAN priority. It returns 0 for other packets, fragments, and protocols other than TCP.
pub(super) fn program(
    tree: &Tree,
    classes: &[Reservation],
) -> Result<Vec<Instruction>, AssembleError> {
    let mut writer = Writer::default();
    writer.tag();
    writer.network();
    for (class, branch) in classes.iter().zip(&tree.branches) {
        writer.class(class, branch.handle.0);
    }
    writer.code.push(Op::Return(0));
    writer.code.assemble()
}

#[derive(Default)]
struct Writer {
    code: Code,
}

impl Writer {
    /// Stores the priority of the VLAN tag, which the kernel keeps beside an outgoing packet.
    fn tag(&mut self) {
        let (tagged, stored) = (self.code.label(), self.code.label());
        self.code.extend([
            Op::Load(Source::Stripped(Tag::IsThere)),
            Op::Unless(Test::Is(0), tagged),
            Op::Load(Source::Number(UNTAGGED)),
            Op::Jump(stored),
            Op::Bind(tagged),
            Op::Load(Source::Stripped(Tag::Control)),
            Op::Right(TAG_PRIORITY_SHIFT),
            Op::Bind(stored),
            Op::Store(VLAN_PRIORITY),
        ]);
    }

    /// Stores the other values that rules test.
    fn network(&mut self) {
        let (ipv4, segment) = (self.code.label(), self.code.label());
        self.code.extend([
            Op::SetX(ETHERNET),
            Op::Load(Source::At(Size::Half, 12)),
            Op::If(Test::Is(IPV4), ipv4),
        ]);
        self.require(Test::Is(IPV6));
        self.behind(Size::Octet, 6);
        self.require(Test::Is(TCP));
        self.behind(Size::Half, 0);
        self.code
            .extend([Op::Right(6), Op::And(0x3f), Op::Store(DSCP)]);
        self.code
            .extend([Op::XToA, Op::Add(IPV6_HEADER), Op::Jump(segment)]);

        self.code.push(Op::Bind(ipv4));
        self.behind(Size::Octet, 9);
        self.require(Test::Is(TCP));
        self.behind(Size::Octet, 1);
        self.code.extend([Op::Right(2), Op::Store(DSCP)]);
        // Only the first fragment has ports; the others would overtake it in another class.
        self.behind(Size::Half, 6);
        self.code.push(Op::And(0x3fff));
        self.require(Test::Is(0));
        self.behind(Size::Octet, 0);
        self.code.extend([Op::And(0xf), Op::Left(2), Op::AddX]);

        self.code.extend([Op::Bind(segment), Op::AToX]);
        for (port, at) in [(FROM_PORT, 0), (TO_PORT, 2)] {
            self.behind(Size::Half, at);
            self.code.push(Op::Store(port));
        }
    }

    /// Returns the handle if the packet matches this class.
    fn class(&mut self, class: &Reservation, handle: u32) {
        let next = self.code.label();
        let marks = [(DSCP, class.dscp), (VLAN_PRIORITY, class.vlan_priority)];
        for (slot, mark) in marks {
            let Some(mark) = mark else { continue };
            let has_it = self.code.label();
            // The tests of the class may be long, and only this jump reaches over any distance.
            self.code.extend([
                Op::Load(Source::Slot(slot)),
                Op::If(Test::Is(mark.into()), has_it),
                Op::Jump(next),
                Op::Bind(has_it),
            ]);
        }
        for port in [FROM_PORT, TO_PORT] {
            self.code.push(Op::Load(Source::Slot(port)));
            for ports in &class.ports {
                let other = self.code.label();
                self.code.extend([
                    Op::Unless(Test::AtLeast((*ports.start()).into()), other),
                    Op::If(Test::Above((*ports.end()).into()), other),
                    Op::Return(handle),
                    Op::Bind(other),
                ]);
            }
        }
        if class.ports.is_empty() {
            self.code.push(Op::Return(handle));
        }
        self.code.push(Op::Bind(next));
    }

    /// Loads from this many octets behind `X`.
    fn behind(&mut self, size: Size, at: u32) {
        self.code.push(Op::Load(Source::Behind(size, at)));
    }

    /// Returns no class unless the test holds.
    fn require(&mut self, test: Test) {
        let so = self.code.label();
        self.code
            .extend([Op::If(test, so), Op::Return(0), Op::Bind(so)]);
    }
}

const VLAN_PRIORITY: ScratchSlot = ScratchSlot::new(0);
const DSCP: ScratchSlot = ScratchSlot::new(1);
const FROM_PORT: ScratchSlot = ScratchSlot::new(2);
const TO_PORT: ScratchSlot = ScratchSlot::new(3);

/// The VLAN priority of frames without a tag. Tags have 0 to 7.
const UNTAGGED: u32 = 8;
const TAG_PRIORITY_SHIFT: u32 = 13;
const ETHERNET: u32 = 14;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const IPV6_HEADER: u32 = 40;
const TCP: u32 = 6;
