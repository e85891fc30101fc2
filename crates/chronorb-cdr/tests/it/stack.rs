//! Messages that nest as deeply as they can, decoded and encoded on small stacks.
//!
//! A stack that overflows ends the process, so each test is that the thread returns.

use std::fmt::Write as _;
use std::thread;

use chronorb_cdr::{
    Any, Arena, Cdr, CdrError, Decoder, Encoder, Endian, Frame, MAX_DEPTH, StackLimit,
    StructMember, TypeCode, TypeCodeBuf, UnionMember, ValueModifier, set_stack_limits,
};

const STACKS: [usize; 3] = [64 << 10, 256 << 10, 2 << 20];

thread_local! {
    static LIMIT: std::cell::Cell<Option<StackLimit>> = const { std::cell::Cell::new(None) };
}

/// Runs `test` on a thread with a stack of this size, which decoders and encoders know.
fn on_stack(size: usize, test: impl FnOnce(&Arena) + Send + 'static) {
    set_stack_limits(|| LIMIT.get());
    let thread = thread::Builder::new().stack_size(size);
    let thread = thread.spawn(move || {
        let here = 0_u8;
        // The thread's own start takes less than a page above this function's frame.
        let lowest = std::ptr::from_ref(&here).addr() - size + (8 << 10);
        LIMIT.set(Some(StackLimit::at(lowest)));
        test(&Arena::new(1 << 20));
    });
    thread.expect("started").join().expect("it returned");
}

fn on_stacks(test: impl Fn(&Arena) + Copy + Send + 'static) {
    for size in STACKS {
        on_stack(size, test);
    }
}

fn decode_any(octets: &mut [u8], arena: &Arena) -> Result<(), CdrError> {
    Any::decode(&mut Decoder::new(octets, 0, Endian::Big, arena)).map(drop)
}

/// The octets of a type code with parameters, whose kind is at the start.
fn type_code(kind: u32, parameters: &[u8]) -> Vec<u8> {
    let mut octets = kind.to_be_bytes().to_vec();
    octets.extend((parameters.len() as u32).to_be_bytes());
    octets.extend(parameters);
    octets
}

/// The start of parameters: big-endian, an empty identifier and an empty name.
const NO_NAMES: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
const ALIAS: u32 = 21;
const INDIRECTION: u32 = u32::MAX;

fn indirection(offset: i32) -> Vec<u8> {
    [INDIRECTION.to_be_bytes(), offset.to_be_bytes()].concat()
}

#[test]
fn an_alias_of_itself_is_refused() {
    on_stacks(|arena| {
        // The offset is relative to its own place, 24 octets into the parameters, which begin 8
        // octets after the kind.
        let direct = [&NO_NAMES[..], &indirection(-32)].concat();
        let mut direct = type_code(ALIAS, &direct);
        assert_eq!(
            decode_any(&mut direct, arena),
            Err(CdrError::InvalidTypeCode)
        );

        let inner = [&NO_NAMES[..], &indirection(-60)].concat();
        let through_another = [&NO_NAMES[..], &type_code(ALIAS, &inner)].concat();
        let mut through_another = type_code(ALIAS, &through_another);
        let refused = decode_any(&mut through_another, arena);
        assert_eq!(refused, Err(CdrError::InvalidTypeCode));
    });
}

/// An any in an any, and so on, each with a chain of aliases before it.
fn nested_anys(anys: usize, aliases: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    for _ in 0..anys {
        let mut chain = 11_u32.to_be_bytes().to_vec();
        for _ in 0..aliases {
            chain = type_code(ALIAS, &[&NO_NAMES[..], &chain].concat());
        }
        octets.extend(chain);
    }
    octets.extend(0_u32.to_be_bytes());
    octets
}

#[test]
fn anys_with_chains_of_aliases_take_no_more_than_the_stack() {
    on_stacks(|arena| {
        assert_eq!(decode_any(&mut nested_anys(2, 5), arena), Ok(()));
        for (anys, aliases) in [(30, 60), (63, 60), (60, 1), (1, 60)] {
            let read = decode_any(&mut nested_anys(anys, aliases), arena);
            assert!(matches!(read, Ok(()) | Err(CdrError::TooDeep)), "{read:?}");
        }
    });
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell<'a> {
    _x: f64,
    _s: &'a str,
}

