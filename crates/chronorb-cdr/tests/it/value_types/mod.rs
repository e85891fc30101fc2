//! Value types as generated code has them.

use std::sync::Arc;

use chronorb_cdr::{
    ByArc, CdrError, Decoder, Encoder, Narrow, ReadState, Value, ValueInfo, ValueType, impl_value,
    register_value_factory,
};

/// `valuetype Point { public long x; public long y; };`
pub(crate) trait Point: Value {
    fn x(&self) -> i32;
    fn y(&self) -> i32;
}

/// `valuetype Base { public long a; };`
pub(crate) trait Base: Value {
    fn a(&self) -> i32;
}

/// `valuetype Derived : truncatable Base { public long b; public Point place; };`
pub(crate) trait Derived: Base {
    fn b(&self) -> i32;
    fn place(&self) -> Option<&Arc<dyn Point>>;
}

#[derive(Debug)]
pub(crate) struct PointValue {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

#[derive(Debug)]
pub(crate) struct BaseValue {
    a: i32,
}

#[derive(Debug)]
pub(crate) struct DerivedValue {
    a: i32,
    b: i32,
    place: Option<Arc<dyn Point>>,
}

impl Point for PointValue {
    fn x(&self) -> i32 {
        self.x
    }

    fn y(&self) -> i32 {
        self.y
    }
}

impl Base for BaseValue {
    fn a(&self) -> i32 {
        self.a
    }
}

impl Base for DerivedValue {
    fn a(&self) -> i32 {
        self.a
    }
}

impl Derived for DerivedValue {
    fn b(&self) -> i32 {
        self.b
    }

    fn place(&self) -> Option<&Arc<dyn Point>> {
        self.place.as_ref()
    }
}

impl_value!(PointValue as Point);
impl_value!(BaseValue as Base);
impl_value!(DerivedValue as Derived);

pub(crate) fn derived(a: i32, b: i32, place: Option<Arc<dyn Point>>) -> Arc<DerivedValue> {
    Arc::new(DerivedValue { a, b, place })
}

fn read_point(d: &mut Decoder<'_>) -> Result<Arc<dyn Value>, CdrError> {
    let (x, y) = (d.read_i32()?, d.read_i32()?);
    Ok(Arc::new(PointValue { x, y }))
}

fn read_base(d: &mut Decoder<'_>) -> Result<Arc<dyn Value>, CdrError> {
    Ok(Arc::new(BaseValue { a: d.read_i32()? }))
}

fn read_derived(d: &mut Decoder<'_>) -> Result<Arc<dyn Value>, CdrError> {
    let (a, b) = (d.read_i32()?, d.read_i32()?);
    let place = d.read_value()?;
    Ok(Arc::new(DerivedValue { a, b, place }))
}

impl PartialEq for dyn Point {
    fn eq(&self, other: &Self) -> bool {
        (self as &dyn Value).equals(other)
    }
}

impl PartialEq for dyn Base {
    fn eq(&self, other: &Self) -> bool {
        (self as &dyn Value).equals(other)
    }
}

impl ValueType for dyn Point {
    const INFO: &'static ValueInfo = &ValueInfo {
        repository_id: "IDL:Point:1.0",
        truncatable_to: &[],
        custom: false,
    };

    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_i32(self.x())?;
        e.write_i32(self.y())
    }

    fn offer(this: Arc<Self>, to: &mut Narrow<'_>) {
        to.offer(this);
    }

    fn has_state_of(&self, other: &Self) -> bool {
        (self.x(), self.y()) == (other.x(), other.y())
    }

    fn into_value(this: Arc<Self>) -> Arc<dyn Value> {
        this
    }

    fn known(repository_id: &str) -> Option<ReadState> {
        (repository_id == Self::INFO.repository_id).then_some(read_point as ReadState)
    }
}

impl ValueType for dyn Base {
    const INFO: &'static ValueInfo = &ValueInfo {
        repository_id: "IDL:Base:1.0",
        truncatable_to: &[],
        custom: false,
    };

    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_i32(self.a())
    }

    fn offer(this: Arc<Self>, to: &mut Narrow<'_>) {
        to.offer(this);
    }

    fn has_state_of(&self, other: &Self) -> bool {
        self.a() == other.a()
    }

    fn into_value(this: Arc<Self>) -> Arc<dyn Value> {
        this
    }

    fn known(repository_id: &str) -> Option<ReadState> {
        match repository_id {
            "IDL:Base:1.0" => Some(read_base),
            "IDL:Derived:1.0" => Some(read_derived),
            _ => None,
        }
    }
}

impl ValueType for dyn Derived {
    const INFO: &'static ValueInfo = &ValueInfo {
        repository_id: "IDL:Derived:1.0",
        truncatable_to: &["IDL:Base:1.0"],
        custom: false,
    };

    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_i32(self.a())?;
        e.end_base_state()?;
        e.write_i32(self.b())?;
        e.write_value(self.place())
    }

    fn offer(this: Arc<Self>, to: &mut Narrow<'_>) {
        to.offer(this.clone());
        to.offer::<dyn Base>(this);
    }

    fn has_state_of(&self, other: &Self) -> bool {
        (self.a(), self.b(), self.place()) == (other.a(), other.b(), other.place())
    }

    fn into_value(this: Arc<Self>) -> Arc<dyn Value> {
        this
    }

    fn known(repository_id: &str) -> Option<ReadState> {
        (repository_id == Self::INFO.repository_id).then_some(read_derived as ReadState)
    }
}

