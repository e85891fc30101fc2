//! The extended dialect: programs of interfaces.
//!
//! A program has 64-bit registers and a stack of 512 bytes. Before it runs a program, the kernel
//! proves that it terminates and accesses only its own memory.

use std::fmt;
use std::os::fd::RawFd;

use super::AssembleError;
use super::labels::{Label, Places};

/// A program with labels, before assembly.
#[derive(Clone, Debug, Default)]
pub(crate) struct EbpfCode {
    ops: Vec<EbpfOp>,
    labels: usize,
}

/// An operation of one instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EbpfOp {
    /// Calculates into the first register.
    Alu(Alu, Width, Register, Operand),
    /// Converts the lowest octets of a register from network byte order, and clears the others.
    FromNetwork(EbpfSize, Register),
    /// Loads the first register from this many octets behind the second, and clears its other
    /// octets.
    Load(EbpfSize, Register, Register, i16),
    /// Stores the second register this many octets behind the first.
    Store(EbpfSize, Register, i16, Register),
    /// Atomically adds the second register to the 64 bits this many octets behind the first.
    AddTo(Register, i16, Register),
    /// Loads the map with this descriptor.
    Map(Register, RawFd),
    /// Jumps.
    Jump(Label),
    /// Jumps if the condition holds.
    If(EbpfTest, Width, Register, Operand, Label),
    /// Calls a function of the kernel. Arguments are in `R1` to `R5`, which are clobbered; the
    /// result is in `R0`.
    Call(Helper),
    /// Returns `R0`.
    Exit,
    /// Binds the label to the next instruction. Assembles to nothing.
    Bind(Label),
}

/// An arithmetic operation on the first operand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Alu {
    /// Assignment of the second operand.
    Move = 0xb0,
    /// Addition.
    Add = 0x00,
    /// Bitwise conjunction.
    And = 0x50,
    /// Bitwise disjunction.
    Or = 0x40,
    /// Bitwise exclusive disjunction.
    Xor = 0xa0,
    /// Shift to the left.
    Left = 0x60,
    /// Logical shift to the right.
    Right = 0x70,
}

/// An unsigned comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EbpfTest {
    /// Equal.
    Is = 0x10,
    /// Greater.
    Above = 0x20,
    /// Greater or equal.
    AtLeast = 0x30,
    /// At least one bit in common.
    HasAny = 0x40,
}

/// The width of an operation. A half-width operation clears the upper 32 bits of the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Width {
    /// The lower 32 bits.
    Half,
    /// All 64 bits.
    Full,
}

/// The width of a load or store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EbpfSize {
    /// 8 bits.
    Octet = 0x10,
    /// 16 bits.
    Half = 0x08,
    /// 32 bits.
    Word = 0x00,
    /// 64 bits.
    Double = 0x18,
}

/// A register. `R1` holds the context at the start. `R10` is the end of the stack and is read-only.
#[allow(missing_docs, reason = "their numbers say all")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R10 = 10,
}

/// The second operand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operand {
    /// A register.
    Register(Register),
    /// A number, which is sign-extended.
    Number(i32),
}

/// A helper function of the kernel, bpf-helpers(7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Helper {
    /// Looks up a value of a map (`bpf_map_lookup_elem`).
    Lookup = 1,
    /// Redirects the packet to an entry of a map (`bpf_redirect_map`).
    Redirect = 51,
    /// Returns the length of the packet, over all of its pieces (`bpf_xdp_get_buff_len`).
    Length = 188,
}

/// One instruction with the layout of the kernel's `struct bpf_insn`.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
#[repr(C)]
pub(crate) struct EbpfInstruction {
    /// The operation code.
    pub code: u8,
    /// The first register in the lower four bits, the second one in the upper.
    pub registers: u8,
    /// An offset: in instructions for jumps, otherwise in octets.
    pub offset: i16,
    /// An immediate operand.
    pub number: i32,
}

