//! The conformance table of access rules: protocol, identity, rules and answer, with real
//! certificates and users.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use chronorb_orb::{
    Incident, Object, Orb, OrbConfig, SecurityProfile, SystemException, SystemExceptionKind,
    TransportRules, minor,
};
use chronorb_transport::parse_endpoints;

use crate::support::descriptors::uncopied;
use crate::support::{ProbeSkeleton, add, name_of, orb_with};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Answer {
    Served,
    /// The server closes the connection.
    Closed,
    /// The client does not connect, or does not stay connected.
    Forbidden,
}

fn rules(texts: &[&str]) -> TransportRules {
    let parsed = texts.iter().map(|text| text.parse());
    let parsed: Result<_, _> = parsed.collect();
    parsed.unwrap_or_else(|error: chronorb_orb::RuleError| panic!("{texts:?}: {error}"))
}

/// Returns how often an ORB has recorded an incident.
fn noted(orb: &Orb, incident: Incident) -> u64 {
    let counts = orb.snapshot().incidents;
    let count = counts.iter().find(|(known, _)| *known == incident);
    count.expect("all are counted").1
}

/// Returns a server with these endpoints and rules, and a reference to it as text.
fn server(
    endpoints: &str,
    texts: &[&str],
    configure: impl FnOnce(&mut OrbConfig),
) -> (Orb, String) {
    let server = orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
        config.server_transport_rules = rules(texts);
        configure(config);
    });
    let root = server.root_poa().expect("it is new");
    let object = root.serve(ProbeSkeleton(Default::default()));
    let text = server.object_to_string(&object.expect("the endpoints open"));
    root.manager().activate().expect("it was not deactivated");
    (server, text)
}

fn client(texts: &[&str], configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.client_transport_rules = rules(texts);
        configure(config);
    })
}

