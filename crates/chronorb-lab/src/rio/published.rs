//! What the paper measured.

use super::part::Part;
use super::way::Way;

/// The echoes of one way: mean, maximum, minimum and jitter in µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) name: &'static str,
    /// What of ours it is held against.
    pub(super) way: Way,
    pub(super) figures: [f64; 4],
}

/// The table of a part; empty where it has none.
pub(super) const fn of(part: Part) -> &'static [Published] {
    match part {
        Part::Processing => &PROCESSING,
        Part::Company => &COMPANY,
        Part::Guarantees | Part::Orb => &[],
    }
}

/// Section 4.2.2: 10,000 samples.
const PROCESSING: [Published; 3] = [
    Published {
        name: "Solaris, default",
        way: Way::Kernel,
        figures: [653.0, 807.0, 613.0, 19.6],
    },
    Published {
        name: "RIO, RT kthreads",
        way: Way::Scheduled,
        figures: [665.0, 824.0, 620.0, 18.8],
    },
    Published {
        name: "RIO, SYS kthreads",
        way: Way::WrongClass,
        figures: [799.0, 1014.0, 729.0, 38.0],
    },
];
/// Section 4.2.3: 1,000 samples.
const COMPANY: [Published; 2] = [
    Published {
        name: "Solaris, default",
        way: Way::Kernel,
        figures: [1072.0, 3158.0, 594.0, 497.0],
    },
    Published {
        name: "RIO",
        way: Way::Classes,
        figures: [946.0, 2038.0, 616.0, 282.0],
    },
];

/// The paper, and where these tables stand in it.
pub(super) const SECTION_2: &str = "RIO 1998, section 4.2.2";
pub(super) const SECTION_3: &str = "RIO 1998, section 4.2.3";
pub(super) const SECTION_4: &str = "RIO 1998, section 4.2.4";
pub(super) const SECTION_ORB: &str = "RIO 1998, section 4.3";
