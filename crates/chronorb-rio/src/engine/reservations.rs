//! The reservations of open classes, and the admission of further ones.

use std::sync::Arc;

use chronorb_rt::PiMutex;

use super::error::ClassOpenError;
use crate::class::ClassId;
use crate::driver::Link;
use crate::plan::{DriverKind, Interface, Refusal, Reservation, admit};

/// The admitted reservations of an interface.
#[derive(Debug, Default)]
pub(super) struct AdmittedReservations(PiMutex<Vec<(ClassId, Reservation)>>);

/// An admitted reservation, in force until it is dropped.
#[derive(Debug)]
pub(super) struct ReservationGuard {
    id: ClassId,
    reservations: Arc<AdmittedReservations>,
}

impl AdmittedReservations {
    /// Admits a reservation if it can be kept beside all others.
    pub(super) fn admit(
        self: &Arc<Self>,
        link: &Link,
        id: ClassId,
        reservation: Reservation,
    ) -> Result<ReservationGuard, ClassOpenError> {
        let interface = Interface {
            name: link.name.clone(),
            rate: None,
            mtu: link.mtu,
            driver: DriverKind::Auto,
        };
        let mut open = self.0.lock();
        let refusals =
            |open: &[(ClassId, Reservation)]| admit(&interface, &with_unique_names(open)).refusals;
        // The classes of a plan may exceed it if each of them is open twice. This reservation is
        // not refused for that.
        let before = refusals(&open);
        let is_known = |refusal: &Refusal| {
            let mut before = before.iter();
            before.any(|it| it.class == refusal.class && it.why.word() == refusal.why.word())
        };
        let name = reservation.name.clone();
        open.push((id, reservation));
        match refusals(&open).into_iter().find(|it| !is_known(it)) {
            None => Ok(self.guard(id)),
            Some(refusal) => {
                open.pop();
                Err(ClassOpenError::Refused {
                    class: name,
                    refusal: refusal.into(),
                })
            }
        }
    }

    /// Adds a reservation of an admitted plan without a check.
    pub(super) fn give(
        self: &Arc<Self>,
        id: ClassId,
        reservation: Reservation,
    ) -> ReservationGuard {
        self.0.lock().push((id, reservation));
        self.guard(id)
    }

    fn guard(self: &Arc<Self>, id: ClassId) -> ReservationGuard {
        ReservationGuard {
            id,
            reservations: self.clone(),
        }
    }
}

impl Drop for ReservationGuard {
    fn drop(&mut self) {
        self.reservations.0.lock().retain(|(id, _)| *id != self.id);
    }
}

