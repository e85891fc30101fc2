//! Translation of a classic BPF program, which returns the class of a packet, to an eBPF program
//! for XDP, which redirects the packet to the AF_XDP socket of the class.
//!
//! `R0` holds the accumulator `A`, `R1` holds the index `X`, and scratch memory is on the stack.
//! The kernel keeps a packet if the program returns 0, or reads behind the end of the packet.

use std::os::fd::RawFd;

use super::classic::{self, Source};
use super::extended::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R10};
use super::extended::{
    Alu, EbpfCode, EbpfOp, EbpfSize, EbpfTest, Helper, Operand, Register, Width,
};
use super::labels::Label;
use crate::class::{ClassId, MAX_CLASSES};

/// The maps of a program, by their descriptors. Both have an entry for each class and receive
/// queue, see [`Maps::place`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maps {
    /// The sockets (`BPF_MAP_TYPE_XSKMAP`). Each takes the packets of one receive queue.
    pub sockets: RawFd,
    /// The packet counters (`BPF_MAP_TYPE_ARRAY` of `u64`).
    pub counters: RawFd,
    /// The number of receive queues with sockets. All queues that are added to the interface later
    /// share the entry with this number, which has no socket. Their packets are counted and left to
    /// the kernel.
    pub queues: u32,
}

impl Maps {
    /// Returns the index of the entries for a class and a receive queue, up to
    /// [`queues`](Self::queues).
    pub(crate) const fn place(class: ClassId, queue: u32) -> u32 {
        (queue << CLASS_BITS) + class.index() as u32
    }

    /// Returns the number of entries of each map.
    pub(crate) const fn places(queues: u32) -> u32 {
        (queues + 1) << CLASS_BITS
    }
}

/// The return value of an XDP program that leaves a packet to the kernel.
pub(crate) const XDP_PASS: i32 = 2;

/// Translates a program that returns the number of a class plus one, or 0 for the kernel.
pub(super) fn translate(classic: &classic::Code, hardware: [u8; 6], maps: Maps) -> EbpfCode {
    // The labels of the classic program keep their numbers.
    let mut code = EbpfCode::with_labels(classic.labels());
    let pass = code.label();
    let give = code.label();
    let mut translator = Translator {
        code,
        hardware,
        pass,
        give,
    };
    translator.begin();
    for op in classic.ops() {
        translator.op(*op);
    }
    translator.end(maps);
    // Without rules or addresses, parts of the program are unreachable.
    translator.code.prune();
    translator.code
}

struct Translator {
    code: EbpfCode,
    /// The hardware address of the interface.
    hardware: [u8; 6],
    /// The label of the code that passes the packet to the kernel's stack.
    pass: Label,
    /// The label of the code that redirects the packet to the socket of a class. `R0` has the
    /// number of the class.
    give: Label,
}

impl Translator {
    fn begin(&mut self) {
        self.code.extend([
            EbpfOp::Alu(Alu::Move, Width::Full, R6, R1.into()),
            EbpfOp::Call(Helper::Length),
            EbpfOp::Store(EbpfSize::Double, R10, LENGTH, R0),
            EbpfOp::Load(EbpfSize::Word, R2, R6, DATA),
            EbpfOp::Load(EbpfSize::Word, R3, R6, DATA_END),
        ]);
    }

