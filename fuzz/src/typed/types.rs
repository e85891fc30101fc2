//! Type codes as a hostile peer writes them: mostly well-formed, shared and recursive by
//! indirections that may lead anywhere.

use std::rc::Rc;

use chronorb_cdr::Endian;

use super::choices::Choices;
use super::octets::OctetWriter;

/// The form of values of a type code.
#[derive(Debug)]
pub(crate) enum Form {
    Empty,
    /// Octets of a number.
    Number(u8),
    Bool,
    Char,
    WChar,
    String(u32),
    WString,
    /// Octets of a decimal number.
    Fixed(u8),
    Reference,
    Struct(Vec<Rc<Self>>),
    Except(String, Vec<Rc<Self>>),
    Union {
        label: Rc<Self>,
        /// Octets of a label; 0 where it is no number.
        arms: Vec<(u64, Rc<Self>)>,
        default: Option<usize>,
    },
    /// The number of enumerators.
    Enum(u32),
    Sequence(Rc<Self>, u32),
    Array(Rc<Self>, u32),
    Any,
    TypeCode,
    NullValue,
    Abstract,
    Alias(Rc<Self>),
    /// The form of the type code with this number, which may not be complete yet.
    Same(usize),
}

/// A type code that was begun.
struct OpenType {
    /// The position of its kind.
    at: usize,
    id: &'static str,
    /// Known when it is complete.
    form: Option<Rc<Form>>,
}

/// Writes type codes and values.
pub(crate) struct Grammar<'d> {
    pub(crate) choices: Choices<'d>,
    pub(crate) out: OctetWriter,
    begun: Vec<OpenType>,
    /// Type codes and parts of values that may still be written.
    pub(crate) budget: usize,
    /// Whether wide characters are those of GIOP 1.2.
    pub(crate) is_utf16: bool,
}

impl<'d> Grammar<'d> {
    pub(crate) fn new(choices: Choices<'d>, out: OctetWriter, is_utf16: bool) -> Self {
        Self {
            choices,
            out,
            begun: Vec::new(),
            budget: 600,
            is_utf16,
        }
    }

    /// The form that stands for this one.
    pub(crate) fn resolve(&self, form: &Rc<Form>) -> Rc<Form> {
        let mut form = form.clone();
        // An alias may be one of itself.
        for _ in 0..100 {
            form = match &*form {
                Form::Alias(target) => target.clone(),
                Form::Same(number) => match self.begun.get(*number) {
                    Some(OpenType {
                        form: Some(known), ..
                    }) => known.clone(),
                    _ => break,
                },
                _ => return form,
            };
        }
        Rc::new(Form::Empty)
    }

    /// Writes a type code, and forgets what indirections could lead to before it.
    pub(crate) fn type_code(&mut self) -> Rc<Form> {
        // Numbers of forms are those of the whole message.
        for begun in &mut self.begun {
            begun.at = usize::MAX;
        }
        self.inner(0)
    }

    fn inner(&mut self, depth: usize) -> Rc<Form> {
        self.out.align(4);
        self.budget = self.budget.saturating_sub(1);
        let kinds = if depth > 70 || self.budget == 0 {
            BASIC.len()
        } else {
            KINDS
        };
        match self.choices.pick(kinds) {
            n if n < BASIC.len() => self.basic(n),
            n => self.complex(n - BASIC.len(), depth),
        }
    }

    fn basic(&mut self, n: usize) -> Rc<Form> {
        let (kind, width) = BASIC[n];
        self.out.u32(kind);
        Rc::new(match kind {
            _ if width > 0 => Form::Number(width),
            8 => Form::Bool,
            9 => Form::Char,
            11 => Form::Any,
            12 => Form::TypeCode,
            26 => Form::WChar,
            18 | 27 => {
                let bound = self.bound();
                self.out.u32(bound);
                if kind == 18 {
                    Form::String(bound)
                } else {
                    Form::WString
                }
            }
            28 => {
                let digits = self.choices.of(&[1_u16, 2, 9, 31, 30, 0, 32]);
                self.out.u16(digits);
                let scale = self.choices.of(&[0_u16, 1, 2, 31, 0xffff]);
                self.out.u16(scale);
                Form::Fixed((digits / 2 + 1) as u8)
            }
            _ => Form::Empty,
        })
    }

