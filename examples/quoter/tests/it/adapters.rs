//! The excerpts of the book's pages on servants and object adapters, compiled and run.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use chronorb::Servant;
use chronorb::poa::{AuthorizationRequest, Cookie};
use chronorb::prelude::*;
use quoter_example::{
    Book, GetQuoteError, Quote, Quoter, QuoterServant, QuoterSkeleton, UnknownSymbol,
};

type Outcome = Result<(), Box<dyn Error>>;

fn orb() -> Result<Orb, Box<dyn Error>> {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    Ok(Orb::init(&mut args)?)
}

/// Calls an object within the process.
fn ping(object: &Object) -> Result<i32, SystemException> {
    Quoter::unchecked_narrow(object).ping(4)
}

/// The books that are not in use.
struct Shelf(BTreeMap<Vec<u8>, Book>);

impl Shelf {
    fn take(&self, id: &ObjectId) -> Option<Book> {
        self.0.get(id.as_bytes()).cloned()
    }
}

/// Incarnates books on demand.
struct OnDemand {
    shelf: Arc<Shelf>,
}

impl ServantActivator for OnDemand {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        let book = self.shelf.take(id).ok_or(NO_SUCH_BOOK)?;
        Ok(Arc::new(QuoterSkeleton::new(book)))
    }
}

const NO_SUCH_BOOK: SystemException = SystemException::no(SystemExceptionKind::ObjectNotExist, 0);

/// Prints a line for each servant that the POA returns.
struct AnnouncingActivator(OnDemand);

impl ServantActivator for AnnouncingActivator {
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Servant, Refusal> {
        self.0.incarnate(id, poa)
    }

    fn etherealize(
        &self,
        id: &ObjectId,
        _: &Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        println!("{id:?} ends: {cleanup_in_progress}, {remaining_activations}");
        drop(servant);
    }
}

/// Prints the duration of requests.
struct TimingLocator {
    book: Servant,
}

impl ServantLocator for TimingLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        let begun: Cookie = Some(Box::new(Instant::now()));
        Ok((self.book.clone(), begun))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, operation: &str, begun: Cookie, _: Servant) {
        if let Some(begun) = begun.and_then(|begun| begun.downcast::<Instant>().ok()) {
            println!("{operation}: {:?}", begun.elapsed());
        }
    }
}

/// One servant for every symbol.
struct AnySymbol;

impl QuoterServant for AnySymbol {
    fn get_quote<'a>(
        &self,
        call: &Call<'a>,
        symbol: &'a str,
        _: &'a [f64],
    ) -> Result<Quote<'a>, GetQuoteError<'a>> {
        if call.object_id().as_bytes() != symbol.as_bytes() {
            return Err(UnknownSymbol { symbol }.into());
        }
        Ok(Quote {
            symbol,
            levels: &[],
            curve: &[],
        })
    }

    fn ping(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}

/// Forwards all requests.
struct Elsewhere {
    target: Object,
}

impl ServantActivator for Elsewhere {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Err(Refusal::Forward(self.target.clone()))
    }
}

/// Makes a POA for each market.
struct Markets;

impl AdapterActivator for Markets {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        if name != "xetra" {
            return Ok(false);
        }
        let made = parent.create_poa(
            name,
            Some(parent.manager()),
            &[
                Policy::Lifespan(Lifespan::Persistent),
                Policy::IdAssignment(IdAssignment::User),
            ],
        );
        made.map_err(|_| FAILED)?;
        Ok(true)
    }
}

const FAILED: SystemException = SystemException::no(SystemExceptionKind::ObjAdapter, 0);

/// A servant that creates a reference to its own object while it serves a request.
struct Registrar;

