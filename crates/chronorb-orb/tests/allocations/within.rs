//! The lookup of a servant by an object key takes no lock and allocates nothing, for each kind of
//! reference and strategy. Calls within the process use it on the calling thread, so that the
//! thread's counters include all of it.

use chronorb_cdr::Decoder;
use chronorb_orb::poa::{
    IdAssignment, IdUniqueness, Lifespan, ObjectId, Policy, RequestProcessing, ThreadModel,
};
use chronorb_orb::{Call, Demultiplexing, Object, ReplyWriter, Skeleton, SystemException};
use chronorb_rt::{allocations, lock_operations};

use crate::alone;
use crate::support::{nothing, orb_with};

struct Silent;

impl Skeleton for Silent {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Silent:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        assert!(call.orb().poa_current().poa().as_ref() == Ok(call.poa()));
        Ok(())
    }
}

/// Returns the calling thread's allocations and lock operations for a thousand calls, after some
/// warm-up.
fn counts(object: &Object) -> (u64, u64) {
    for _ in 0..10 {
        nothing(object, "ping").expect("the call succeeds");
    }
    let before = (allocations(), lock_operations());
    for _ in 0..1000 {
        nothing(object, "ping").expect("the call succeeds");
    }
    (allocations() - before.0, lock_operations() - before.1)
}

#[test]
fn no_kind_of_reference_costs_a_lock_or_an_allocation() {
    let _alone = alone();
    for strategy in [
        Demultiplexing::Active,
        Demultiplexing::DynamicHash,
        Demultiplexing::LinearSearch,
    ] {
        let orb = orb_with(|config| {
            config.poa_demultiplexing = strategy;
            config.servant_demultiplexing = strategy;
        });
        let root = orb.root_poa().expect("it is made");
        root.manager().activate().expect("it was not deactivated");
        let poa = |name, policies: &[Policy]| {
            root.create_poa(name, Some(root.manager()), policies)
                .expect("they agree")
        };
        const USER: Policy = Policy::IdAssignment(IdAssignment::User);
        let persistent = Policy::Lifespan(Lifespan::Persistent);
        let multiple = Policy::IdUniqueness(IdUniqueness::Multiple);
        let default = Policy::RequestProcessing(RequestProcessing::DefaultServant);

        let named = |name, policies: &[Policy]| {
            let poa = poa(name, policies);
            for other in 0..100 {
                let id = format!("other {other}");
                poa.activate_object_with_id(id.as_str(), Silent)
                    .expect("it is new");
            }
            let id = ObjectId::from("a name of more octets than an id has room for");
            poa.activate_object_with_id(&id, Silent).expect("it is new");
            poa.id_to_reference(&id).expect("it is active")
        };
        let served_by_default = poa("default", &[USER, multiple, default]);
        served_by_default
            .set_servant(Silent)
            .expect("it uses a default servant");

        let references = [
            ("system id", root.serve(Silent).expect("it is new")),
            ("user id", named("user", &[USER])),
            ("persistent", named("persistent", &[USER, persistent])),
            (
                "default servant",
                served_by_default
                    .create_reference_with_id(&ObjectId::from("any"), "IDL:Test/Silent:1.0")
                    .expect("the POA is alive"),
            ),
        ];
        for (kind, object) in &references {
            assert_eq!(counts(object), (0, 0), "{kind}, {strategy:?}");
        }

        // The single-thread model is a lock, and nothing else.
        let single = [USER, Policy::Thread(ThreadModel::SingleThread)];
        let (allocations, locks) = counts(&named("single", &single));
        assert_eq!(allocations, 0);
        assert_eq!(locks, 1000, "one is taken for each call");
        orb.shutdown(true).expect("it is not called by a servant");
    }
}
