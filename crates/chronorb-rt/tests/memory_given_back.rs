//! Tables that were filled and emptied are as small as before. The memory of the whole process is
//! counted, hence a program without the test harness, which has memory of its own.

use chronorb_rt::{CountingAllocator, HashIndex, Slots, epoch, live_octets};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const VALUES: u32 = 100_000;

fn main() {
    slots_give_their_memory_back();
    slots_keep_memory_for_those_who_read();
    a_hash_index_gives_its_memory_back();
}

/// Inserts so many values and removes them, from the first or from the last.
fn cycle(table: &Slots<[u64; 5]>, values: u32, backwards: bool) {
    let mut keys: Vec<_> = (0..values).map(|_| table.insert([0; 5]).unwrap()).collect();
    if backwards {
        keys.reverse();
    }
    for key in keys {
        assert!(table.remove(key).was_there());
    }
}

fn slots_give_their_memory_back() {
    let before = live_octets();
    let table = Slots::new(VALUES);
    // What the thread needs to read at all stays.
    drop(epoch::enter());
    cycle(&table, 1, false);
    let small = live_octets();
    for backwards in [false, true] {
        cycle(&table, VALUES, backwards);
        assert_eq!(live_octets(), small);
    }
    let keys: Vec<_> = (0..VALUES).map(|_| table.insert([0; 5]).unwrap()).collect();
    // A cache line for each value; the heads of the chunks; the keys.
    assert!(live_octets() - small <= (64 + 8) * VALUES as usize + 64 * 32);
    drop((keys, table));
    assert!(live_octets() - before <= 256);
}

fn slots_keep_memory_for_those_who_read() {
    let table = Slots::new(VALUES);
    cycle(&table, 1, false);
    let small = live_octets();
    let reading = epoch::enter();
    cycle(&table, VALUES, false);
    assert!(live_octets() - small > 64 * VALUES as usize);
    drop(reading);
    assert_eq!(live_octets(), small);
}

fn a_hash_index_gives_its_memory_back() {
    let empty = live_octets();
    let index = HashIndex::new();
    assert_eq!(live_octets(), empty);
    for _ in 0..2 {
        for slot in 0..VALUES {
            index.insert(slot / 2, slot);
        }
        assert!(live_octets() - empty <= 8 * 8 * VALUES as usize);
        for slot in 1..VALUES {
            assert!(index.remove(slot / 2, slot));
        }
        assert!(live_octets() - empty <= 128);
        assert!(index.remove(0, 0));
        assert_eq!(live_octets(), empty);
    }
}
