//! The perfect hash by which a skeleton finds an operation by its name.
//!
//! It is computed here, at generation time. The lookup is in the runtime (`OperationTable`), which
//! has the same functions [`hash`] and [`displaced`].

use std::cmp::Reverse;

/// A hash without collisions over a set of names: the parts of the runtime's `OperationTable`.
///
/// It has two levels ("hash and displace"). A name's hash selects its bucket, and the bucket's
/// displacement determines the slots of its names. The table has at most two and a half slots per
/// name, and a lookup takes constant time.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PerfectHash {
    /// The seed of the hash.
    pub seed: u64,
    /// The displacements by bucket; their number is a power of two.
    pub displacements: Vec<u16>,
    /// The position of the name in each slot, or [`PerfectHash::EMPTY`]; their number is a power of
    /// two.
    pub slots: Vec<u16>,
}

impl PerfectHash {
    /// The value of an unused slot.
    pub const EMPTY: u16 = u16::MAX;

    /// Returns the slots as the runtime has them, if the names of the hash follow each other in a
    /// text: start and length of a name, and its position. `None` for an unused slot.
    pub fn places<S: AsRef<[u8]>>(&self, names: &[S]) -> Vec<Option<(u32, u16, u16)>> {
        let mut start = 0;
        let places: Vec<(u32, u16, u16)> = (0..)
            .zip(names)
            .map(|(number, name)| {
                let length = name.as_ref().len() as u16;
                let place = (start, length, number);
                start += u32::from(length);
                place
            })
            .collect();
        let place = |&number: &u16| places.get(usize::from(number)).copied();
        self.slots.iter().map(place).collect()
    }
}

/// Searches a perfect hash over the names, for the runtime's `OperationTable`. The same names give
/// the same one.
///
/// There is none, and the result is `None`, where a name occurs twice, for 65,535 names or more,
/// and for names of more than 65,535 octets.
///
/// ```
/// let names = ["bind", "rebind", "resolve", "unbind"];
/// let hash = chronorb_build::perfect_hash(&names).expect("no name occurs twice");
/// assert!(hash.slots.len() <= 10);
/// ```
pub fn perfect_hash<S: AsRef<[u8]>>(names: &[S]) -> Option<PerfectHash> {
    let is_long = |name: &S| name.as_ref().len() > usize::from(u16::MAX);
    if names.len() >= usize::from(PerfectHash::EMPTY) || names.iter().any(is_long) {
        return None;
    }
    let mut sorted: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let mut seed = FIRST_SEED;
    (0..SEEDS).find_map(|_| {
        seed = next_random(seed);
        with_seed(seed, names)
    })
}

/// Finds a displacement for each bucket, for those with the most names first, while there is room.
fn with_seed<S: AsRef<[u8]>>(seed: u64, names: &[S]) -> Option<PerfectHash> {
    let mut buckets = vec![Vec::new(); (names.len() / NAMES_PER_BUCKET).next_power_of_two()];
    for (number, name) in names.iter().enumerate() {
        let hash = hash(seed, name.as_ref());
        let bucket = hash as usize & (buckets.len() - 1);
        buckets[bucket].push((hash, number as u16));
    }
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|&bucket| Reverse(buckets[bucket].len()));

    let mut displacements = vec![0; buckets.len()];
    let mut slots = vec![PerfectHash::EMPTY; (names.len() + names.len() / 4).next_power_of_two()];
    for bucket in order {
        let names = &buckets[bucket];
        displacements[bucket] = (0..=u16::MAX).find(|&d| place(names, d, &mut slots))?;
    }
    Some(PerfectHash {
        seed,
        displacements,
        slots,
    })
}

/// Puts the names of a bucket into the slots. If one is taken, puts none and returns false.
fn place(names: &[(u64, u16)], displacement: u16, slots: &mut [u16]) -> bool {
    let mask = slots.len() - 1;
    let slot = |hash| displaced(hash, displacement) as usize & mask;
    for (placed, &(hash, number)) in names.iter().enumerate() {
        if slots[slot(hash)] != PerfectHash::EMPTY {
            for &(hash, _) in &names[..placed] {
                slots[slot(hash)] = PerfectHash::EMPTY;
            }
            return false;
        }
        slots[slot(hash)] = number;
    }
    true
}

/// Returns a hash of all octets and of the length. The runtime has the same function.
fn hash(seed: u64, name: &[u8]) -> u64 {
    let (mut head, tail) = ends(name);
    if name.len() > 16 {
        for word in name[8..].as_chunks().0 {
            head = (head.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        }
    }
    // The length changes the seed, so that names that agree here differ with another seed.
    let tail = tail ^ seed.wrapping_mul(2 * name.len() as u64 + 3);
    let product = u128::from(head ^ seed) * u128::from(tail);
    (product >> 64) as u64 ^ product as u64
}

/// Returns the first and the last eight octets. For a name of up to 16 octets, these are all.
fn ends(name: &[u8]) -> (u64, u64) {
    if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        return (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
    }
    if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        return (head.into(), tail.into());
    }
    let head = name
        .iter()
        .fold(0, |head, &octet| head << 8 | u64::from(octet));
    (head, 0)
}

/// Returns the slot of a hash in a bucket with this displacement, in the lowest bits.
const fn displaced(hash: u64, displacement: u16) -> u64 {
    hash.wrapping_mul(MULTIPLIER.wrapping_add(2 * displacement as u64)) >> 32
}

/// An odd number with well-distributed ones (the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns one step of SplitMix64.
const fn next_random(state: u64) -> u64 {
    let state = state.wrapping_add(MULTIPLIER);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const FIRST_SEED: u64 = 0x6368_726f_6e6f_7262;
/// The maximum number of seeds; nearly always the first succeeds.
const SEEDS: u32 = 64;
/// The average number of names per bucket. More names need less memory for displacements, and a
/// longer search for them.
const NAMES_PER_BUCKET: usize = 3;
