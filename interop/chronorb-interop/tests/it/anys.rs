//! Anys and type codes between chronorb and omniORB: each creates the samples of `idl/anys.idl`,
//! and recognizes those of the other.

use std::fs;
use std::path::Path;

use chronorb::config::OrbConfig;
use chronorb::data::{Any, AnyBuf, Arena, Typed};
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use chronorb_cdr::{Cdr, Decoder, Endian};
use chronorb_interop::Failure;
use chronorb_interop::anys::idl::{Mirror, Node, Sample};
use chronorb_interop::anys::{SAMPLES, is_sample, make_sample, serve_mirror};

use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Side, check_anys, print_anys, start_anys};

fn orb() -> Result<Orb, Failure> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    Ok(Orb::with_config(config)?)
}

/// Calls all operations of a mirror, like omniORB's checks. omniORB writes no repository id before
/// an exception in an any, and does not recognize one that has it.
fn check(mirror: &Mirror, of: Side) -> Result<(), Failure> {
    let mut arena = Arena::new(1 << 16);
    let mut scope = Scope::new(1 << 16);
    for kind in SAMPLES {
        arena.reset();
        let made = mirror.make_in(&mut scope, kind)?;
        assert!(is_sample(kind, &made)?, "{kind:?} is made there");
        if of == Side::OmniOrb && kind == Sample::AnException {
            continue;
        }
        let own = make_sample(kind, mirror)?;
        let view = own.as_view_in(&arena)?;
        assert!(mirror.is(kind, &view)?, "{kind:?} is known there");
        assert_eq!(mirror.echo(&view)?, own, "{kind:?} comes back");
        assert_eq!(
            made.type_code(),
            own.type_code(),
            "{kind:?} has its type there"
        );
        assert!(
            mirror.is(kind, &made)?,
            "{kind:?} made there is known there"
        );
        let type_there = mirror.type_of(&view)?;
        assert_eq!(type_there.as_view(), own.type_code());
        assert!(mirror.are_equal(own.type_code(), type_there.as_view())?);
        assert!(!mirror.are_equal(own.type_code(), &<[Node<'_>; 3]>::TYPE_CODE)?);
    }
    Ok(())
}

#[test]
fn chronorb_calls_chronorb() -> Result<(), Failure> {
    let (client, server) = (orb()?, orb()?);
    let text = server.object_to_string(serve_mirror(&server)?.as_object());
    check(
        &Mirror::unchecked_narrow(&client.string_to_object(&text)?),
        Side::Chronorb,
    )
}

#[test]
fn chronorb_calls_omniorb() -> Result<(), Failure> {
    if !require(&[&OMNIORB]) {
        return Ok(());
    }
    let (orb, server) = (orb()?, start_anys());
    let mirror = Mirror::unchecked_narrow(&orb.string_to_object(&server.ior)?);
    check(&mirror, Side::OmniOrb)?;
    mirror.shutdown()?;
    server.finish();
    Ok(())
}

#[test]
fn omniorb_calls_chronorb() -> Result<(), Failure> {
    if !require(&[&OMNIORB]) {
        return Ok(());
    }
    let orb = orb()?;
    let mirror = serve_mirror(&orb)?;
    check_anys(&orb.object_to_string(mirror.as_object()));
    Ok(())
}

/// Compares the data of a test of `chronorb-cdr`, which does not need omniORB, with omniORB's
/// output. omniORB's padding is undefined, so the anys are compared.
#[test]
fn what_omniorb_writes_is_what_is_kept() -> Result<(), Failure> {
    if !require(&[&OMNIORB]) {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/chronorb-cdr/tests/data");
    for (byte_order, endian) in [("big", Endian::Big), ("little", Endian::Little)] {
        let kept = fs::read_to_string(folder.join(format!("omniorb_anys_{byte_order}.txt")))?;
        let printed = print_anys(byte_order);
        assert_eq!(printed.lines().count(), SAMPLES.len());
        assert_eq!(kept.lines().count(), SAMPLES.len());
        for (kept, printed) in kept.lines().zip(printed.lines()) {
            assert_eq!(any_of(kept, endian)?, any_of(printed, endian)?);
        }
    }
    Ok(())
}

/// Returns the any in a line of hexadecimal digits.
fn any_of(line: &str, endian: Endian) -> Result<AnyBuf, Failure> {
    let octet = |at| u8::from_str_radix(&line[at..at + 2], 16);
    let mut octets: Vec<u8> = (0..line.len())
        .step_by(2)
        .map(octet)
        .collect::<Result<_, _>>()?;
    let arena = Arena::new(1 << 16);
    let any = Any::decode(&mut Decoder::new(&mut octets, 0, endian, &arena))?;
    Ok(any.to_owned())
}
