//! Values by their type codes, and values of value types.

use std::rc::Rc;

use super::types::{Form, Grammar};

impl Grammar<'_> {
    /// Writes an any.
    pub(crate) fn any(&mut self, depth: usize) {
        let form = self.type_code();
        self.body(&form, depth);
    }

    /// Writes a value of this form, in most cases.
    pub(crate) fn body(&mut self, form: &Rc<Form>, depth: usize) {
        let form = self.resolve(form);
        if self.budget == 0 || depth > 80 {
            return;
        }
        self.budget -= 1;
        match &*form {
            Form::Empty | Form::Same(_) | Form::Alias(_) => {}
            Form::Number(width) => self.number(*width),
            Form::Bool | Form::Char => {
                let octet = self.choices.any::<u8>();
                let octet = if self.choices.rarely(4) {
                    octet
                } else {
                    octet & 1
                };
                self.out.u8(octet);
            }
            Form::WChar => {
                let unit = self.choices.of(&[b'w'.into(), 0xe9, 0xd800, 0]);
                self.wide_char(unit);
            }
            Form::String(bound) => {
                let text = self.choices.of(&["", "a", "text", "Gr\u{fc}\u{df}e"]);
                match self.choices.pick(12) {
                    11 => self.length(0),
                    10 => self.out.counted(b"no end"),
                    9 => self.out.counted(&vec![b'x'; (*bound).min(5000) as usize]),
                    _ => self.out.text(text),
                }
            }
            Form::WString => {
                let all: [&[u16]; 4] = [&[], &[0x77], &[0x394, 0x20], &[0xd83d, 0xde00]];
                let units = self.choices.of(&all);
                let length = if self.is_utf16 {
                    2 * units.len()
                } else {
                    units.len() + 1
                };
                self.length(length as u32);
                if self.is_utf16 {
                    units
                        .iter()
                        .for_each(|unit| self.out.octets.extend(unit.to_be_bytes()));
                } else {
                    units
                        .iter()
                        .chain(&[0])
                        .for_each(|unit| self.out.u16(*unit));
                }
            }
            Form::Fixed(octets) => {
                for _ in 1..*octets {
                    let digits = self.choices.of(&[0x12_u8, 0x00, 0x99, 0xab]);
                    self.out.u8(digits);
                }
                let sign = self.choices.of(&[0x3c_u8, 0x3d, 0x0c, 0x3f]);
                self.out.u8(sign);
            }
            Form::Reference => self.reference(),
            Form::Struct(members) => self.members(members, depth),
            Form::Except(id, members) => {
                if !self.choices.rarely(3) {
                    self.out.text(id);
                }
                self.members(members, depth);
            }
            Form::Union {
                label,
                arms,
                default,
            } => {
                let index = self.choices.pick(arms.len() + 1);
                let (value, arm) = match arms.get(index) {
                    Some((value, arm)) => (*value, Some(arm)),
                    None => (
                        77,
                        default
                            .and_then(|index| arms.get(index))
                            .map(|(_, arm)| arm),
                    ),
                };
                let label = self.resolve(label);
                self.label(&label, value);
                if let Some(arm) = arm {
                    self.body(arm, depth + 1);
                }
            }
            Form::Enum(n) => {
                let n = self.choices.pick(*n as usize + 1) as u32;
                self.out.u32(n);
            }
            Form::Sequence(element, bound) => {
                let n = self.choices.of(&[0, 1, 2, 3, 9, 200]).min((*bound).max(1));
                self.length(n);
                self.elements(element, n, depth);
            }
            Form::Array(element, length) => self.elements(element, *length, depth),
            Form::Any => self.any(depth + 1),
            Form::TypeCode => drop(self.type_code()),
            Form::NullValue => self.out.u32(0),
            Form::Abstract => {
                let is_object = self.choices.rarely(2);
                self.out.u8(is_object.into());
                if is_object {
                    self.reference();
                } else {
                    self.out.u32(0);
                }
            }
        }
    }

    /// A length that is wrong now and then.
    fn of_length(&mut self, n: u32) -> u32 {
        match self.choices.pick(40) {
            39 => u32::MAX,
            38 => n + 1,
            37 => n.wrapping_sub(1),
            36 => 1 << 20,
            _ => n,
        }
    }

    /// Writes a length.
    fn length(&mut self, n: u32) {
        let n = self.of_length(n);
        self.out.u32(n);
    }

    fn elements(&mut self, element: &Rc<Form>, n: u32, depth: usize) {
        for _ in 0..n {
            let before = self.out.len();
            self.body(element, depth + 1);
            if self.out.len() == before {
                return;
            }
        }
    }

    fn members(&mut self, members: &[Rc<Form>], depth: usize) {
        members
            .iter()
            .for_each(|member| self.body(member, depth + 1));
    }

    fn number(&mut self, width: u8) {
        let value = self.choices.any::<u64>();
        match width {
            1 => self.out.u8(value as u8),
            2 => self.out.u16(value as u16),
            4 => self.out.u32(value as u32),
            8 => self.out.u64(value),
            _ => {
                self.out.u64(value);
                self.out.u64(!value);
            }
        }
    }

    /// An object reference: nil, or with profiles that lead nowhere.
    pub(crate) fn reference(&mut self) {
        let id = self.choices.of(&["", "IDL:hostile/Mirror:1.0"]);
        self.out.text(id);
        let n = self.choices.of(&[0_u32, 1, 2]);
        self.length(n);
        for _ in 0..n {
            let tag = self.choices.of(&[0_u32, 1, 3, 0x5441_4f00, 77]);
            self.out.u32(tag);
            let data = self.choices.octets(40);
            self.out.counted(data);
        }
    }
}

