//! The memory that texts of strangers take.

use std::error::Error;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_naming::NameServer;
use chronorb_naming::idl::cos_naming::NamingContextExt;
use chronorb_rt::{CountingAllocator, allocated_octets};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_text_takes_memory_in_proportion_to_its_octets() -> Result<(), Box<dyn Error>> {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let mut args = endpoint.map(str::to_owned).to_vec();
    let orb = Orb::with_config(OrbConfig::read(&mut args)?)?;
    let poa = orb.root_poa()?;
    let service = NameServer::new().serve_in(&poa)?;
    poa.manager().activate()?;
    // The calling thread serves calls within its process, so its allocations are those of both.
    let root = NamingContextExt::unchecked_narrow(service.root());
    // The first fits into the limits as far as its length tells; the other one does not.
    for octets in [1 << 16, 1 << 20] {
        let text = "a/".repeat(octets / 2);
        // The buffers of the thread are made.
        assert!(root.resolve_str(&text).is_err());
        let before = allocated_octets();
        for _ in 0..10 {
            assert!(root.resolve_str(&text).is_err());
            assert!(root.to_name(&text).is_err());
            assert!(root.to_url(":h", &text).is_err());
        }
        let each = (allocated_octets() - before) / 30;
        println!("{octets} octets take {each}");
        assert!(each < 4 * octets as u64);
    }
    orb.shutdown(true)?;
    Ok(())
}
