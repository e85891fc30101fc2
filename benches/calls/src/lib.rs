//! The calls of the benchmark, between a client and a server with default settings.
//!
//! `cargo xtask instructions` runs both programs under callgrind, `cargo xtask pairs` times them.

pub mod idl {
    //! `Calls::Echo`, compiled from `idl/calls.idl`.
    #![allow(missing_docs, reason = "generated")]

    chronorb::include_idl!("calls");
}

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use chronorb::data::Any;
use chronorb::prelude::*;
use chronorb::rtcorba::{ConstraintGuard, TimeConstraint};
use chronorb::rtscheduling::SegmentGuard;
use idl::calls::{Echo, EchoServant, Sample};

/// Bursts of calls that are made before any is counted or timed, each followed by [`PAUSE`].
///
/// After a few dozen requests a server thread remains on the connection.
pub const BURSTS: u32 = 20;

/// The calls of a burst.
pub const BURST: u32 = 100;

/// The pause after a burst.
///
/// Under callgrind one thread runs at a time. A server thread that sends a reply may be suspended
/// before it releases the connection's output, and so be asked to send the next reply too, again
/// and again. The pause lets it finish.
pub const PAUSE: Duration = Duration::from_millis(5);

/// A servant that returns what it receives.
#[derive(Debug)]
pub struct Mirror {
    /// Receives an octet for each oneway.
    pub pace: Option<Pace>,
}

impl EchoServant for Mirror {
    fn cube(&self, _: &Call<'_>, v: u8) -> Result<i32, SystemException> {
        Ok(i32::from(v).pow(3))
    }

    fn notice(&self, _: &Call<'_>, _: u8) -> Result<(), SystemException> {
        if let Some(pace) = &self.pace {
            let failed = |_| SystemException::no(SystemExceptionKind::Internal, 0);
            pace.tell().map_err(failed)?;
        }
        Ok(())
    }

    fn structs<'a>(&self, _: &Call<'a>, v: &'a [Sample]) -> Result<&'a [Sample], SystemException> {
        Ok(v)
    }

    fn text<'a>(&self, _: &Call<'a>, v: &'a str) -> Result<&'a str, SystemException> {
        Ok(v)
    }

    fn value<'a>(&self, _: &Call<'a>, v: &Any<'a>) -> Result<Any<'a>, SystemException> {
        Ok(*v)
    }

    fn reference(
        &self,
        _: &Call<'_>,
        v: Option<&Object>,
    ) -> Result<Option<Object>, SystemException> {
        Ok(v.cloned())
    }
}

/// A FIFO through which the servant acknowledges oneways, outside of the ORB.
///
/// A client that waits for the acknowledgement sends one oneway at a time, so that the server reads
/// each by itself. Otherwise the number of oneways in one read depends on the scheduler.
#[derive(Debug)]
pub struct Pace(File);

impl Pace {
    /// Opens the FIFO at this path.
    ///
    /// # Errors
    ///
    /// Those of opening a file.
    pub fn open(path: &str) -> io::Result<Self> {
        // A FIFO that is open for reading and writing blocks neither side (fifo(7)).
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self(file))
    }

    fn tell(&self) -> io::Result<()> {
        (&self.0).write_all(&[0])
    }

    /// Waits for the acknowledgement of one oneway.
    ///
    /// # Errors
    ///
    /// Those of reading a file.
    pub fn wait(&self) -> io::Result<()> {
        (&self.0).read_exact(&mut [0])
    }
}

/// A kind of call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// An octet, and a 32-bit integer as the reply.
    Octet,
    /// The same with a deadline, which each request carries.
    OctetByDeadline,
    /// The same within a scheduling segment: each request carries a distributable thread.
    OctetInSegment,
    /// An octet without a reply.
    Oneway,
    /// Ten structs of fixed size, both ways.
    Structs,
    /// A string of sixteen characters, both ways.
    Text,
    /// A struct in an `any`, both ways.
    Any,
    /// An object reference, both ways.
    Reference,
}