fn answer_of(object: &Object) -> Answer {
    match add(object, 1, 2) {
        Ok(3) => Answer::Served,
        Err(REFUSED_BY_RULES) => Answer::Forbidden,
        Err(lost)
            if matches!(
                lost.kind,
                SystemExceptionKind::CommFailure | SystemExceptionKind::Transient
            ) =>
        {
            Answer::Closed
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the outcome of a call, with its incidents.
fn try_call(server: Orb, reference: &str, client: Orb) -> Answer {
    let object = client.string_to_object(reference).expect("it reads");
    let answer = answer_of(&object);
    assert_eq!(
        noted(&server, Incident::PeerRefused) > 0,
        answer == Answer::Closed
    );
    assert_eq!(
        noted(&client, Incident::AddressRefused) > 0,
        answer == Answer::Forbidden
    );
    client.shutdown(true).expect("it serves nothing");
    server.shutdown(true).expect("it serves nothing more");
    answer
}

const REFUSED_BY_RULES: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::REFUSED_BY_RULES);
const IIOP: &str = "iiop://127.0.0.1:0";

#[test]
fn servers_judge_peers_by_address_and_protocol() {
    use Answer::{Closed, Served};
    for (endpoint, texts, answer) in [
        (IIOP, &[][..], Served),
        (IIOP, &["127.0.0.0/8 tcp"], Served),
        (IIOP, &["127.0.0.1/8 tcp,unix"], Served),
        (IIOP, &["localhost iiop"], Served),
        (IIOP, &["* any"], Served),
        (IIOP, &["10.0.0.0/8 none", "* tcp"], Served),
        (IIOP, &["10.0.0.0/8 tcp"], Closed),
        (IIOP, &["* none"], Closed),
        (IIOP, &["127.0.0.1 none", "* any"], Closed),
        (IIOP, &["* ssl,unix"], Closed),
        // Plain IIOP proves no identity.
        (IIOP, &["uid=self any"], Closed),
        (IIOP, &["san=radar.example any"], Closed),
        #[cfg(feature = "uiop")]
        ("uiop://", &["uid=self unix"], Served),
        #[cfg(feature = "uiop")]
        ("uiop://", &["localhost uiop"], Served),
        #[cfg(feature = "uiop")]
        ("uiop://", &["127.0.0.1/8 tcp,unix"], Served),
        #[cfg(feature = "uiop")]
        ("uiop://", &["* tcp"], Closed),
        #[cfg(feature = "uiop")]
        ("uiop://", &["* shmiop"], Closed),
        #[cfg(feature = "uiop")]
        ("uiop://", &["uid=4294967294 unix"], Closed),
        #[cfg(feature = "shmiop")]
        ("shmiop://", &["uid=self unix"], Served),
        #[cfg(feature = "shmiop")]
        ("shmiop://", &["uid=4294967294 unix"], Closed),
        #[cfg(feature = "diop")]
        ("diop://127.0.0.1:0", &["localhost diop"], Served),
    ] {
        let (server, reference) = server(endpoint, texts, |_| {});
        let answered = try_call(server, &reference, client(&[], |_| {}));
        assert_eq!(answered, answer, "{endpoint} {texts:?}");
    }
}

#[test]
fn clients_judge_addresses_before_they_connect() {
    use Answer::{Forbidden, Served};
    for (endpoint, texts, answer) in [
        (IIOP, &["127.0.0.0/8 tcp"][..], Served),
        (IIOP, &["localhost tcp"], Served),
        (IIOP, &["10.0.0.0/8 tcp"], Forbidden),
        (IIOP, &["* ssl,unix"], Forbidden),
        (IIOP, &["uid=self any"], Forbidden),
        #[cfg(feature = "uiop")]
        ("uiop://", &["uid=self unix"], Served),
        #[cfg(feature = "uiop")]
        ("uiop://", &["* tcp"], Forbidden),
        // The user is known once the connection exists.
        #[cfg(feature = "uiop")]
        ("uiop://", &["uid=4294967294 unix"], Forbidden),
        // One address is skipped, and the other is not.
        #[cfg(feature = "uiop")]
        ("uiop://;iiop://127.0.0.1:0", &["* tcp"], Served),
        #[cfg(feature = "uiop")]
        ("uiop://;iiop://127.0.0.1:0", &["* unix"], Served),
    ] {
        let (server, reference) = server(endpoint, &[], |_| {});
        let client = client(texts, |_| {});
        let object = client.string_to_object(&reference).expect("it reads");
        assert_eq!(answer_of(&object), answer, "{endpoint} {texts:?}");
        client.shutdown(true).expect("it serves nothing");
        server.shutdown(true).expect("it serves nothing more");
    }
}

#[test]
fn nobody_connects_to_an_address_that_the_rules_refuse() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let client = client(&["10.0.0.0/8 tcp"], |_| {});
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("corbaloc:iiop:{host}:{port}/any");
        let object = client.string_to_object(&url).expect("it reads");
        assert_eq!(answer_of(&object), Answer::Forbidden, "{host}");
    }
    listener.set_nonblocking(true).expect("it can be so");
    let none = listener.accept().expect_err("there is no connection");
    assert_eq!(none.kind(), std::io::ErrorKind::WouldBlock);
    // A port at which no socket listens looks the same.
    drop(listener);
    let url = format!("corbaloc:iiop:127.0.0.1:{port}/any");
    let object = client.string_to_object(&url).expect("it reads");
    assert_eq!(answer_of(&object), Answer::Forbidden);
}

