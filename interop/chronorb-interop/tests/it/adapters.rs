//! Object adapters from the point of view of the other ORB's clients: forwarding, managers, servant
//! managers, adapters on demand, and persistent references.
//!
//! The servers' objects are those of `idl/adapters.idl`. omniORB's checks are in
//! `interop/omniorb/main_adapters_client.cc`.

use std::sync::mpsc;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::minor;
use chronorb::prelude::*;
use chronorb_interop::Failure;
use chronorb_interop::adapters::idl::{Control, Item, State};

use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{ANY_PORT, AdaptersClient, Server, Side, free_port};

/// All groups of checks of omniORB's client, with each request and lookup strategy.
mod omniorb_calls_chronorb {
    use super::*;

    fn check(server_options: &[&str], options: &[&str]) {
        if !require(&[&OMNIORB]) {
            return;
        }
        let start = |name| Server::start_adapters(Side::Chronorb, name, ANY_PORT, server_options);
        let (here, there) = (start("here"), start("there"));
        AdaptersClient::start(&here, &there, options).finish();
    }

    // omniORB sends a LocateRequest before the first call, unless that is disabled.

    #[test]
    fn asking_where_objects_are() {
        check(&[], &["-ORBverifyObjectExistsAndType", "1"]);
    }

    #[test]
    fn calling_at_once() {
        check(&[], &["-ORBverifyObjectExistsAndType", "0"]);
    }

    #[test]
    fn in_giop_1_0() {
        check(&[], &["-ORBmaxGIOPVersion", "1.0"]);
    }

    #[test]
    fn naming_the_target_by_its_profile() {
        check(&[], &["-ORBgiopTargetAddressMode", "1"]);
    }

    #[test]
    fn naming_the_target_by_its_reference() {
        check(&[], &["-ORBgiopTargetAddressMode", "2"]);
    }

    #[test]
    fn found_by_hashing() {
        let options = [
            "-ORBPOADemultiplexing",
            "hash",
            "-ORBServantDemultiplexing",
            "hash",
        ];
        check(&options, &[]);
    }

    #[test]
    fn found_by_linear_search() {
        let options = [
            "-ORBPOADemultiplexing",
            "linear",
            "-ORBServantDemultiplexing",
            "linear",
        ];
        check(&options, &[]);
    }

    #[test]
    fn not_for_longer_than_the_server_lets_requests_wait() {
        check(&["-ORBHoldTimeout", "200"], &["--only", "patience"]);
    }

    #[test]
    fn forwarded_to_omniorb() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let here = Server::start_adapters(Side::Chronorb, "here", ANY_PORT, &[]);
        let there = Server::start_adapters(Side::OmniOrb, "there", ANY_PORT, &[]);
        AdaptersClient::start(&here, &there, &["--only", "forwarding"]).finish();
    }

    #[test]
    fn forwarded_to_a_server_that_ends() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let start = |side, name| Server::start_adapters(side, name, ANY_PORT, &[]);
        let options = ["--only", "loss"];

        // A chronorb server sends CloseConnection instead of starting a request.
        let (here, there) = (
            start(Side::Chronorb, "here"),
            start(Side::Chronorb, "there"),
        );
        let client = AdaptersClient::start(&here, &there, &options);
        there.finish();
        client.finish();

        let (here, there) = (start(Side::Chronorb, "here"), start(Side::OmniOrb, "there"));
        let client = AdaptersClient::start_waiting(&here, &there, &options);
        there.finish();
        client.proceed();
        client.finish();
    }

    #[test]
    fn before_and_after_a_restart() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let there = Server::start_adapters(Side::Chronorb, "there", ANY_PORT, &[]);
        let address = address_to_keep("127.0.0.2");
        let start = || Server::start_adapters(Side::Chronorb, "here", address, &[]);
        let before = start();
        let client = AdaptersClient::start(&before, &there, &["--only", "restart"]);
        before.finish();
        let _after = start();
        client.finish();
    }
}

/// Tests in which a client of chronorb calls two servers: `here` is of chronorb, and `there` is of
/// omniORB. Both must behave the same.
mod chronorb_calls_both {
    use super::*;

    /// Two servers, and their control objects.
    struct Servers {
        here: Control,
        there: Control,
        processes: [Server; 2],
    }

    fn with_each(test: impl Fn(Servers) -> Result<(), Failure>) -> Result<(), Failure> {
        if !require(&[&OMNIORB]) {
            return Ok(());
        }
        for sides in [
            [Side::OmniOrb, Side::Chronorb],
            [Side::Chronorb, Side::OmniOrb],
        ] {
            let orb = Orb::with_config(OrbConfig::default())?;
            let here = Server::start_adapters(sides[0], "here", ANY_PORT, &[]);
            let there = Server::start_adapters(sides[1], "there", ANY_PORT, &[]);
            let tested = test(Servers {
                here: control(&orb, &here)?,
                there: control(&orb, &there)?,
                processes: [here, there],
            });
            tested.map_err(|failure| format!("with {sides:?}: {failure}"))?;
            orb.shutdown(true)?;
        }
        Ok(())
    }

