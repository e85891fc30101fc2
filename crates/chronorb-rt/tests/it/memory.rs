//! Memory locking. It holds for the whole process, hence a process of its own.

use std::fs;
use std::hint::black_box;

use chronorb_rt::{MemoryLock, MemoryLockError, Rights, lock_all, page_faults};

use crate::again::run;

/// The locked memory of this process, in KiB.
fn locked() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmLck:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn locked_memory_gives_no_page_fault_when_it_is_first_used() {
    let status = run(
        locked_memory_gives_no_page_fault_when_it_is_first_used,
        || {
            let result = lock_all();
            match Rights::probe().memory_lock {
                MemoryLock::Unlimited => assert_eq!(result, Ok(())),
                MemoryLock::Limited(_) => assert!(matches!(
                    result,
                    Ok(()) | Err(MemoryLockError::LimitExceeded)
                )),
                MemoryLock::None => assert_eq!(result, Err(MemoryLockError::NotPermitted)),
            }
            if result.is_err() {
                assert_eq!(locked(), 0);
                return;
            }
            assert!(locked() > 0);
            let mut fresh = vec![0_u8; 1 << 20];
            let before = page_faults();
            for page in fresh.chunks_mut(4096) {
                page[0] = 1;
            }
            black_box(&fresh);
            assert_eq!(page_faults(), before);
        },
    );
    assert!(status.is_none_or(|status| status.success()));
}

/// glibc puts 16 octets before a block that it maps by itself.
#[cfg(target_env = "gnu")]
#[test]
fn great_blocks_are_mapped_although_greater_ones_were_freed() {
    chronorb_rt::return_great_blocks();
    for _ in 0..3 {
        drop(std::hint::black_box(vec![1_u8; 8 << 20]));
        let blocks = [(); 8].map(|()| vec![1_u8; 2 << 20]);
        let starts = blocks.iter().map(|block| block.as_ptr().addr() % 4096);
        assert_eq!(starts.collect::<Vec<_>>(), [16; 8]);
    }
}
