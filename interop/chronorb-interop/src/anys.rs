//! The samples of `idl/anys.idl`: anys of every kind of value, created and recognized by their
//! types.

use chronorb::data::{Any, AnyBuf, CdrError, Char, TypeCode, Typed, WideStr};
use chronorb::prelude::*;

use crate::Failure;
use idl::*;

/// The definitions of `idl/anys.idl`.
pub mod idl {
    chronorb::include_idl!("anys");

    pub use self::anys::*;
}

/// All kinds of samples.
pub const SAMPLES: [Sample; 31] = [
    Sample::Nothing,
    Sample::ABoolean,
    Sample::AnOctet,
    Sample::AShort,
    Sample::AnUnsignedLong,
    Sample::ALongLong,
    Sample::AFloat,
    Sample::ADouble,
    Sample::AChar,
    Sample::AWchar,
    Sample::AString,
    Sample::AWstring,
    Sample::AnEnumerator,
    Sample::AStruct,
    Sample::Structs,
    Sample::ManyLongs,
    Sample::ManyOctets,
    Sample::AGrid,
    Sample::AChoice,
    Sample::AnotherChoice,
    Sample::ALetter,
    Sample::APerhaps,
    Sample::ATree,
    Sample::APrice,
    Sample::AHolder,
    Sample::AnAny,
    Sample::AType,
    Sample::AReference,
    Sample::NoReference,
    Sample::AnException,
    Sample::ATicker,
];

const POINT: Point<'static> = Point {
    x: 0.25,
    y: -7,
    name: "corner",
};

const POINTS: &[Point<'static>] = &[POINT, POINT];

const LONGS: &[i32] = &[-1, -2, -3];

const OCTETS: &[u8] = &[250, 251, 252, 253, 254];

const GRID: Grid = [[1, 2, 3], [4, 5, 6]];

const LETTER: Letter<'static> = Letter::Many {
    discriminator: Char(b'z'),
    value: &[POINT],
};

const CHOICE: Choice<'static> = Choice::Text {
    discriminator: Color::Blue,
    value: "blue",
};

const TREE: Node<'static> = Node {
    number: 1,
    children: &[
        Node {
            number: 2,
            children: &[],
        },
        Node {
            number: 3,
            children: &[Node {
                number: 4,
                children: &[],
            }],
        },
    ],
};

const REFUSED: Refused<'static> = Refused {
    reason: "closed",
    code: 12,
};

const WIDE: &str = "Grüße Δ";

fn price() -> Price {
    // The digits of -1234567.89.
    Price::from_unscaled(-123_456_789).unwrap_or_default()
}

/// Makes an `any` with a sample value of a kind. If it has an object reference, that is `this`.
///
/// # Errors
/// None is expected.
pub fn make_sample(kind: Sample, this: &Mirror) -> Result<AnyBuf, CdrError> {
    match kind {
        Sample::Nothing => Ok(AnyBuf::default()),
        Sample::ABoolean => AnyBuf::new(&true),
        Sample::AnOctet => AnyBuf::new(&200_u8),
        Sample::AShort => AnyBuf::new(&-5_i16),
        Sample::AnUnsignedLong => AnyBuf::new(&4_000_000_000_u32),
        Sample::ALongLong => AnyBuf::new(&-5_000_000_000_000_i64),
        Sample::AFloat => AnyBuf::new(&0.5_f32),
        Sample::ADouble => AnyBuf::new(&-1e300_f64),
        Sample::AChar => AnyBuf::new(&Char(b'x')),
        Sample::AWchar => AnyBuf::new(&'Δ'),
        Sample::AString => AnyBuf::new(&"café"),
        Sample::AWstring => AnyBuf::new(&WideStr(WIDE)),
        Sample::AnEnumerator => AnyBuf::new(&Color::Blue),
        Sample::AStruct => AnyBuf::new(&POINT),
        Sample::Structs => AnyBuf::with_type(POINTS_TYPE_CODE, &POINTS),
        Sample::ManyLongs => AnyBuf::with_type(LONGS_TYPE_CODE, &LONGS),
        Sample::ManyOctets => AnyBuf::with_type(OCTETS_TYPE_CODE, &OCTETS),
        Sample::AGrid => AnyBuf::with_type(GRID_TYPE_CODE, &GRID),
        Sample::AChoice => AnyBuf::new(&Choice::Number(77)),
        Sample::AnotherChoice => AnyBuf::new(&CHOICE),
        Sample::ALetter => AnyBuf::new(&LETTER),
        Sample::APerhaps => AnyBuf::new(&Perhaps::Other(false)),
        Sample::ATree => AnyBuf::new(&TREE),
        Sample::APrice => AnyBuf::new(&price()),
        Sample::AHolder => AnyBuf::new(&Holder {
            before: 9,
            inner: Any::of(&POINT),
            kind: Node::TYPE_CODE,
            cost: price(),
            wide: WIDE,
        }),
        Sample::AnAny => AnyBuf::new(&Any::of(&Any::of(&POINT))),
        Sample::AType => AnyBuf::new(&Letter::TYPE_CODE),
        Sample::AReference => AnyBuf::new(&Some(this)),
        Sample::NoReference => AnyBuf::new(&None::<&Mirror>),
        Sample::AnException => AnyBuf::new(&REFUSED),
        Sample::ATicker => AnyBuf::with_type(TypeCode::String { bound: 8 }, &"ACME"),
    }
}