    fn op(&mut self, op: classic::Op) {
        match op {
            classic::Op::Load(source) => self.load(source),
            classic::Op::SetX(k) => self.alu(Alu::Move, R1, number(k)),
            classic::Op::LoadX(slot) => self.load_stack(R1, place(slot)),
            classic::Op::Store(slot) => {
                self.code
                    .push(EbpfOp::Store(EbpfSize::Double, R10, place(slot), R0));
            }
            classic::Op::And(k) => self.alu(Alu::And, R0, number(k)),
            classic::Op::Add(k) => self.alu(Alu::Add, R0, number(k)),
            classic::Op::AddX => self.alu(Alu::Add, R0, R1.into()),
            classic::Op::Left(k) => self.alu(Alu::Left, R0, number(k)),
            classic::Op::Right(k) => self.alu(Alu::Right, R0, number(k)),
            classic::Op::AToX => self.alu(Alu::Move, R1, R0.into()),
            classic::Op::XToA => self.alu(Alu::Move, R0, R1.into()),
            classic::Op::Jump(to) => self.code.push(EbpfOp::Jump(to)),
            classic::Op::If(test, to) => self.branch(test, to),
            classic::Op::Unless(test, to) => {
                let on = self.code.label();
                self.branch(test, on);
                self.code.extend([EbpfOp::Jump(to), EbpfOp::Bind(on)]);
            }
            classic::Op::Return(0) => self.code.push(EbpfOp::Jump(self.pass)),
            classic::Op::Return(verdict) => {
                self.alu(Alu::Move, R0, number(verdict - 1));
                self.code.push(EbpfOp::Jump(self.give));
            }
            classic::Op::Bind(label) => self.code.push(EbpfOp::Bind(label)),
        }
    }

    fn load(&mut self, source: Source) {
        match source {
            Source::At(size, at) => {
                self.code
                    .push(EbpfOp::Alu(Alu::Move, Width::Full, R4, R2.into()));
                self.load_packet(size, at);
            }
            Source::Behind(size, at) => {
                self.code.extend([
                    EbpfOp::Alu(Alu::Move, Width::Full, R4, R2.into()),
                    EbpfOp::Alu(Alu::Add, Width::Full, R4, R1.into()),
                ]);
                self.load_packet(size, at);
            }
            Source::Number(k) => self.alu(Alu::Move, R0, number(k)),
            Source::Slot(slot) => {
                self.load_stack(R0, place(slot));
                // Breaks the verifier's link between the copy and the slot. Otherwise the verifier
                // would explore every order of comparisons separately.
                self.alu(Alu::And, R0, Operand::Number(-1));
            }
            Source::Length => self.load_stack(R0, LENGTH),
            // At the XDP hook, no tag has been stripped yet.
            Source::Stripped(_) => self.alu(Alu::Move, R0, Operand::Number(0)),
            Source::Addressee => self.addressee(),
        }
    }

    /// Loads `R0` with the exclusive disjunction of the frame's destination and the own hardware
    /// address.
    fn addressee(&mut self) {
        let [a, b, c, d, e, f] = self.hardware;
        let first = number(u32::from_ne_bytes([a, b, c, d]));
        let last = number(u16::from_ne_bytes([e, f]).into());
        self.code.extend([
            EbpfOp::Alu(Alu::Move, Width::Full, R5, R2.into()),
            EbpfOp::Alu(Alu::Add, Width::Full, R5, 6.into()),
            EbpfOp::If(EbpfTest::Above, Width::Full, R5, R3.into(), self.pass),
            EbpfOp::Load(EbpfSize::Word, R0, R2, 0),
            EbpfOp::Load(EbpfSize::Half, R5, R2, 4),
        ]);
        self.alu(Alu::Xor, R0, first);
        self.alu(Alu::Xor, R5, last);
        self.alu(Alu::Or, R0, R5.into());
    }

    /// Loads `R0` from this many octets behind `R4`, or leaves the packet to the kernel if it ends
    /// before.
    fn load_packet(&mut self, size: classic::Size, at: u32) {
        let end = number(at + size.octets());
        let size = match size {
            classic::Size::Octet => EbpfSize::Octet,
            classic::Size::Half => EbpfSize::Half,
            classic::Size::Word => EbpfSize::Word,
        };
        self.code.extend([
            EbpfOp::Alu(Alu::Move, Width::Full, R5, R4.into()),
            EbpfOp::Alu(Alu::Add, Width::Full, R5, end),
            EbpfOp::If(EbpfTest::Above, Width::Full, R5, R3.into(), self.pass),
            EbpfOp::Load(size, R0, R4, at as i16),
        ]);
        if size != EbpfSize::Octet {
            self.code.push(EbpfOp::FromNetwork(size, R0));
        }
    }

