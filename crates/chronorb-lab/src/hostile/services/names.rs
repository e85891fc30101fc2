//! Attacks on a name server.

use std::io;

use super::super::messages::{self, MessageOctets};
use super::assailant::Assailant;
use super::consumer::{BlackHole, ProfileOctets, silent};

/// Texts of many components, as a name and as an argument of a conversion.
pub(super) fn long_texts(a: &mut Assailant<'_>) -> io::Result<()> {
    let text = "a/".repeat(TEXT / 2) + "a";
    for number in 0..a.count(48) {
        let operation = if number % 2 == 0 {
            "resolve_str"
        } else {
            "to_name"
        };
        a.call(a.root, operation, |m| m.string(&text))?;
    }
    Ok(())
}

/// Contexts that no name leads to.
pub(super) fn unbound_contexts(a: &mut Assailant<'_>) -> io::Result<()> {
    for _ in 0..a.count(40_000) {
        a.call(a.root, "new_context", |_| {})?;
    }
    Ok(())
}

/// Bindings of the root context, each with a short name.
pub(super) fn bindings(a: &mut Assailant<'_>) -> io::Result<()> {
    let (_listener, address) = silent()?;
    let object = ProfileOctets::at(address);
    for number in 0..a.count(40_000) {
        a.call(a.root, "bind", |m| {
            name(m, &[&format!("{number:x}")]);
            object.write(m, "");
        })?;
    }
    Ok(())
}

/// Iterators over the bindings of a context, which are never used.
pub(super) fn iterators(a: &mut Assailant<'_>) -> io::Result<()> {
    let (_listener, address) = silent()?;
    let object = ProfileOctets::at(address);
    for number in 0..BINDINGS {
        a.call(a.root, "bind", |m| {
            name(m, &[&format!("bound {number}")]);
            object.write(m, "");
        })?;
    }
    for _ in 0..a.count(40_000) {
        a.call(a.root, "list", |m| m.u32(0))?;
    }
    Ok(())
}

/// Names in a context of a server that answers no connection, many at the same time.
pub(super) fn black_hole(a: &mut Assailant<'_>) -> io::Result<()> {
    let hole = BlackHole::open()?;
    let context = ProfileOctets::at(hole.address);
    a.call(a.root, "bind_context", |m| {
        name(m, &["hole"]);
        context.write(m, CONTEXT);
    })?;
    let request = messages::request(a.root, "resolve", |m| name(m, &["hole", "x"]));
    let count = a.count(2_000);
    for _ in 0..count {
        a.send(&request)?;
    }
    for _ in 0..count {
        a.hear()?;
    }
    Ok(())
}

/// Writes a name of components without a kind.
fn name(m: &mut MessageOctets, ids: &[&str]) {
    m.u32(u32::try_from(ids.len()).expect("names are short"));
    for id in ids {
        m.string(id);
        m.string("");
    }
}

const CONTEXT: &str = "IDL:omg.org/CosNaming/NamingContext:1.0";
/// The octets of a text.
const TEXT: usize = 1 << 20;
/// The bindings that an iterator is over.
const BINDINGS: usize = 10;
