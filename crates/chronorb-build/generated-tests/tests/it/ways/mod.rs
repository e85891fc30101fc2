//! A servant from its client's point of view, in each kind of call; and encoded values.

use chronorb::Skeleton;
use chronorb::config::{Collocation, OrbConfig};
use chronorb::poa::Poa;
use chronorb::prelude::*;
use chronorb_cdr::{Arena, Cdr, CdrError, Decoder, Encoder, Endian, Frame};

/// An object, and the ORBs of the object and its client.
pub(crate) struct ServedObject {
    orbs: Vec<Orb>,
    pub(crate) object: Object,
}

/// As [`in_each_way`], and at last an object of another ORB whose servant returns owned values.
pub(crate) fn in_each_way_and_owned<S: Skeleton, T: Skeleton>(
    skeleton: impl Fn() -> S,
    owned: impl Fn() -> T,
) -> impl Iterator<Item = ServedObject> {
    let last = [()].into_iter().map(move |()| {
        eprintln!("calls of a servant with owned results");
        let orbs = vec![orb(Collocation::Off), orb(Collocation::Off)];
        ServedObject::by(orbs, owned())
    });
    in_each_way(skeleton).chain(last)
}

/// Returns, one after the other, an object of another ORB, and one of the client's own ORB for each
/// kind of collocated call.
pub(crate) fn in_each_way<S: Skeleton + 'static>(
    skeleton: impl Fn() -> S,
) -> impl Iterator<Item = ServedObject> {
    let own = [
        Collocation::Off,
        Collocation::ThroughPoa,
        Collocation::Direct,
    ];
    let own = own.map(|collocation| (vec![collocation], "within one ORB"));
    let other = [(
        vec![Collocation::Off, Collocation::Off],
        "from one ORB to another",
    )];
    other.into_iter().chain(own).map(move |(orbs, what)| {
        eprintln!("calls {what}: {orbs:?}");
        ServedObject::by(orbs.into_iter().map(orb).collect(), skeleton())
    })
}

/// Runs a test of several objects within one ORB, with messages and with direct calls.
pub(crate) fn in_one_orb(test: impl Fn(&Poa)) {
    for collocation in [Collocation::Off, Collocation::Direct] {
        eprintln!("calls within one ORB: {collocation:?}");
        let orb = orb(collocation);
        let root = orb.root_poa().expect("a root POA");
        root.manager().activate().expect("active");
        test(&root);
        orb.shutdown(true).expect("shut down");
    }
}

impl ServedObject {
    /// Creates the object. The first ORB serves, the last calls.
    pub(crate) fn by(orbs: Vec<Orb>, skeleton: impl Skeleton + 'static) -> Self {
        let (server, client) = (&orbs[0], &orbs[orbs.len() - 1]);
        let root = server.root_poa().expect("a root POA");
        let object = root.serve(skeleton).expect("served");
        root.manager().activate().expect("active");
        let object = client
            .string_to_object(&server.object_to_string(&object))
            .expect("a reference");
        Self { orbs, object }
    }

    /// Returns the ORB that calls.
    pub(crate) fn client(&self) -> &Orb {
        &self.orbs[self.orbs.len() - 1]
    }
}

impl Drop for ServedObject {
    fn drop(&mut self) {
        for orb in self.orbs.iter().rev() {
            orb.shutdown(true).expect("shut down");
        }
    }
}

pub(crate) fn orb(collocation: Collocation) -> Orb {
    let name = match collocation {
        Collocation::Off => "off",
        Collocation::ThroughPoa => "poa",
        Collocation::Direct => "direct",
    };
    orb_with(&["-ORBCollocation", name])
}

/// Returns an ORB with these options.
pub(crate) fn orb_with(options: &[&str]) -> Orb {
    let own = [
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBThreads",
        "1",
    ];
    let mut args: Vec<_> = own.iter().chain(options).map(ToString::to_string).collect();
    let config = OrbConfig::read(&mut args).expect("the options are correct");
    Orb::with_config(config).expect("an ORB")
}

/// Returns the octets that `encode` writes.
pub(crate) fn octets(
    endian: Endian,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<Vec<u8>, CdrError> {
    let mut frame = Frame::new(64, 1 << 20);
    encode(&mut Encoder::new(&mut frame, endian))?;
    Ok(frame.as_slice().to_vec())
}

/// Encodes the value and decodes it again, in both byte orders, and passes the result to `check`.
pub(crate) fn there_and_back<'v, T: Cdr<'v>>(
    value: &T,
    check: impl for<'a> Fn(&mut Decoder<'a>) -> Result<(), CdrError>,
) {
    for endian in [Endian::Big, Endian::Little] {
        let mut octets = octets(endian, |e| value.encode(e)).expect("written");
        let arena = Arena::new(1 << 20);
        let mut d = Decoder::new(&mut octets, 0, endian, &arena);
        check(&mut d).expect("read");
        assert!(d.is_empty(), "all is read");
    }
}
