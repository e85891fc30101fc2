//! Law 1 for groups: in steady state, a call of one packet allocates nothing on either side. Its
//! client takes no lock and has no page fault.

use chronorb_cdr::Decoder;
use chronorb_orb::{Call, Operation, ReplyWriter, Skeleton, SystemException};
use chronorb_rt::{Deadline, Gate, allocations, lock_operations, page_faults};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::alone;
use crate::support::PATIENCE;
use crate::support::group::{group, group_orb, group_orb_with, group_url};

/// A servant that counts its requests, and records the allocations of its thread.
struct Counter {
    requests: Arc<Gate>,
    allocations: Arc<AtomicU64>,
}

impl Skeleton for Counter {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Counter:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        d: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let _: &[f64] = d.read_seq()?;
        self.allocations.store(allocations(), Ordering::Relaxed);
        self.requests.set(self.requests.get() + 1);
        Ok(())
    }
}

#[test]
fn a_call_of_a_group_allocates_nothing() {
    let _alone = alone();
    let requests = Arc::new(Gate::new(0));
    let allocated = Arc::new(AtomicU64::new(0));
    // One thread serves all.
    let server = group_orb_with(|config| config.threads = 1.into());
    let root = server.root_poa().expect("the endpoint opens");
    let counter = Counter {
        requests: requests.clone(),
        allocations: allocated.clone(),
    };
    let id = root.activate_object(counter).expect("it activates");
    let url = group_url();
    root.associate_reference_with_id(&group(&server, &url), &id)
        .expect("the group can be listened at");
    root.manager().activate().expect("it was not deactivated");
    let client = group_orb();
    let radar = group(&client, &url);
    let operation = Operation::oneway("count");
    let values = [1.5_f64; 100];
    let mut sent = 0;
    let mut call = || {
        radar
            .invoke_oneway(&operation, &|e| e.write_seq(&values[..]))
            .expect("it is sent");
        sent += 1;
        let deadline = Deadline::after(PATIENCE);
        while requests.get() < sent {
            assert!(!deadline.has_passed(), "request {sent} is not heard");
            requests.wait_while(sent - 1, deadline);
        }
        allocated.load(Ordering::Relaxed)
    };
    for _ in 0..20 {
        call();
    }
    let of_server = call();
    let faults = || {
        let (minor, major) = page_faults();
        minor + major
    };
    let before = (allocations(), faults());
    let mut locks = 0;
    let mut after_last = of_server;
    for _ in 0..100 {
        let begun = lock_operations();
        after_last = call();
        locks += lock_operations() - begun;
    }
    assert_eq!((allocations(), faults()), before, "of the client");
    assert_eq!(locks, 0, "of the client");
    assert_eq!(after_last, of_server, "of the server");
    server.shutdown(true).expect("it was running");
}
