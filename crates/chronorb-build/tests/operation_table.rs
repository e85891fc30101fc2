//! The runtime's table finds what the generator's perfect hash promises.

#[allow(dead_code, unreachable_pub, reason = "it is a part of the runtime")]
#[path = "../../chronorb-orb/src/operation_table.rs"]
mod operation_table;

use chronorb_build::perfect_hash;
use operation_table::OperationTable;

#[test]
fn the_runtime_finds_each_name_and_no_other_in_thousands_of_random_sets() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let names = random.names();
        let Some(found) = perfect_hash::find(&names) else {
            continue;
        };
        let slots: &'static [u16] = found.slots.leak();
        let leaked: Vec<&'static str> = names.iter().map(|n| &*n.clone().leak()).collect();
        let table = OperationTable::new(found.seed, slots, leaked.leak());

        for (number, name) in names.iter().enumerate() {
            assert_eq!(table.find(name.as_bytes()), Some(number), "{name}");
        }
        for other in random.names() {
            let expected = names.iter().position(|name| *name == other);
            assert_eq!(table.find(other.as_bytes()), expected, "{other}");
        }
        assert_eq!(table.find(b""), None);
        assert_eq!(table.find(&[0xff; 300]), None);
    }
}

#[test]
fn random_sets_of_operations_almost_always_have_a_perfect_hash() {
    let mut random = Random(11);
    let without = (0..1000)
        .filter(|_| perfect_hash::find(&random.names()).is_none())
        .count();
    assert!(without < 10, "{without} of 1000 sets have none");
}

/// A small deterministic generator (xorshift).
struct Random(u64);

impl Random {
    /// Two to forty distinct names of up to thirty characters.
    fn names(&mut self) -> Vec<String> {
        let wanted = 2 + self.below(39);
        let mut names: Vec<String> = Vec::new();
        while names.len() < wanted {
            let length = 1 + self.below(30);
            let name: String = (0..length)
                .map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz_"[self.below(27)]))
                .collect();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
