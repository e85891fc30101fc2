//! Asynchronous calls of servers of both sides, with every version of GIOP and connection strategy.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use chronorb::Version;
use chronorb::config::{ConnectionStrategy, OrbConfig};
use chronorb::prelude::*;

use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, Side};

/// The definitions of `idl/interop.idl`, with asynchronous calls.
#[allow(missing_docs, unreachable_pub, reason = "the module is private")]
mod idl {
    chronorb::include_idl!("asynchronous/interop");

    pub use self::interop::*;
}

use idl::{Hub, RaiseUserErrorBuf};

type Outcome = Result<(), Box<dyn Error>>;

const STRATEGIES: [ConnectionStrategy; 4] = [
    ConnectionStrategy::Exclusive,
    ConnectionStrategy::Leader,
    ConnectionStrategy::Thread,
    ConnectionStrategy::Active,
];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const PATIENCE: Duration = Duration::from_secs(60);
const CALLS: i32 = 100;

/// Calls a server of this side, with each version and strategy.
fn with_hub(side: Side, check: impl Fn(&Hub, Version) -> Outcome) -> Outcome {
    if side == Side::OmniOrb && !require(&[&OMNIORB]) {
        return Ok(());
    }
    let server = Server::start(side, &[]);
    for version in VERSIONS {
        for strategy in STRATEGIES {
            eprintln!("GIOP {version:?}, {strategy:?}");
            let mut config = OrbConfig::default();
            config.max_giop_version = version;
            config.client_connection = strategy;
            let orb = Orb::with_config(config)?;
            let object = orb.string_to_object(&server.ior)?;
            check(&Hub::unchecked_narrow(&object), version)?;
            orb.shutdown(true)?;
        }
    }
    Ok(())
}

fn values(hub: &Hub, _: Version) -> Outcome {
    let echo = hub.begin_get_echo()?.wait()?.ok_or("nil")?;
    let (sender, receiver) = channel();
    let begun: Result<Vec<_>, _> = (0..CALLS).map(|n| echo.begin_echo_long(n, -n)).collect();
    for n in 0..CALLS {
        let sender = sender.clone();
        let pending = echo.begin_echo_string("text", &n.to_string())?;
        pending.on_reply(move |reply| sender.send((n, reply)).expect("the test is there"))?;
    }
    // The last calls are awaited first.
    for (n, pending) in begun?.into_iter().enumerate().rev() {
        let n = n as i32;
        let (result, io, o) = pending.wait()?;
        assert!([result, io, o].contains(&n));
    }
    let mut told = [false; CALLS as usize];
    for _ in 0..CALLS {
        let (n, reply) = receiver.recv_timeout(PATIENCE)?;
        let (result, ..) = reply?;
        assert_eq!(result, "text");
        told[n as usize] = true;
    }
    assert!(told.iter().all(|told| *told));

    // Longer than one message of omniORB.
    let longs: Vec<i32> = (0..20_000).collect();
    let (result, ..) = block_on(echo.begin_echo_longs(&longs, &[])?)?;
    assert_eq!(result, longs);
    Ok(())
}

fn exceptions(hub: &Hub, _: Version) -> Outcome {
    let faulty = hub.begin_get_faulty()?.wait()?.ok_or("nil")?;
    let plain = faulty.begin_raise_user(1)?;
    let refused = faulty.begin_raise_user(2)?;
    let system = faulty.begin_raise_system("NO_PERMISSION", 7, 2)?;
    assert!(matches!(plain.wait(), Err(RaiseUserErrorBuf::Plain(_))));
    assert!(matches!(
        block_on(refused),
        Err(RaiseUserErrorBuf::Refused(_))
    ));
    let expected = SystemException::maybe(SystemExceptionKind::NoPermission, 7);
    assert_eq!(system.wait(), Err(expected));

    let gone = hub.begin_get_deactivated()?.wait()?.ok_or("nil")?;
    let exception = gone.begin_echo_long(1, 2)?.wait().expect_err("it is gone");
    assert_eq!(exception.kind, SystemExceptionKind::ObjectNotExist);
    Ok(())
}

/// Returns a reference whose target forwards every request.
fn forwards(hub: &Hub, version: Version) -> Outcome {
    let Some(forwarded) = hub.begin_get_forwarded()?.wait()? else {
        return Ok(());
    };
    // Before GIOP 1.2 a request may have to be marshalled again.
    if version >= Version::V1_2 {
        for n in 0..3 {
            let (result, ..) = forwarded.begin_echo_long(n, 5)?.wait()?;
            assert_eq!(result, n);
            let (result, ..) = block_on(forwarded.begin_echo_string("text", "other")?)?;
            assert_eq!(result, "text");
        }
    }
    Ok(())
}

/// Runs a future on a minimal executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(PATIENCE);
    }
}

#[test]
fn values_go_to_omniorb_and_back() -> Outcome {
    with_hub(Side::OmniOrb, values)
}

#[test]
fn values_go_to_chronorb_and_back() -> Outcome {
    with_hub(Side::Chronorb, values)
}

#[test]
fn exceptions_come_from_omniorb() -> Outcome {
    with_hub(Side::OmniOrb, exceptions)
}

#[test]
fn exceptions_come_from_chronorb() -> Outcome {
    with_hub(Side::Chronorb, exceptions)
}

#[test]
fn forwards_of_omniorb_are_followed() -> Outcome {
    with_hub(Side::OmniOrb, forwards)
}

#[test]
fn forwards_of_chronorb_are_followed() -> Outcome {
    with_hub(Side::Chronorb, forwards)
}
