//! A structured event of the notification service, from a supplier to a consumer: interfaces of the
//! OMG, with values of any type in sequences of structs, and inheritance from three files.

use std::sync::atomic::{AtomicBool, Ordering};

use chronorb::SystemExceptionKind;
use chronorb::data::{Any, Arena};
use chronorb::prelude::*;
use chronorb_generated_tests::notification::cos_event_comm::Disconnected;
use chronorb_generated_tests::notification::cos_notification::{
    DISCARD_POLICY, EventHeader, EventType, FixedEventHeader, HIGHEST_PRIORITY, PRIORITY, Property,
    StructuredEvent,
};
use chronorb_generated_tests::notification::cos_notify_comm::{
    InvalidEventType, NotifyPublish, NotifyPublishServant, OfferChangeError, OfferChangeErrorBuf,
    PushStructuredEventError, StructuredPushConsumer, StructuredPushConsumerServant,
    StructuredPushConsumerSkeleton,
};

use crate::ways::in_each_way;

/// A consumer of the single event of these tests, until it is disconnected. Fire alarms are not for
/// it.
#[derive(Default)]
struct Console {
    disconnected: AtomicBool,
}

impl NotifyPublishServant for Console {
    fn offer_change<'a>(
        &self,
        _: &Call<'a>,
        added: &'a [EventType<'a>],
        _: &'a [EventType<'a>],
    ) -> Result<(), OfferChangeError<'a>> {
        match added.iter().find(|event| event.type_name == "Fire") {
            Some(&r#type) => Err(InvalidEventType { r#type }.into()),
            None => Ok(()),
        }
    }
}

impl StructuredPushConsumerServant for Console {
    fn push_structured_event<'a>(
        &self,
        _: &Call<'a>,
        notification: &StructuredEvent<'a>,
    ) -> Result<(), PushStructuredEventError> {
        if self.disconnected.load(Ordering::Relaxed) {
            return Err(Disconnected {}.into());
        }
        let [number] = notification.filterable_data else {
            return Err(not_it().into());
        };
        let header = &notification.header;
        let told = (
            header.fixed_header.event_name,
            header.variable_header[0].value.extract::<i16>().ok(),
            number.value.extract::<i32>().ok(),
            notification.remainder_of_body.extract::<&str>().ok(),
        );
        if told == ("door 3", Some(HIGHEST_PRIORITY), Some(3), Some("opened")) {
            Ok(())
        } else {
            Err(not_it().into())
        }
    }

    fn disconnect_structured_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.disconnected.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn not_it() -> SystemException {
    SystemException::no(SystemExceptionKind::BadParam, 0)
}

const DOOR: EventType<'static> = EventType {
    domain_name: "Building",
    type_name: "Door",
};

#[test]
fn structured_events_reach_consumers_with_all_that_is_in_them() {
    for served in in_each_way(|| StructuredPushConsumerSkeleton::new(Console::default())) {
        let consumer = StructuredPushConsumer::narrow(&served.object)
            .expect("asked")
            .expect("a consumer");
        let arena = Arena::new(1 << 16);
        let event = event(&arena);
        consumer.push_structured_event(&event).expect("taken");
        consumer
            .disconnect_structured_push_consumer()
            .expect("disconnected");
        let refused = consumer.push_structured_event(&event).unwrap_err();
        assert_eq!(
            refused,
            PushStructuredEventError::Disconnected(Disconnected {})
        );
    }
}

#[test]
fn a_consumer_says_which_events_it_does_not_take() {
    for served in in_each_way(|| StructuredPushConsumerSkeleton::new(Console::default())) {
        let consumer = StructuredPushConsumer::narrow(&served.object)
            .expect("asked")
            .expect("a consumer");
        // An operation of its base, called by the base's handle.
        let publish = NotifyPublish::from(consumer);
        publish.offer_change(&[DOOR], &[]).expect("taken");
        let fire = EventType {
            type_name: "Fire",
            ..DOOR
        };
        let OfferChangeErrorBuf::InvalidEventType(refused) =
            publish.offer_change(&[DOOR, fire], &[]).unwrap_err()
        else {
            panic!("it is refused for its type");
        };
        assert_eq!(refused.r#type.type_name, "Fire");
    }
}

#[test]
fn the_names_of_qualities_are_those_of_the_standard() {
    assert_eq!((PRIORITY, DISCARD_POLICY), ("Priority", "DiscardPolicy"));
    assert_eq!(HIGHEST_PRIORITY, 32767);
}

fn event(arena: &Arena) -> StructuredEvent<'_> {
    let priority = Property {
        name: PRIORITY,
        value: Any::new(&HIGHEST_PRIORITY, arena).expect("room"),
    };
    let number = Property {
        name: "number",
        value: Any::new(&3_i32, arena).expect("room"),
    };
    StructuredEvent {
        header: EventHeader {
            fixed_header: FixedEventHeader {
                event_type: DOOR,
                event_name: "door 3",
            },
            variable_header: arena.copy_slice(&[priority]).expect("room"),
        },
        filterable_data: arena.copy_slice(&[number]).expect("room"),
        remainder_of_body: Any::new(&"opened", arena).expect("room"),
    }
}