    fn bound(&mut self) -> u32 {
        self.choices.of(&[0, 0, 1, 3, 64, u32::MAX])
    }

    fn complex(&mut self, n: usize, depth: usize) -> Rc<Form> {
        if n < 3 && depth > 0 {
            return self.indirection();
        }
        let kind = COMPLEX[n.saturating_sub(3)];
        let number = self.begun.len();
        self.begun.push(OpenType {
            at: self.out.len(),
            id: "",
            form: None,
        });
        self.out.u32(kind);
        let endian = if self.choices.rarely(8) {
            Endian::from_flag(!self.out.endian.is_little())
        } else {
            self.out.endian
        };
        let open = self.out.begin(endian);
        let form = Rc::new(self.parameters(kind, number, depth + 1));
        let error = if self.choices.rarely(60) {
            self.choices.of(&[1, 4, 0x8000_0000])
        } else {
            0
        };
        self.out.end(open, error);
        self.begun[number].form = Some(form.clone());
        form
    }

    fn parameters(&mut self, kind: u32, number: usize, depth: usize) -> Form {
        if let 19 | 20 = kind {
            let element = self.inner(depth);
            let length = self.choices.of(&[0, 1, 2, 3, 100, 70_000, u32::MAX]);
            self.out.u32(length);
            return if kind == 19 {
                Form::Sequence(element, length)
            } else {
                Form::Array(element, length)
            };
        }
        let id = self.id(number);
        self.name();
        match kind {
            14 | 34 | 35 => Form::Reference,
            15 | 22 => {
                let members = self.count();
                let members: Vec<_> = (0..members).map(|_| self.member(depth)).collect();
                if kind == 15 {
                    Form::Struct(members)
                } else {
                    Form::Except(id.to_owned(), members)
                }
            }
            16 => self.union(depth),
            17 => {
                let n = self.count();
                (0..n).for_each(|_| self.name());
                Form::Enum(n)
            }
            21 => Form::Alias(self.inner(depth)),
            29 | 36 => {
                let modifier = self.choices.of(&[0_u16, 1, 2, 3, 4]);
                self.out.u16(modifier);
                self.inner(depth);
                let n = self.count();
                for _ in 0..n {
                    self.member(depth);
                    let is_public = self.choices.of(&[1_u16, 0]);
                    self.out.u16(is_public);
                }
                Form::NullValue
            }
            30 => {
                self.inner(depth);
                Form::NullValue
            }
            32 => Form::Abstract,
            _ => Form::Empty,
        }
    }

    fn member(&mut self, depth: usize) -> Rc<Form> {
        self.name();
        self.inner(depth)
    }

    /// Writes a number of members, and returns how many are written.
    fn count(&mut self) -> u32 {
        let n = self
            .choices
            .of(&[0, 1, 1, 2, 3, 5, 40])
            .min(self.budget as u32);
        let told = if self.choices.rarely(60) {
            n.wrapping_sub(1)
        } else {
            n
        };
        self.out.u32(told);
        n
    }

    fn union(&mut self, depth: usize) -> Form {
        let label = self.inner(depth);
        let default = self.choices.of(&[u32::MAX, 0, 1, 2, u32::MAX - 1]);
        self.out.u32(default);
        let n = self
            .choices
            .of(&[0, 1, 2, 3, 17, 300])
            .min(self.budget as u32);
        self.out.u32(n);
        let is_ordered = self.choices.rarely(2);
        let form = self.resolve(&label);
        let mut arms = Vec::new();
        for index in 0..n {
            let value = if is_ordered {
                index.into()
            } else {
                self.choices.pick(6) as u64
            };
            self.label(&form, value);
            self.name();
            let arm = if index > 8 {
                self.basic(0)
            } else {
                self.inner(depth)
            };
            arms.push((value, arm));
        }
        let default = usize::try_from(default)
            .ok()
            .filter(|index| *index < arms.len());
        Form::Union {
            label,
            arms,
            default,
        }
    }

