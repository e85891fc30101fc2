//! The excerpts of the book and of the README, compiled and run. `cargo xtask tidy` checks that
//! each of them is here or in another example or test.

use std::error::Error;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::observe::StageProbe;
use chronorb::prelude::*;
use chronorb::rtcorba::ThreadpoolId;
use chronorb::transport::parse_endpoints;
use quoter_example::{Book, GetQuoteErrorBuf, QuoteBuf, Quoter, QuoterSkeleton};

type Outcome = Result<(), Box<dyn Error>>;

fn arguments() -> Vec<String> {
    ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec()
}

/// A quoter of another ORB.
fn with_quoter(run: impl FnOnce(&Orb, &Quoter) -> Outcome) -> Outcome {
    let (server, orb) = (Orb::init(&mut arguments())?, Orb::init(&mut Vec::new())?);
    let root = server.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Book::acme()))?;
    root.manager().activate()?;
    let object = orb.string_to_object(&server.object_to_string(&object))?;
    run(&orb, &Quoter::unchecked_narrow(&object))?;
    orb.shutdown(true)?;
    Ok(server.shutdown(true)?)
}

#[test]
fn the_readmes_call() -> Outcome {
    with_quoter(|orb, quoter| {
        let reference = orb.object_to_string(quoter.as_object());
        let mut scope = Scope::new(64 * 1024);
        let quoter = Quoter::narrow(&orb.string_to_object(&reference)?)?.ok_or("no Quoter")?;
        // The result owns its parts.
        let quote = quoter.get_quote("ACME", &[0.25, 1.0])?;
        // The result borrows from the scope, and nothing is allocated.
        if let Ok(quote) = quoter.get_quote_in(&mut scope, "ACME", &[0.25, 1.0]) {
            println!("{} levels of {}", quote.levels.len(), quote.symbol);
        }
        assert_eq!(quote.levels.len(), 3);
        Ok(())
    })
}

#[test]
fn the_readmes_lanes() -> Outcome {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    let orb = Orb::with_config(config)?;
    let root = orb.root_poa()?;
    let (low, high) = (Priority::try_from(1_000)?, Priority::try_from(20_000)?);
    let pool: ThreadpoolId = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 2), Lane::new(high, 1)],
        ..Default::default()
    })?;
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, low),
    ];
    let poa = root.create_poa("control", Some(root.manager()), &policies)?;
    // In a client's thread:
    orb.rt_current().set_priority(high)?;
    assert_eq!(poa.name(), "control");
    Ok(orb.shutdown(true)?)
}

#[test]
fn errors() -> Outcome {
    fn show(quote: &QuoteBuf) {
        println!("{}", quote.symbol);
    }
    with_quoter(|orb, quoter| {
        match quoter.get_quote("ACME", &[]) {
            Ok(quote) => show(&quote),
            Err(GetQuoteErrorBuf::UnknownSymbol(unknown)) => {
                println!("no quote of {}", unknown.symbol);
            }
            Err(GetQuoteErrorBuf::System(exception)) => return Err(exception.into()),
        }
        if let Err(exception) = quoter.ping(4) {
            eprintln!("{exception}");
            if let Some(failure) = orb.last_failure() {
                eprintln!("{failure}");
            }
        }
        Ok(())
    })
}

#[test]
fn configuration_in_a_program() -> Outcome {
    let mut config = OrbConfig::read(&mut vec![
        "-ORBListenEndpoints".to_owned(),
        "iiop://127.0.0.1:0".to_owned(),
    ])?;
    config.request_timeout = Duration::from_millis(250);
    let orb = Orb::with_config(config)?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn the_log() -> Outcome {
    let mut args = arguments();
    let config = OrbConfig::read(&mut args)?;
    let _log = chronorb::log::install(&config)?;
    let orb = Orb::with_config(config)?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn stamps() -> Outcome {
    let mut config = OrbConfig::read(&mut arguments())?;
    config.stage_probe = Some(StageProbe::stamps());
    chronorb_probe::keep_stamps(100_000);
    let orb = Orb::with_config(config)?;
    for thread in chronorb_probe::stamps() {
        println!("thread {}: {} stamps", thread.thread, thread.stamps.len());
    }
    Ok(orb.shutdown(true)?)
}
