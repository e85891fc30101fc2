//! The kinds of offences against the rules of language, and how each is recognised.

use std::collections::BTreeSet;
use std::iter::repeat_with;

use super::source::{self, Block, Piece, PieceKind};

/// A rule of language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The subject of a commit has more than 72 characters.
    CommitSubject,
    /// A doc comment begins with a word of a question, or with a pronoun.
    DocStart,
    /// A line has more than 100 columns.
    LongLine,
    /// A `match` on `true` and `false`; each of its arms counts.
    MatchBool,
    /// A type is named by a participle. Traits may be: adjectives are custom for them (`Sized`).
    Participle,
    /// A crate has another type of this name.
    SameName,
    /// A thing is "who", "somebody" or the like.
    Who,
}

impl Kind {
    /// Returns the name in `xtask/language.toml`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CommitSubject => "commit-subject",
            Self::DocStart => "doc-start",
            Self::LongLine => "long-line",
            Self::MatchBool => "match-bool",
            Self::Participle => "participle",
            Self::SameName => "same-name",
            Self::Who => "who",
        }
    }
}

/// An offence at a line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offence {
    pub(super) kind: Kind,
    pub(super) line: usize,
    pub(super) text: String,
}

/// The definition of a type that other modules can name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) line: usize,
}

pub(super) const MAX_COLUMNS: usize = 100;

const BAD_STARTS: [&str; 13] = [
    "And", "How", "It", "Its", "That", "What", "Whatever", "Where", "Which", "Who", "Whoever",
    "Whom", "Whose",
];

const PERSONS: [&str; 10] = [
    "anybody",
    "anyone",
    "nobody",
    "somebody",
    "someone",
    "who",
    "whoever",
    "whom",
    "whomever",
    "whosoever",
];

/// Phrases about people, in which Markdown may say "who".
const PEOPLE: [&str; 8] = [
    "anyone who",
    "authors who",
    "developers who",
    "people who",
    "person who",
    "readers who",
    "those who",
    "users who",
];

/// Participles that do not end in "-ed" or "-ing".
const IRREGULAR: [&str; 22] = [
    "Begun", "Bought", "Built", "Done", "Drawn", "Found", "Given", "Gone", "Held", "Kept", "Known",
    "Lent", "Lost", "Made", "Met", "Said", "Seen", "Sent", "Shown", "Taken", "Told", "Written",
];

/// Nouns that look like participles, and names of standards.
const NOUNS: [&str; 37] = [
    "Binding",
    "Blocking",
    "Buffering",
    "Ceiling",
    "Coalescing",
    "Demultiplexing",
    "Encoding",
    "Feed",
    "Finding",
    "Fixed",
    "Framing",
    "Heading",
    "Listing",
    "Locating",
    "Mapping",
    "Meaning",
    "Meeting",
    "MutexNotFound",
    "Need",
    "Nothing",
    "Padding",
    "Parking",
    "Processing",
    "Reading",
    "Recording",
    "Ring",
    "Routing",
    "Scheduling",
    "Seed",
    "Setting",
    "Speed",
    "Spelling",
    "String",
    "Switching",
    "Timing",
    "Uring",
    "Warning",
];

/// Returns the offences of a Rust file.
pub(super) fn of_rust(text: &str) -> Vec<Offence> {
    let pieces = source::pieces(text);
    let blocks = source::blocks(&pieces);
    let mut offences = Vec::new();
    let mut listings = BTreeSet::new();
    for block in &blocks {
        of_block(block, &mut offences, &mut listings);
    }
    for piece in &pieces {
        match piece.kind {
            PieceKind::Text | PieceKind::Listing => {
                let persons = persons(&without_quotations(piece.text));
                let offence = || offence(Kind::Who, piece.line, piece.text);
                offences.extend(repeat_with(offence).take(persons));
                if piece.kind == PieceKind::Listing {
                    listings.insert(piece.line);
                }
            }
            PieceKind::Code => of_code(piece, &mut offences),
            _ => {}
        }
    }
    for (number, line) in text.lines().enumerate() {
        let is_table = line
            .trim_start()
            .trim_start_matches(['/', '!', ' '])
            .starts_with('|');
        if is_long(line) && !is_table && !listings.contains(&number) {
            offences.push(offence(Kind::LongLine, number, line));
        }
    }
    offences.sort_by_key(|offence| (offence.line, offence.kind));
    offences
}

/// Returns the offences of a Markdown file.
pub(super) fn of_markdown(text: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut in_listing = false;
    for (number, line) in text.lines().enumerate() {
        if is_fence(line) {
            in_listing = !in_listing;
        } else if in_listing {
            continue;
        }
        if is_long(line) && !line.trim_start().starts_with('|') {
            offences.push(offence(Kind::LongLine, number, line));
        }
        let mut prose = without_quotations(line).to_lowercase();
        for phrase in PEOPLE {
            prose = prose.replace(phrase, "");
        }
        if !line.starts_with('>') {
            let offence = || offence(Kind::Who, number, line);
            offences.extend(repeat_with(offence).take(persons(&prose)));
        }
    }
    offences
}

