//! Anys beside omniORB: what one of them takes the other takes too, and as the same value.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use chronorb_cdr::{
    Any, AnyBuf, Arena, Cdr, CdrError, CharSet, Decoder, Encoder, Endian, Frame, TextForm, WideForm,
};
use chronorb_rt::PiMutex;

use crate::typed::{Choices, Grammar, OctetWriter, mutate};

/// Has an any decoded by omniORB and by chronorb. Does nothing where `CHRONORB_FUZZ_OMNIORB` does
/// not name the program of `interop/omniorb` for it.
///
/// # Panics
/// Where they differ in a way that is of no known class.
pub fn omniorb_anys(data: &[u8]) {
    let mut peer = PEER.lock();
    let Some(program) = std::env::var_os("CHRONORB_FUZZ_OMNIORB") else {
        return;
    };
    let peer = peer.get_or_insert_with(|| Peer::start(&program));
    let mut choices = Choices::new(data);
    let endian = Endian::from_flag(choices.pick(2) == 0);
    let octets = if choices.rarely(4) {
        choices.rest().to_vec()
    } else {
        let mut grammar = Grammar::new(choices, OctetWriter::at(0, endian), true);
        grammar.any(0);
        let mut octets = grammar.out.octets;
        mutate(&mut grammar.choices, &mut octets, 0);
        octets
    };
    let difference = compare(peer, &octets, endian);
    if peer.has_ended() {
        *peer = Peer::start(&program);
    }
    if let Some(difference) = difference {
        let is_documented = difference.is_documented(&octets);
        assert!(is_documented, "{difference:?} {endian:?}: {octets:02x?}");
    }
}

/// A way in which the two differ.
#[allow(dead_code, reason = "what is in it is printed")]
#[derive(Debug)]
enum Difference {
    /// Only omniORB takes it.
    OnlyOmniOrb(CdrError),
    /// Only chronorb takes it; omniORB names an exception.
    OnlyChronorb { type_code: String, error: String },
    /// Only chronorb takes it; omniORB takes what chronorb makes of it.
    OnlyChronorbAsIs,
    /// omniORB's process has ended, or takes too long.
    OmniOrbEnds,
    /// One of them refuses what the other has written.
    NotReadAgain { type_code: String, error: String },
    /// Both take it, as different values.
    AnotherValue { type_code: String },
}

/// Has both read an any, and what each of them makes of it read by the other.
fn compare(peer: &mut Peer, octets: &[u8], endian: Endian) -> Option<Difference> {
    let Some(theirs) = peer.ask(octets, endian) else {
        return Some(Difference::OmniOrbEnds);
    };
    let (ours, theirs) = match (read(octets, endian), theirs) {
        (Err(_), Err(_)) => return None,
        (Err(error), Ok(_)) => return Some(Difference::OnlyOmniOrb(error)),
        (Ok(ours), theirs) => (ours, theirs),
    };
    let type_code = ours.type_code().to_string();
    let theirs = match theirs {
        Ok(theirs) => match read(&theirs, endian) {
            Ok(other) if other == ours => Ok(theirs),
            Ok(_) => return Some(Difference::AnotherValue { type_code }),
            Err(error) => {
                let error = error.to_string();
                return Some(Difference::NotReadAgain { type_code, error });
            }
        },
        Err(error) => Err(error),
    };
    let mut frame = Frame::new(0, 16 << 20);
    let mut e = Encoder::new(&mut frame, endian).with_text(TEXT);
    if ours.encode(&mut e).is_err() {
        // It has become too long.
        return None;
    }
    let again = peer.ask(frame.as_slice(), endian);
    match (theirs, again) {
        (_, None) => Some(Difference::OmniOrbEnds),
        (Ok(theirs), Some(Ok(again))) if again == theirs => None,
        (theirs, Some(Ok(again))) => match (read(&again, endian), theirs) {
            (Ok(other), Ok(_)) if other == ours => None,
            (Ok(other), Err(_)) if other == ours => Some(Difference::OnlyChronorbAsIs),
            _ => Some(Difference::AnotherValue { type_code }),
        },
        (Ok(_), Some(Err(error))) => Some(Difference::NotReadAgain { type_code, error }),
        (Err(error), Some(Err(_))) => Some(Difference::OnlyChronorb { type_code, error }),
    }
}