    /// Writes the discriminator of a union.
    pub(crate) fn label(&mut self, form: &Form, value: u64) {
        match form {
            Form::Number(2) => self.out.u16(value as u16),
            Form::Number(8) => self.out.u64(value),
            Form::Bool | Form::Char | Form::Number(1) => self.out.u8(value as u8),
            Form::WChar => self.wide_char(value as u16),
            _ => self.out.u32(value as u32),
        }
    }

    pub(crate) fn wide_char(&mut self, unit: u16) {
        if self.is_utf16 {
            self.out.u8(2);
            self.out.octets.extend(unit.to_be_bytes());
        } else {
            self.out.u16(unit);
        }
    }

    fn id(&mut self, number: usize) -> &'static str {
        let id = match self.choices.pick(12) {
            0 => "",
            11 => LONG_TEXT,
            // That of a type that was begun before, as recursion is told by identifiers.
            10 if number > 0 => self.begun[self.choices.pick(number)].id,
            n => IDS[n % IDS.len()],
        };
        self.out.text(id);
        self.begun[number].id = id;
        id
    }

    fn name(&mut self) {
        match self.choices.pick(24) {
            23 => self.out.text(LONG_TEXT),
            22 => self.out.counted(b"\xff\0"),
            21 => self.out.counted(b""),
            20 => self.out.u32(u32::MAX),
            n => self.out.text(["", "a", "name"][n % 3]),
        }
    }

    fn indirection(&mut self) -> Rc<Form> {
        let at = self.out.len();
        self.out.u32(u32::MAX);
        let here = self.out.len();
        let number = self.choices.pick(self.begun.len().max(1));
        // From the innermost outwards, as most types that recurse do.
        let number = self.begun.len().saturating_sub(1 + number);
        let begun = self.begun.get(number).map_or(0, |begun| begun.at);
        let (target, form) = match self.choices.pick(16) {
            15 => (at, Form::Empty),
            14 => (begun.wrapping_add(4), Form::Empty),
            13 => (begun.wrapping_sub(8), Form::Empty),
            12 => (here.wrapping_add(self.choices.pick(64)), Form::Empty),
            11 => (self.choices.any::<u16>().into(), Form::Empty),
            _ => (begun, Form::Same(number)),
        };
        self.out.u32(target.wrapping_sub(here) as u32);
        Rc::new(form)
    }
}

/// Kinds without an encapsulation, and the octets of those that are numbers.
const BASIC: [(u32, u8); 22] = [
    (3, 4),
    (0, 0),
    (1, 0),
    (2, 2),
    (4, 2),
    (5, 4),
    (6, 4),
    (7, 8),
    (8, 0),
    (9, 0),
    (10, 1),
    (11, 0),
    (12, 0),
    (13, 0),
    (18, 0),
    (23, 8),
    (24, 8),
    (25, 16),
    (26, 0),
    (27, 0),
    (28, 0),
    (37, 0),
];

/// Kinds with one; those that hold others more than once.
const COMPLEX: [u32; 25] = [
    15, 15, 19, 19, 20, 16, 16, 21, 21, 15, 19, 14, 17, 22, 29, 30, 31, 32, 33, 34, 35, 36, 21, 16,
    20,
];

/// All, and indirections.
const KINDS: usize = BASIC.len() + COMPLEX.len() + 3;

const IDS: [&str; 5] = [
    "IDL:A:1.0",
    "IDL:B:1.0",
    "IDL:C:1.0",
    "IDL:hostile/Tree:1.0",
    "x",
];

/// Longer than most would write.
const LONG_TEXT: &str = {
    const OCTETS: [u8; 3000] = [b'n'; 3000];
    match str::from_utf8(&OCTETS) {
        Ok(text) => text,
        Err(_) => "",
    }
};