/// Returns the types that a Rust file defines for other modules. One that is conditional may stand
/// beside another for the opposite condition, and is left out.
pub(super) fn definitions(text: &str) -> Vec<Definition> {
    let mut is_conditional = false;
    let mut last_line = None;
    let mut definitions = Vec::new();
    for piece in source::pieces(text) {
        let is_first = last_line.replace(piece.line) != Some(piece.line);
        if piece.kind != PieceKind::Code || !is_first {
            continue;
        }
        let code = piece.text.trim();
        if code.starts_with("#[") {
            is_conditional |= code.starts_with("#[cfg(");
            continue;
        }
        let is_conditional = std::mem::take(&mut is_conditional);
        let Some(public) = code.strip_prefix("pub") else {
            continue;
        };
        let restriction = public.split_once(") ").filter(|_| public.starts_with('('));
        let item = restriction.map_or(public, |(_, item)| item).trim_start();
        if let Some(name) = type_name(item).filter(|_| !is_conditional) {
            let name = name.to_owned();
            let line = piece.line + 1;
            definitions.push(Definition { name, line });
        }
    }
    definitions
}

/// Returns the doc comments of a Rust file, for samples.
pub(super) fn documentation(text: &str) -> Vec<(usize, String)> {
    let blocks = source::blocks(&source::pieces(text)).into_iter();
    let docs = blocks.filter(|block| block.kind == PieceKind::Doc);
    let lines: Vec<&str> = text.lines().collect();
    docs.map(|doc| {
        let end = doc.line + doc.lines.len();
        let item = lines[end..]
            .iter()
            .find(|line| !line.trim_start().starts_with("#["));
        let shown = lines[doc.line..end].iter().chain(item);
        let shown: Vec<_> = shown.map(|line| line.trim_start()).collect();
        (doc.line + 1, shown.join("\n"))
    })
    .collect()
}

fn offence(kind: Kind, line: usize, text: &str) -> Offence {
    let text = text.trim().to_owned();
    Offence {
        kind,
        line: line + 1,
        text,
    }
}

fn of_block(block: &Block<'_>, offences: &mut Vec<Offence>, listings: &mut BTreeSet<usize>) {
    if block.kind == PieceKind::Doc && has_bad_start(block.lines[0]) {
        offences.push(offence(Kind::DocStart, block.line, block.lines[0]));
    }
    let mut in_listing = false;
    let mut in_quotation = false;
    for (number, line) in (block.line..).zip(&block.lines) {
        if is_fence(line) {
            in_listing = !in_listing;
        } else if in_listing {
            listings.insert(number);
        } else {
            let persons = persons(&unquoted(line, &mut in_quotation));
            let offence = || offence(Kind::Who, number, line);
            offences.extend(repeat_with(offence).take(persons));
        }
    }
}

fn of_code(piece: &Piece<'_>, offences: &mut Vec<Offence>) {
    let code = piece.text.trim();
    let is_arm = |word| {
        let rest = code.strip_prefix(word);
        rest.is_some_and(|rest: &str| rest.starts_with(" =>") || rest.starts_with(" if "))
    };
    if is_arm("true") || is_arm("false") {
        offences.push(offence(Kind::MatchBool, piece.line, code));
    }
    for keyword in ["struct ", "enum ", "type ", "union "] {
        let name = code.find(keyword).and_then(|at| {
            let is_word = at == 0 || code[..at].ends_with([' ', '(']);
            type_name(&code[at..]).filter(|_| is_word)
        });
        if name.is_some_and(is_participle) {
            offences.push(offence(Kind::Participle, piece.line, code));
        }
    }
}

fn has_bad_start(doc: &str) -> bool {
    let word = doc.split(|c: char| !c.is_alphanumeric()).next();
    word.is_some_and(|word| BAD_STARTS.contains(&word))
}

/// Returns the name of the type that `item` defines.
fn type_name(item: &str) -> Option<&str> {
    let (keyword, rest) = item.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let is_camel = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_type && is_camel).then_some(name)
}

/// Whether the last word of a type's name is a participle.
fn is_participle(name: &str) -> bool {
    let last = name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    let word = &name[last..];
    let is_one = word.ends_with("ed") || word.ends_with("ing") || IRREGULAR.contains(&word);
    is_one && !NOUNS.contains(&word) && !NOUNS.contains(&name)
}

/// Counts the words of a text that make persons of things.
fn persons(text: &str) -> usize {
    let may = text.contains("who") || text.contains("Who") || text.contains("body");
    let may = may || text.contains("yone") || text.contains("meone");
    let words = text.split(|c: char| !c.is_alphanumeric());
    let is_person = |word: &&str| PERSONS.iter().any(|it| word.eq_ignore_ascii_case(it));
    if may {
        words.filter(is_person).count()
    } else {
        0
    }
}

/// Returns a line without code spans and without quotations that end in it.
fn without_quotations(line: &str) -> String {
    let mut in_quotation = false;
    unquoted(line, &mut in_quotation)
}

/// Returns a line without code spans and quotations, which may go on from the line before and to
/// the line after.
fn unquoted(line: &str, in_quotation: &mut bool) -> String {
    let mut kept = String::new();
    let mut in_code = false;
    for c in line.chars() {
        match c {
            '`' => in_code = !in_code,
            '"' if !in_code => *in_quotation = !*in_quotation,
            '“' => *in_quotation = true,
            '”' => *in_quotation = false,
            c if !in_code && !*in_quotation => kept.push(c),
            _ => {}
        }
    }
    kept
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_long(line: &str) -> bool {
    line.len() > MAX_COLUMNS && line.chars().count() > MAX_COLUMNS && !line.contains("://")
}

#[cfg(test)]
mod tests;
