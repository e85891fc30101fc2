//! How skeletons find operations.

/// How a skeleton finds the operation of a request, from its name.
///
/// The default is right for every program. The others are what the literature on real-time ORBs
/// compares it with, and are there for such comparisons.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OperationDemux {
    /// A perfect hash, made at generation time: the same time for each of the operations, however
    /// many there are. Four or fewer are told apart by comparisons in the code, which is still
    /// faster.
    #[default]
    PerfectHash,
    /// A search among sorted names, for the least memory: the time grows with the logarithm of the
    /// number of operations.
    BinarySearch,
    /// A hash table of the standard library, made at the first request, which allocates. On average
    /// the time does not grow, but names that collide take longer.
    DynamicHash,
    /// A search among all names: the time grows with the number of operations.
    LinearSearch,
}
