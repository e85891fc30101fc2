//! Leases, iterators and the check of objects, with a clock that the test moves.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_rt::{Gate, ThreadBuilder};

use super::*;
use crate::housekeeping::{AT_A_TIME, LeaseRetry, RUNNING, Reaper};
use crate::idl::chronorb_naming::{BindWithLeaseErrorBuf, LeasingContext, RenewErrorBuf};
use crate::idl::cos_naming::{NameComponent, RebindErrorBuf};

fn orb() -> Orb {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let mut args = endpoint.map(str::to_owned).to_vec();
    Orb::with_config(OrbConfig::read(&mut args).unwrap()).unwrap()
}

fn serve(orb: &Orb, server: NameServer) -> (NamingService, LeasingContext) {
    let poa = orb.root_poa().unwrap();
    let service = server.serve_in(&poa).unwrap();
    poa.manager().activate().unwrap();
    let root = LeasingContext::unchecked_narrow(service.root());
    (service, root)
}

const NAME: [NameComponent<'_>; 1] = [NameComponent { id: "a", kind: "" }];

fn is_missing(root: &LeasingContext) -> bool {
    matches!(root.resolve(&NAME), Err(RebindErrorBuf::NotFound(_)))
}

fn seconds(n: u64) -> u64 {
    n * 1_000_000_000
}

#[test]
fn a_binding_ends_with_its_lease_unless_it_is_renewed() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    fn now() -> Monotonic {
        Monotonic::from_nanos(NOW.load(Ordering::SeqCst))
    }
    let orb = orb();
    let (service, root) = serve(&orb, NameServer::new().clock(now));
    let lease = root.bind_with_lease(&NAME, None, 10).unwrap();
    NOW.store(seconds(9), Ordering::SeqCst);
    let taken = root.bind_with_lease(&NAME, None, 10);
    assert!(matches!(taken, Err(BindWithLeaseErrorBuf::AlreadyBound(_))));
    assert!(matches!(
        root.renew(&NAME, lease + 1),
        Err(RenewErrorBuf::LeaseLost(_))
    ));
    assert!(matches!(
        root.release(&NAME, lease + 1),
        Err(RenewErrorBuf::LeaseLost(_))
    ));
    root.renew(&NAME, lease).unwrap();
    NOW.store(seconds(18), Ordering::SeqCst);
    assert_eq!(root.resolve(&NAME).unwrap(), None);
    // It is not found from then on, even if it was not removed yet.
    NOW.store(seconds(19), Ordering::SeqCst);
    assert!(is_missing(&root));
    assert!(root.list(9).unwrap().0.is_empty());
    assert!(matches!(
        root.renew(&NAME, lease),
        Err(RenewErrorBuf::NotFound(_))
    ));
    assert!(LeaseRetry::default().run(&service.shared));
    assert_eq!(service.shared.read(|tree, _| tree.changes().count()), 0);
    // The name can be bound again, and a binding without a lease has no end.
    let next = root.bind_with_lease(&NAME, None, 10).unwrap();
    assert!(next > lease);
    root.rebind(&NAME, None).unwrap();
    NOW.store(seconds(1_000), Ordering::SeqCst);
    assert!(LeaseRetry::default().run(&service.shared));
    assert_eq!(root.resolve(&NAME).unwrap(), None);
    root.rebind_with_lease(&NAME, None, 10).unwrap();
    for refused in [0, 86_401] {
        let refused = root.bind_with_lease(&NAME, None, refused);
        match refused {
            Err(BindWithLeaseErrorBuf::InvalidTimeToLive(allowed)) => {
                assert_eq!((allowed.least, allowed.greatest), (1, 86_400));
            }
            other => panic!("{other:?}"),
        }
    }
    orb.shutdown(true).unwrap();
}

#[test]
fn an_unused_iterator_ends() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    fn now() -> Monotonic {
        Monotonic::from_nanos(NOW.load(Ordering::SeqCst))
    }
    let orb = orb();
    let (service, root) = serve(&orb, NameServer::new().clock(now));
    let iterator = root.list(0).unwrap().1.unwrap();
    NOW.store(seconds(599), Ordering::SeqCst);
    iterator.next_one().unwrap();
    NOW.store(seconds(599 + 599), Ordering::SeqCst);
    assert!(LeaseRetry::default().run(&service.shared));
    iterator.next_one().unwrap();
    NOW.store(seconds(599 + 599 + 600), Ordering::SeqCst);
    let ended = iterator.next_one().unwrap_err();
    assert_eq!(ended.kind, SystemExceptionKind::ObjectNotExist);
    orb.shutdown(true).unwrap();
}

