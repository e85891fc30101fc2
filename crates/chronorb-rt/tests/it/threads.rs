//! Threads with declared scheduling, affinity and stack; and the priority inversion that the
//! mutex prevents. Without the right to real-time priorities, the refusals are tested instead.

#![allow(
    clippy::disallowed_types,
    reason = "the control shows what a std mutex does"
)]

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chronorb_rt::{
    PiMutex, Rights, Scheduling, SchedulingError, SpawnError, Thread, ThreadBuilder, ThreadState,
    current, list, page_faults,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};

/// Makes a thread at a `SCHED_FIFO` priority; `None`, if the process has no right to it and the
/// builder has said so.
fn fifo<T: Send + 'static>(
    builder: ThreadBuilder,
    priority: u8,
    f: impl FnOnce() -> T + Send + 'static,
) -> Option<Thread<T>> {
    let spawned = builder.scheduling(Scheduling::fifo(priority)).spawn(f);
    if Rights::probe().max_fifo >= Some(priority) {
        return Some(spawned.unwrap());
    }
    let error = spawned.unwrap_err();
    assert!(matches!(
        error,
        SpawnError::Scheduling(SchedulingError::NotPermitted)
    ));
    assert!(error.to_string().contains("CAP_SYS_NICE"));
    None
}

fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

#[test]
fn the_declared_scheduling_holds_before_the_function_runs() {
    let thread = ThreadBuilder::new("plain").spawn(current).unwrap();
    assert_eq!(thread.join().unwrap().unwrap(), Scheduling::OTHER);
    if let Some(thread) = fifo(ThreadBuilder::new("urgent"), 7, current) {
        assert_eq!(thread.join().unwrap().unwrap(), Scheduling::fifo(7));
    }
}

#[test]
fn a_priority_out_of_range_is_refused_and_the_function_does_not_run() {
    let refused = ThreadBuilder::new("none")
        .scheduling(Scheduling::fifo(100))
        .spawn(|| unreachable!("the thread was refused"));
    assert!(matches!(
        refused,
        Err(SpawnError::Scheduling(SchedulingError::InvalidPriority))
    ));
    assert!(list().iter().all(|thread| thread.name != "none"));
}

#[test]
fn a_thread_does_not_inherit_the_scheduling_of_its_maker() {
    let maker = fifo(ThreadBuilder::new("maker"), 7, || {
        let made = ThreadBuilder::new("made").spawn(current).unwrap();
        made.join().unwrap().unwrap()
    });
    if let Some(maker) = maker {
        assert_eq!(maker.join().unwrap(), Scheduling::OTHER);
    }
}

#[test]
fn reset_on_fork_keeps_the_priority_from_foreign_threads() {
    for (reset, expected) in [(false, Scheduling::fifo(7)), (true, Scheduling::OTHER)] {
        let builder = ThreadBuilder::new("maker").reset_on_fork(reset);
        let maker = fifo(builder, 7, || {
            let made = std::thread::spawn(|| current().unwrap());
            (current().unwrap(), made.join().unwrap())
        });
        if let Some(maker) = maker {
            assert_eq!(maker.join().unwrap(), (Scheduling::fifo(7), expected));
        }
    }
}

#[test]
fn a_thread_runs_on_its_cpus_only() {
    for cpu in allowed_cpus() {
        let thread = ThreadBuilder::new("pinned")
            .affinity(&[cpu])
            .spawn(|| (allowed_cpus(), sched_getcpu()))
            .unwrap();
        assert_eq!(thread.join().unwrap(), (vec![cpu], cpu));
    }
}

#[test]
fn an_affinity_without_a_usable_cpu_is_refused() {
    for cpus in [&[][..], &[CpuSet::MAX_CPU - 1], &[usize::MAX]] {
        let refused = ThreadBuilder::new("nowhere").affinity(cpus).spawn(|| ());
        assert!(matches!(refused, Err(SpawnError::Affinity(_))), "{cpus:?}");
    }
}

#[test]
fn a_name_with_a_zero_byte_is_refused() {
    let refused = ThreadBuilder::new("a\0b").spawn(|| ());
    assert!(matches!(refused, Err(SpawnError::InvalidName)));
}

#[test]
fn a_living_thread_is_listed_with_its_whole_name() {
    let cpu = allowed_cpus()[0];
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = ThreadBuilder::new("a lane with a long name")
        .affinity(&[cpu])
        .spawn(move || ended.recv().is_err())
        .unwrap();

    let tid = thread.tid();
    let find = || list().into_iter().find(|thread| thread.tid == tid);
    let info = find().unwrap();
    assert_eq!(info.name, "a lane with a long name");
    assert_eq!(info.name, thread.name());
    assert_eq!(info.scheduling, Scheduling::OTHER);
    assert_eq!(info.affinity, [cpu]);
    let kernel_name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap();
    assert_eq!(kernel_name.trim_end(), "a lane with a l");

    drop(end);
    assert!(thread.join().unwrap());
    assert_eq!(find(), None);
}