#[cfg(feature = "ssliop")]
#[test]
fn certificates_are_judged_by_subject_and_alternative_names() {
    use Answer::{Closed, Forbidden, Served};
    use chronorb_transport::tls::{TlsSettings, Verify};

    use crate::certificates::Authority;

    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let own = authority.settings("server", &["127.0.0.1"]);
    let radar = authority.settings("radar", &["radar.example"]);
    let sonar = authority.settings("sonar", &["sonar.example"]);
    let anonymous = TlsSettings {
        authority: Some(authority.file()),
        ..TlsSettings::default()
    };
    let nothing: &[&str] = &[];
    for (case, identity, of_server, of_client, answer) in [
        (
            "radar",
            &radar,
            &["san=radar.example ssl"][..],
            nothing,
            Served,
        ),
        ("sonar", &sonar, &["san=radar.example ssl"], nothing, Closed),
        ("radar", &radar, &["subject=CN=radar ssl"], nothing, Served),
        ("sonar", &sonar, &["subject=CN=radar ssl"], nothing, Closed),
        (
            "sonar",
            &sonar,
            &["subject=CN=radar none", "* ssl"],
            nothing,
            Served,
        ),
        (
            "radar",
            &radar,
            &["subject=CN=radar none", "* ssl"],
            nothing,
            Closed,
        ),
        (
            "radar",
            &radar,
            &["10.0.0.0/8 san=radar.example ssl"],
            nothing,
            Closed,
        ),
        ("radar", &radar, &["* tcp"], nothing, Closed),
        ("anonymous", &anonymous, &["* ssl"], nothing, Served),
        (
            "anonymous",
            &anonymous,
            &["san=radar.example ssl"],
            nothing,
            Closed,
        ),
        // The server's certificate is for 127.0.0.1.
        ("radar", &radar, &[], &["san=ip:127.0.0.1 ssl"], Served),
        ("radar", &radar, &[], &["subject=CN=server ssl"], Served),
        ("radar", &radar, &[], &["subject=CN=other ssl"], Forbidden),
        (
            "radar",
            &radar,
            &[],
            &["san=dns:other.example ssl", "* none"],
            Forbidden,
        ),
        ("radar", &radar, &[], &["* tcp,unix"], Forbidden),
    ] {
        let verify = match case {
            "anonymous" => Verify::Peer,
            _ => Verify::Mutual,
        };
        let (server, reference) = server("ssliop://127.0.0.1:0", of_server, |config| {
            config.ssl = TlsSettings {
                verify,
                ..own.clone()
            };
        });
        let client = client(of_client, |config| config.ssl = identity.clone());
        let answered = try_call(server, &reference, client);
        assert_eq!(answered, answer, "{case} {of_server:?} {of_client:?}");
    }
}

/// Another user calls where this process may become one (root), else the same user.
#[cfg(feature = "uiop")]
#[test]
fn users_are_told_apart() {
    const REFERENCE: &str = "CHRONORB_TEST_REFERENCE";
    const REFUSED: i32 = 7;

    if let Some(reference) = std::env::var_os(REFERENCE) {
        let client = client(&[], |_| {});
        let reference = reference.to_str().expect("it is ASCII");
        let object = client.string_to_object(reference).expect("it reads");
        std::process::exit(match answer_of(&object) {
            Answer::Served => 0,
            _ => REFUSED,
        });
    }
    let own = rustix::process::geteuid().as_raw();
    let other = if own == 0 { 65534 } else { own };
    let directory = tempfile::tempdir().expect("a directory");
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), all).expect("it is ours");
    // Other users have no access to the directory of this program.
    let program = directory.path().join("program");
    let _copies = uncopied();
    std::fs::copy(std::env::current_exe().expect("it is known"), &program).expect("there is room");
    for (rule, is_served) in [
        (format!("uid={other} unix"), true),
        (format!("gid={other} unix"), own == 0),
        ("uid=self unix".to_owned(), own == other),
        (format!("uid={} unix", other + 1), false),
        ("* unix".to_owned(), true),
    ] {
        let path = directory.path().join("socket");
        let endpoint = format!("uiop://{}|mode=0666", path.display());
        let (server, reference) = server(&endpoint, &[&rule], |_| {});
        let mut command = Command::new(&program);
        command
            .args(["--exact", name_of(users_are_told_apart)])
            .env(REFERENCE, reference)
            .current_dir(directory.path());
        if own == 0 {
            command.uid(other).gid(other);
        }
        let ended = command.output().expect("it starts");
        let code = ended.status.code();
        let said = String::from_utf8_lossy(&ended.stderr);
        let expected = if is_served { 0 } else { REFUSED };
        assert_eq!(code, Some(expected), "{rule}: {said}");
        let refused = noted(&server, Incident::PeerRefused);
        assert_eq!(refused == 0, is_served, "{rule}");
        server.shutdown(true).expect("it serves nothing more");
    }
}

