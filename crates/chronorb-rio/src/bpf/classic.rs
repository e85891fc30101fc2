//! The classic dialect: filters of sockets.
//!
//! A program has an accumulator, an index and sixteen words of scratch memory. It ends by returning
//! a number. A read behind the end of the packet returns 0. Jumps go only forward, so each program
//! terminates.

use std::fmt;

use super::AssembleError;
use super::labels::{Label, Places};

/// A program with labels, before assembly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    ops: Vec<Op>,
    labels: usize,
}

/// An operation of one instruction. `A` is the accumulator, `X` the index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Op {
    /// Loads `A`.
    Load(Source),
    /// `X = k`.
    SetX(u32),
    /// Loads `X` from scratch memory.
    LoadX(ScratchSlot),
    /// Stores `A` in scratch memory.
    Store(ScratchSlot),
    /// `A &= k`.
    And(u32),
    /// `A += k`.
    Add(u32),
    /// `A += X`.
    AddX,
    /// `A <<= k`.
    Left(u32),
    /// `A >>= k`.
    Right(u32),
    /// `X = A`.
    AToX,
    /// `A = X`.
    XToA,
    /// Jumps over any distance.
    Jump(Label),
    /// Jumps at most 255 instructions if the condition holds.
    If(Test, Label),
    /// Jumps at most 255 instructions unless the condition holds.
    Unless(Test, Label),
    /// Returns this number.
    Return(u32),
    /// Binds a label here; no instruction.
    Bind(Label),
}

/// The source of a load. Numbers in the packet are in network byte order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// A number in the packet, this many octets from its start.
    At(Size, u32),
    /// A number in the packet, this many octets behind `X`.
    Behind(Size, u32),
    /// An immediate number.
    Number(u32),
    /// A word of scratch memory.
    Slot(ScratchSlot),
    /// The length of the packet in octets.
    Length,
    /// A property of the VLAN tag that the kernel has stripped from the packet.
    Stripped(Tag),
    /// The kind of destination: 0 (`PACKET_HOST`) for the hardware address of the interface,
    /// another value for other hosts, multicast and broadcast.
    Addressee,
}

/// The width of a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Size {
    /// 8 bits.
    Octet,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
}

/// A property of a stripped VLAN tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tag {
    /// Whether there was a tag, 0 or 1.
    IsThere,
    /// The control information: priority, drop eligibility and number.
    Control,
    /// The EtherType of the tag, 0x8100 for 802.1Q.
    Kind,
}

/// A word of scratch memory, 0 to 15.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ScratchSlot(u8);

/// An unsigned comparison with `A`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Test {
    /// `A == k`.
    Is(u32),
    /// `A > k`.
    Above(u32),
    /// `A >= k`.
    AtLeast(u32),
    /// `A & k != 0`.
    HasAny(u32),
    /// `A > X`.
    AboveX,
}

/// One instruction with the layout of the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
#[repr(C)]
pub(crate) struct Instruction {
    /// The operation code.
    pub code: u16,
    /// The number of instructions to skip if the comparison holds.
    pub jt: u8,
    /// The number of instructions to skip if it does not hold.
    pub jf: u8,
    /// An immediate operand.
    pub k: u32,
}

impl From<Instruction> for libc::sock_filter {
    fn from(Instruction { code, jt, jf, k }: Instruction) -> Self {
        Self { code, jt, jf, k }
    }
}

/// The maximum number of instructions (`BPF_MAXINSNS`).
pub(crate) const MAX_LEN: usize = 4096;

impl ScratchSlot {
    /// Creates the slot with this number.
    ///
    /// # Panics
    /// If the number is 16 or more. In a constant, that is a compilation error.
    pub(crate) const fn new(number: u8) -> Self {
        assert!(number < 16, "there are sixteen words of scratch memory");
        Self(number)
    }

    /// Returns the number of the slot.
    pub(crate) const fn index(self) -> u8 {
        self.0
    }
}

