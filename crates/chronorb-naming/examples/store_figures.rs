//! The size of a store and the time of its recovery, for a number of bindings.
//!
//! `cargo run --release -p chronorb-naming --example store_figures [BINDINGS]`

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use chronorb_naming::store::{Directory, Store};
use chronorb_naming::{Binding, BindingKind, Change, ROOT, Target, Tree};
use chronorb_rt::Monotonic;

/// The length of a reference with one address and a key of 32 octets, about.
const REFERENCE: usize = 128;
/// The bindings that are made in one change.
const GROUP: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let count = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 100_000,
    };
    let folder = tempfile::tempdir_in(".")?;
    let mut store = Store::open(Directory::open(folder.path())?, |_| Ok(()))?;
    let start = Instant::now();
    for from in (0..count).step_by(GROUP) {
        let group: Vec<_> = (from..count.min(from + GROUP)).map(bind).collect();
        store.append(&group)?;
    }
    let appended = start.elapsed();
    let (length, _) = store.length();
    drop(store);

    let mut tree = Tree::new(1);
    let now = Monotonic::now();
    let start = Instant::now();
    let files = Directory::open(folder.path())?;
    let mut store = Store::open(files, |change| tree.apply(&change, now))?;
    let recovered = start.elapsed();
    assert_eq!(tree.changes().count(), count);

    let start = Instant::now();
    store.write_snapshot(&mut tree.changes())?;
    let snapshot = start.elapsed();
    let of_each = length / count.max(1) as u64;
    println!("{count} bindings with references of {REFERENCE} octets");
    println!("  log        {length} bytes, {of_each} for each binding");
    println!("  appended   {appended:.1?}, {GROUP} bindings with one fdatasync");
    println!("  recovered  {recovered:.1?}, with the tree");
    println!("  snapshot   {snapshot:.1?}, {} bytes", store.length().0);
    Ok(())
}

fn bind(number: usize) -> Change {
    Change::Bind {
        context: ROOT,
        id: format!("object-{number:07}").into(),
        kind: b"device".to_vec(),
        binding: Binding {
            kind: BindingKind::Object,
            target: Target::Reference(Arc::from([number as u8; REFERENCE])),
            lease: None,
        },
    }
}