/// The targets of indirections between values of one message.
#[derive(Default)]
pub(crate) struct Marks {
    values: Vec<usize>,
    ids: Vec<usize>,
    lists: Vec<usize>,
    codebases: Vec<usize>,
}

impl Grammar<'_> {
    /// Writes a value of a value type, within `level` chunked ones.
    pub(crate) fn value(&mut self, marks: &mut Marks, level: u32, depth: usize) {
        self.budget = self.budget.saturating_sub(1);
        if depth > 80 || self.budget == 0 {
            self.out.u32(0);
            return;
        }
        match self.choices.pick(10) {
            0 => return self.out.u32(0),
            1 => return self.lead_to(&marks.values),
            _ => {}
        }
        let is_chunked = level > 0 || self.choices.rarely(2);
        let ids = self.choices.of(&[2_u32, 6, 2, 0, 4]);
        let codebase = u32::from(self.choices.rarely(8));
        self.out.align(4);
        let at = self.out.len();
        marks.values.push(at);
        self.out
            .u32(0x7fff_ff00 | codebase | ids | if is_chunked { 8 } else { 0 });
        if codebase == 1 {
            if self.choices.rarely(2) {
                self.lead_to(&marks.codebases);
            } else {
                marks.codebases.push(self.out.len());
                self.out.text("http://here/");
            }
        }
        let kind = self.choices.pick(VALUES.len());
        match ids {
            2 => self.value_id(marks, VALUES[kind]),
            6 => self.value_ids(marks, kind),
            _ => {}
        }
        self.state(marks, kind, if is_chunked { level + 1 } else { 0 }, depth);
    }

    fn value_ids(&mut self, marks: &mut Marks, kind: usize) {
        if self.choices.rarely(4) {
            return self.lead_to(&marks.lists);
        }
        self.out.align(4);
        marks.lists.push(self.out.len());
        let unknown = self.choices.of(&[0, 0, 1, 3, 40, 1000]).min(self.budget);
        self.length(unknown as u32 + 2);
        for _ in 0..unknown {
            self.value_id(marks, "IDL:hostile/Unknown:1.0");
        }
        self.value_id(marks, VALUES[kind]);
        self.value_id(marks, VALUES[0]);
    }

    fn value_id(&mut self, marks: &mut Marks, id: &str) {
        if !marks.ids.is_empty() && self.choices.rarely(4) {
            return self.lead_to(&marks.ids);
        }
        self.out.align(4);
        marks.ids.push(self.out.len());
        self.out.text(id);
    }

    /// An indirection to one of these positions, or near it.
    fn lead_to(&mut self, positions: &[usize]) {
        self.out.u32(u32::MAX);
        let here = self.out.len();
        let target = match positions.len() {
            0 => here,
            n => positions[n - 1 - self.choices.pick(n)],
        };
        let error = self.choices.of(&[0, 0, 0, 0, 0, 4, 1, 0x7fff_ffff]);
        self.out
            .u32((target.wrapping_sub(here) as u32).wrapping_add(error));
    }

    /// Writes the state of a value, in chunks where `level` is not 0.
    fn state(&mut self, marks: &mut Marks, kind: usize, level: u32, depth: usize) {
        let chunk = self.begin_chunk(level);
        match kind {
            0 | 1 => {
                let number = self.choices.any::<u32>();
                self.out.u32(number);
                if kind == 1 {
                    self.out.text("derived");
                }
            }
            2 => self.out.u32(7),
            3 => self.out.text("boxed"),
            _ => self.out.u64(1),
        }
        self.end_chunk(chunk);
        if let 1 | 2 = kind {
            self.value(marks, level, depth + 1);
        }
        if kind == 2 {
            let chunk = self.begin_chunk(level);
            let form = self.type_code();
            self.body(&form, depth + 1);
            self.end_chunk(chunk);
        }
        if level > 0 {
            // What a receiver of the base does not know.
            if self.choices.rarely(6) {
                let chunk = self.begin_chunk(level);
                self.out.u64(0x1122_3344_5566_7788);
                self.end_chunk(chunk);
            }
            // One tag may end several values.
            match self.choices.pick(12) {
                11 => {}
                10 => self.out.u32((level + 1).wrapping_neg()),
                9 => self.out.u32(u32::MAX),
                _ => self.out.u32(level.wrapping_neg()),
            }
        }
    }

    fn begin_chunk(&mut self, level: u32) -> Option<usize> {
        if level == 0 {
            return None;
        }
        self.out.u32(0);
        Some(self.out.len())
    }

    fn end_chunk(&mut self, start: Option<usize>) {
        if let Some(start) = start {
            let length = (self.out.len() - start) as u32;
            let length = self.of_length(length);
            self.out.patch(start - 4, length);
        }
    }
}