/// Returns the reservations with unique names, which classes need not have.
fn with_unique_names(open: &[(ClassId, Reservation)]) -> Vec<Reservation> {
    let each = open.iter().enumerate().map(|(number, (id, reservation))| {
        let mut reservation = reservation.clone();
        let before = &open[..number];
        if before.iter().any(|(_, it)| it.name == reservation.name) {
            reservation.name += &format!(" ({id})");
        }
        reservation
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chronorb_rt::Scheduling;

    use super::*;
    use crate::engine::{ClassConfig, ClassOutput, ClassProcessing, Urgency};

    const TEN_MS: Duration = Duration::from_millis(10);

    fn link() -> Link {
        Link {
            name: "wire0".to_owned(),
            index: 1,
            hardware: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            addresses: Vec::new(),
        }
    }

    fn class(name: &str, priority: u8, processing: ClassProcessing) -> ClassConfig {
        ClassConfig {
            name: name.to_owned(),
            processing,
            urgency: Urgency::Native(Scheduling::fifo(priority)),
            connections: 4,
            ..ClassConfig::default()
        }
    }

    /// Returns a class whose packets take 100 µs each, with a budget per 10 ms.
    fn periodic(name: &str, priority: u8, budget: usize) -> ClassConfig {
        let period = TEN_MS;
        ClassConfig {
            cost: Some(Duration::from_micros(100)),
            ..class(name, priority, ClassProcessing::Periodic { period, budget })
        }
    }

    /// Opens the class with this number beside those that are open. On refusal, returns the class
    /// whose reservation could not be kept, and the reason.
    fn open(
        reservations: &Arc<AdmittedReservations>,
        number: usize,
        config: &ClassConfig,
    ) -> Result<ReservationGuard, (String, &'static str)> {
        let id = ClassId::new(number).expect("there is one");
        let admitted = reservations.admit(&link(), id, config.into());
        admitted.map_err(|error| match error {
            ClassOpenError::Refused { class, refusal } => {
                assert_eq!(class, config.name);
                (refusal.class.clone(), refusal.why.word())
            }
            other => panic!("{other}"),
        })
    }

    #[test]
    fn what_would_make_another_late_is_refused_until_that_one_is_closed() {
        let reservations = Arc::default();
        let video = open(&reservations, 0, &periodic("video", 40, 60)).expect("it is alone");
        let control = periodic("control", 80, 50);
        let late = open(&reservations, 1, &control).unwrap_err();
        assert_eq!(late, ("video".to_owned(), "overload"));
        let _little = open(&reservations, 1, &periodic("control", 80, 30)).expect("both fit");
        assert!(open(&reservations, 2, &control).is_err());
        drop(video);
        let _both = open(&reservations, 2, &control).expect("there is room again");
    }

    #[test]
    fn classes_of_different_processors_do_not_meet() {
        let reservations = Arc::default();
        let on = |cpu, config: ClassConfig| ClassConfig {
            cpu: Some(cpu),
            ..config
        };
        let _first = open(&reservations, 0, &on(0, periodic("a", 40, 60))).expect("it is alone");
        let _other =
            open(&reservations, 1, &on(1, periodic("b", 80, 60))).expect("it is alone there");
        assert!(open(&reservations, 2, &on(1, periodic("c", 60, 60))).is_err());
    }

    #[test]
    fn without_costs_processors_are_not_looked_at() {
        let reservations = Arc::default();
        let without = |name, budget| ClassConfig {
            cost: None,
            ..periodic(name, 40, budget)
        };
        let _one = open(&reservations, 0, &without("one", 400)).expect("nothing is known");
        let _another = open(&reservations, 1, &without("another", 400)).expect("nothing is known");
    }

    #[test]
    fn nothing_without_a_bound_comes_before_a_promise() {
        let reservations = Arc::default();
        let _video = open(&reservations, 0, &periodic("video", 40, 8)).expect("it is alone");
        let quotes = class("quotes", 80, ClassProcessing::OnArrival);
        let refused = open(&reservations, 1, &quotes).unwrap_err();
        assert_eq!(refused, ("quotes".to_owned(), "unbounded"));
        let expecting = ClassConfig {
            expected: Some((2, Duration::from_millis(5))),
            ..quotes.clone()
        };
        let _expecting = open(&reservations, 1, &expecting).expect("its peers guard not to");
        let later = class("later", 20, ClassProcessing::OnDemand { cap: None });
        let _later = open(&reservations, 2, &later).expect("it waits for all others");
    }

    #[test]
    fn what_cannot_be_alone_is_refused_alone() {
        let reservations = Arc::default();
        let no_thread = ClassConfig {
            output: ClassOutput::Scheduled,
            ..class("quotes", 80, ClassProcessing::OnArrival)
        };
        let refused = open(&reservations, 0, &no_thread).unwrap_err();
        assert_eq!(refused, ("quotes".to_owned(), "impossible"));
    }

    #[test]
    fn classes_may_have_the_same_name() {
        let reservations = Arc::default();
        let _first = open(&reservations, 0, &periodic("port-0", 40, 60)).expect("it is alone");
        let _second = open(&reservations, 1, &periodic("port-0", 50, 20)).expect("both fit");
        let third = open(&reservations, 2, &periodic("port-0", 60, 20)).unwrap_err();
        assert_eq!(third, ("port-0".to_owned(), "overload"));
    }

    #[test]
    fn classes_of_a_plan_are_not_looked_at_again_and_others_have_to_fit_beside_them() {
        let reservations: Arc<AdmittedReservations> = Arc::default();
        let planned = |number, name| {
            let id = ClassId::new(number).expect("there is one");
            reservations.give(id, (&periodic(name, 80, 60)).into())
        };
        // One class of the plan serves, the other calls.
        let _planned = [planned(0, "video"), planned(1, "to-video")];
        let rest = class("rest", 0, ClassProcessing::OnDemand { cap: None });
        let rest = ClassConfig {
            urgency: Urgency::Native(Scheduling::OTHER),
            ..rest
        };
        let _rest = open(&reservations, 2, &rest).expect("it takes nothing from them");
        let more = open(
            &reservations,
            3,
            &class("more", 90, ClassProcessing::OnArrival),
        );
        assert_eq!(more.unwrap_err(), ("more".to_owned(), "unbounded"));
    }
}