/// The maximum number of instructions for a privileged process.
pub(crate) const MAX_LEN: usize = 1_000_000;

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl EbpfCode {
    /// Creates an empty program whose first labels are already allocated.
    pub(super) const fn with_labels(labels: usize) -> Self {
        Self {
            ops: Vec::new(),
            labels,
        }
    }

    /// Allocates a label, which is to be bound once.
    pub(crate) const fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an operation.
    pub(crate) fn push(&mut self, op: EbpfOp) {
        self.ops.push(op);
    }

    /// Appends operations.
    pub(crate) fn extend(&mut self, ops: impl IntoIterator<Item = EbpfOp>) {
        self.ops.extend(ops);
    }

    /// Removes unreachable instructions, which the kernel refuses. Unbound labels are left to
    /// [`assemble`](Self::assemble) to report.
    pub(super) fn prune(&mut self) {
        let mut places = vec![None; self.labels];
        for (at, op) in self.ops.iter().enumerate() {
            if let EbpfOp::Bind(Label(label)) = op {
                places[*label] = Some(at);
            }
        }
        let mut is_reached = vec![false; self.ops.len()];
        let mut starts = vec![0];
        while let Some(mut at) = starts.pop() {
            while at < self.ops.len() && !is_reached[at] {
                is_reached[at] = true;
                match self.ops[at] {
                    EbpfOp::Exit => break,
                    EbpfOp::Jump(Label(to)) => {
                        starts.extend(places[to]);
                        break;
                    }
                    EbpfOp::If(.., Label(to)) => starts.extend(places[to]),
                    _ => {}
                }
                at += 1;
            }
        }
        let mut is_reached = is_reached.into_iter();
        self.ops.retain(|_| is_reached.next() == Some(true));
    }

    /// Assembles the instructions for the kernel.
    ///
    /// # Errors
    /// [`AssembleError`]
    pub(crate) fn assemble(&self) -> Result<Vec<EbpfInstruction>, AssembleError> {
        let pieces = self.ops.iter().map(|op| match op {
            EbpfOp::Bind(label) => (0, Some(*label)),
            EbpfOp::Map(..) => (2, None),
            _ => (1, None),
        });
        let places = Places::find(self.labels, pieces)?;
        let mut program = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let at = program.len();
            let instruction = match *op {
                EbpfOp::Bind(_) => continue,
                EbpfOp::Alu(alu, width, to, by) => {
                    let class = match width {
                        Width::Half => ALU,
                        Width::Full => ALU64,
                    };
                    binary(class | alu as u8, to, by, 0)
                }
                EbpfOp::FromNetwork(size, register) => {
                    let bits = 8 * size.octets() as i32;
                    encode(ALU | TO_BIG_ENDIAN, register, None, 0, bits)
                }
                EbpfOp::Load(size, to, from, offset) => {
                    encode(LDX | MEMORY | size as u8, to, Some(from), offset, 0)
                }
                EbpfOp::Store(size, to, offset, from) => {
                    encode(STX | MEMORY | size as u8, to, Some(from), offset, 0)
                }
                EbpfOp::AddTo(to, offset, from) => {
                    encode(STX | ATOMIC | DOUBLE, to, Some(from), offset, 0)
                }
                EbpfOp::Map(to, map) => {
                    program.push(encode(LD_DOUBLE, to, Some(MAP_BY_DESCRIPTOR), 0, map));
                    EbpfInstruction::default()
                }
                EbpfOp::Jump(to) => encode(JMP, Register::R0, None, places.jump(at, to)?, 0),
                EbpfOp::If(test, width, left, right, to) => {
                    let class = match width {
                        Width::Half => JMP32,
                        Width::Full => JMP,
                    };
                    binary(class | test as u8, left, right, places.jump(at, to)?)
                }
                EbpfOp::Call(helper) => encode(CALL, Register::R0, None, 0, helper as i32),
                EbpfOp::Exit => encode(EXIT, Register::R0, None, 0, 0),
            };
            program.push(instruction);
        }
        match program.len() {
            len if len > MAX_LEN => Err(AssembleError::TooLong { len, max: MAX_LEN }),
            _ => Ok(program),
        }
    }
}

