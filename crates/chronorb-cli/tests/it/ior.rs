//! `chronorb ior`, with references as bytes and with a server of this process.

use std::path::Path;
use std::process::Output;

use chronorb_cdr::Decoder;
use chronorb_giop::codesets::CodeSetComponentInfo;
use chronorb_giop::{
    Component, IiopProfile, Ior, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TaggedComponent,
    TaggedProfile, Version,
};
use chronorb_orb::codegen::v1::bad_operation;
use chronorb_orb::{Call, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException};

use crate::support::{chronorb, chronorb_reading, stderr, stdout};

fn run(arguments: &[&str]) -> Output {
    chronorb(Path::new("."), arguments)
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(stdout(output)).expect("JSON")
}

const CLOCK: &str = "IDL:Clock:1.0";

/// An object without operations of its own.
struct Clock;

impl Skeleton for Clock {
    fn repository_id(&self) -> &'static str {
        CLOCK
    }

    fn is_a(&self, id: &str) -> bool {
        id == CLOCK
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        Err(bad_operation())
    }
}

/// A server with a clock, which has the plain key `Clock` too.
struct Server {
    orb: Orb,
    ior: String,
    url: String,
}

impl Server {
    fn start() -> Self {
        let mut config = OrbConfig::default();
        let endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0");
        config.listen_endpoints = endpoints.expect("an endpoint");
        let orb = Orb::with_config(config).expect("an ORB");
        let root = orb.root_poa().expect("the ORB runs");
        let clock = root.serve(Clock).expect("it activates");
        root.manager().activate().expect("it was not deactivated");
        orb.register_initial_reference("Clock", &clock)
            .expect("the name is free");
        let profile = IiopProfile::decode(&clock.ior().profiles[0].data).expect("our own");
        Self {
            ior: orb.object_to_string(&clock),
            url: format!("corbaloc::1.2@127.0.0.1:{}/", profile.port),
            orb,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true);
    }
}

/// A reference with one profile of IIOP.
fn reference(port: u16, version: Version, components: Vec<TaggedComponent>) -> String {
    let profile = IiopProfile {
        version,
        host: "127.0.0.1".to_owned(),
        port,
        object_key: b"Radar".to_vec(),
        components,
    };
    Ior {
        type_id: CLOCK.to_owned(),
        profiles: vec![profile.tagged().expect("it fits")],
    }
    .to_string()
}

fn component(tag: u32, data: &[u8]) -> TaggedComponent {
    TaggedComponent {
        tag,
        data: data.to_vec(),
    }
}