    fn load_stack(&mut self, to: Register, at: i16) {
        self.code.push(EbpfOp::Load(EbpfSize::Double, to, R10, at));
    }

    fn alu(&mut self, alu: Alu, to: Register, by: Operand) {
        self.code.push(EbpfOp::Alu(alu, Width::Half, to, by));
    }

    fn branch(&mut self, test: classic::Test, to: Label) {
        let (test, right) = match test {
            classic::Test::Is(k) => (EbpfTest::Is, number(k)),
            classic::Test::Above(k) => (EbpfTest::Above, number(k)),
            classic::Test::AtLeast(k) => (EbpfTest::AtLeast, number(k)),
            classic::Test::HasAny(k) => (EbpfTest::HasAny, number(k)),
            classic::Test::AboveX => (EbpfTest::Above, R1.into()),
        };
        self.code.push(EbpfOp::If(test, Width::Half, R0, right, to));
    }

    fn end(&mut self, maps: Maps) {
        let (known, uncounted) = (self.code.label(), self.code.label());
        self.code.extend([
            EbpfOp::Bind(self.give),
            EbpfOp::Load(EbpfSize::Word, R7, R6, RECEIVE_QUEUE),
            EbpfOp::Alu(Alu::Move, Width::Half, R1, number(maps.queues)),
            EbpfOp::If(EbpfTest::Above, Width::Half, R1, R7.into(), known),
            EbpfOp::Alu(Alu::Move, Width::Half, R7, R1.into()),
            EbpfOp::Bind(known),
            EbpfOp::Alu(Alu::Left, Width::Half, R7, number(CLASS_BITS)),
            EbpfOp::Alu(Alu::Add, Width::Half, R7, R0.into()),
            EbpfOp::Store(EbpfSize::Word, R10, KEY, R7),
            EbpfOp::Map(R1, maps.counters),
            EbpfOp::Alu(Alu::Move, Width::Full, R2, R10.into()),
            EbpfOp::Alu(Alu::Add, Width::Full, R2, i32::from(KEY).into()),
            EbpfOp::Call(Helper::Lookup),
            EbpfOp::If(EbpfTest::Is, Width::Full, R0, 0.into(), uncounted),
            EbpfOp::Alu(Alu::Move, Width::Half, R1, 1.into()),
            EbpfOp::AddTo(R0, 0, R1),
            EbpfOp::Bind(uncounted),
            EbpfOp::Map(R1, maps.sockets),
            EbpfOp::Alu(Alu::Move, Width::Full, R2, R7.into()),
            // The result if the class has no socket at this queue.
            EbpfOp::Alu(Alu::Move, Width::Half, R3, XDP_PASS.into()),
            EbpfOp::Call(Helper::Redirect),
            EbpfOp::Exit,
            EbpfOp::Bind(self.pass),
            EbpfOp::Alu(Alu::Move, Width::Half, R0, XDP_PASS.into()),
            EbpfOp::Exit,
        ]);
    }
}

const fn number(k: u32) -> Operand {
    Operand::Number(k.cast_signed())
}

/// Returns the stack offset of a word of scratch memory.
const fn place(slot: classic::ScratchSlot) -> i16 {
    -8 * (slot.index() as i16 + 1)
}

const LENGTH: i16 = -8 * 17;
const KEY: i16 = -8 * 18;

// `struct xdp_md`, <linux/bpf.h>
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RECEIVE_QUEUE: i16 = 16;

/// The index of a map entry is the queue number followed by this many bits of class number.
const CLASS_BITS: u32 = MAX_CLASSES.trailing_zeros();
const _: () = assert!(MAX_CLASSES.is_power_of_two());
