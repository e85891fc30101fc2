//! An interpreter of the classic dialect.

use crate::bpf::classic::Instruction;

use super::packets::HARDWARE;

/// The tag that the kernel stripped from the packet: its kind and its control information.
pub(crate) type StrippedTag = Option<(u16, u16)>;

/// Returns the program's result for a packet.
pub(crate) fn run(program: &[Instruction], packet: &[u8], tag: StrippedTag) -> u32 {
    let (mut a, mut x, mut scratch) = (0_u32, 0_u32, [0_u32; 16]);
    let mut at = 0;
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        match code & 7 {
            0 => match load(code, packet, tag, x, k, &scratch) {
                Some(loaded) => a = loaded,
                None => return 0,
            },
            1 if code & 0xe0 == 0x00 => x = k,
            1 if code & 0xe0 == 0x60 => x = scratch[k as usize],
            2 => scratch[k as usize] = a,
            4 => {
                let by = if code & 8 == 0 { k } else { x };
                a = match code & 0xf0 {
                    0x00 => a.wrapping_add(by),
                    0x50 => a & by,
                    0x60 => a << by,
                    0x70 => a >> by,
                    _ => panic!("{code:#x}"),
                };
            }
            5 if code & 0xf0 == 0 => at += k as usize,
            5 => {
                let by = if code & 8 == 0 { k } else { x };
                let holds = match code & 0xf0 {
                    0x10 => a == by,
                    0x20 => a > by,
                    0x30 => a >= by,
                    0x40 => a & by != 0,
                    _ => panic!("{code:#x}"),
                };
                at += usize::from(if holds { jt } else { jf });
            }
            6 if code == 6 => return k,
            7 if code == 0x07 => x = a,
            7 if code == 0x87 => a = x,
            _ => panic!("{:?}", program[at - 1]),
        }
    }
}

fn load(
    code: u16,
    packet: &[u8],
    tag: StrippedTag,
    x: u32,
    k: u32,
    scratch: &[u32; 16],
) -> Option<u32> {
    const ANCILLARY: u32 = 0xffff_f000;
    let place = match code & 0xe0 {
        0x00 => return Some(k),
        0x60 => return Some(scratch[k as usize]),
        0x80 => return Some(packet.len() as u32),
        0x20 if k >= ANCILLARY => {
            let (kind, control) = tag.unwrap_or_default();
            return match k - ANCILLARY {
                44 => Some(control.into()),
                48 => Some(tag.is_some().into()),
                60 => Some(kind.into()),
                4 => Some((!packet.starts_with(&HARDWARE)).into()),
                _ => panic!("ancillary {k:#x}"),
            };
        }
        0x20 => k,
        0x40 => x.wrapping_add(k),
        _ => panic!("{code:#x}"),
    };
    let len = match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        _ => 1,
    };
    let octets = packet.get(place as usize..)?.get(..len)?;
    Some(
        octets
            .iter()
            .fold(0, |sum, octet| sum << 8 | u32::from(*octet)),
    )
}