#[test]
fn components_are_shown_in_words_and_others_in_digits() {
    let code_sets = Component::CodeSets(CodeSetComponentInfo::ours()).tagged();
    let group = [
        &[0, 1, 0, 0, 0, 0, 0, 4][..],
        b"lab\0",
        &[0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 7],
        &[0, 0, 0, 3],
    ]
    .concat();
    let tls = [
        &[0, 0, 0, 0x66, 0, 0x40, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2][..],
        b"h\0",
        &[0x12, 0x34],
    ]
    .concat();
    let components = vec![
        code_sets.expect("it fits"),
        component(0, &[0, 0, 0, 0, 0x54, 0x41, 0x4f, 0]),
        component(25, &[0, 0, 0, 0, 0, 0, 0, 2, b'/', 0]),
        component(27, &group),
        component(28, &[0, 1]),
        component(31, &[0, 0, 0, 3]),
        component(36, &tls),
        component(38, &[0, 2]),
        component(0x1234_5678, &[0, 0xab]),
        component(3, &[0, 0]),
    ];
    let ior = reference(2809, Version::V1_2, components);
    let output = run(&["ior", "decode", &ior]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "interface: IDL:Clock:1.0\n",
        "profile 1: IIOP 1.2 at 127.0.0.1:2809\n",
        "  key: \"Radar\"\n",
        "  CODE_SETS: char UTF-8, converts to ISO 8859-1; wchar UTF-16\n",
        "  ORB_TYPE: TAO (0x54414f00)\n",
        "  JAVA_CODEBASE: /\n",
        "  FT_GROUP: object group 7 of the domain \"lab\", version 3, fault tolerance 1.0\n",
        "  FT_PRIMARY: the primary member\n",
        "  OTS_POLICY: ADAPTS: calls may have a transaction\n",
        "  TLS_SEC_TRANS: TLS at h:4660, supports Integrity Confidentiality \
         EstablishTrustInTarget EstablishTrustInClient, requires EstablishTrustInClient\n",
        "  RMI_CUSTOM_MAX_STREAM_FORMAT: stream format 2\n",
        "  component 0x12345678: 00ab\n",
        "  ALTERNATE_IIOP_ADDRESS: malformed (",
        "warning: profile 1: 127.0.0.1 is a loopback address",
        "warning: profile 1: component ALTERNATE_IIOP_ADDRESS: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let json = json(&run(&["ior", "decode", &ior, "--json"]));
    assert_eq!(json["version"], 1);
    assert_eq!(json["profiles"][0]["address"], "127.0.0.1:2809");
    assert_eq!(json["profiles"][0]["key_hex"], "5261646172");
    assert_eq!(json["profiles"][0]["components"][8]["hex"], "00ab");
}

#[test]
fn security_mechanisms_are_shown() {
    // A compound list of one mechanism: no transport, a user name and a password, no attributes.
    let oid = [6, 6, 0x67, 0x81, 2, 1, 1, 1];
    // The offsets follow the alignment of each member.
    let mut data = vec![0_u8, 0, 0, 0];
    data.extend([0, 0, 0, 1, 0, 64, 0, 0, 0, 0, 0, 34, 0, 0, 0, 1, 0, 0]);
    data.extend([0, 64, 0, 64, 0, 0, 0, 0, 0, 8]);
    data.extend(oid);
    data.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let ior = reference(1, Version::V1_2, vec![component(33, &data)]);
    let output = run(&["ior", "decode", &ior]);
    let expected = "CSI_SEC_MECH_LIST: stateless; requires EstablishTrustInClient; transport: no \
                    transport mechanism; authentication of clients by user and password (GSSUP), \
                    required, target 0 octets";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
}

#[test]
fn warnings_name_what_goes_wrong() {
    let same = reference(0, Version::V1_0, Vec::new());
    let mut ior: Ior = same.parse().expect("a reference");
    ior.profiles.push(ior.profiles[0].clone());
    ior.profiles.push(TaggedProfile {
        tag: TAG_INTERNET_IOP,
        data: vec![0, 1],
    });
    ior.type_id.clear();
    let output = run(&["ior", "decode", &ior.to_string()]);
    let text = stdout(&output);
    for part in [
        "warning: it names no interface",
        "warning: profile 1: port 0 cannot be connected to",
        "warning: profile 2 is a duplicate of another",
        "warning: profile 3 is malformed: ",
        "warning: only GIOP 1.0 is spoken",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let nil = run(&["ior", "decode", &Ior::nil().to_string()]);
    assert!(stdout(&nil).contains("it is a nil reference"));
}

#[test]
fn a_reference_without_code_sets_says_what_becomes_of_wide_characters() {
    let decoded = |ior: &Ior| stdout(&run(&["ior", "decode", &ior.to_string()])).to_owned();
    let bare = reference(7, Version::V1_2, Vec::new());
    let mut ior: Ior = bare.parse().expect("a reference");
    let warning = "warning: profile 1 names no code sets: strings are ISO 8859-1, and other ORBs \
                   than chronorb, which sends UTF-16, refuse wide characters";
    let text = decoded(&ior);
    assert!(text.contains(warning), "{text}");
    // Combat has the code sets in a profile of components.
    let code_sets = Component::CodeSets(CodeSetComponentInfo::ours()).tagged();
    let code_sets = code_sets.expect("it fits").data;
    let len = (code_sets.len() as u32).to_be_bytes();
    let data = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1][..], &len, &code_sets].concat();
    let tag = TAG_MULTIPLE_COMPONENTS;
    ior.profiles.push(TaggedProfile { tag, data });
    let text = decoded(&ior);
    assert!(!text.contains("code sets:"), "{text}");
    // In GIOP 1.0 nothing is agreed.
    let old = reference(7, Version::V1_0, Vec::new());
    assert!(!decoded(&old.parse().expect("a reference")).contains("no code sets:"));
}

