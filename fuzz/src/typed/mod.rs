//! Type codes, anys and values of value types.

mod bodies;
mod check;
mod choices;
mod octets;
mod types;

use chronorb_cdr::{CharSet, Endian, TextForm, WideForm};

pub(crate) use bodies::{Marks, mutate};
pub(crate) use choices::Choices;
pub(crate) use octets::OctetWriter;
pub(crate) use types::Grammar;

use crate::small_stack;

/// Writes what a hostile peer would, reads it, copies it, writes it and reads it again, on a thread
/// with a small stack. What was read once is the same each time, and costs memory in proportion.
pub fn typed_values(data: &[u8]) {
    small_stack::run("typed_values", data, || {
        let message = Message::of_input(data);
        for item in &message.items {
            // That something is wrong with a message is of no interest.
            let _ = check::check(&message, *item);
        }
    });
}

/// A part of a message, as its reader expects it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Item {
    Any,
    TypeCode,
    Base,
    Chain,
    Text,
    Unknown,
    Trees,
    Choice,
}

/// The octets of parts that follow each other.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) endian: Endian,
    pub(crate) text: TextForm,
    /// The position of the first octet.
    pub(crate) position: usize,
    pub(crate) items: Vec<Item>,
    pub(crate) octets: Vec<u8>,
}

impl Message {
    /// Writes parts by a grammar, or takes the rest of the input as they are.
    pub(crate) fn of_input(data: &[u8]) -> Self {
        let mut choices = Choices::new(data);
        let endian = Endian::from_flag(choices.pick(2) == 0);
        let narrow = choices.of(&[CharSet::Utf8, CharSet::Latin1]);
        let wide = choices.of(&[WideForm::Utf16, WideForm::Ucs2]);
        let position = choices.of(&[0, 4, 1, 8]);
        let is_raw = choices.rarely(4);
        let items: Vec<Item> = (0..=choices.pick(2)).map(|_| choices.of(&ITEMS)).collect();
        let octets = if is_raw {
            choices.rest().to_vec()
        } else {
            let out = OctetWriter::at(position, endian);
            let mut grammar = Grammar::new(choices, out, wide == WideForm::Utf16);
            let mut marks = Marks::default();
            for item in &items {
                grammar.item(*item, &mut marks);
            }
            let mut octets = grammar.out.octets;
            mutate(&mut grammar.choices, &mut octets, 0);
            octets
        };
        Self {
            endian,
            text: TextForm { narrow, wide },
            position,
            items,
            octets,
        }
    }
}

impl Grammar<'_> {
    /// Writes a part.
    pub(crate) fn item(&mut self, item: Item, marks: &mut Marks) {
        match item {
            Item::Any => self.any(0),
            Item::TypeCode => drop(self.type_code()),
            Item::Base | Item::Chain | Item::Text | Item::Unknown => self.value(marks, 0, 0),
            Item::Trees => {
                self.out.u32(1);
                self.tree(0);
            }
            Item::Choice => self.choice(),
        }
    }
}

const ITEMS: [Item; 12] = [
    Item::Any,
    Item::Any,
    Item::Any,
    Item::TypeCode,
    Item::TypeCode,
    Item::Base,
    Item::Chain,
    Item::Chain,
    Item::Text,
    Item::Unknown,
    Item::Trees,
    Item::Choice,
];