impl Size {
    /// Returns the width in octets.
    pub(crate) const fn octets(self) -> u32 {
        match self {
            Self::Octet => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }

    const fn code(self) -> u16 {
        match self {
            Self::Octet => OCTET,
            Self::Half => HALF,
            Self::Word => WORD,
        }
    }
}

impl Code {
    /// Allocates a label, which is to be bound once.
    pub(crate) const fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an operation.
    pub(crate) fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Appends operations.
    pub(crate) fn extend(&mut self, ops: impl IntoIterator<Item = Op>) {
        self.ops.extend(ops);
    }

    /// Returns the operations in order.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the number of allocated labels.
    pub(super) const fn labels(&self) -> usize {
        self.labels
    }

    /// Returns a copy of the program with all return values mapped by `f`.
    #[must_use]
    pub(crate) fn map_returns(&self, f: impl Fn(u32) -> u32) -> Self {
        let ops = self.ops.iter().map(|op| match *op {
            Op::Return(number) => Op::Return(f(number)),
            other => other,
        });
        Self {
            ops: ops.collect(),
            labels: self.labels,
        }
    }

    /// Assembles the instructions for the kernel.
    ///
    /// # Errors
    /// [`AssembleError`]
    pub(crate) fn assemble(&self) -> Result<Vec<Instruction>, AssembleError> {
        let pieces = self.ops.iter().map(|op| match op {
            Op::Bind(label) => (0, Some(*label)),
            _ => (1, None),
        });
        let places = Places::find(self.labels, pieces)?;
        let mut program = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let at = program.len();
            let instruction = match *op {
                Op::Bind(_) => continue,
                Op::Load(source) => load(source),
                Op::SetX(k) => plain(LDX | IMMEDIATE, k),
                Op::LoadX(slot) => plain(LDX | MEMORY, slot.0.into()),
                Op::Store(slot) => plain(ST, slot.0.into()),
                Op::And(k) => plain(ALU | AND, k),
                Op::Add(k) => plain(ALU | ADD, k),
                Op::AddX => plain(ALU | ADD | BY_X, 0),
                Op::Left(k) => plain(ALU | LEFT, k),
                Op::Right(k) => plain(ALU | RIGHT, k),
                Op::AToX => plain(MISC | A_TO_X, 0),
                Op::XToA => plain(MISC | X_TO_A, 0),
                Op::Jump(to) => plain(JMP | ALWAYS, places.jump(at, to)?),
                Op::If(test, to) => Instruction {
                    jt: places.jump(at, to)?,
                    ..compare(test)
                },
                Op::Unless(test, to) => Instruction {
                    jf: places.jump(at, to)?,
                    ..compare(test)
                },
                Op::Return(k) => plain(RET, k),
            };
            program.push(instruction);
        }
        match program.len() {
            len if len > MAX_LEN => Err(AssembleError::TooLong { len, max: MAX_LEN }),
            _ => Ok(program),
        }
    }
}

