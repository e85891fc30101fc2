//! Rules as texts, and their judgements on peers that no test can be.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn rules(texts: &[&str]) -> TransportRules {
    let parsed = texts.iter().map(|text| text.parse::<TransportRule>());
    parsed
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{texts:?}: {error}"))
}

fn at(scheme: &str, address: impl Into<IpAddr>) -> Candidate<'_> {
    Candidate {
        scheme,
        address: CandidateAddress::Host(address.into()),
        user: Fact::Absent,
        names: Fact::Absent,
    }
}

fn local(uid: u32) -> Candidate<'static> {
    Candidate {
        scheme: "uiop",
        address: CandidateAddress::ThisMachine,
        user: Fact::Known((uid, 100)),
        names: Fact::Absent,
    }
}

fn named(subject: &str, alternative: &[&str]) -> Candidate<'static> {
    Candidate {
        names: Fact::Known(Names {
            subject: subject.to_owned(),
            alternative: alternative.iter().map(|name| (*name).to_owned()).collect(),
        }),
        ..at("ssliop", [10, 0, 0, 1])
    }
}

use Judgement::{Open, Permitted, Refused};

#[test]
fn the_first_rule_that_matches_decides_and_who_matches_none_is_refused() {
    let list = rules(&["10.1.0.0/16 none", "10.0.0.0/8 tcp", "fd00::/8 ssl"]);
    for (candidate, judgement) in [
        (at("iiop", [10, 0, 0, 1]), Permitted),
        (at("riop", [10, 0, 0, 1]), Permitted),
        (at("ssliop", [10, 0, 0, 1]), Refused(2)),
        (at("iiop", [10, 1, 0, 1]), Refused(1)),
        (at("iiop", [11, 0, 0, 1]), Refused(0)),
        (
            at("ssliop", Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
            Permitted,
        ),
        (at("ssliop", Ipv6Addr::LOCALHOST), Refused(0)),
        (local(0), Refused(0)),
    ] {
        assert_eq!(list.decide(&candidate), judgement, "{candidate:?}");
    }
    let nothing = TransportRules::default();
    assert_eq!(nothing.decide(&at("iiop", Ipv4Addr::BROADCAST)), Permitted);
}

#[test]
fn masks_compare_the_bits_that_they_say() {
    for (mask, address, is_in) in [
        ("10.0.0.0/255.0.0.0", [10, 9, 8, 7], true),
        ("10.0.0.0/255.0.255.0", [10, 9, 0, 7], true),
        ("10.0.0.0/255.0.255.0", [10, 9, 1, 7], false),
        ("10.9.8.7/8", [10, 1, 1, 1], true),
        ("10.9.8.7", [10, 9, 8, 7], true),
        ("10.9.8.7", [10, 9, 8, 6], false),
        ("0.0.0.0/0", [1, 2, 3, 4], true),
        ("::/0", [1, 2, 3, 4], true),
        ("::ffff:10.0.0.0/104", [10, 9, 8, 7], true),
        ("::1", [127, 0, 0, 1], false),
        ("localhost", [127, 9, 9, 9], true),
        ("localhost", [192, 0, 2, 1], false),
    ] {
        let list = rules(&[&format!("{mask} any")]);
        let judged = list.decide(&at("iiop", address));
        assert_eq!(judged == Permitted, is_in, "{mask} {address:?}");
    }
    // No address of IPv6 is one of IPv4.
    let all = rules(&["0.0.0.0/0 any"]);
    assert_eq!(all.decide(&at("iiop", Ipv6Addr::LOCALHOST)), Refused(0));
}

#[test]
fn processes_of_this_machine_are_at_the_loopback_address() {
    for mask in ["localhost", "127.0.0.1/8", "::1", "*", "uid=7", "gid=100"] {
        let list = rules(&[&format!("{mask} unix")]);
        assert_eq!(list.decide(&local(7)), Permitted, "{mask}");
    }
    assert_eq!(rules(&["uid=8 unix"]).decide(&local(7)), Refused(0));
    assert_eq!(rules(&["uid=7 tcp"]).decide(&local(7)), Refused(1));
    assert_eq!(
        rules(&["10.0.0.0/8 uid=7 unix"]).decide(&local(7)),
        Refused(0)
    );
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(rules(&["uid=self unix"]).decide(&local(own)), Permitted);
}

#[test]
fn identities_have_to_be_proved() {
    let radar = || named("CN=radar,O=Example", &["dns:radar.example", "ip:10.0.0.1"]);
    for (rule, judgement) in [
        (r#"subject="CN=radar,O=Example" ssl"#, Permitted),
        (r"subject=CN=radar,O=Example ssl", Permitted),
        (r"subject=CN=radar ssl", Refused(0)),
        ("san=Radar.Example ssl", Permitted),
        ("san=dns:radar.example ssl", Permitted),
        ("san=uri:radar.example ssl", Refused(0)),
        ("san=ip:10.0.0.1 ssl", Permitted),
        ("san=radar.example 11.0.0.0/8 ssl", Refused(0)),
        ("uid=0 ssl", Refused(0)),
    ] {
        assert_eq!(rules(&[rule]).decide(&radar()), judgement, "{rule}");
        let anonymous = at("ssliop", [10, 0, 0, 1]);
        assert_eq!(rules(&[rule]).decide(&anonymous), Refused(0), "{rule}");
    }
}

#[test]
fn a_rule_that_may_match_later_leaves_the_judgement_open() {
    let pending = || Candidate {
        names: Fact::Pending,
        ..at("ssliop", [10, 0, 0, 1])
    };
    for (texts, judgement) in [
        (&["san=a ssl"][..], Open),
        (&["* none", "san=a ssl"], Refused(1)),
        (&["* ssl", "san=a none"], Permitted),
        (&["san=a none", "* ssl"], Open),
        (&["11.0.0.0/8 san=a none", "* ssl"], Permitted),
    ] {
        assert_eq!(rules(texts).decide(&pending()), judgement, "{texts:?}");
    }
}

#[test]
fn an_address_is_judged_before_anybody_connects_to_it() {
    let list = rules(&["uid=0 unix", "127.0.0.0/8 tcp"]);
    let judge = |scheme, address: &Address| {
        list.judge_address(
            scheme,
            address,
            Deadline::after(std::time::Duration::from_secs(30)),
        )
    };
    assert_eq!(judge("iiop", &Address::host("127.0.0.1", 1)), Permitted);
    assert_eq!(
        judge("iiop", &Address::host("::ffff:127.0.0.1", 1)),
        Permitted
    );
    assert_eq!(judge("iiop", &Address::host("192.0.2.1", 1)), Refused(0));
    assert_eq!(judge("diop", &Address::host("127.0.0.1", 1)), Refused(2));
    // Its user is known only after that.
    assert_eq!(judge("uiop", &Address::Path("/run/x".to_owned())), Open);
    let no_names = rules(&["192.0.2.0/24 tcp"]);
    let name = Address::host("localhost", 1);
    let soon = Deadline::after(std::time::Duration::from_secs(30));
    assert_eq!(no_names.judge_address("iiop", &name, soon), Refused(0));
}

#[test]
fn errors_say_where_and_what_is_expected() {
    for (text, position, problem) in [
        ("", 1, "there is nothing; expected a condition"),
        ("*", 2, "the actions are missing; expected actions"),
        ("* tcp,", 7, "\"\" is no action"),
        ("* tcp,none", 7, "\"none\" does not go with other actions"),
        ("* TCP", 3, "\"TCP\" is no action"),
        (
            "10.0.0.0/33 tcp",
            1,
            "\"10.0.0.0/33\" is no condition; expected a condition: *",
        ),
        ("10.0.0/8 tcp", 1, "\"10.0.0/8\" is no condition"),
        ("10.0.0.0/ff00:: tcp", 1, "is no condition"),
        ("* radar tcp", 3, "\"radar\" is no condition"),
        (
            "* uid=root unix",
            3,
            "\"uid=root\" is no user; expected uid= with a number, or uid=self",
        ),
        ("gid=-1 unix", 1, "is no group"),
        ("san=ip:radar ssl", 1, "is no alternative name"),
        ("subject= ssl", 1, "is no condition"),
        ("* subject=\"CN=a b ssl", 11, "this quote has no end"),
        ("* cn=radar ssl", 3, "\"cn=radar\" is no condition"),
    ] {
        let error = text.parse::<TransportRule>().expect_err(text);
        assert_eq!(error.position, position, "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
}

#[test]
fn quotes_and_escapes_keep_subjects_whole() {
    let subject = |text: &str| {
        let rule: TransportRule = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        match &rule.conditions[..] {
            [Condition::Subject(subject)] => subject.clone(),
            other => panic!("{text}: {other:?}"),
        }
    };
    assert_eq!(subject(r#"subject="CN=a b,O=c" ssl"#), "CN=a b,O=c");
    assert_eq!(subject(r#""subject=CN=a b" ssl"#), "CN=a b");
    assert_eq!(subject(r#"subject="CN=a\"b" ssl"#), r#"CN=a\"b"#);
    assert_eq!(subject(r"subject=CN=a\ b ssl"), r"CN=a\ b");
    assert_eq!(subject(r"subject=CN=a\\ ssl"), r"CN=a\\");
}
