//! The excerpts of the book's page on asynchronous calls, compiled and run. `cargo xtask tidy`
//! checks that each of them is here.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_generated_tests::feed::{
    PriceError, PriceErrorBuf, Quoter, QuoterReplyHandler, QuoterServant, QuoterSkeleton,
    UnknownSymbol,
};

type Outcome = Result<(), Box<dyn Error>>;

struct Feed;

impl QuoterServant for Feed {
    fn price<'a>(&self, _: &Call<'a>, symbol: &'a str) -> Result<f64, PriceError<'a>> {
        match symbol {
            "ACME" => Ok(1.5),
            "OTHER" => Ok(2.5),
            symbol => Err(UnknownSymbol { symbol }.into()),
        }
    }

    fn exchange<'a>(&self, _: &Call<'a>, _: &mut &'a str) -> Result<(i32, f64), SystemException> {
        Ok((1, 2.0))
    }

    fn label<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("label")
    }

    fn set_label<'a>(&self, _: &Call<'a>, _: &'a str) -> Result<(), SystemException> {
        Ok(())
    }

    fn reset(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    fn wake(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

struct Board;

impl QuoterReplyHandler for Board {
    fn price(&self, reply: Result<f64, PriceErrorBuf>) {
        match reply {
            Ok(price) => println!("it costs {price}"),
            Err(error) => println!("no price: {error}"),
        }
    }

    fn exchange(&self, _: Result<(i32, String, f64), SystemException>) {}
    fn label(&self, _: Result<String, SystemException>) {}
    fn set_label(&self, _: Result<(), SystemException>) {}
}

/// Runs a function with a quoter of another ORB.
fn with_quoter(run: impl FnOnce(&Quoter) -> Outcome) -> Outcome {
    let orb = || {
        let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
            .map(str::to_owned)
            .to_vec();
        Orb::with_config(OrbConfig::read(&mut args).expect("the options are correct"))
    };
    let (server, client) = (orb()?, orb()?);
    let root = server.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Feed))?;
    root.manager().activate()?;
    let object = client.string_to_object(&server.object_to_string(&object))?;
    let result = run(&Quoter::unchecked_narrow(&object));
    client.shutdown(true)?;
    server.shutdown(true)?;
    result
}

#[test]
fn results_are_waited_for() -> Outcome {
    with_quoter(|quoter| {
        let first = quoter.begin_price("ACME")?;
        let mut second = quoter.begin_price("OTHER")?;
        // Both calls are under way. The replies may arrive in any order.
        let price = first.wait()?;
        let other = second.wait_until(Instant::now() + Duration::from_millis(5));
        assert!(price < other.unwrap_or(2.0));
        Ok(())
    })
}

#[test]
fn results_are_looked_for() -> Outcome {
    fn draw_a_frame() {
        thread::yield_now();
    }
    with_quoter(|quoter| {
        let mut pending = quoter.begin_price("ACME")?;
        while pending.try_get().is_none() {
            draw_a_frame();
        }
        Ok(())
    })
}

#[test]
fn handlers_are_given_along() -> Outcome {
    with_quoter(|quoter| {
        quoter
            .begin_price("ACME")?
            .on_reply(|price| println!("{price:?}"))?;
        let board = Arc::new(Board);
        quoter.send_price(board.clone(), "ACME")?;
        quoter.send_price(board, "OTHER")?;
        Ok(())
    })
}

#[test]
fn results_are_awaited() -> Outcome {
    with_quoter(|quoter| {
        let sum = block_on(async {
            let first = quoter.begin_price("ACME")?;
            let second = quoter.begin_price("OTHER")?;
            let sum = first.await? + second.await?;
            Ok::<_, PriceErrorBuf>(sum)
        })?;
        assert!((sum - 4.0).abs() < f64::EPSILON);
        Ok(())
    })
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
        thread::park();
    }
}
