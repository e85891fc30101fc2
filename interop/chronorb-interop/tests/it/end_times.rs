//! End times of requests, which JacORB and chronorb tell each other as invocation policies.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::rtcorba::{ClientPolicy, SetOverride};
use chronorb::transport::parse_endpoints;
use chronorb::{Incident, minor};
use chronorb_interop::Failure;
use chronorb_interop::groups::TellingMember;
use chronorb_interop::groups::idl::{Member, MemberServant, MemberSkeleton};
use chronorb_rt::PiMutex;

use crate::support::jacorb::Jacorb;

/// The definitions of `idl/groups.idl`, with asynchronous calls.
#[allow(missing_docs, unreachable_pub, reason = "the module is private")]
mod asynchronous {
    chronorb::include_idl!("asynchronous/groups");
}

/// The time until a request that was sent is answered on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn orb() -> Result<Orb, Failure> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    Ok(Orb::with_config(config)?)
}

#[test]
fn chronorb_does_not_serve_what_expired_on_its_way_from_jacorb() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let server = orb()?;
    let root = server.root_poa()?;
    let member = || MemberSkeleton::new(TellingMember::new(channel().0));
    let open = root.serve(member())?;
    root.manager().activate()?;
    let holding = root.create_poa("holding", None, &[])?;
    let held = holding.serve(member())?;
    let references = [&open, &held].map(|object| server.object_to_string(object));
    let mut process = jacorb.start(None, "JacorbEndTimes", |_| references.into());
    // Requests are held longer than their time, again and again.
    let mut looks = 0_u32;
    process.poll("end", |process| {
        looks += 1;
        match looks % HOLD {
            0 => holding.manager().activate().expect("it is not destroyed"),
            1 => {
                let held = holding.manager().hold_requests(false);
                held.expect("it is not destroyed");
            }
            _ => {}
        }
        process.ended().map(|_| ())
    });
    let said = process.finish();
    assert!(said.lines().any(|line| line == "in time ba"), "{said}");
    // Completed `NO`, which is 1.
    assert!(said.lines().any(|line| line == "late 4f4d0002 1"), "{said}");
    let counts = server.snapshot().incidents;
    let expired = counts
        .iter()
        .find(|(incident, _)| *incident == Incident::ExpiredRequest);
    assert!(expired.expect("it is counted").1 > 0);
    Ok(server.shutdown(true)?)
}

/// A member whose answer has to be released.
#[derive(Debug)]
struct SlowMember {
    begun: Sender<()>,
    release: PiMutex<Receiver<()>>,
}

impl MemberServant for SlowMember {
    fn tell(&self, _: &Call<'_>, _: &str, _: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }

    fn leave(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    fn ask<'a>(&self, _: &Call<'a>, text: &'a str) -> Result<&'a str, SystemException> {
        // The test may have failed.
        let _ = self.begun.send(());
        let _ = self.release.lock().recv_timeout(PATIENCE);
        Ok(text)
    }

    fn relay<'a>(
        &self,
        _: &Call<'a>,
        _: Option<&Member>,
        text: &'a str,
    ) -> Result<&'a str, SystemException> {
        Ok(text)
    }

    fn sum(&self, _: &Call<'_>, _: &[u8]) -> Result<i64, SystemException> {
        Ok(0)
    }
}

#[test]
fn jacorb_does_not_serve_what_expired_on_its_way_from_chronorb() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let one_thread = "-Djacorb.poa.thread_pool_min=1 -Djacorb.poa.thread_pool_max=1";
    let command = ["env".to_owned(), format!("JAVA_TOOL_OPTIONS={one_thread}")];
    let mut process = jacorb.start_by(command.into(), "127.0.0.1", "JacorbMember", |folder| {
        vec![folder.join("ior").display().to_string(), "-".to_owned()]
    });
    let orb = orb()?;
    let member = Member::unchecked_narrow(&orb.string_to_object(&process.wait_for_file("ior"))?);
    let with = |policy| -> Result<Object, Failure> {
        let object = member.as_object();
        Ok(object.with_policy_overrides(&[policy], SetOverride::Add)?)
    };
    let patient = with(ClientPolicy::RelativeRequestTimeout(PATIENCE))?;
    assert_eq!(Member::from_object(patient).ask("ab")?, "ba");

    let root = orb.root_poa()?;
    let ((begun, has_begun), (free, release)) = (channel(), channel());
    let slow = root.serve(MemberSkeleton::new(SlowMember {
        begun,
        release: PiMutex::new(release),
    }))?;
    root.manager().activate()?;
    let slow = Member::unchecked_narrow(&slow);
    // On a slow machine the time may be over before the request is sent, or begin too late.
    for _ in 0..100 {
        let timed = with(ClientPolicy::RelativeRequestTimeout(TIME))?;
        let timed = asynchronous::groups::Member::from_object(timed);
        let late = Member::from_object(with(ClientPolicy::RelativeRoundtripTimeout(2 * TIME))?);
        let (relaying, slow) = (member.clone(), slow.clone());
        let relay = std::thread::spawn(move || relaying.relay(Some(&slow), "x").map(drop));
        has_begun.recv_timeout(PATIENCE)?;
        let call = timed.begin_ask("ab");
        // When the time of a later call is over, that of the first one is, too.
        let over = late.ask("cd").map(drop).expect_err("the only thread waits");
        assert_eq!(over.kind, SystemExceptionKind::Timeout);
        free.send(())?;
        relay.join().expect("no panic")?;
        match call.and_then(|call| call.wait()) {
            Err(late) if late.minor != minor::TIMEOUT_REQUEST_END => {
                assert_eq!(late.kind, SystemExceptionKind::Timeout);
                assert_eq!(late.completed, CompletionStatus::No);
                member.leave()?;
                process.finish();
                return Ok(orb.shutdown(true)?);
            }
            _ => {}
        }
    }
    panic!("no request has expired at JacORB")
}

/// Longer than the time that a request needs on its way.
const TIME: Duration = Duration::from_millis(100);
/// The number of looks at a process for which requests are held.
const HOLD: u32 = 200;