/// Value boxes and concrete types are values as they are.
macro_rules! concrete {
    ($t:ident, $id:literal, |$this:ident, $e:ident| $encode:expr, |$d:ident| $decode:expr) => {
        impl Value for $t {
            fn info(&self) -> &'static ValueInfo {
                Self::INFO
            }

            fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
                ValueType::encode_state(self, e)
            }

            fn narrow_to(self: Arc<Self>, to: &mut Narrow<'_>) {
                to.offer(self);
            }

            fn equals(&self, other: &dyn Value) -> bool {
                let other: &dyn std::any::Any = other;
                other.downcast_ref::<Self>() == Some(self)
            }
        }

        impl ValueType for $t {
            const INFO: &'static ValueInfo = &ValueInfo {
                repository_id: $id,
                truncatable_to: &[],
                custom: false,
            };

            fn encode_state(&self, $e: &mut Encoder<'_>) -> Result<(), CdrError> {
                let $this = self;
                $encode
            }

            fn offer(this: Arc<Self>, to: &mut Narrow<'_>) {
                to.offer(this);
            }

            fn has_state_of(&self, other: &Self) -> bool {
                self == other
            }

            fn into_value(this: Arc<Self>) -> Arc<dyn Value> {
                this
            }

            fn known(repository_id: &str) -> Option<ReadState> {
                let read: ReadState = |$d| Ok(Arc::new($decode));
                (repository_id == $id).then_some(read)
            }
        }

        impl ByArc for $t {
            const MIN_SIZE: usize = 4;

            fn encode_arc(this: Option<&Arc<Self>>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
                e.write_value(this)
            }

            fn decode_arc(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError> {
                d.read_value()
            }
        }
    };
}

/// `valuetype Label string;`
#[derive(Debug, PartialEq)]
pub(crate) struct Label(pub(crate) String);

concrete!(
    Label,
    "IDL:Label:1.0",
    |this, e| e.write_str(&this.0),
    |d| Self(d.read_str()?.to_owned())
);

pub(crate) fn register_label() {
    // Another test may have done it.
    let _ = register_value_factory("IDL:Label:1.0", |d| {
        Ok(Arc::new(Label(d.read_str()?.to_owned())))
    });
}

/// `valuetype Node { public unsigned long n; public Node next; };`
#[derive(Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) n: u32,
    pub(crate) next: Option<Arc<Self>>,
}

concrete!(
    Node,
    "IDL:Node:1.0",
    |this, e| {
        e.write_u32(this.n)?;
        e.write_value(this.next.as_ref())
    },
    |d| Self {
        n: d.read_u32()?,
        next: d.read_value()?,
    }
);

/// A value with members of all alignments.
#[derive(Debug, PartialEq)]
pub(crate) struct Grown {
    octet: u8,
    number: i32,
    doubles: Vec<f64>,
    texts: [String; 2],
    none: Vec<u8>,
}

pub(crate) fn grown() -> Arc<Grown> {
    Arc::new(Grown {
        octet: 1,
        number: 2,
        doubles: vec![3.0, 4.0, 5.0],
        texts: ["abc".to_owned(), "def".to_owned()],
        none: Vec::new(),
    })
}

concrete!(
    Grown,
    "IDL:Grown:1.0",
    |this, e| {
        e.write_u8(this.octet)?;
        e.write_i32(this.number)?;
        e.write_seq(&this.doubles)?;
        e.write_str(&this.texts[0])?;
        e.write_str(&this.texts[1])?;
        e.write_octet_seq(&this.none)
    },
    |d| Self {
        octet: d.read_u8()?,
        number: d.read_i32()?,
        doubles: d.read_seq()?.to_vec(),
        texts: [d.read_str()?.to_owned(), d.read_str()?.to_owned()],
        none: d.read_octet_seq()?.to_vec(),
    }
);

/// Writes a part of an encoded state as a chunk, with the alignment that it has in the state.
pub(crate) fn chunk(
    e: &mut Encoder<'_>,
    state: &[u8],
    from: usize,
    to: usize,
) -> Result<(), CdrError> {
    e.write_u32(0)?;
    let start = e.position();
    // Padding that stood in front of the next member is that of its new place.
    let from = match from {
        1 => 4,
        12 => 16,
        other => other,
    };
    if from == 16 {
        e.align(8)?;
    }
    if from < 16 && to > 12 {
        e.write_octets(&state[from..12])?;
        e.align(8)?;
        e.write_octets(&state[16..to])?;
    } else {
        e.write_octets(&state[from..to])?;
    }
    let size = e.position() - start;
    e.patch_u32(start - 4, size as u32)
}