const fn plain(code: u16, k: u32) -> Instruction {
    Instruction {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

const fn load(source: Source) -> Instruction {
    match source {
        Source::At(size, k) => plain(LD | size.code() | ABSOLUTE, k),
        Source::Behind(size, k) => plain(LD | size.code() | INDIRECT, k),
        Source::Number(k) => plain(LD | IMMEDIATE, k),
        Source::Slot(slot) => plain(LD | MEMORY, slot.0 as u32),
        Source::Length => plain(LD | LENGTH, 0),
        Source::Addressee => plain(LD | ABSOLUTE, ADDRESSEE),
        Source::Stripped(tag) => plain(
            LD | ABSOLUTE,
            match tag {
                Tag::IsThere => TAG_IS_THERE,
                Tag::Control => TAG_CONTROL,
                Tag::Kind => TAG_KIND,
            },
        ),
    }
}

const fn compare(test: Test) -> Instruction {
    match test {
        Test::Is(k) => plain(JMP | EQUAL, k),
        Test::Above(k) => plain(JMP | GREATER, k),
        Test::AtLeast(k) => plain(JMP | AT_LEAST, k),
        Test::HasAny(k) => plain(JMP | ANY, k),
        Test::AboveX => plain(JMP | GREATER | BY_X, 0),
    }
}

/// Formats the instruction like the kernel's `bpf_asm`.
impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, jt, jf, k } = *self;
        let suffix = match code & SIZES {
            HALF => "h",
            OCTET => "b",
            _ => "",
        };
        match (code & CLASSES, code & !(CLASSES | SIZES)) {
            (LD, ABSOLUTE) if k >= ANCILLARY => match k {
                ADDRESSEE => write!(f, "ld type"),
                TAG_IS_THERE => write!(f, "ld vlan_avail"),
                TAG_CONTROL => write!(f, "ld vlan_tci"),
                TAG_KIND => write!(f, "ld vlan_tpid"),
                _ => write!(f, "ld [ancillary {}]", k - ANCILLARY),
            },
            (LD, ABSOLUTE) => write!(f, "ld{suffix} [{k}]"),
            (LD, INDIRECT) => write!(f, "ld{suffix} [x + {k}]"),
            (LD, IMMEDIATE) => write!(f, "ld #{k}"),
            (LD, MEMORY) => write!(f, "ld M[{k}]"),
            (LD, LENGTH) => write!(f, "ld len"),
            (LDX, IMMEDIATE) => write!(f, "ldx #{k}"),
            (LDX, MEMORY) => write!(f, "ldx M[{k}]"),
            _ => match code {
                ST => write!(f, "st M[{k}]"),
                RET => write!(f, "ret #{k}"),
                _ if code == ALU | AND => write!(f, "and #{k:#x}"),
                _ if code == ALU | ADD => write!(f, "add #{k}"),
                _ if code == ALU | ADD | BY_X => write!(f, "add x"),
                _ if code == ALU | LEFT => write!(f, "lsh #{k}"),
                _ if code == ALU | RIGHT => write!(f, "rsh #{k}"),
                _ if code == MISC | A_TO_X => write!(f, "tax"),
                _ if code == MISC | X_TO_A => write!(f, "txa"),
                _ if code == JMP | ALWAYS => write!(f, "ja +{k}"),
                _ if code == JMP | EQUAL => write!(f, "jeq #{k:#x}, +{jt}, +{jf}"),
                _ if code == JMP | GREATER => write!(f, "jgt #{k:#x}, +{jt}, +{jf}"),
                _ if code == JMP | AT_LEAST => write!(f, "jge #{k:#x}, +{jt}, +{jf}"),
                _ if code == JMP | ANY => write!(f, "jset #{k:#x}, +{jt}, +{jf}"),
                _ if code == JMP | GREATER | BY_X => write!(f, "jgt x, +{jt}, +{jf}"),
                _ => write!(f, "{code:#06x} {jt} {jf} {k:#x}"),
            },
        }
    }
}

// <linux/bpf_common.h> and <linux/filter.h>
const CLASSES: u16 = 0x07;
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;
const SIZES: u16 = 0x18;
const WORD: u16 = 0x00;
const HALF: u16 = 0x08;
const OCTET: u16 = 0x10;
const IMMEDIATE: u16 = 0x00;
const ABSOLUTE: u16 = 0x20;
const INDIRECT: u16 = 0x40;
const MEMORY: u16 = 0x60;
const LENGTH: u16 = 0x80;
const BY_X: u16 = 0x08;
const ADD: u16 = 0x00;
const AND: u16 = 0x50;
const LEFT: u16 = 0x60;
const RIGHT: u16 = 0x70;
const ALWAYS: u16 = 0x00;
const EQUAL: u16 = 0x10;
const GREATER: u16 = 0x20;
const AT_LEAST: u16 = 0x30;
const ANY: u16 = 0x40;
const A_TO_X: u16 = 0x00;
const X_TO_A: u16 = 0x80;
/// `SKF_AD_OFF`: offsets from here on address the kernel's metadata of the packet.
const ANCILLARY: u32 = (-0x1000_i32).cast_unsigned();
const ADDRESSEE: u32 = ANCILLARY + 4;
const TAG_CONTROL: u32 = ANCILLARY + 44;
const TAG_IS_THERE: u32 = ANCILLARY + 48;
const TAG_KIND: u32 = ANCILLARY + 60;