#[test]
fn the_list_tells_what_a_thread_does_and_has_used() {
    let info_of = |tid| list().into_iter().find(|thread| thread.tid == tid);
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let waits = ThreadBuilder::new("waits) R")
        .spawn(move || ended.recv().is_err())
        .unwrap();
    while info_of(waits.tid()).unwrap().state != ThreadState::Waiting {
        std::thread::yield_now();
    }
    drop(end);

    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let works = ThreadBuilder::new("works")
        .spawn(move || while !stopped.load(Ordering::Relaxed) {})
        .unwrap();
    let before = info_of(works.tid()).unwrap();
    assert_eq!(before.state, ThreadState::Running);
    while info_of(works.tid()).unwrap().cpu_time == before.cpu_time {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    works.join().unwrap();
    assert!(waits.join().unwrap());
}

#[test]
fn the_stack_is_at_least_as_large_as_declared() {
    const DECLARED: usize = 300_000;
    let thread = ThreadBuilder::new("stack")
        .stack_size(DECLARED)
        .spawn(|| list().into_iter().find(|info| info.name == "stack"))
        .unwrap();
    let size = thread.stack_size();
    assert!(size >= DECLARED, "{size}");
    assert_eq!(
        thread.join().unwrap().map(|info| info.stack_size),
        Some(size)
    );
}

#[test]
fn a_round_robin_thread_is_one() {
    let declared = Scheduling::rr(7);
    if Rights::probe().max_fifo < Some(7) {
        eprintln!("NOT TESTED: real-time priorities, to which this process has no right.");
        return;
    }
    let builder = ThreadBuilder::new("urgent").scheduling(declared);
    let thread = builder.spawn(current).unwrap();
    assert_eq!(thread.join().unwrap().unwrap(), declared);
}

#[test]
fn a_panic_is_handed_to_the_joining_thread() {
    let thread = ThreadBuilder::new("panics")
        .spawn(|| panic!("in the lane"))
        .unwrap();
    let tid = thread.tid();
    let cause = thread.join().unwrap_err();
    assert_eq!(cause.downcast_ref(), Some(&"in the lane"));
    assert!(list().iter().all(|thread| thread.tid != tid));
}

/// Uses at least `bytes` of the stack.
#[inline(never)]
fn use_stack(bytes: usize) {
    let mut page = [0_u8; 4096];
    black_box(&mut page);
    if bytes > page.len() {
        use_stack(bytes - page.len());
    }
    black_box(&page);
}

fn faults_of_using_the_stack(prefault: bool) -> u64 {
    let thread = ThreadBuilder::new("stack")
        .stack_size(1 << 20)
        .prefault_stack(prefault)
        .spawn(|| {
            // The code has its pages after the first use.
            use_stack(1);
            let (before, _) = page_faults();
            use_stack(512 * 1024);
            let (after, _) = page_faults();
            after - before
        })
        .unwrap();
    thread.join().unwrap()
}

#[test]
fn a_prefaulted_stack_gives_no_page_fault() {
    assert_eq!(faults_of_using_the_stack(true), 0);
    assert_ne!(faults_of_using_the_stack(false), 0);
}

/// Lets a thread of low priority lock a mutex, then starts one of high priority that wants it, and
/// then one of middle priority that does not, all on one CPU. Returns the order in which they
/// finished, or `None` without the rights.
fn inversion<M: Default + Send + Sync + 'static>(
    with_locked: fn(&M, &mut dyn FnMut()),
) -> Option<Vec<&'static str>> {
    let cpu = [allowed_cpus()[0]];
    let on_cpu = move |name: &str| ThreadBuilder::new(name).affinity(&cpu);
    let low = move || {
        let events = Arc::new(PiMutex::new(Vec::new()));
        let mutex = Arc::new(M::default());
        let mut others = Vec::new();
        with_locked(&Arc::clone(&mutex), &mut || {
            let (log, mutex) = (Arc::clone(&events), Arc::clone(&mutex));
            others.extend(fifo(on_cpu("high"), 30, move || {
                with_locked(&mutex, &mut || log.lock().push("high"));
            }));
            let log = Arc::clone(&events);
            others.extend(fifo(on_cpu("middle"), 20, move || {
                log.lock().push("middle");
            }));
            events.lock().push("low");
        });
        for other in others {
            other.join().unwrap();
        }
        let events = events.lock();
        events.clone()
    };
    Some(fifo(on_cpu("low"), 10, low)?.join().unwrap())
}

#[test]
fn a_thread_of_middle_priority_does_not_delay_one_of_high_priority() {
    let events = inversion::<PiMutex<()>>(|mutex, f| {
        let _guard = mutex.lock();
        f();
    });
    assert!(events.is_none_or(|events| events == ["low", "high", "middle"]));
}

#[test]
fn with_a_mutex_without_inheritance_it_does() {
    let events = inversion::<Mutex<()>>(|mutex, f| {
        let _guard = mutex.lock().unwrap();
        f();
    });
    assert!(events.is_none_or(|events| events == ["middle", "low", "high"]));
}