impl<'a> Cdr<'a> for Cell<'a> {
    const MIN_SIZE: usize = 12;

    fn encode(&self, _: &mut Encoder<'_>) -> Result<(), CdrError> {
        Ok(())
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            _x: d.read_f64()?,
            _s: d.read_str()?,
        })
    }
}

/// `struct Big { Cell cells[100]; sequence<Big> kids; };`
#[derive(Clone, Copy, Debug)]
struct Big<'a> {
    _cells: [Cell<'a>; 100],
    _kids: &'a [Self],
}

impl<'a> Cdr<'a> for Big<'a> {
    const MIN_SIZE: usize = 1204;

    fn encode(&self, _: &mut Encoder<'_>) -> Result<(), CdrError> {
        Ok(())
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            _cells: d.read_array()?,
            _kids: d.read_seq()?,
        })
    }
}

#[test]
fn structs_that_hold_themselves_take_no_more_than_the_stack() {
    on_stacks(|arena| {
        for levels in [1, 10, 45, 63, 100] {
            let mut frame = Frame::new(1 << 10, 1 << 20);
            let mut e = Encoder::new(&mut frame, Endian::NATIVE);
            for _ in 0..levels {
                for _ in 0..100 {
                    e.write_f64(0.0)
                        .and_then(|()| e.write_str(""))
                        .expect("room");
                }
                e.write_u32(1).expect("room");
            }
            let octets = frame.as_mut_slice();
            let read = Big::decode(&mut Decoder::new(octets, 0, Endian::NATIVE, arena));
            // The innermost has a child that is not there.
            assert!(read.is_err());
        }
    });
}

/// A type code that holds another.
type Holder = for<'a> fn(&'a Arena, TypeCode<'a>) -> Result<TypeCode<'a>, CdrError>;

const HOLDERS: [Holder; 7] = [
    |arena, element| {
        let element = arena.alloc(element)?;
        Ok(TypeCode::Sequence { element, bound: 0 })
    },
    |arena, element| {
        let element = arena.alloc(element)?;
        Ok(TypeCode::Array { element, length: 1 })
    },
    |arena, target| {
        let target = arena.alloc(target)?;
        let (id, name) = ("IDL:A:1.0", "A");
        Ok(TypeCode::Alias { id, name, target })
    },
    |arena, target| {
        let target = arena.alloc(target)?;
        let (id, name) = ("IDL:B:1.0", "B");
        Ok(TypeCode::ValueBox { id, name, target })
    },
    |arena, type_code| {
        let name = "s";
        let members = arena.fill(1, |_| Ok(StructMember { name, type_code }))?;
        let id = "IDL:S:1.0";
        Ok(TypeCode::Struct { id, name, members })
    },
    |arena, type_code| {
        let (name, label) = ("u", 0);
        let member = UnionMember {
            label,
            name,
            type_code,
        };
        Ok(TypeCode::Union {
            id: "IDL:U:1.0",
            name,
            discriminator: &TypeCode::Long,
            default_index: None,
            members: arena.fill(1, |_| Ok(member))?,
        })
    },
    |arena, base| {
        Ok(TypeCode::Value {
            id: "IDL:V:1.0",
            name: "V",
            modifier: ValueModifier::None,
            base: Some(arena.alloc(base)?),
            members: &[],
        })
    },
];

/// The stack on which all levels of a type code fit that is copied, compared and printed, which is
/// not refused. Frames are several times as large without optimisation.
const SMALLEST: usize = if cfg!(debug_assertions) {
    STACKS[1]
} else {
    STACKS[0]
};

#[test]
fn the_deepest_type_codes_are_worked_on_in_the_smallest_stack() {
    for holder in HOLDERS {
        on_stack(SMALLEST, move |arena| {
            let mut deepest = TypeCode::Long;
            for _ in 0..MAX_DEPTH {
                deepest = holder(arena, deepest).expect("room");
            }
            let copy = TypeCodeBuf::from(&deepest);
            assert_eq!(copy.as_view(), &deepest);
            assert!(copy.as_view().equivalent(&deepest));
            let mut text = String::new();
            write!(text, "{deepest}").expect("written");
            let mut frame = Frame::new(1 << 12, 1 << 16);
            let written = deepest.encode(&mut Encoder::new(&mut frame, Endian::NATIVE));
            assert!(
                matches!(written, Ok(()) | Err(CdrError::TooDeep)),
                "{written:?}"
            );
        });
    }
}