const VALUES: [&str; 5] = [
    "IDL:hostile/Base:1.0",
    "IDL:hostile/Derived:1.0",
    "IDL:hostile/Chain:1.0",
    "IDL:hostile/Text:1.0",
    "IDL:hostile/Unknown:1.0",
];

impl Grammar<'_> {
    /// Writes a tree that is as deep as the octets say.
    pub(crate) fn tree(&mut self, depth: usize) {
        self.budget = self.budget.saturating_sub(1);
        self.out.u16(depth as u16);
        let name = self.choices.of(&["", "leaf", "a longer name"]);
        self.out.text(name);
        let n = if self.budget == 0 {
            0
        } else {
            self.choices.of(&[1_u32, 0, 2, 1])
        };
        let n = if depth > 120 { 0 } else { n };
        self.length(n);
        (0..n).for_each(|_| self.tree(depth + 1));
    }

    /// Writes a `hostile::Choice`.
    pub(crate) fn choice(&mut self) {
        let label = self
            .choices
            .of(&[0_u32, 1, 2, 5_u32.wrapping_neg(), 3, u32::MAX]);
        self.out.u32(label);
        match label {
            0 => self.number(4),
            1 | 2 => self.out.text("text"),
            0xffff_fffb => self.any(1),
            _ => {
                self.out.u32(2);
                self.tree(0);
                self.tree(0);
            }
        }
    }
}

/// Changes octets as a fault or an attacker would: few, anywhere.
pub(crate) fn mutate(choices: &mut super::choices::Choices<'_>, octets: &mut Vec<u8>, from: usize) {
    while octets.len() > from && !choices.is_empty() && choices.rarely(2) {
        let at = from + choices.any::<u32>() as usize % (octets.len() - from);
        match choices.pick(6) {
            0 => octets[at] = choices.any(),
            1 => octets[at] ^= 1 << choices.pick(8),
            2 => octets.truncate(at),
            3 => drop(octets.drain(at..(at + choices.pick(9)).min(octets.len()))),
            4 => {
                let more = octets[at..(at + 16).min(octets.len())].to_vec();
                octets.splice(at..at, more);
            }
            _ => {
                let word = choices.of(&[u32::MAX, 0, 0x7fff_ffff, 0x8000_0000, 0x7fff_ff0e]);
                let n = octets.len().min(at + 4) - at;
                octets[at..at + n].copy_from_slice(&word.to_be_bytes()[..n]);
            }
        }
    }
}