impl Difference {
    /// Whether it is of a class that `README.md` names.
    fn is_documented(&self, octets: &[u8]) -> bool {
        let has = |word: u32| {
            let (big, little) = (word.to_be_bytes(), word.to_le_bytes());
            octets
                .windows(4)
                .any(|octets| octets == big || octets == little)
        };
        match self {
            Self::OmniOrbEnds | Self::OnlyChronorbAsIs => true,
            Self::OnlyOmniOrb(error) => match error {
                CdrError::BoundExceeded
                | CdrError::TooDeep
                | CdrError::TooMuchWork
                | CdrError::ArenaFull
                | CdrError::InvalidUtf8
                | CdrError::InvalidWideChar
                | CdrError::UnmappableChar
                | CdrError::EmbeddedNul
                | CdrError::InvalidEnum
                | CdrError::OpaqueValue => true,
                CdrError::InvalidTypeCode => [u32::MAX, UNION, FIXED, VALUE].into_iter().any(has),
                CdrError::EndOfData | CdrError::LengthOverflow => has(ARRAY) || has(EXCEPTION),
                _ => false,
            },
            Self::OnlyChronorb { type_code, .. } => {
                CHRONORB_TAKES.into_iter().any(has)
                    || type_code.contains("null")
                    || type_code.contains("void")
            }
            Self::NotReadAgain { .. } => has(EXCEPTION),
            Self::AnotherValue { .. } => [EXCEPTION, LONG_DOUBLE, REFERENCE].into_iter().any(has),
        }
    }
}

/// Kinds of type codes.
const ANY: u32 = 11;
const TYPE_CODE: u32 = 12;
const REFERENCE: u32 = 14;
const STRUCT: u32 = 15;
const UNION: u32 = 16;
const ARRAY: u32 = 20;
const EXCEPTION: u32 = 22;
const LONG_DOUBLE: u32 = 25;
const FIXED: u32 = 28;
const VALUE: u32 = 29;
const ABSTRACT: u32 = 32;
const COMPONENT: u32 = 34;
const HOME: u32 = 35;
const EVENT: u32 = 36;

/// Kinds that only chronorb knows, whose values may have no octets, or that hold type codes.
const CHRONORB_TAKES: [u32; 11] = [
    ANY, TYPE_CODE, REFERENCE, STRUCT, ARRAY, EXCEPTION, VALUE, ABSTRACT, COMPONENT, HOME, EVENT,
];

fn read(octets: &[u8], endian: Endian) -> Result<AnyBuf, CdrError> {
    let mut octets = octets.to_vec();
    let arena = Arena::new(1 << 20);
    let mut d = Decoder::new(&mut octets, 0, endian, &arena).with_text(TEXT);
    Ok(Any::decode(&mut d)?.to_owned())
}

const TEXT: TextForm = TextForm {
    narrow: CharSet::Utf8,
    wide: WideForm::Utf16,
};

/// The process of omniORB.
struct Peer {
    process: Child,
    has_ended: bool,
}

static PEER: PiMutex<Option<Peer>> = PiMutex::new(None);

impl Peer {
    fn start(program: &std::ffi::OsStr) -> Self {
        let mut command = Command::new(program);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self {
            process: command.spawn().expect("the program starts"),
            has_ended: false,
        }
    }

    /// The any as omniORB writes it, or the name of an exception; `None` where the process ends.
    fn ask(&mut self, octets: &[u8], endian: Endian) -> Option<Result<Vec<u8>, String>> {
        let answer = self.exchange(octets, endian);
        if answer.is_none() {
            self.has_ended = true;
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        answer
    }

    fn exchange(&mut self, octets: &[u8], endian: Endian) -> Option<Result<Vec<u8>, String>> {
        let input = self.process.stdin.as_mut().expect("it is piped");
        let mut question = (octets.len() as u32).to_le_bytes().to_vec();
        question.push(endian.is_little().into());
        question.extend_from_slice(octets);
        input.write_all(&question).ok()?;
        input.flush().ok()?;
        let output = self.process.stdout.as_mut().expect("it is piped");
        let mut head = [0; 5];
        output.read_exact(&mut head).ok()?;
        let [is_any, length @ ..] = head;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        output.read_exact(&mut text).ok()?;
        Some(match is_any {
            1 => Ok(text),
            _ => Err(String::from_utf8_lossy(&text).into_owned()),
        })
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