#[test]
fn rules_are_settings_and_name_what_is_wrong_with_them() {
    let read = |args: &[&str]| {
        let mut args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        OrbConfig::read(&mut args)
    };
    let config = read(&[
        "-ORBserverTransportRule",
        "localhost any",
        "-ORBServerTransportRule",
        "* none",
        "-ORBClientTransportRule",
        "* tcp",
    ])
    .expect("they are rules");
    let texts: Vec<_> = config
        .server_transport_rules
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(texts, ["localhost any", "* none"]);
    assert_eq!(config.client_transport_rules.iter().count(), 1);
    let error = read(&["-ORBServerTransportRule", "10.0.0.0/8 udp tcp"]).expect_err("it is none");
    assert_eq!(
        error.to_string(),
        "command line: -ORBServerTransportRule: at character 12: \"udp\" is no condition; expected \
        a condition: *, localhost, an address such as 10.0.0.0/8 or fd00::/8, subject=, san=, uid= \
        or gid="
    );
    let mut unknown = OrbConfig::default();
    unknown.client_transport_rules = rules(&["* ssl", "* tcpp"]);
    let error = Orb::with_config(unknown).expect_err("there is no such protocol");
    assert!(
        error
            .to_string()
            .contains("-ORBClientTransportRule: rule \"* tcpp\": there is no protocol \"tcpp\""),
        "{error}"
    );
}

/// Returns the error of settings under the secure profile.
fn refusal(configure: impl FnOnce(&mut OrbConfig)) -> String {
    let mut config = OrbConfig::default();
    config.profile = SecurityProfile::Secure;
    configure(&mut config);
    match Orb::with_config(config) {
        Ok(orb) => {
            orb.shutdown(true).expect("it serves nothing");
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(feature = "uiop")]
#[test]
fn the_secure_profile_refuses_what_it_cannot_keep() {
    let at = |config: &mut OrbConfig, endpoints: &str| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
    };
    assert_eq!(refusal(|_| {}), "");
    let secure = |config: &mut OrbConfig| {
        at(config, "uiop://");
        config.server_transport_rules = rules(&["uid=self unix"]);
    };
    assert_eq!(refusal(secure), "");
    for (configure, problem) in [
        (
            (|config: &mut OrbConfig| {
                config.listen_endpoints = parse_endpoints("uiop://;iiop://:0").expect("endpoints");
            }) as fn(&mut OrbConfig),
            "-ORBProfile secure: -ORBListenEndpoints: peers prove nothing at \"iiop://:0\"",
        ),
        (
            |config| config.protocols = vec!["uiop".to_owned(), "iiop".to_owned()],
            "-ORBProtocols: peers prove nothing by iiop; use ssliop, uiop or shmiop",
        ),
        (
            |config| {
                config.listen_endpoints = parse_endpoints("uiop://").expect("endpoints");
            },
            "-ORBServerTransportRule: it permits no peer",
        ),
        (
            |config| config.server_transport_rules = rules(&["localhost any"]),
            "the rule \"localhost any\" permits Unix-domain peers of any user; add uid=self",
        ),
        (
            |config| config.client_transport_rules = rules(&["* unix"]),
            "-ORBClientTransportRule: the rule \"* unix\" permits",
        ),
        #[cfg(feature = "ssliop")]
        (
            |config| config.ssl.verify = chronorb_transport::tls::Verify::None,
            "-ORBSSLVerify: it has to be mutual",
        ),
    ] {
        let refused = refusal(configure);
        assert!(refused.contains(problem), "{problem}: {refused}");
    }
}

#[cfg(feature = "uiop")]
#[test]
fn the_secure_profile_serves_its_own_user_and_nobody_else() {
    let secure = |config: &mut OrbConfig| {
        config.profile = "secure".parse().expect("there is one");
    };
    let (server, reference) = server("uiop://", &["uid=self unix"], secure);
    let client = client(&[], |config| {
        secure(config);
        config.listen_endpoints = Vec::new();
    });
    let object = client.string_to_object(&reference).expect("it reads");
    assert_eq!(answer_of(&object), Answer::Served);
    // The profile does not include plain IIOP.
    assert!(client.string_to_object("corbaloc::127.0.0.1/x").is_err());
    client.shutdown(true).expect("it serves nothing");
    server.shutdown(true).expect("it serves nothing more");
}
