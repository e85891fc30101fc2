//! Captured values of omniORB: `interop/captures/values.txt` contains replies of its server to its
//! client.

use std::env;
use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame, Reference, ValueType};
use chronorb_interop::value_types as idl;
use idl::{Misplaced, Named, Node, PairBox, Point, PointState, Shape, Text, Tree};

use crate::support::{Process, name_of};

/// Returns the octets of a message by its name.
fn captured(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/values.txt");
    let text = std::fs::read_to_string(path).expect("the captures");
    let mut lines = text.lines().skip_while(|line| *line != name).skip(1);
    let digits: String = std::iter::from_fn(|| lines.next()?.strip_prefix("  ")).collect();
    let octets = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).expect("text");
        u8::from_str_radix(pair, 16).expect("digits")
    });
    octets.collect()
}

/// Reads the whole body of a reply.
fn read<T>(name: &str, read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>) -> T {
    let octets = captured(name);
    let mut frame = Frame::new(octets.len(), octets.len());
    frame.extend_from_slice(&octets).expect("room");
    let arena = Arena::new(1 << 16);
    let mut d = frame.decoder(BODY, Endian::Little, &arena);
    let value = read(&mut d).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(d.remaining(), 0, "{name}");
    value
}

/// The environment variable of a process that runs one test alone.
const ALONE: &str = "CHRONORB_TEST_ALONE";
/// The length of the GIOP header, request id, status and no service contexts.
const BODY: usize = 24;

fn read_value<V: ValueType + ?Sized>(name: &str) -> Arc<V> {
    read(name, |d| d.read_value()).expect("it is not null")
}

#[test]
fn a_truncatable_value_with_a_value_in_it() {
    let point: Arc<dyn Point> = read_value("named");
    let named = <dyn Named>::narrow(&point).expect("derived");
    let state = named.named_state();
    assert_eq!((state.x, state.y, state.weight), (1, 2, 2.5));
    assert_eq!(state.name, "name");
    let origin = state.origin.as_ref().expect("a value");
    assert_eq!(origin.point_state(), &PointState { x: 3, y: 4 });
}

#[test]
fn a_truncated_value_with_shared_values_in_what_is_cut_off() {
    let point: Arc<dyn Point> = read_value("stranger");
    let named = <dyn Named>::narrow(&point).expect("the nearest base that is known");
    assert_eq!(named.named_state().name, "from afar");
    assert_eq!(named.named_state().weight, 0.5);
}

#[test]
fn a_sequence_with_shared_elements() {
    let points: Vec<Option<Arc<dyn Point>>> = read("points", |d| {
        let n = d.read_len(4)?;
        (0..n).map(|_| Arc::decode_reference(d)).collect()
    });
    let [Some(first), Some(second), Some(third), None] = points.as_slice() else {
        panic!("{points:?}");
    };
    assert!(<dyn Named>::narrow(first).is_some());
    assert!(Arc::ptr_eq(second, third));
}

#[test]
fn a_value_in_an_exception() {
    let place = read("exception", |d| {
        assert_eq!(d.read_str()?, Misplaced::REPOSITORY_ID);
        let exception: Misplaced<'_> = chronorb_cdr::Cdr::decode(d)?;
        assert_eq!(exception.why, "asked for");
        Ok(exception.place.cloned())
    });
    assert_eq!(place.expect("a value").point_state().y, 4);
}

#[test]
fn a_list_of_values_without_their_types() {
    let mut next = Some(read_value::<dyn Node>("list"));
    let mut numbers = Vec::new();
    while let Some(node) = next {
        numbers.push(node.node_state().number);
        next = node.node_state().next.clone();
    }
    assert!(numbers.into_iter().eq((0..40).rev()));
}

#[test]
fn a_tree_with_a_shared_leaf() {
    let tree: Arc<dyn Tree> = read_value("tree");
    let [Some(one), Some(other)] = tree.tree_state().branches.as_slice() else {
        panic!("{tree:?}");
    };
    assert!(Arc::ptr_eq(one, other));
}

#[test]
fn boxes() {
    assert_eq!(read_value::<Text>("text").0, "text");
    let pair: Arc<PairBox> = read_value("pair");
    assert_eq!(pair.left, "left");
    assert_eq!(pair.right.as_ref().expect("a value").point_state().x, 1);
}

#[test]
fn what_is_read_is_written_with_the_same_header_and_read_again() {
    let point: Arc<dyn Point> = read_value("named");
    let mut frame = Frame::new(0, 1 << 12);
    let mut e = Encoder::new(&mut frame, Endian::Little);
    e.write_octets(&captured("named")[..BODY]).expect("room");
    e.write_value(Some(&point)).expect("room");
    // A tag and two identifiers: 21 octets each with length, padded to 24.
    let header = BODY..BODY + 8 + 2 * (4 + 24);
    assert_eq!(frame.as_slice()[header.clone()], captured("named")[header]);
    let arena = Arena::new(1 << 12);
    let mut d = frame.decoder(BODY, Endian::Little, &arena);
    assert_eq!(d.read_value::<dyn Point>(), Ok(Some(point)));
}

/// The other tests register factories for the whole process, so this one runs in a separate
/// process.
#[test]
fn a_value_behind_an_abstract_interface_needs_its_factory() {
    if env::var_os(ALONE).is_none() {
        let name = name_of(a_value_behind_an_abstract_interface_needs_its_factory);
        let this = env::current_exe().expect("it runs").display().to_string();
        let alone = format!("{ALONE}=1");
        let again = [&alone, &this, "--exact", name].map(str::to_owned);
        let said = Process::start("env", |_| again.into()).finish();
        assert!(said.contains("test result: ok. 1 passed"), "{said}");
        return;
    }
    let mut octets = captured("square");
    let arena = Arena::new(1 << 12);
    let mut d = Decoder::new(&mut octets[BODY..], BODY, Endian::Little, &arena);
    let error = d.read_abstract::<dyn Shape>().err();
    assert_eq!(error, Some(CdrError::NoValueFactory));
}