/// Returns whether the any, created here or elsewhere, is the sample of that kind.
///
/// # Errors
/// An error of decoding the any.
pub fn is_sample(kind: Sample, any: &Any<'_>) -> Result<bool, CdrError> {
    Ok(match kind {
        Sample::Nothing => *any.type_code() == TypeCode::Null,
        Sample::ABoolean => any.extract()?,
        Sample::AnOctet => any.extract::<u8>()? == 200,
        Sample::AShort => any.extract::<i16>()? == -5,
        Sample::AnUnsignedLong => any.extract::<u32>()? == 4_000_000_000,
        Sample::ALongLong => any.extract::<i64>()? == -5_000_000_000_000,
        Sample::AFloat => any.extract::<f32>()? == 0.5,
        Sample::ADouble => any.extract::<f64>()? == -1e300,
        Sample::AChar => any.extract::<Char>()? == Char(b'x'),
        Sample::AWchar => any.extract::<char>()? == 'Δ',
        Sample::AString => any.extract::<&str>()? == "café",
        Sample::AWstring => any.extract::<WideStr<'_>>()? == WideStr(WIDE),
        Sample::AnEnumerator => any.extract::<Color>()? == Color::Blue,
        Sample::AStruct => any.extract::<Point<'_>>()? == POINT,
        Sample::Structs => any.extract::<Points<'_>>()? == POINTS,
        Sample::ManyLongs => any.extract::<Longs<'_>>()? == LONGS,
        Sample::ManyOctets => any.extract::<Octets<'_>>()? == OCTETS,
        Sample::AGrid => any.extract::<Grid>()? == GRID,
        Sample::AChoice => any.extract::<Choice<'_>>()? == Choice::Number(77),
        Sample::AnotherChoice => any.extract::<Choice<'_>>()? == CHOICE,
        Sample::ALetter => any.extract::<Letter<'_>>()? == LETTER,
        Sample::APerhaps => any.extract::<Perhaps>()? == Perhaps::Other(false),
        Sample::ATree => any.extract::<Node<'_>>()? == TREE,
        Sample::APrice => any.extract::<Price>()? == price(),
        Sample::AHolder => {
            let holder = any.extract::<Holder<'_>>()?;
            holder.before == 9
                && holder.inner.extract::<Point<'_>>()? == POINT
                && holder.kind == Node::TYPE_CODE
                && holder.cost == price()
                && holder.wide == WIDE
        }
        Sample::AnAny => {
            let inner = any.extract::<Any<'_>>()?.extract::<Any<'_>>()?;
            inner.extract::<Point<'_>>()? == POINT
        }
        Sample::AType => any.extract::<TypeCode<'_>>()? == Letter::TYPE_CODE,
        Sample::AReference => any.extract::<Option<&Mirror>>()?.is_some(),
        Sample::NoReference => any.extract::<Option<&Mirror>>()?.is_none(),
        Sample::AnException => any.extract::<Refused<'_>>()? == REFUSED,
        Sample::ATicker => {
            let ticker = TypeCode::String { bound: 8 };
            any.extract_with(&ticker, |d| d.read_str_bounded(8))? == "ACME"
        }
    })
}

/// Activates a mirror.
///
/// # Errors
/// Any error of the ORB.
pub fn serve_mirror(orb: &Orb) -> Result<Mirror, Failure> {
    let root = orb.root_poa()?;
    let mirror = root.serve(MirrorSkeleton::new(MirrorObject))?;
    root.manager().activate()?;
    Ok(Mirror::unchecked_narrow(&mirror))
}

struct MirrorObject;

impl MirrorServant for MirrorObject {
    fn make<'a>(&self, call: &Call<'a>, kind: Sample) -> Result<Any<'a>, SystemException> {
        let this = call.poa().id_to_reference(call.object_id());
        let this = this.map_err(|_| SystemException::no(SystemExceptionKind::Internal, 0))?;
        let this = Mirror::unchecked_narrow(&this);
        let sample = call.keep(make_sample(kind, &this)?);
        Ok(sample.as_view_in(call.arena())?)
    }

    fn is<'a>(&self, _: &Call<'a>, kind: Sample, value: &Any<'a>) -> Result<bool, SystemException> {
        Ok(is_sample(kind, value)?)
    }

    fn echo<'a>(&self, _: &Call<'a>, value: &Any<'a>) -> Result<Any<'a>, SystemException> {
        Ok(*value)
    }

    fn type_of<'a>(&self, _: &Call<'a>, value: &Any<'a>) -> Result<TypeCode<'a>, SystemException> {
        Ok(*value.type_code())
    }

    fn are_equal<'a>(
        &self,
        _: &Call<'a>,
        one: &TypeCode<'a>,
        other: &TypeCode<'a>,
    ) -> Result<bool, SystemException> {
        Ok(one.equal(other))
    }

    fn shutdown(&self, call: &Call<'_>) -> Result<(), SystemException> {
        call.orb().shutdown(false)
    }
}
