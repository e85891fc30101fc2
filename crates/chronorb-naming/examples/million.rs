//! Memory and instructions of a name server with many bindings.
//!
//! ```sh
//! cargo run --release -p chronorb-naming --example million -- 1000000
//! valgrind --tool=callgrind --toggle-collect='million::look_up' \
//!     target/release/examples/million 1000000
//! ```
//!
//! The first command prints the memory for each binding, without the references and with them. The
//! second one counts the instructions of 10,000 look-ups.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use chronorb_naming::idl::cos_naming::NameComponent;
use chronorb_naming::{Binding, BindingKind, Change, ROOT, Target, Tree};
use chronorb_rt::{CountingAllocator, Monotonic, live_octets};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> Result<(), Box<dyn Error>> {
    let bindings = env::args().nth(1).map_or(Ok(1_000_000), |n| n.parse())?;
    let now = Monotonic::now();
    let mut tree = Tree::new(1);
    let before = live_octets();
    for n in 0..bindings {
        let change = Change::Bind {
            context: ROOT,
            id: id(n).into_bytes(),
            kind: b"device".to_vec(),
            binding: Binding {
                kind: BindingKind::Object,
                target: Target::Reference(Arc::from([0; REFERENCE])),
                lease: None,
            },
        };
        tree.apply(&change, now)?;
    }
    let octets = live_octets() - before;
    let each = octets as f64 / bindings as f64;
    println!("{bindings} bindings: {octets} octets, {each:.0} for each binding");
    println!("of which {REFERENCE} are its reference");
    for n in 0..LOOK_UPS {
        // A step that visits all of the tree.
        let id = id(n * 7_919 % bindings);
        let name = [NameComponent {
            id: &id,
            kind: "device",
        }];
        if !look_up(&tree, &name, now) {
            return Err(format!("{id} is not bound").into());
        }
    }
    println!("{LOOK_UPS} look-ups");
    Ok(())
}

fn id(n: u64) -> String {
    format!("sensor-{n:08}")
}

#[inline(never)]
fn look_up(tree: &Tree, name: &[NameComponent<'_>], now: Monotonic) -> bool {
    black_box(tree.look_up(name, now)).is_some()
}

/// The octets of a reference: those of an IIOP profile with code sets.
const REFERENCE: usize = 200;
const LOOK_UPS: u64 = 10_000;
