//! Object references as values, as text, and for calls back into the client.

use chronorb::SystemExceptionKind;
use chronorb::poa::CreatePoaError;
use chronorb::prelude::*;
use chronorb::rtcorba::{BidirectionalMode, ClientPolicy, SetOverride};

use super::{NIL, Subject};
use crate::idl::*;
use crate::servants::EchoObject;
use crate::values::{filling, nil_text};
use crate::{Failure, Report};

/// Returns whether the object echoes a number.
pub(super) fn answers(echo: &Echo) -> Result<bool, SystemException> {
    let mut io = 1;
    Ok(echo.echo_long(2, &mut io)? == (2, 1) && io == 2)
}

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let relations = subject.hub.get_relations()?.ok_or(NIL)?;
    let bottom = subject.hub.get_bottom()?.ok_or(NIL)?;
    let echo = &subject.echo;

    let echo_echo = |v: &Option<Echo>, io: &mut _| relations.echo_echo(v.as_ref(), io);
    report.echo("echo_echo", Some(echo.clone()), None, echo_echo);
    report.echo("echo_echo nil", None, Some(echo.clone()), echo_echo);
    let echo_object = |v: &Option<Object>, io: &mut _| relations.echo_object(v.as_ref(), io);
    let any_bottom = Some(bottom.as_object().clone());
    let any_relations = Some(relations.as_object().clone());
    report.echo(
        "echo_object",
        any_bottom.clone(),
        any_relations,
        echo_object,
    );
    report.echo("echo_object nil", None, any_bottom.clone(), echo_object);
    check_holders(&relations, echo, &bottom, report);

    report.check("none is nil", || Ok(relations.none()?.is_none()));
    report.check("absent", || {
        Ok(relations.absent(None)? && !relations.absent(any_bottom.as_ref())?)
    });
    report.check("a reference that came back can be called", || {
        let mut io = None;
        let (result, _) = relations.echo_echo(Some(echo), &mut io)?;
        Ok(answers(&result.ok_or(NIL)?)? && answers(&io.ok_or(NIL)?)?)
    });
    report.check("call through the server's own object", || {
        Ok(relations.call(Some(echo), 21)? == 21)
    });
    report.raises(
        "call through a nil reference",
        relations.call(None, 1),
        |e| e.kind == SystemExceptionKind::BadParam,
    );
    check_text(subject, &relations, report);
    Ok(())
}

/// Checks references in structs, sequences and arrays.
fn check_holders(relations: &Relations, echo: &Echo, bottom: &Bottom, report: &mut Report) {
    let full = LinkBuf {
        label: "full".to_owned(),
        target: Some(echo.clone()),
        anything: Some(bottom.as_object().clone()),
        origin: Some(relations.clone()),
    };
    let empty = LinkBuf {
        label: "empty".to_owned(),
        ..LinkBuf::default()
    };
    report.echo("echo_link", full, empty, |v, io| {
        relations.echo_link(&v.as_view(), io)
    });
    let echoes = vec![Some(echo.clone()), None, Some(echo.clone())];
    report.echo("echo_echoes", echoes, vec![], |v, io| {
        let views: Vec<_> = v.iter().map(Option::as_ref).collect();
        relations.echo_echoes(&views, io)
    });
    let (any_bottom, any_echo) = (bottom.as_object().clone(), echo.as_object().clone());
    let objects = vec![Some(any_bottom), Some(any_echo), None];
    report.echo("echo_objects", objects, vec![], |v, io| {
        let views: Vec<_> = v.iter().map(Option::as_ref).collect();
        relations.echo_objects(&views, io)
    });
    let (v, w) = ([Some(echo.clone()), None], [None, Some(echo.clone())]);
    report.echo("echo_pair", v, w, |v, io| {
        relations.echo_pair(&v.each_ref().map(Option::as_ref), io)
    });
}

fn check_text(subject: &Subject, relations: &Relations, report: &mut Report) {
    let (orb, echo) = (&subject.orb, &subject.echo);
    report.check("the server's text, read by the client", || {
        let text = relations.to_text(Some(echo.as_object()))?;
        let read = Echo::narrow(&orb.string_to_object(&text)?)?.ok_or(NIL)?;
        Ok(read == *echo && answers(&read)?)
    });
    report.check("the client's text, read by the server", || {
        let text = orb.object_to_string(echo.as_object());
        let read = Echo::narrow(&relations.from_text(&text)?.ok_or(NIL)?)?.ok_or(NIL)?;
        Ok(read == *echo && answers(&read)?)
    });
    report.check("the server's text of a nil reference", || {
        let text = relations.to_text(None)?;
        let read = orb.string_to_object(&text);
        Ok(read.is_err_and(|e| e.kind == SystemExceptionKind::InvObjref))
    });
    report.check("the client's text of a nil reference", || {
        Ok(relations.from_text(&nil_text())?.is_none())
    });
    report.raises(
        "from_text of what is no reference",
        relations.from_text("no reference"),
        |e| e.kind == SystemExceptionKind::BadParam,
    );
}

/// Returns a POA that is called on the client's own connections, if the ORB offers that; else the
/// root POA.
fn poa_for_callbacks(orb: &Orb) -> Result<Poa, Failure> {
    let root = orb.root_poa()?;
    let both = BidirectionalMode::Both;
    match root.create_poa("callbacks", None, &[Policy::Bidirectional(both)]) {
        Ok(poa) => {
            let policies = [ClientPolicy::Bidirectional(both)];
            orb.policy_manager()
                .set_policy_overrides(&policies, SetOverride::Add)?;
            Ok(poa)
        }
        Err(CreatePoaError::InvalidPolicy { .. }) => Ok(root),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn check_callbacks(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let relations = subject.hub.get_relations()?.ok_or(NIL)?;
    let poa = poa_for_callbacks(&subject.orb)?;
    poa.manager().activate()?;
    let id = poa.activate_object(EchoSkeleton::new(EchoObject))?;
    let own = Echo::unchecked_narrow(&poa.id_to_reference(&id)?);

    // On bidirectional connections omniORB adds a profile of components.
    report.echo(
        "the client's object there and back",
        Some(own.clone()),
        Some(subject.echo.clone()),
        |v, io| relations.echo_echo(v.as_ref(), io),
    );
    report.check("call back into the client", || {
        Ok(relations.call(Some(&own), -8)? == -8)
    });
    report.check("call back into the client many times", || {
        for n in 0..100 {
            if relations.call(Some(&own), n)? != n {
                return Ok(false);
            }
        }
        Ok(true)
    });
    report.check("call back into the client with 1000 octets", || {
        Ok(relations.call_octets(Some(&own), &filling(1000))? == 1000)
    });
    report.check("the server asks the client's object what it is", || {
        let is_a = |id| relations.ask_is_a(Some(own.as_object()), id);
        Ok(is_a(Texts::REPOSITORY_ID)? && !is_a(Panel::REPOSITORY_ID)?)
    });
    poa.deactivate_object(&id)?;
    report.raises(
        "call of an object that the client took away",
        relations.call(Some(&own), 1),
        |e| e.kind == SystemExceptionKind::ObjectNotExist,
    );
    Ok(())
}