#[test]
fn an_object_that_three_checks_do_not_find_is_unbound() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    fn now() -> Monotonic {
        Monotonic::from_nanos(NOW.load(Ordering::SeqCst))
    }
    let (orb, other) = (orb(), orb());
    let (service, root) = serve(&orb, NameServer::new().clock(now));
    let there = [NameComponent {
        id: "there",
        kind: "",
    }];
    // The root context of another server, bound as an object.
    let (_second, second_root) = serve(&other, NameServer::new());
    root.bind(&there, Some(second_root.as_object())).unwrap();
    // A context does not exist any more.
    let gone = second_root.new_context().unwrap().unwrap();
    gone.destroy().unwrap();
    root.bind(&NAME, Some(gone.as_object())).unwrap();
    let reaping = ReapPolicy {
        interval: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
    };
    let mut reaper = Reaper::new(reaping, now());
    let running = Arc::new(Gate::new(RUNNING));
    for check in 1..=3 {
        assert!(!is_missing(&root), "check {check}");
        NOW.store(seconds(60 * check), Ordering::SeqCst);
        reaper.run(&service.shared, &running);
        // It is not time for another one.
        reaper.run(&service.shared, &running);
    }
    assert!(is_missing(&root));
    assert!(root.resolve(&there).unwrap().is_some());
    other.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

/// Listeners that accept connections and answer nothing, and a reference of each.
fn silent_servers(orb: &Orb, n: usize) -> (Vec<TcpListener>, Vec<Object>) {
    let listeners: Vec<_> = (0..n)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let objects = listeners.iter().map(|listener| {
        let port = listener.local_addr().unwrap().port();
        let url = format!("corbaloc::127.0.0.1:{port}/silent");
        orb.string_to_object(&url).unwrap()
    });
    let objects = objects.collect();
    (listeners, objects)
}

#[test]
fn objects_are_checked_at_the_same_time() {
    let orb = orb();
    let (service, root) = serve(&orb, NameServer::new());
    let (listeners, objects) = silent_servers(&orb, AT_A_TIME);
    for (i, object) in objects.iter().enumerate() {
        let id = i.to_string();
        let name = [NameComponent { id: &id, kind: "" }];
        root.bind(&name, Some(object)).unwrap();
    }
    let reaping = ReapPolicy {
        interval: Duration::ZERO,
        timeout: Duration::from_secs(600),
    };
    let mut reaper = Reaper::new(reaping, service.shared.now());
    let shared = service.shared;
    let stop = Arc::new(Gate::new(RUNNING));
    let check = ThreadBuilder::new("check").spawn(move || {
        reaper.run(&shared, &stop);
    });
    // Each connection is open until all are; one check at a time would open only one.
    let open: Vec<_> = listeners.iter().map(|it| it.accept().unwrap()).collect();
    drop((open, listeners));
    check.unwrap().join().unwrap();
    orb.shutdown(true).unwrap();
}

#[test]
fn leases_end_while_an_object_that_is_checked_does_not_answer() {
    struct Signal(mpsc::Sender<()>);
    impl Journal for Signal {
        fn append(&mut self, changes: &[Change]) -> Result<(), JournalError> {
            if let [Change::Unbind { .. }] = changes {
                self.0.send(()).map_err(JournalError::new)?;
            }
            Ok(())
        }
    }
    let orb = orb();
    let (sender, ended) = mpsc::channel();
    let server = NameServer::new().state(Tree::new(1), Signal(sender));
    let reaping = ReapPolicy {
        interval: Duration::ZERO,
        timeout: Duration::from_secs(600),
    };
    let (service, root) = serve(&orb, server.reap(reaping));
    let (listeners, objects) = silent_servers(&orb, 1);
    root.bind(&NAME, Some(&objects[0])).unwrap();
    let open = listeners[0].accept().unwrap();
    let leased = [NameComponent { id: "l", kind: "" }];
    root.bind_with_lease(&leased, None, 1).unwrap();
    ended.recv().unwrap();
    drop((open, listeners));
    drop(service);
    orb.shutdown(true).unwrap();
}

#[test]
fn the_end_of_leases_backs_off_while_the_journal_fails() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    static IS_FULL: AtomicBool = AtomicBool::new(false);
    struct FullDisk;
    impl Journal for FullDisk {
        fn append(&mut self, _: &[Change]) -> Result<(), JournalError> {
            if IS_FULL.load(Ordering::SeqCst) {
                return Err(JournalError::new(io::Error::from(
                    io::ErrorKind::StorageFull,
                )));
            }
            Ok(())
        }
    }
    fn now() -> Monotonic {
        Monotonic::from_nanos(NOW.load(Ordering::SeqCst))
    }
    let orb = orb();
    let server = NameServer::new().state(Tree::new(1), FullDisk);
    let (service, root) = serve(&orb, server.clock(now));
    root.bind_with_lease(&NAME, None, 10).unwrap();
    IS_FULL.store(true, Ordering::SeqCst);
    NOW.store(seconds(11), Ordering::SeqCst);
    let mut retry = LeaseRetry::default();
    let attempts = (0..20).filter(|_| retry.run(&service.shared));
    assert_eq!(attempts.collect::<Vec<_>>(), [0, 2, 6, 14]);
    assert!(service.last_journal_failure().is_some());
    assert_eq!(service.shared.read(|tree, _| tree.changes().count()), 1);
    IS_FULL.store(false, Ordering::SeqCst);
    while !retry.run(&service.shared) {}
    assert_eq!(service.shared.read(|tree, _| tree.changes().count()), 0);
    // It is regular again.
    assert!(retry.run(&service.shared));
    orb.shutdown(true).unwrap();
}
