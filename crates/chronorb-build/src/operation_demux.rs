//! The choice of operation lookup in skeletons.

/// The lookup of a request's operation by its name.
///
/// The default is right for every program. The others exist for comparisons, because the literature
/// on real-time ORBs uses them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OperationDemux {
    /// A perfect hash, computed at generation time. The time is independent of the number of
    /// operations. Four or fewer operations use comparisons in the code, which are faster still.
    #[default]
    PerfectHash,
    /// A binary search in sorted names, for the least memory. The time grows with the logarithm of
    /// the number of operations.
    BinarySearch,
    /// A hash table of the standard library, created at the first request, which allocates. On
    /// average the time is constant, but colliding names take longer.
    DynamicHash,
    /// A linear search. The time grows with the number of operations.
    LinearSearch,
}