impl EbpfSize {
    /// Returns the width in octets.
    pub(crate) const fn octets(self) -> u32 {
        match self {
            Self::Octet => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

const fn encode(
    code: u8,
    first: Register,
    second: Option<Register>,
    offset: i16,
    number: i32,
) -> EbpfInstruction {
    let second = match second {
        Some(register) => register as u8,
        None => 0,
    };
    EbpfInstruction {
        code,
        registers: second << 4 | first as u8,
        offset,
        number,
    }
}

const fn binary(code: u8, first: Register, second: Operand, offset: i16) -> EbpfInstruction {
    match second {
        Operand::Register(second) => encode(code | BY_REGISTER, first, Some(second), offset, 0),
        Operand::Number(number) => encode(code, first, None, offset, number),
    }
}

/// Formats the instruction like the logs of the kernel's verifier.
impl fmt::Debug for EbpfInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            registers,
            offset,
            number,
        } = *self;
        let (to, from) = (registers & 0xf, registers >> 4);
        let class = code & CLASSES;
        let bits = match code & SIZES {
            0x10 => "u8",
            0x08 => "u16",
            0x00 => "u32",
            _ => "u64",
        };
        let name = match class {
            ALU | JMP32 => 'w',
            _ => 'r',
        };
        let by = match code & BY_REGISTER {
            0 => format!("{number}"),
            _ => format!("{name}{from}"),
        };
        match (class, code & OPERATIONS) {
            _ if code == LD_DOUBLE => write!(f, "r{to} = map {number}"),
            _ if *self == Self::default() => write!(f, "(second half)"),
            _ if code == ALU | TO_BIG_ENDIAN => write!(f, "r{to} = be{number} r{to}"),
            (LDX, _) => write!(f, "r{to} = *({bits} *)(r{from} {offset:+})"),
            (STX, op) if op & 0xe0 == ATOMIC => {
                write!(f, "lock *({bits} *)(r{to} {offset:+}) += r{from}")
            }
            (STX, _) => write!(f, "*({bits} *)(r{to} {offset:+}) = r{from}"),
            (ALU | ALU64, 0xb0) => write!(f, "{name}{to} = {by}"),
            (ALU | ALU64, 0x00) => write!(f, "{name}{to} += {by}"),
            (ALU | ALU64, 0x40) => write!(f, "{name}{to} |= {by}"),
            (ALU | ALU64, 0x50) => write!(f, "{name}{to} &= {by}"),
            (ALU | ALU64, 0xa0) => write!(f, "{name}{to} ^= {by}"),
            (ALU | ALU64, 0x60) => write!(f, "{name}{to} <<= {by}"),
            (ALU | ALU64, 0x70) => write!(f, "{name}{to} >>= {by}"),
            (JMP, _) if code == CALL => write!(f, "call {number}"),
            (JMP, _) if code == EXIT => write!(f, "exit"),
            (JMP, 0x00) => write!(f, "goto {offset:+}"),
            (JMP | JMP32, 0x10) => write!(f, "if {name}{to} == {by} goto {offset:+}"),
            (JMP | JMP32, 0x20) => write!(f, "if {name}{to} > {by} goto {offset:+}"),
            (JMP | JMP32, 0x30) => write!(f, "if {name}{to} >= {by} goto {offset:+}"),
            (JMP | JMP32, 0x40) => write!(f, "if {name}{to} & {by} goto {offset:+}"),
            (JMP | JMP32, 0x50) => write!(f, "if {name}{to} != {by} goto {offset:+}"),
            _ => write!(f, "{code:#04x} {registers:#04x} {offset:+} {number}"),
        }
    }
}

// <linux/bpf_common.h> and <linux/bpf.h>
const CLASSES: u8 = 0x07;
const OPERATIONS: u8 = 0xf0;
const SIZES: u8 = 0x18;
const LDX: u8 = 0x01;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const DOUBLE: u8 = 0x18;
const MEMORY: u8 = 0x60;
const ATOMIC: u8 = 0xc0;
const BY_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xd8;
const LD_DOUBLE: u8 = DOUBLE;
const CALL: u8 = JMP | 0x80;
const EXIT: u8 = JMP | 0x90;
/// `BPF_PSEUDO_MAP_FD`, which takes the place of the second register.
const MAP_BY_DESCRIPTOR: Register = Register::R1;