    fn control(orb: &Orb, server: &Server) -> Result<Control, Failure> {
        let object = orb.string_to_object(&server.ior)?;
        Ok(Control::narrow(&object)?.ok_or("no Control")?)
    }

    fn find(control: &Control, adapter: &str, id: &str) -> Result<Item, Failure> {
        Ok(control.find(adapter, id)?.ok_or("nil")?)
    }

    fn activated(control: &Control, adapter: &str, id: &str) -> Result<Item, Failure> {
        control.activate(adapter, id)?;
        find(control, adapter, id)
    }

    /// Returns the exception of a refused call, which must not have been started.
    fn refusal(item: &Item) -> (SystemExceptionKind, u32) {
        let exception = item.name().expect_err("a refusal");
        assert_eq!(exception.completed, CompletionStatus::No, "{exception}");
        (exception.kind, exception.minor)
    }

    const MANAGED: [&str; 3] = ["located", "activated", "lasting"];
    const KINDS: [&str; 5] = ["mapped", "defaulted", "located", "activated", "lasting"];
    const DISCARDED: (SystemExceptionKind, u32) =
        (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);

    #[test]
    fn objects_of_every_adapter_answer_as_themselves() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in KINDS {
                let adapter = format!("{kind}-objects");
                for n in 0..100 {
                    let id = format!("number {n}");
                    let item = match kind {
                        "mapped" => activated(&servers.here, &adapter, &id)?,
                        _ => find(&servers.here, &adapter, &id)?,
                    };
                    assert_eq!(item.name()?, format!("here:{adapter}:{id}"));
                    assert!(item.as_object().is_a(Item::REPOSITORY_ID)?);
                    assert!(!item.as_object().non_existent()?);
                }
            }
            Ok(())
        })
    }

    #[test]
    fn exceptions_of_servant_managers_arrive() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in MANAGED {
                let adapter = format!("{kind}-exceptions");
                let absent = find(&servers.here, &adapter, "absent")?;
                let broken = find(&servers.here, &adapter, "broken")?;
                assert_eq!(refusal(&absent), (SystemExceptionKind::ObjectNotExist, 7));
                assert!(absent.as_object().non_existent()?);
                assert_eq!(refusal(&broken), (SystemExceptionKind::NoResources, 8));
            }
            Ok(())
        })
    }

    #[test]
    fn a_forwarded_client_stays_until_the_target_is_gone() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in MANAGED {
                let adapter = format!("{kind}-forwarding");
                let item = find(&servers.here, &adapter, "a")?;
                let target = activated(&servers.there, "mapped-targets", kind)?;
                servers.here.forward(&adapter, "a", Some(&target))?;
                assert_eq!(item.name()?, format!("there:mapped-targets:{kind}"));
                servers.here.forward(&adapter, "a", None)?;
                servers.here.take_events(&adapter)?;
                assert_eq!(item.name()?, format!("there:mapped-targets:{kind}"));
                assert_eq!(servers.here.take_events(&adapter)?, [""; 0]);

                servers.there.deactivate("mapped-targets", kind)?;
                assert_eq!(item.name()?, format!("here:{adapter}:a"));
            }
            Ok(())
        })
    }

    #[test]
    fn a_client_comes_back_from_a_target_that_discards() -> Result<(), Failure> {
        with_each(|servers| {
            let item = find(&servers.here, "located-discarding", "a")?;
            let target = find(&servers.there, "defaulted-discarding", "a")?;
            servers
                .here
                .forward("located-discarding", "a", Some(&target))?;
            assert_eq!(item.name()?, "there:defaulted-discarding:a");
            servers.here.forward("located-discarding", "a", None)?;
            let there = &servers.there;
            there.set_state("defaulted-discarding", State::Discarding)?;
            assert_eq!(item.name()?, "here:located-discarding:a");
            Ok(())
        })
    }

    #[test]
    fn a_client_comes_back_from_a_server_that_has_ended() -> Result<(), Failure> {
        with_each(|servers| {
            let item = find(&servers.here, "located-loss", "a")?;
            let target = find(&servers.there, "defaulted-loss", "a")?;
            servers.here.forward("located-loss", "a", Some(&target))?;
            assert_eq!(item.name()?, "there:defaulted-loss:a");
            servers.here.forward("located-loss", "a", None)?;
            servers.there.shutdown()?;
            let [_here, there] = servers.processes;
            there.finish();
            assert_eq!(item.name()?, "here:located-loss:a");
            Ok(())
        })
    }

    #[test]
    fn forwards_are_followed_one_after_another() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in MANAGED {
                let adapter = format!("{kind}-chain");
                let item = find(&servers.here, &adapter, "a")?;
                let middle = find(&servers.there, &adapter, "a")?;
                let end = activated(&servers.here, "mapped-ends", kind)?;
                servers.here.forward(&adapter, "a", Some(&middle))?;
                servers.there.forward(&adapter, "a", Some(&end))?;
                assert_eq!(item.name()?, format!("here:mapped-ends:{kind}"));

                servers.there.forward(&adapter, "a", None)?;
                servers.here.deactivate("mapped-ends", kind)?;
                assert_eq!(item.name()?, format!("there:{adapter}:a"));
            }
            Ok(())
        })
    }

    #[test]
    fn a_loop_of_forwards_comes_to_an_end() -> Result<(), Failure> {
        with_each(|servers| {
            let here = find(&servers.here, "located-loop", "a")?;
            let there = find(&servers.there, "located-loop", "a")?;
            servers.here.forward("located-loop", "a", Some(&there))?;
            servers.there.forward("located-loop", "a", Some(&here))?;
            let forward_loop = (SystemExceptionKind::Transient, minor::FORWARD_LOOP);
            assert_eq!(refusal(&here), forward_loop);
            servers.there.forward("located-loop", "a", None)?;
            assert_eq!(here.name()?, "there:located-loop:a");
            Ok(())
        })
    }

    #[test]
    fn a_manager_serves_discards_and_refuses() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in KINDS {
                let adapter = format!("{kind}-states");
                let item = match kind {
                    "mapped" => activated(&servers.here, &adapter, "a")?,
                    _ => find(&servers.here, &adapter, "a")?,
                };
                servers.here.set_state(&adapter, State::Discarding)?;
                assert_eq!(refusal(&item), DISCARDED);
                servers.here.set_state(&adapter, State::Active)?;
                assert_eq!(item.name()?, format!("here:{adapter}:a"));
                servers.here.set_state(&adapter, State::Inactive)?;
                let (kind, _) = refusal(&item);
                assert_eq!(kind, SystemExceptionKind::ObjAdapter);
            }
            Ok(())
        })
    }

    #[test]
    fn a_holding_manager_delays_the_answer() -> Result<(), Failure> {
        with_each(|servers| {
            for kind in ["defaulted", "located", "activated"] {
                let adapter = format!("{kind}-holding");
                let item = find(&servers.here, &adapter, "a")?;
                servers.here.set_state(&adapter, State::Holding)?;
                let (answer, answered) = mpsc::channel();
                std::thread::scope(|threads| {
                    threads.spawn(|| answer.send(item.name()));
                    let early = answered.recv_timeout(Duration::from_millis(200));
                    servers.here.set_state(&adapter, State::Active)?;
                    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
                    assert_eq!(answered.recv()??, format!("here:{adapter}:a"));
                    Ok::<(), Failure>(())
                })?;
            }
            Ok(())
        })
    }

    #[test]
    fn what_is_deactivated_or_destroyed_does_not_exist() -> Result<(), Failure> {
        with_each(|servers| {
            let item = activated(&servers.here, "mapped-ends", "a")?;
            let other = activated(&servers.here, "mapped-ends", "b")?;
            servers.here.deactivate("mapped-ends", "a")?;
            let (kind, _) = refusal(&item);
            assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
            assert!(item.as_object().non_existent()?);
            assert_eq!(other.name()?, "here:mapped-ends:b");

            servers.here.destroy("mapped-ends")?;
            let (kind, _) = refusal(&other);
            assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
            let successor = activated(&servers.here, "mapped-ends", "b")?;
            assert_eq!(successor.name()?, "here:mapped-ends:b");
            let (kind, _) = refusal(&other);
            assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
            Ok(())
        })
    }

    #[test]
    fn a_persistent_reference_is_good_after_a_restart() -> Result<(), Failure> {
        if !require(&[&OMNIORB]) {
            return Ok(());
        }
        for side in [Side::OmniOrb, Side::Chronorb] {
            let orb = Orb::with_config(OrbConfig::default())?;
            let address = address_to_keep("127.0.0.3");
            let start = || Server::start_adapters(side, "here", address, &[]);
            let before = start();
            let here = control(&orb, &before)?;
            let adapter = "lasting-restart/lasting-below";
            let item = find(&here, adapter, "a")?;
            let transient = activated(&here, "mapped-restart", "a")?;
            assert_eq!(item.name()?, format!("here:{adapter}:a"));
            assert_eq!(transient.name()?, "here:mapped-restart:a");

            here.shutdown()?;
            before.finish();
            let _after = start();
            assert_eq!(item.name()?, format!("here:{adapter}:a"));
            let events = here.take_events(adapter)?;
            assert_eq!(events, ["unknown_adapter", "incarnate a"]);
            let again = find(&here, adapter, "a")?;
            assert_eq!(again.as_object().ior(), item.as_object().ior());
            here.activate("mapped-restart", "a")?;
            let (kind, _) = refusal(&transient);
            assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
            orb.shutdown(true)?;
        }
        Ok(())
    }
}

/// Returns the address of a server that is restarted: a host of the loopback interface that no
/// other test uses, so that the port stays free while the server is down.
fn address_to_keep(host: &str) -> (&str, u16) {
    (host, free_port(host))
}
