//! The counts of the counting allocator, and the operations of this crate that must not allocate.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use chronorb_rt::{
    Baton, CountingAllocator, Deadline, Gate, HashIndex, Monotonic, PiMutex, ReleaseOutcome,
    Rights, Scheduling, Slots, ThreadBuilder, Wake, allocations, counts_of_others, epoch, forbid,
    lock_operations, page_faults, peak_octets, poll_for,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn allocations_are_counted_and_frees_are_not() {
    let before = allocations();
    let mut buffer = Vec::<u8>::with_capacity(16);
    assert_eq!(allocations() - before, 1);
    buffer.reserve_exact(4096);
    assert_eq!(allocations() - before, 2);
    drop(buffer);
    assert_eq!(allocations() - before, 2);
}

#[test]
fn the_peak_is_what_is_held_at_one_time() {
    let kept = vec![0_u8; 1_000];
    let ((inner, outer), all) = peak_octets(|| {
        drop(vec![0_u8; 300]);
        let (grown, inner) = peak_octets(|| {
            drop(vec![0_u8; 200]);
            vec![0_u8; 100]
        });
        drop(grown);
        let ((), outer) = peak_octets(|| drop(kept));
        (inner, outer)
    });
    assert_eq!((inner, outer, all), (200, 0, 300));
    // Other threads have counts of their own.
    let work = || std::thread::scope(|scope| scope.spawn(|| vec![0_u8; 1 << 20]).join());
    let (made, held) = peak_octets(work);
    assert!(held < 1 << 20, "{held}");
    drop(made);
}

#[test]
fn each_thread_has_its_own_count() {
    let before = allocations();
    let handle = std::thread::spawn(|| {
        let before = allocations();
        drop(vec![0_u8; 100]);
        allocations() - before
    });
    let spawned = allocations() - before;
    assert_eq!(handle.join().unwrap(), 1);
    assert!(spawned > 0);
}

#[test]
fn what_others_do_is_seen_as_long_as_they_live() {
    let (work, go) = mpsc::channel::<()>();
    let (done, worked) = mpsc::channel();
    let other = ThreadBuilder::new("other").spawn(move || {
        let lock = PiMutex::new(0);
        for () in go {
            for _ in 0..10_000 {
                *lock.lock() += 1;
                drop(std::hint::black_box(vec![0_u8; 100]));
            }
            done.send(()).unwrap();
        }
    });
    let other = other.unwrap();
    let before = counts_of_others();
    work.send(()).unwrap();
    worked.recv().unwrap();
    let after = counts_of_others();
    // Other tests have threads too, which do little.
    assert!(after.lock_operations - before.lock_operations >= 10_000);
    assert!(after.allocations - before.allocations >= 10_000);
    assert!(after.allocated_octets - before.allocated_octets >= 1_000_000);
    drop(work);
    other.join().unwrap();
    assert!(counts_of_others().lock_operations < after.lock_operations);
}

#[test]
#[should_panic(expected = "1 allocation(s) where none is allowed")]
fn a_forbidden_allocation_panics() {
    drop(forbid(|| vec![1, 2, 3]));
}

#[test]
fn the_first_look_of_a_real_time_thread_does_not_allocate_or_lock() {
    let scheduling = match Rights::probe().max_fifo {
        Some(priority) if priority > 0 => Scheduling::fifo(1),
        _ => Scheduling::OTHER,
    };
    let looking = ThreadBuilder::new("looking").scheduling(scheduling);
    let looking = looking.spawn(|| {
        let locks = lock_operations();
        let found = forbid(|| poll_for(Duration::from_secs(1), || Some(7)));
        (found, lock_operations() - locks)
    });
    assert_eq!(looking.unwrap().join().unwrap(), (Some(7), 0));
}

#[test]
fn the_request_path_does_not_allocate() {
    let table = Slots::new(8);
    let key = table.insert(7).unwrap();
    let mutex = PiMutex::new(0);
    let baton = Baton::new(0);
    let gate = Gate::new(0);
    let wake = Wake::new().unwrap();
    forbid(|| {
        assert_eq!(table.get(key).as_deref(), Some(&7));
        *mutex.lock() += 1;
        let holder = baton.claim().unwrap();
        assert!(matches!(holder.release(), ReleaseOutcome::Done));
        assert_eq!(gate.set(1), 0);
        assert_eq!(
            gate.wait_while(1, Deadline::after(Duration::from_micros(1))),
            1
        );
        wake.notify();
        assert!(wake.drain());
        assert!(Monotonic::now() > Monotonic::from_nanos(0));
        let _faults = page_faults();
    });
}

#[test]
fn looking_up_takes_no_lock_and_does_not_allocate() {
    let table = Slots::new(100);
    let index = HashIndex::new();
    let keys: Vec<_> = (0..50).map(|value| table.insert(value).unwrap()).collect();
    for key in &keys {
        index.insert(key.index % 10, key.index);
    }
    let last = keys[49];
    assert!(table.remove(keys[0]).was_there());
    let before = lock_operations();
    forbid(|| {
        let _reading = epoch::enter();
        let found = index.find(last.index % 10, |slot| {
            let (key, value) = table.get_at(slot)?;
            (*value == 49).then_some(key)
        });
        assert_eq!(found, Some(last));
        assert!(table.get(keys[0]).is_none());
        let held = table.get_held(last).unwrap();
        assert_eq!(table.readers(last), 1);
        assert_eq!(held.release(), None);
        assert!(table.was_issued(keys[0]));
        let visited = table.for_each_live(|_, value| match *value {
            49 => ControlFlow::Break(*value),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(visited, Some(49));
        assert_eq!(index.len(), 50);
    });
    assert_eq!(lock_operations(), before);
}

#[test]
fn removing_and_reinserting_does_not_allocate() {
    let table = Slots::new(8);
    let mut key = table.insert(0).unwrap();
    forbid(|| {
        for value in 1..100 {
            assert!(table.remove(key).was_there());
            key = table.insert(value).unwrap();
        }
    });
}
