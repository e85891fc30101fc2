//! chronorb and omniORB call each other, and chronorb itself, in every version of GIOP.
//!
//! The checks are those of the clients: see the folder `interop`.

use std::error::Error;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_interop::cos_naming::naming_context::{NotFoundBuf, NotFoundReason};
use chronorb_interop::cos_naming::{
    BindErrorBuf, BindingType, NameComponent, NamingContext, NamingContextExt, ResolveErrorBuf,
};
use chronorb_interop::idl::{Echo, Hub, Relations};

use crate::support::peers::{OMNIORB, TSHARK, require};
use crate::support::programs::{NameServer, Server, Side, run_client, run_client_recorded};

/// Makes one side's client check the other side's server, both limited to a version of GIOP.
fn check(client: Side, server: Side, version: &str, options: &[&str]) {
    if [client, server].contains(&Side::OmniOrb) && !require(&[&OMNIORB]) {
        return;
    }
    let server = Server::start(server, &[server.max_giop_version(), version]);
    let options = [&[client.max_giop_version(), version], options].concat();
    run_client(client, &server.ior, &options);
}

// omniORB agrees on no code set for wide characters below GIOP 1.2.

mod omniorb_calls_chronorb {
    use super::*;

    #[test]
    fn in_giop_1_0() {
        check(Side::OmniOrb, Side::Chronorb, "1.0", &["--no-wide"]);
    }

    #[test]
    fn in_giop_1_1() {
        let options = ["--no-wide", "--skip", "latin1-chars"];
        check(Side::OmniOrb, Side::Chronorb, "1.1", &options);
    }

    // The code set agreed on is UTF-8, in which a `char` ends at 0x7f.
    #[test]
    fn in_giop_1_2() {
        let options = ["--skip", "latin1-chars"];
        check(Side::OmniOrb, Side::Chronorb, "1.2", &options);
    }

    #[test]
    fn with_utf8_as_its_native_code_set() {
        check(Side::OmniOrb, Side::Chronorb, "1.2", &["--utf8"]);
    }

    #[test]
    fn naming_the_target_by_its_profile() {
        let options = ["--utf8", "-ORBgiopTargetAddressMode", "1"];
        check(Side::OmniOrb, Side::Chronorb, "1.2", &options);
    }

    #[test]
    fn naming_the_target_by_its_reference() {
        let options = ["--utf8", "-ORBgiopTargetAddressMode", "2"];
        check(Side::OmniOrb, Side::Chronorb, "1.2", &options);
    }
}

mod chronorb_calls_omniorb {
    use super::*;

    // omniORB takes a `long double` for one of the platform, and gives back 10 of the 16 octets.

    #[test]
    fn in_giop_1_0() {
        let options = ["--no-wide", "--skip", "precise"];
        check(Side::Chronorb, Side::OmniOrb, "1.0", &options);
    }

    #[test]
    fn in_giop_1_1() {
        let options = ["--no-wide", "--skip", "precise"];
        check(Side::Chronorb, Side::OmniOrb, "1.1", &options);
    }

    #[test]
    fn in_giop_1_2() {
        check(Side::Chronorb, Side::OmniOrb, "1.2", &["--skip", "precise"]);
    }

    #[test]
    fn with_utf8_as_its_native_code_set() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let server = Server::start(Side::OmniOrb, &["-ORBnativeCharCodeSet", "UTF-8"]);
        let options = ["--utf8", "--skip", "precise"];
        run_client(Side::Chronorb, &server.ior, &options);
    }

    #[test]
    fn speaking_less_than_the_server_could() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let server = Server::start(Side::OmniOrb, &[]);
        let options = [
            "--no-wide",
            "--skip",
            "precise",
            "-ORBMaxGIOPVersion",
            "1.0",
        ];
        run_client(Side::Chronorb, &server.ior, &options);
    }
}

mod chronorb_calls_chronorb {
    use super::*;

