//! The context switches that the papers measured.

use super::switch::Switching;

/// The mechanisms that the papers measured too. Their "synchronisation" is a semaphore here.
pub(super) const IN_PAPERS: [Switching; 3] = [
    Switching::SuspendResume,
    Switching::Yield,
    Switching::Semaphore,
];

/// A time of the papers in µs: its mean, and its standard deviation if they give it.
pub(super) type PaperTime = Option<(f64, Option<f64>)>;

/// The times of a context switch on operating systems, by [`IN_PAPERS`], on a Pentium II at
/// 450 MHz. The slides do not give the number of switches behind the standard deviations.
pub(super) const PUBLISHED: [(&str, [PaperTime; 3]); 5] = [
    ("Solaris", [mean(46.0), both(17.8, 0.837), mean(128.0)]),
    ("VxWorks", [both(15.4, 0.294), None, mean(40.0)]),
    ("LynxOS", [None, both(3.72, 0.043), both(5.45, 0.07)]),
    ("Linux of 1999", [None, both(6.52, 0.117), both(18.2, 0.26)]),
    (
        "Windows NT",
        [both(3.45, 0.059), both(5.76, 0.449), both(7.02, 0.113)],
    ),
];

const fn mean(us: f64) -> PaperTime {
    Some((us, None))
}

const fn both(mean_us: f64, deviation_us: f64) -> PaperTime {
    Some((mean_us, Some(deviation_us)))
}

/// The source of [`PUBLISHED`].
pub(super) const SOURCE: &str = "S. Flores-Gaitan: An Empirical Analysis of CORBA and OS Support \
                                 for Real-time Applications (slides, Washington University), \
                                 context switch time";