impl QuoterServant for Registrar {
    fn get_quote<'a>(
        &self,
        _: &Call<'a>,
        symbol: &'a str,
        curve: &'a [f64],
    ) -> Result<Quote<'a>, GetQuoteError<'a>> {
        Ok(Quote {
            symbol,
            levels: &[],
            curve,
        })
    }

    fn ping(&self, call: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        if let Ok(me) = call.orb().poa_current().reference() {
            println!("{} serves {n}", call.orb().object_to_string(&me));
        }
        Ok(n)
    }
}

#[test]
fn persistent_objects_and_references_before_them() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let poa = root.create_poa(
        "books",
        Some(root.manager()),
        &[
            Policy::Lifespan(Lifespan::Persistent),
            Policy::IdAssignment(IdAssignment::User),
        ],
    )?;
    let acme = poa.create_reference_with_id(&"ACME".into(), Quoter::REPOSITORY_ID)?;
    root.manager().activate()?;
    assert!(ping(&acme).is_err(), "nothing is active");
    let skeleton = QuoterSkeleton::new(Book::acme());
    poa.activate_object_with_id("ACME", skeleton)?;
    assert_eq!(ping(&acme)?, 4);
    poa.destroy(true, true)?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn servants_become_objects_by_their_reference() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let servant: Servant = Arc::new(QuoterSkeleton::new(Book::acme()));
    let quoter = root.servant_to_reference(&servant)?;
    root.manager().activate()?;
    assert_eq!(ping(&quoter)?, 4);
    assert_eq!(ping(&root.serve(QuoterSkeleton::new(Registrar))?)?, 4);
    Ok(orb.shutdown(true)?)
}

#[test]
fn activators_make_servants_and_get_them_back() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let shelf = Arc::new(Shelf([(b"ACME".to_vec(), Book::acme())].into()));
    let poa = root.create_poa(
        "books",
        Some(root.manager()),
        &[
            Policy::RequestProcessing(RequestProcessing::ServantManager),
            Policy::IdAssignment(IdAssignment::User),
            Policy::Lifespan(Lifespan::Persistent),
        ],
    )?;
    poa.set_servant_activator(OnDemand { shelf })?;
    root.manager().activate()?;
    let acme = poa.create_reference_with_id(&"ACME".into(), Quoter::REPOSITORY_ID)?;
    assert_eq!(ping(&acme)?, 4);
    let nada = poa.create_reference_with_id(&"NADA".into(), Quoter::REPOSITORY_ID)?;
    assert_eq!(ping(&nada), Err(NO_SUCH_BOOK));

    let policies = [
        Policy::RequestProcessing(RequestProcessing::ServantManager),
        Policy::IdAssignment(IdAssignment::User),
    ];
    let announced = root.create_poa("announced", Some(root.manager()), &policies)?;
    let shelf = Arc::new(Shelf([(b"ACME".to_vec(), Book::acme())].into()));
    announced.set_servant_activator(AnnouncingActivator(OnDemand { shelf }))?;
    let object = announced.create_reference_with_id(&"ACME".into(), Quoter::REPOSITORY_ID)?;
    assert_eq!(ping(&object)?, 4);
    announced.deactivate_object(&"ACME".into())?;

    let policies = [Policy::RequestProcessing(RequestProcessing::ServantManager)];
    let forwarding = root.create_poa("forwarding", Some(root.manager()), &policies)?;
    forwarding.set_servant_activator(Elsewhere { target: acme })?;
    assert_eq!(
        ping(&forwarding.create_reference(Quoter::REPOSITORY_ID)?)?,
        4
    );
    Ok(orb.shutdown(true)?)
}

#[test]
fn locators_are_asked_for_each_request() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let book: Servant = Arc::new(QuoterSkeleton::new(Book::acme()));
    let poa = root.create_poa(
        "timed",
        Some(root.manager()),
        &[
            Policy::RequestProcessing(RequestProcessing::ServantManager),
            Policy::ServantRetention(ServantRetention::NonRetain),
            Policy::IdAssignment(IdAssignment::User),
        ],
    )?;
    poa.set_servant_locator(TimingLocator { book })?;
    root.manager().activate()?;
    let any = poa.create_reference_with_id(&"any".into(), Quoter::REPOSITORY_ID)?;
    assert_eq!(ping(&any)?, 4);
    Ok(orb.shutdown(true)?)
}