#[test]
fn references_come_from_urls_files_and_standard_input() {
    let folder = tempfile::tempdir().expect("a directory");
    let ior = reference(7, Version::V1_2, Vec::new());
    std::fs::write(folder.path().join("radar.ior"), format!("{ior}\n")).expect("written");
    let by_file = chronorb(folder.path(), &["ior", "decode", "radar.ior"]);
    let by_input = chronorb_reading(folder.path(), &["ior", "decode", "-"], &ior);
    assert!(stdout(&by_file).contains("at 127.0.0.1:7\n"));
    assert_eq!(stdout(&by_file), stdout(&by_input));
    let by_url = run(&["ior", "decode", "corbaloc::1.1@radar.invalid:7/Radar"]);
    assert!(stdout(&by_url).contains("IIOP 1.1 at radar.invalid:7\n"));
    for (reference, part) in [
        ("missing.ior", "the file missing.ior: "),
        ("IOR:zz", "hexadecimal"),
        ("corbaloc::h:99999/x", "1 to 65535"),
        ("corbaname:rir:#x", "-ORBInitRef NameService=URL"),
    ] {
        let output = chronorb(folder.path(), &["ior", "decode", reference]);
        assert_eq!(output.status.code(), Some(1), "{reference}");
        assert_eq!(stdout(&output), "", "{reference}");
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn a_reference_is_made_of_addresses_and_a_key() {
    let output = run(&[
        "ior",
        "make",
        "a.example",
        "iiop:1.1@b.example:7",
        "--key",
        "Ra/dar",
        "--type",
        CLOCK,
        "--code-sets",
        "--priority-model",
        "server-declared",
        "--priority",
        "7",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let ior: Ior = stdout(&output).trim().parse().expect("a reference");
    assert_eq!(ior.type_id, CLOCK);
    let bodies = ior.profiles.iter();
    let bodies: Vec<_> = bodies
        .map(|profile| IiopProfile::decode(&profile.data).expect("it reads"))
        .collect();
    let addresses: Vec<_> = bodies
        .iter()
        .map(|body| (&*body.host, body.port, body.version, &*body.object_key))
        .collect();
    assert_eq!(
        addresses,
        [
            ("a.example", 2809, Version::V1_2, &b"Ra/dar"[..]),
            ("b.example", 7, Version::V1_1, b"Ra/dar"),
        ]
    );
    assert_eq!(bodies[0].components.len(), 2);
    for arguments in [
        &["ior", "make", "h"][..],
        &["ior", "make", "h", "--key-hex", "5"],
        &["ior", "make", "h", "--key", "x", "--priority", "1"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn objects_are_asked() {
    let server = Server::start();
    let output = run(&["ior", "ping", &server.ior]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("the object exists\n"));
    let clock = format!("{}Clock", server.url);
    let report = json(&run(&["ior", "ping", &clock, "--repeat", "20", "--json"]));
    assert_eq!(
        (&report["exists"], &report["calls"]),
        (&true.into(), &20.into())
    );
    assert!(report["p50_ms"].as_f64() <= report["max_ms"].as_f64());

    let missing = format!("{}Missing", server.url);
    let output = run(&["ior", "ping", &missing]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));

    let has = run(&["ior", "is-a", &server.ior, CLOCK]);
    assert_eq!((has.status.code(), stdout(&has)), (Some(0), "yes\n"));
    let has = run(&["ior", "is-a", &server.ior, "IDL:Radar:1.0"]);
    assert_eq!((has.status.code(), stdout(&has)), (Some(3), "no\n"));

    let forwarded = run(&["ior", "forward", &clock]);
    assert_eq!(forwarded.status.code(), Some(0), "{}", stderr(&forwarded));
    assert_eq!(stdout(&forwarded).trim(), server.ior);
    assert!(stderr(&forwarded).contains(" forwards\n"));
    assert_eq!(run(&["ior", "forward", &missing]).status.code(), Some(3));
}

#[test]
fn advice_follows_from_what_happened() {
    let nowhere = run(&["ior", "ping", &reference(0, Version::V1_2, Vec::new())]);
    let told = stderr(&nowhere);
    assert!(told.contains("port 0"), "{told}");
    assert!(told.contains("No server was asked"), "{told}");
    assert!(!told.contains("Is the server running"), "{told}");
    // A reference of SSLIOP that demands protection, at a command without TLS.
    let tls = component(chronorb_giop::TAG_SSL_SEC_TRANS, &[0, 0, 0, 6, 0, 6, 0, 1]);
    let protected = run(&["ior", "ping", &reference(0, Version::V1_2, vec![tls])]);
    let told = stderr(&protected);
    assert!(told.contains("-ORBProtocols ssliop"), "{told}");
    assert!(!told.contains("access rules"), "{told}");
    let nil = run(&["ior", "ping", "IOR:00000000000000010000000000000000"]);
    assert!(stderr(&nil).contains("nil"), "{}", stderr(&nil));
    assert!(!nil.status.success());
}

#[test]
fn the_time_of_a_call_is_that_of_the_orb_unless_the_command_has_one() {
    // The peer accepts, and gives no answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let silent = format!("corbaloc::1.2@127.0.0.1:{port}/x");
    for arguments in [
        vec!["ior", "ping", &silent, "-ORBRequestTimeout", "50"],
        vec![
            "ior",
            "ping",
            &silent,
            "--timeout",
            "50",
            "-ORBRequestTimeout",
            "3600000",
        ],
    ] {
        let late = run(&arguments);
        assert!(stderr(&late).contains("TIMEOUT"), "{}", stderr(&late));
    }
}

#[test]
fn an_explanation_names_each_step() {
    let server = Server::start();
    let output = run(&["ior", "ping", &server.ior, "--explain"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "ok      profile 1, IIOP: resolve 127.0.0.1: 127.0.0.1\n",
        "ok      profile 1, IIOP: connect to 127.0.0.1:",
        "ok      profile 1, IIOP: locate: the object is there\n",
        "ok      profile 1, IIOP: _is_a IDL:Clock:1.0: yes\n",
        "the object can be called from here\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let wrong = format!("{}Missing", server.url);
    drop(server);
    let output = run(&["ior", "ping", &wrong, "--explain", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(json(&output)["exists"], false);
    let output = run(&["ior", "ping", &wrong]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("Connection refused"), "{told}");
    assert!(told.contains("Is the server running"), "{told}");
}

#[test]
fn the_options_of_an_orb_are_listed() {
    let output = run(&["ior", "-ORBHelp"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("-ORBInitRef NAME=URL\n      an initial reference"));
}

/// The text that is shown for a reference with this key.
fn decoded_key(object_key: &[u8]) -> String {
    let profile = IiopProfile {
        version: Version::V1_2,
        host: "a.example".to_owned(),
        port: 2809,
        object_key: object_key.to_vec(),
        components: Vec::new(),
    };
    let ior = Ior {
        type_id: CLOCK.to_owned(),
        profiles: vec![profile.tagged().expect("it fits")],
    };
    let output = run(&["ior", "decode", &ior.to_string()]);
    let lines = stdout(&output).lines();
    let mut keys = lines.filter_map(|line| line.strip_prefix("  key: "));
    keys.next().expect("a key").to_owned()
}

#[test]
fn keys_with_a_few_binary_octets_show_their_text_beside_the_digits() {
    for (key, shown) in [
        (&b"Radar"[..], "\"Radar\""),
        (
            b"\0PMC\0RootPOA\0\x01",
            "14 octets 00504d4300526f6f74504f410001 \".PMC.RootPOA..\"",
        ),
        (b"\x01\x02VB\x03", "5 octets 0102564203"),
        (b"\0BEA\x01", "5 octets 0042454101 (WebLogic)"),
        (b"\xaf\xab\xcb\0", "4 octets afabcb00 (Sun's ORB for Java)"),
        (b"\xab\xac\xab1\0", "5 octets abacab3100 (ORBacus)"),
        (
            b":>\x0221.name\x01",
            "11 octets 3a3e0232312e6e616d6501 (Orbix) \":>.21.name.\"",
        ),
        (b"\x14\x01\x0f\0", "4 octets 14010f00 (TAO)"),
    ] {
        assert_eq!(decoded_key(key), shown);
    }
}

#[test]
fn own_keys_are_explained() {
    let server = Server::start();
    let text = run(&["ior", "decode", &server.ior]);
    let text = stdout(&text);
    assert!(text.contains(" (chronorb: POA "), "{text}");
    assert!(text.contains(" of run "), "{text}");
    assert!(text.contains(", object in slot "), "{text}");
    // A persistent key of the POA `/radar` with the id `front`, in the lane for priority 7.
    let mut key = b"\xc7R\x01\x13\0\x07\0\0\0\0\0\0\0\0\0\x06/radar".to_vec();
    key.extend(b"front");
    let shown = decoded_key(&key);
    let content = "(chronorb: persistent POA \"/radar\", id \"front\", lane for priority 7)";
    assert!(shown.ends_with(content), "{shown}");
}

#[test]
fn components_of_other_orbs_are_read_as_these_write_them() {
    // The key itself, and an empty transport, as ORBit2 and WebLogic have them.
    let mut csi = vec![
        0_u8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 0,
    ];
    csi.extend([0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 19]);
    csi.extend([4, 1, 0, 8, 6, 6, 0x67, 0x81, 2, 1, 1, 1, 0, 0, 0, 3]);
    csi.extend(b"lab");
    csi.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    let components = vec![
        component(5, b"\0\0\0\0KEYKEY"),
        component(34, b""),
        component(33, &csi),
        component(0, &[0, 0, 0, 0, 0x49, 0x54, 0x5f, 0x41]),
        component(0, &[0, 0, 0, 0, 0x56, 0x49, 0x53, 0]),
        component(0x4154_5403, b"\x01"),
        component(0x4942_4d21, b"\x01"),
        component(0x4245_4103, b"\x01"),
        component(0x5649_5303, b"\x01"),
    ];
    let ior = reference(2809, Version::V1_2, components);
    let output = run(&["ior", "decode", &ior]);
    let text = stdout(&output);
    for part in [
        "  COMPLETE_OBJECT_KEY: 10 octets 000000004b45594b4559 \"....KEYKEY\"\n",
        "  NULL_TAG: no transport mechanism\n",
        "  CSI_SEC_MECH_LIST: stateless; requires nothing; transport: no transport mechanism; ",
        ", target \"lab\"",
        "  ORB_TYPE: Orbix 6 (0x49545f41)\n",
        "  ORB_TYPE: VisiBroker (0x56495300)\n",
        "  omniORB's PERSISTENT_ID: 01\n",
        "  component 0x49424d21 of IBM: 01\n",
        "  component 0x42454103 of WebLogic: 01\n",
        "  component 0x56495303 of VisiBroker: 01\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("malformed"), "{text}");

    let profiles = [0x5649_5301, 0xbadf_aeca, 0x14];
    let profiles = profiles.map(|tag| TaggedProfile {
        tag,
        data: vec![0, 1],
    });
    let ior = Ior {
        type_id: CLOCK.to_owned(),
        profiles: profiles.to_vec(),
    };
    let output = run(&["ior", "decode", &ior.to_string()]);
    let text = stdout(&output);
    for part in [
        "profile 1: unknown protocol 0x56495301 of VisiBroker\n",
        "profile 2: ORBit's local protocol\n",
        "profile 3: IIOP over SSL of CORBA 2.2 products\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_wrong_byte_order_is_named() {
    let wrong = "IOR:000000000a00000049444c3a543a312e30000000010000000000000019000000000100000a00\
                 0000612e6578616d706c6500f90a010000004b";
    let output = run(&["ior", "decode", wrong]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    for part in [
        "the lengths fit the other byte order",
        "says big-endian",
        "with 01 behind `IOR:`",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let output = run(&["ior", "decode", &wrong.replacen("IOR:00", "IOR:01", 1)]);
    let text = stdout(&output);
    assert!(
        text.contains("; the lengths fit the other byte order)"),
        "{text}"
    );
}
