//! What the papers measured.

use super::switch::Switching;

/// The time of a context switch on an operating system, in µs: mean and standard deviation, where they are given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub(super) system: &'static str,
    pub(super) suspend_resume: Time,
    pub(super) yielding: Time,
    pub(super) synchronisation: Time,
}

/// Mean and standard deviation.
pub(super) type Time = Option<(f64, Option<f64>)>;

impl Published {
    /// What is nearest to one of ours.
    pub(super) const fn of(&self, switching: Switching) -> Time {
        match switching {
            Switching::SuspendResume => self.suspend_resume,
            Switching::Yield => self.yielding,
            Switching::Semaphore | Switching::PiLock => self.synchronisation,
        }
    }
}

/// On a Pentium II at 450 MHz. The slides do not tell how many switches the standard deviations are of.
pub(super) const PUBLISHED: [Published; 5] = [
    Published {
        system: "Solaris",
        suspend_resume: Some((46.0, None)),
        yielding: Some((17.8, Some(0.837))),
        synchronisation: Some((128.0, None)),
    },
    Published {
        system: "VxWorks",
        suspend_resume: Some((15.4, Some(0.294))),
        yielding: None,
        synchronisation: Some((40.0, None)),
    },
    Published {
        system: "LynxOS",
        suspend_resume: None,
        yielding: Some((3.72, Some(0.043))),
        synchronisation: Some((5.45, Some(0.07))),
    },
    Published {
        system: "Linux of 1999",
        suspend_resume: None,
        yielding: Some((6.52, Some(0.117))),
        synchronisation: Some((18.2, Some(0.26))),
    },
    Published {
        system: "Windows NT",
        suspend_resume: Some((3.45, Some(0.059))),
        yielding: Some((5.76, Some(0.449))),
        synchronisation: Some((7.02, Some(0.113))),
    },
];

/// Where [`PUBLISHED`] stands.
pub(super) const SOURCE: &str = "S. Flores-Gaitan: An Empirical Analysis of CORBA and OS Support for Real-time \
     Applications (slides, Washington University), context switch time";