#[test]
fn a_default_servant_serves_the_other_objects() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let poa = root.create_poa(
        "any",
        Some(root.manager()),
        &[
            Policy::RequestProcessing(RequestProcessing::DefaultServant),
            Policy::IdUniqueness(IdUniqueness::Multiple),
            Policy::IdAssignment(IdAssignment::User),
        ],
    )?;
    poa.set_servant(QuoterSkeleton::new(AnySymbol))?;
    root.manager().activate()?;
    let acme = poa.create_reference_with_id(&"ACME".into(), Quoter::REPOSITORY_ID)?;
    let acme = Quoter::unchecked_narrow(&acme);
    assert!(acme.get_quote("ACME", &[]).is_ok());
    assert!(acme.get_quote("NADA", &[]).is_err());
    Ok(orb.shutdown(true)?)
}

#[test]
fn adapter_activators_make_children() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    root.set_activator(Some(Arc::new(Markets)));
    assert_eq!(root.find_poa("xetra", true)?.name(), "xetra");
    assert!(root.find_poa("other", true).is_err());
    Ok(orb.shutdown(true)?)
}

#[test]
fn managers_are_shared() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let manager = orb.poa_manager_factory().create("books")?;
    let bonds = root.create_poa("bonds", Some(&manager), &[])?;
    let stocks = root.create_poa("stocks", Some(&manager), &[])?;
    manager.activate()?;
    assert_eq!(bonds.manager().id(), stocks.manager().id());
    Ok(orb.shutdown(true)?)
}

#[test]
fn keys_are_authenticated_where_a_poa_asks_for_it() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let poa = root.create_poa(
        "accounts",
        None,
        &[Policy::ObjectKeys(ObjectKeys::Authenticated)],
    )?;
    assert!(poa.create_reference(Quoter::REPOSITORY_ID).is_ok());
    Ok(orb.shutdown(true)?)
}

#[test]
fn a_program_with_a_loop_of_its_own_serves_when_it_wants_to() -> Outcome {
    let orb = orb()?;
    while orb.work_pending() {
        orb.perform_work();
    }
    Ok(orb.shutdown(true)?)
}

/// Answers with the number, and prints what the peer has proved.
struct Careful;

impl QuoterServant for Careful {
    fn get_quote<'a>(
        &self,
        _: &Call<'a>,
        symbol: &'a str,
        curve: &'a [f64],
    ) -> Result<Quote<'a>, GetQuoteError<'a>> {
        Ok(Quote {
            symbol,
            levels: &[],
            curve,
        })
    }

    fn ping(&self, call: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        // `None` for calls from within this process.
        let peer = call.peer();
        let user = peer
            .and_then(|peer| peer.credentials())
            .map(|process| process.uid);
        // With the feature `ssliop`.
        let names = peer.and_then(|peer| peer.certificate_names());
        println!("{user:?} {:?}", names.map(|names| names.subject));
        Ok(n)
    }
}

#[test]
fn an_authorizer_decides_by_peer_and_operation() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let poa = root.create_poa("console", Some(root.manager()), &[])?;
    poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
        let names = request.peer().and_then(|peer| peer.certificate_names());
        let is_console = names.is_some_and(|names| names.subject == "CN=console");
        request.operation() == b"status" || is_console
    })?;
    let object = poa.serve(QuoterSkeleton::new(Careful))?;
    root.manager().activate()?;
    assert!(ping(&object).is_err(), "it is no console");
    assert_eq!(ping(&root.serve(QuoterSkeleton::new(Careful))?)?, 4);
    Ok(orb.shutdown(true)?)
}
