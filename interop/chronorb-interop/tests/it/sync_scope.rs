//! Oneways in each scope and each version of GIOP, to and from other ORBs.

use std::sync::mpsc::channel;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::rtcorba::{ClientPolicy, SetOverride, SyncScope};
use chronorb::transport::parse_endpoints;
use chronorb::{Interface, Version};
use chronorb_interop::Failure;
use chronorb_interop::groups::idl::{Member, MemberSkeleton};
use chronorb_interop::groups::{Heard, TellingMember};
use chronorb_interop::idl::{Hub, Notes};

use crate::support::jacorb::Jacorb;
use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, Side};

const SCOPES: [SyncScope; 4] = [
    SyncScope::None,
    SyncScope::WithTransport,
    SyncScope::WithServer,
    SyncScope::WithTarget,
];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
/// The time until a request without a reply is served on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn orb(version: Version) -> Result<Orb, Failure> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    config.max_giop_version = version;
    Ok(Orb::with_config(config)?)
}

/// The same object, whose oneways have this scope.
fn in_scope<I: Interface>(object: &Object, scope: SyncScope) -> Result<I, Failure> {
    let policies = [ClientPolicy::SyncScope(scope)];
    let object = object.with_policy_overrides(&policies, SetOverride::Add)?;
    Ok(I::from_object(object))
}

/// Whether the client learns that there is no object.
fn is_told(scope: SyncScope) -> bool {
    matches!(scope, SyncScope::WithServer | SyncScope::WithTarget)
}

#[test]
fn omniorb_serves_oneways_in_each_scope() -> Result<(), Failure> {
    if !require(&[&OMNIORB]) {
        return Ok(());
    }
    let server = Server::start(Side::OmniOrb, &[]);
    for version in VERSIONS {
        let orb = orb(version)?;
        let hub = Hub::narrow(&orb.string_to_object(&server.ior)?)?.ok_or("no hub")?;
        let notes = hub.get_notes()?.ok_or("nil")?;
        let absent = hub.get_deactivated()?.ok_or("nil")?;
        for scope in SCOPES {
            notes.forget()?;
            in_scope::<Notes>(notes.as_object(), scope)?.note(5)?;
            let mut noted = notes.noted()?;
            if scope != SyncScope::WithTarget {
                // The operation may not have begun.
                while noted != (1, 5) {
                    noted = notes.noted()?;
                }
            }
            assert_eq!(noted, (1, 5), "{scope:?} {version}");
            let refused = in_scope::<Notes>(absent.as_object(), scope)?.note(5);
            let expected = is_told(scope).then_some(SystemExceptionKind::ObjectNotExist);
            assert_eq!(
                refused.err().map(|e| e.kind),
                expected,
                "{scope:?} {version}"
            );
        }
        orb.shutdown(true)?;
    }
    Ok(())
}

#[test]
fn jacorb_serves_oneways_in_each_scope() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let mut process = jacorb.start(None, "JacorbMember", |folder| {
        vec![folder.join("ior").display().to_string(), "-".to_owned()]
    });
    let reference = process.wait_for_file("ior");
    for version in VERSIONS {
        let orb = orb(version)?;
        let member = orb.string_to_object(&reference)?;
        for scope in SCOPES {
            let text = format!("{scope:?} {version}");
            in_scope::<Member>(&member, scope)?.tell(&text, &[])?;
        }
        // A later call on the connection, so that the requests have arrived.
        assert_eq!(Member::unchecked_narrow(&member).ask("ab")?, "ba");
        if version == Version::V1_2 {
            let scope = SyncScope::WithTarget;
            in_scope::<Member>(&member, scope)?.leave()?;
        }
        orb.shutdown(true)?;
    }
    let heard = process.finish();
    for version in VERSIONS {
        for scope in SCOPES {
            let line = format!("heard {scope:?} {version} 0 0");
            assert!(heard.lines().any(|heard| heard == line), "{line}: {heard}");
        }
    }
    Ok(())
}

/// A request of GIOP 1.0 or 1.1 says only whether a reply is expected, and a server replies if and
/// only if it is (CORBA 3.0, 15.4.3). JacORB 3.9 says no for each oneway, and waits for a reply all
/// the same in the scopes that need one.
#[test]
fn jacorb_calls_oneways_in_each_scope() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    for version in VERSIONS {
        let server = orb(version)?;
        let root = server.root_poa()?;
        let (tell, told) = channel();
        let member = root.serve(MemberSkeleton::new(TellingMember::new(tell)))?;
        let (tell, _) = channel();
        let absent = root.serve(MemberSkeleton::new(TellingMember::new(tell)))?;
        root.deactivate_object(&root.reference_to_id(&absent)?)?;
        root.manager().activate()?;
        let references = [&member, &absent].map(|object| server.object_to_string(object));
        let command = match version {
            Version::V1_2 => Vec::new(),
            _ => [
                "env",
                "JAVA_TOOL_OPTIONS=-Djacorb.connection.client.pending_reply_timeout=500",
            ]
            .map(str::to_owned)
            .into(),
        };
        let said = jacorb.start_by(command, "127.0.0.1", "JacorbScopes", |_| references.into());
        let said = said.finish();
        let mut missing: Vec<_> = (0..4)
            .map(|scope| Heard::Told(format!("scope {scope}"), (0..10).collect()))
            .collect();
        while !missing.is_empty() {
            let heard = told.recv_timeout(PATIENCE)?;
            let at = missing.iter().position(|missing| *missing == heard);
            missing.swap_remove(at.ok_or_else(|| format!("heard beside: {heard:?}"))?);
        }
        for (number, scope) in SCOPES.into_iter().enumerate() {
            let [present, absent] = match (is_told(scope), version) {
                (false, _) => ["accepted", "accepted"],
                (true, Version::V1_2) => ["accepted", "refused"],
                (true, _) => ["unanswered", "unanswered"],
            };
            let lines = [
                format!("present {number} {present}"),
                format!("absent {number} {absent}"),
            ];
            for line in lines {
                assert!(
                    said.lines().any(|said| said == line),
                    "{version} {line}: {said}"
                );
            }
        }
        server.shutdown(true)?;
    }
    Ok(())
}