    #[test]
    fn in_giop_1_0() {
        check(Side::Chronorb, Side::Chronorb, "1.0", &["--no-wide"]);
    }

    #[test]
    fn in_giop_1_1() {
        check(Side::Chronorb, Side::Chronorb, "1.1", &["--utf8"]);
    }

    #[test]
    fn in_giop_1_2() {
        check(Side::Chronorb, Side::Chronorb, "1.2", &["--utf8"]);
    }

    #[test]
    fn speaking_less_than_the_server_could() {
        let server = Server::start(Side::Chronorb, &[]);
        let options = ["--no-wide", "-ORBMaxGIOPVersion", "1.0"];
        run_client(Side::Chronorb, &server.ior, &options);
        let options = ["--utf8", "-ORBMaxGIOPVersion", "1.1"];
        run_client(Side::Chronorb, &server.ior, &options);
    }
}

/// References contain socket files as in omniORB: a component in the profile of IIOP.
mod by_unix_domain_sockets {
    use super::*;

    fn check_at_file(client: Side, server: Side, options: &[&str]) {
        if !require(&[&OMNIORB]) {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let server = Server::start_at_file(server, &folder.path().join("hub"));
        // There are no URLs with a path that both sides know.
        let options = [&["--skip", "corbaloc"], options].concat();
        run_client(client, &server.ior, &options);
    }

    #[test]
    fn omniorb_calls_chronorb() {
        let options = ["--skip", "latin1-chars"];
        check_at_file(Side::OmniOrb, Side::Chronorb, &options);
    }

    #[test]
    fn chronorb_calls_omniorb() {
        // References of omniORB's server do not prove a host. A rule permits its own user's
        // sockets.
        let options = ["-ORBClientTransportRule", "uid=self unix"];
        let options = [&["--skip", "precise"], &options[..]].concat();
        check_at_file(Side::Chronorb, Side::OmniOrb, &options);
    }
}

/// chronorb sends fragments with GIOP 1.2, and whole messages with older versions.
mod in_fragments_of_chronorb {
    use super::*;

    const SIZES: [&str; 2] = ["200", "1000"];

