//! An interpreter of the extended dialect, limited to programs of interfaces.

use crate::bpf::classifier::{Maps, XDP_PASS};
use crate::bpf::extended::EbpfInstruction;

/// The maps' descriptors in the interpreter.
pub(crate) const MAPS: Maps = Maps {
    sockets: 100,
    counters: 101,
    queues: 3,
};

/// The effect of an XDP program on a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Redirect {
    /// The packet was left to the kernel.
    Pass,
    /// The packet was counted, and sent to the socket at this index of the maps.
    To(u64),
}

// The address space of the interpreter.
const CONTEXT: u64 = 0x1000_0000;
const PACKET: u64 = 0x2000_0000;
const STACK_END: u64 = 0x3000_0000;
const COUNTERS: u64 = 0x4000_0000;
const STACK: usize = 512;

struct Machine<'p> {
    registers: [u64; 11],
    packet: &'p [u8],
    queue: u32,
    stack: [u8; STACK],
    counted: Option<u64>,
    given: Option<u64>,
}

/// Runs a program for a contiguous packet from this receive queue.
pub(crate) fn run(program: &[EbpfInstruction], packet: &[u8], queue: u32) -> Redirect {
    let mut machine = Machine {
        registers: [0; 11],
        packet,
        queue,
        stack: [0xa5; STACK],
        counted: None,
        given: None,
    };
    machine.registers[1] = CONTEXT;
    machine.registers[10] = STACK_END;
    let mut at = 0;
    loop {
        let instruction = program[at];
        at += 1;
        match instruction.code {
            0x95 => break,
            0x18 => {
                machine.registers[to(instruction)] = instruction.number as u64;
                at += 1;
            }
            code => {
                let offset = machine.step(code, instruction);
                at = at.checked_add_signed(offset).expect("it stays inside");
            }
        }
    }
    assert_eq!(machine.counted, machine.given);
    match machine.given {
        Some(place) => Redirect::To(place),
        None => {
            assert_eq!(machine.registers[0], XDP_PASS as u64);
            Redirect::Pass
        }
    }
}

fn to(instruction: EbpfInstruction) -> usize {
    usize::from(instruction.registers & 0xf)
}

impl Machine<'_> {
    /// Executes an instruction, and returns the distance to jump.
    fn step(&mut self, code: u8, instruction: EbpfInstruction) -> isize {
        let (to, from) = (to(instruction), usize::from(instruction.registers >> 4));
        let EbpfInstruction { offset, number, .. } = instruction;
        let is_half = matches!(code & 7, 4 | 6);
        let operand = match code & 8 {
            0 => i64::from(number) as u64,
            _ => self.registers[from],
        };
        let cut = |value: u64| {
            if is_half {
                u64::from(value as u32)
            } else {
                value
            }
        };
        let (left, right) = (cut(self.registers[to]), cut(operand));
        let len = [4, 2, 1, 8][usize::from(code >> 3 & 3)];
        let target = |base: u64| base.wrapping_add_signed(offset.into());
        match (code & 7, code & 0xf0) {
            (4, 0xd0) => {
                let octets = self.registers[to].to_le_bytes();
                let octets = &octets[..number as usize / 8];
                let value = octets.iter().fold(0, |sum, it| sum << 8 | u64::from(*it));
                self.registers[to] = value;
            }
            (4 | 7, operation) => {
                let value = match operation {
                    0xb0 => right,
                    0x00 => left.wrapping_add(right),
                    0x40 => left | right,
                    0x50 => left & right,
                    0xa0 => left ^ right,
                    0x60 => left << right,
                    0x70 => left >> right,
                    _ => panic!("{instruction:?}"),
                };
                self.registers[to] = cut(value);
            }
            (1, _) => self.registers[to] = self.load(target(self.registers[from]), len),
            (3, 0xc0 | 0xd0) => {
                let place = target(self.registers[to]) - COUNTERS;
                assert_eq!((self.registers[from], place % 8), (1, 0));
                self.counted = Some(place / 8);
            }
            (3, _) => self.store(target(self.registers[to]), len, self.registers[from]),
            (5, 0x80) => self.call(number),
            (5, 0x00) => return offset.into(),
            (5 | 6, operation) => {
                let holds = match operation {
                    0x10 => left == right,
                    0x20 => left > right,
                    0x30 => left >= right,
                    0x40 => left & right != 0,
                    0x50 => left != right,
                    _ => panic!("{instruction:?}"),
                };
                return if holds { offset.into() } else { 0 };
            }
            _ => panic!("{instruction:?}"),
        }
        0
    }

    fn load(&self, at: u64, len: usize) -> u64 {
        if at == CONTEXT {
            return PACKET;
        }
        if at == CONTEXT + 4 {
            return PACKET + self.packet.len() as u64;
        }
        if at == CONTEXT + 16 {
            return self.queue.into();
        }
        let octets = if at >= STACK_END - STACK as u64 && at < STACK_END {
            &self.stack[(at + STACK as u64 - STACK_END) as usize..][..len]
        } else {
            &self.packet[(at - PACKET) as usize..][..len]
        };
        let value = octets.iter().rev();
        value.fold(0, |sum, octet| sum << 8 | u64::from(*octet))
    }

    fn store(&mut self, at: u64, len: usize, value: u64) {
        let at = (at + STACK as u64 - STACK_END) as usize;
        self.stack[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    }

    fn call(&mut self, helper: i32) {
        let [_, first, second, third, ..] = self.registers;
        let result = match helper {
            1 => {
                assert_eq!(first, MAPS.counters as u64);
                COUNTERS + 8 * self.load(second, 4)
            }
            51 => {
                assert_eq!((first, third), (MAPS.sockets as u64, XDP_PASS as u64));
                assert!(second < Maps::places(MAPS.queues).into());
                self.given = Some(second);
                4
            }
            188 => self.packet.len() as u64,
            _ => panic!("helper {helper}"),
        };
        self.registers[..6].fill(0xdead_dead_dead);
        self.registers[0] = result;
    }
}