/// The names of the operations, as the command line has them.
const OPERATIONS: [(&str, Operation); 8] = [
    ("octet", Operation::Octet),
    ("deadline", Operation::OctetByDeadline),
    ("segment", Operation::OctetInSegment),
    ("oneway", Operation::Oneway),
    ("structs", Operation::Structs),
    ("string", Operation::Text),
    ("any", Operation::Any),
    ("reference", Operation::Reference),
];

/// The error of an operation's name that is not known.
#[derive(Debug)]
pub struct UnknownOperation(String);

impl fmt::Display for UnknownOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OPERATIONS.map(|(name, _)| name).join(", ");
        write!(f, "there is no operation {:?}; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownOperation {}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        let known = OPERATIONS.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, operation)| *operation)
            .ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

/// The conditions under which the calls of an operation are made, as long as this lives.
#[derive(Debug)]
pub enum Conditions {
    /// None in particular.
    Usual,
    /// The calls have a deadline.
    Deadline(ConstraintGuard),
    /// The calls are made within a segment.
    Segment(SegmentGuard),
}

impl Operation {
    /// Gives the calling thread the conditions of the operation.
    ///
    /// # Errors
    ///
    /// Those of beginning a segment.
    pub fn enter(self, orb: &Orb) -> Result<Conditions, Box<dyn std::error::Error>> {
        Ok(match self {
            Self::OctetByDeadline => {
                let constraint = TimeConstraint::within(DEADLINE);
                Conditions::Deadline(orb.rt_current().constrain(constraint))
            }
            Self::OctetInSegment => {
                Conditions::Segment(orb.scheduling_current().segment("calls", None, None)?)
            }
            _ => Conditions::Usual,
        })
    }
}

/// A client of one `Calls::Echo`, with the arguments of its calls.
#[derive(Debug)]
pub struct Caller {
    echo: Echo,
    scope: Scope,
    samples: [Sample; 10],
    pace: Option<Pace>,
}

impl Caller {
    /// A client of this object, which waits for the acknowledgement of each oneway if it has a
    /// `pace`.
    #[must_use]
    pub fn new(object: &Object, pace: Option<Pace>) -> Self {
        let sample = |n: u8| Sample {
            id: i32::from(n),
            kind: i16::from(n),
            flags: n,
            value: f64::from(n),
            weight: f32::from(n),
        };
        Self {
            echo: Echo::unchecked_narrow(object),
            scope: Scope::new(ARENA),
            samples: std::array::from_fn(|n| sample(n as u8)),
            pace,
        }
    }

    /// Makes the calls of the warm-up.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn warm_up(&mut self, operation: Operation) -> Result<(), Box<dyn std::error::Error>> {
        for _ in 0..BURSTS {
            for _ in 0..BURST {
                self.call(operation)?;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Makes one call and compares the reply with the argument.
    ///
    /// # Errors
    ///
    /// The exception of a call, or the error of its pace.
    pub fn call(&mut self, operation: Operation) -> Result<(), Box<dyn std::error::Error>> {
        let scope = &mut self.scope;
        let same = match operation {
            Operation::Octet | Operation::OctetByDeadline | Operation::OctetInSegment => {
                self.echo.cube(OCTET)? == i32::from(OCTET).pow(3)
            }
            Operation::Oneway => {
                self.echo.notice(OCTET)?;
                if let Some(pace) = &self.pace {
                    pace.wait()?;
                }
                true
            }
            Operation::Structs => {
                let echo = self.echo.structs_in(scope, &self.samples)?;
                echo.len() == self.samples.len()
            }
            Operation::Text => self.echo.text_in(scope, TEXT)?.len() == TEXT.len(),
            Operation::Any => {
                let echo = self.echo.value_in(scope, &Any::of(&self.samples[0]))?;
                echo.holds::<Sample>()
            }
            Operation::Reference => self.echo.reference(Some(self.echo.as_object()))?.is_some(),
        };
        same.then_some(())
            .ok_or_else(|| "the reply differs from the argument".into())
    }
}

/// Longer than any run.
const DEADLINE: Duration = Duration::from_secs(3600);
/// Room for replies, in bytes.
const ARENA: usize = 4096;
const OCTET: u8 = 7;
const TEXT: &str = "sixteen letters!";