    fn check_sizes(
        client: Side,
        server: Side,
        of_client: &[&'static str],
        of_server: &[&'static str],
    ) {
        if [client, server].contains(&Side::OmniOrb) && !require(&[&OMNIORB]) {
            return;
        }
        for size in SIZES {
            let fragments = ["-ORBFragmentSize", size];
            let of_side = |side, options: &[&'static str]| match side {
                Side::Chronorb => [options, &fragments].concat(),
                Side::OmniOrb => options.to_vec(),
            };
            let server = Server::start(server, &of_side(server, of_server));
            run_client(client, &server.ior, &of_side(client, of_client));
        }
    }

    #[test]
    fn omniorb_is_called() {
        check_sizes(Side::Chronorb, Side::OmniOrb, &["--skip", "precise"], &[]);
    }

    #[test]
    fn omniorb_is_answered() {
        // omniORB aborts if one fragment has the first half of a `long double`, and the next one
        // the second.
        let options = ["--skip", "latin1-chars", "--skip", "precise"];
        check_sizes(Side::OmniOrb, Side::Chronorb, &options, &[]);
    }

    #[test]
    fn chronorb_is_called_and_answers() {
        check_sizes(Side::Chronorb, Side::Chronorb, &["--utf8"], &[]);
    }

    #[test]
    fn omniorb_is_answered_in_giop_1_1() {
        let options = [
            "--no-wide",
            "--skip",
            "latin1-chars",
            "-ORBmaxGIOPVersion",
            "1.1",
        ];
        check_sizes(Side::OmniOrb, Side::Chronorb, &options, &[]);
    }
}

/// The traffic of a whole run has no malformed packet, and large messages were fragmented.
mod recorded_traffic_is_well_formed {
    use super::*;

    #[test]
    fn of_omniorb_calling_chronorb() {
        if !require(&[&OMNIORB, &TSHARK]) {
            return;
        }
        let server = Server::start(Side::Chronorb, &[]);
        // tshark expects padding before the reference in the reply to a locate request that is
        // forwarded, which neither the standard nor omniORB puts there.
        let options = ["--skip", "latin1-chars", "--skip", "objects"];
        let counts = run_client_recorded(Side::OmniOrb, &server, &options);
        assert!(!counts.contains("fragments 0"), "{counts}");
        assert!(!counts.contains("locate requests 0"), "{counts}");
    }

    #[test]
    fn of_chronorb_calling_omniorb() {
        if !require(&[&OMNIORB, &TSHARK]) {
            return;
        }
        let server = Server::start(Side::OmniOrb, &[]);
        let counts = run_client_recorded(Side::Chronorb, &server, &["--skip", "precise"]);
        assert!(!counts.contains("fragments 0"), "{counts}");
    }
}

#[test]
fn a_client_ends_the_server_of_either_orb() {
    if !require(&[&OMNIORB]) {
        return;
    }
    for client in [Side::Chronorb, Side::OmniOrb] {
        for server in [Side::Chronorb, Side::OmniOrb] {
            let server = Server::start(server, &[]);
            run_client(client, &server.ior, &["--only", "basics", "--shutdown"]);
            server.finish();
        }
    }
}

/// Returns an ORB in this process.
fn orb() -> Orb {
    Orb::with_config(OrbConfig::default()).expect("an ORB")
}

fn hub(orb: &Orb, server: &Server) -> Result<Hub, Box<dyn Error>> {
    let object = orb.string_to_object(&server.ior)?;
    Ok(Hub::narrow(&object)?.ok_or("no Hub")?)
}

#[test]
fn each_server_calls_an_object_of_the_other() -> Result<(), Box<dyn Error>> {
    if !require(&[&OMNIORB]) {
        return Ok(());
    }
    let orb = orb();
    let servers = [Side::Chronorb, Side::OmniOrb].map(|side| Server::start(side, &[]));
    let [ours, theirs] = [hub(&orb, &servers[0])?, hub(&orb, &servers[1])?];
    assert_eq!(ours.orb_name()?, "chronorb");
    assert_eq!(theirs.orb_name()?, "omniORB");
    for (caller, called) in [(&ours, &theirs), (&theirs, &ours)] {
        let relations: Relations = caller.get_relations()?.ok_or("nil")?;
        let echo: Echo = called.get_echo()?.ok_or("nil")?;
        assert_eq!(relations.call(Some(&echo), 7)?, 7);
        assert_eq!(relations.call_octets(Some(&echo), &[5; 100_000])?, 100_000);
        assert!(relations.ask_is_a(Some(echo.as_object()), Echo::REPOSITORY_ID)?);
        assert!(!relations.ask_is_a(Some(echo.as_object()), Hub::REPOSITORY_ID)?);
        // Through a string, and through the server's ORB.
        let text = relations.to_text(Some(echo.as_object()))?;
        let same = relations.from_text(&text)?.ok_or("nil")?;
        let same = Echo::narrow(&same)?.ok_or("no Echo")?;
        assert_eq!(same.echo_long(-1, &mut 2)?, (-1, 2));
    }
    Ok(orb.shutdown(true)?)
}

mod through_omniorbs_name_server {
    use super::*;

    #[test]
    fn objects_of_both_orbs_are_found_by_corbaname() {
        if !require(&[&OMNIORB]) {
            return;
        }
        let names = NameServer::start();
        let init_ref = format!("NameService={}", names.url);
        for server in [Side::Chronorb, Side::OmniOrb] {
            let options = ["--bind", "interop.test/hub", "-ORBInitRef", &init_ref];
            // `bind` makes no contexts on the way.
            make_context(&names, "interop", "test");
            let _server = Server::start(server, &options);
            let url = names.url.replacen("corbaloc", "corbaname", 1) + "#interop.test/hub";
            for client in [Side::Chronorb, Side::OmniOrb] {
                run_client(client, &url, &["--only", "basics"]);
            }
        }
    }

    fn make_context(names: &NameServer, id: &str, kind: &str) {
        let orb = orb();
        let root = orb.string_to_object(&names.url).expect("a URL");
        let root = NamingContext::unchecked_narrow(&root);
        // The second time it exists.
        let _ = root.bind_new_context(&[NameComponent { id, kind }]);
        orb.shutdown(true).expect("shut down");
    }

    #[test]
    fn an_object_of_omniorb_is_resolved_and_called() -> Result<(), Box<dyn Error>> {
        if !require(&[&OMNIORB]) {
            return Ok(());
        }
        let names = NameServer::start();
        let init_ref = format!("NameService={}", names.url);
        let options = ["--bind", "hub", "-ORBInitRef", &init_ref];
        let _server = Server::start(Side::OmniOrb, &options);

        let orb = orb();
        let root = orb.string_to_object(&names.url)?;
        let root = NamingContextExt::narrow(&root)?.ok_or("no NamingContextExt")?;
        let name = [NameComponent {
            id: "hub",
            kind: "",
        }];
        let hub = root.resolve(&name)?.ok_or("nil")?;
        let hub = Hub::narrow(&hub)?.ok_or("no Hub")?;
        assert_eq!(hub.orb_name()?, "omniORB");
        assert_eq!(root.resolve_str("hub")?.ok_or("nil")?, *hub.as_object());
        Ok(orb.shutdown(true)?)
    }

    #[test]
    fn contexts_and_objects_are_bound_listed_and_unbound() -> Result<(), Box<dyn Error>> {
        if !require(&[&OMNIORB]) {
            return Ok(());
        }
        let names = NameServer::start();
        let orb = orb();
        let root = orb.string_to_object(&names.url)?;
        let root = NamingContextExt::narrow(&root)?.ok_or("no NamingContextExt")?;
        let component = |id| NameComponent { id, kind: "kind" };
        let (context, object) = (component("context"), component("object"));

        let inner = root.bind_new_context(&[context])?.ok_or("nil")?;
        inner.bind(&[object], Some(root.as_object()))?;
        let again = inner.bind(&[object], Some(root.as_object()));
        assert!(
            matches!(again, Err(BindErrorBuf::AlreadyBound(_))),
            "{again:?}"
        );

        assert_eq!(
            root.to_string(&[context, object])?,
            "context.kind/object.kind"
        );
        let found = root.resolve_str("context.kind/object.kind")?.ok_or("nil")?;
        assert!(NamingContextExt::narrow(&found)?.is_some());

        let (bindings, rest) = root.list(10)?;
        assert_eq!(bindings.len(), 1);
        assert_eq!(bindings[0].binding_type, BindingType::Ncontext);
        assert_eq!(bindings[0].binding_name[0].as_view(), context);
        assert!(rest.is_none());
        // An empty list: all of them by the iterator.
        let (bindings, rest) = root.list(0)?;
        assert!(bindings.is_empty());
        let rest = rest.ok_or("nil")?;
        let (more, binding) = rest.next_one()?;
        assert!(more);
        assert_eq!(binding.binding_name[0].as_view(), context);
        assert!(!rest.next_one()?.0);
        rest.destroy()?;

        inner.unbind(&[object])?;
        let missing = root.resolve(&[context, object]);
        let why = NotFoundReason::MissingNode;
        let rest_of_name = vec![object.to_owned()];
        assert_eq!(
            missing,
            Err(ResolveErrorBuf::NotFound(NotFoundBuf { why, rest_of_name }))
        );
        inner.destroy()?;
        root.unbind(&[context])?;
        Ok(orb.shutdown(true)?)
    }
}
