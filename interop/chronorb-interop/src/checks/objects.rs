//! The operations of every object, and the answers for missing ones.

use chronorb::prelude::*;
use chronorb_giop::{IiopProfile, TAG_INTERNET_IOP};

use super::references::answers;
use super::{NIL, Subject};
use crate::idl::*;
use crate::{Failure, Report};

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let bottom = subject.hub.get_bottom()?.ok_or(NIL)?;
    let faulty = subject.hub.get_faulty()?.ok_or(NIL)?;

    let bottom = bottom.as_object();
    for id in [
        Bottom::REPOSITORY_ID,
        Left::REPOSITORY_ID,
        Right::REPOSITORY_ID,
        Top::REPOSITORY_ID,
        OBJECT_ID,
    ] {
        report.check(&format!("_is_a {id}"), || Ok(bottom.is_a(id)?));
    }
    for id in [Echo::REPOSITORY_ID, "IDL:chronorb/Interop/Absent:1.0", ""] {
        report.check(&format!("not _is_a {id:?}"), || Ok(!bottom.is_a(id)?));
    }
    report.check("_is_a of a multiple base", || {
        let echo = subject.echo.as_object();
        Ok(echo.is_a(Arrays::REPOSITORY_ID)? && echo.is_a(Basics::REPOSITORY_ID)?)
    });
    report.check("_non_existent of an object", || Ok(!bottom.non_existent()?));
    report.check("orb_name", || Ok(!subject.hub.orb_name()?.is_empty()));

    let mistaken = Mistaken::unchecked_narrow(faulty.as_object());
    report.raises("an unknown operation", mistaken.absent(1), |e| {
        e.kind == SystemExceptionKind::BadOperation && e.completed == CompletionStatus::No
    });
    report.check("a known operation after it", || {
        Ok(faulty.raise_user(5)? == 5)
    });

    let deactivated = subject.hub.get_deactivated()?.ok_or(NIL)?;
    check_absent(
        report,
        "an object that is not active any more",
        &deactivated,
    );
    check_forwarded(subject, report)
}

fn check_absent(report: &mut Report, what: &str, absent: &Echo) {
    let no_object = |e: &SystemException| {
        e.kind == SystemExceptionKind::ObjectNotExist && e.completed == CompletionStatus::No
    };
    report.raises(&format!("call of {what}"), answers(absent), no_object);
    let asked = absent.as_object().is_a(Echo::REPOSITORY_ID);
    report.raises(&format!("_is_a of {what}"), asked, no_object);
    report.check(&format!("_non_existent of {what}"), || {
        Ok(absent.as_object().non_existent()?)
    });
}

fn check_forwarded(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let names = [
        "a forwarded request",
        "a request after one that was forwarded",
    ];
    let forwarded = subject.hub.get_forwarded()?;
    for name in names {
        match &forwarded {
            Some(forwarded) => report.check(name, || Ok(answers(forwarded)?)),
            None => report.skip(name, "the server forwards nothing"),
        }
    }
    Ok(())
}

pub(super) fn check_corbaloc(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let orb = &subject.orb;
    report.check("the hub by its key", || {
        let object = orb.string_to_object(&corbaloc(&subject.hub, "Hub")?)?;
        let hub = Hub::narrow(&object)?.ok_or("no Hub")?;
        let echo = hub.get_echo()?.ok_or(NIL)?;
        Ok(echo == subject.echo && answers(&echo)?)
    });
    let absent = orb.string_to_object(&corbaloc(&subject.hub, "no%20such%2fobject%00")?)?;
    let absent = Echo::unchecked_narrow(&absent);
    check_absent(report, "a key that the server does not know", &absent);

    let nowhere = orb.string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/Hub")?;
    let unreachable = Echo::unchecked_narrow(&nowhere);
    report.raises(
        "call of a server that does not run",
        answers(&unreachable),
        |e| e.kind == SystemExceptionKind::Transient && e.completed == CompletionStatus::No,
    );
    Ok(())
}

/// Returns `corbaloc:iiop:MAJOR.MINOR@HOST:PORT/KEY` of the hub's server.
fn corbaloc(hub: &Hub, key: &str) -> Result<String, Failure> {
    let mut profiles = hub.as_object().ior().profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP);
    let profile = profile.ok_or("the reference has no IIOP profile")?;
    let IiopProfile {
        version,
        host,
        port,
        ..
    } = IiopProfile::decode(&profile.data)?;
    let (major, minor) = (version.major, version.minor);
    Ok(format!("corbaloc:iiop:{major}.{minor}@{host}:{port}/{key}"))
}

const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";
