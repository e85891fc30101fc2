//! Asks for quotes by asynchronous calls: `quoter-asynchronous REFERENCE`.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use chronorb::prelude::*;

mod idl {
    chronorb::include_idl!("quoter");
}
use idl::{GetQuoteErrorBuf, Quoter};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let reference = args.get(1).ok_or("usage: quoter-asynchronous REFERENCE")?;
    let object = orb.string_to_object(reference)?;
    let quoter = Quoter::narrow(&object)?.ok_or("the object is no Quoter")?;

    // Two requests are under way at the same time.
    let first = quoter.begin_get_quote("ACME", &[0.25])?;
    let second = quoter.begin_get_quote("ACME", &[1.0])?;
    println!(
        "waited: {:?} {:?}",
        first.wait()?.curve,
        second.wait()?.curve
    );

    // A thread of the connection calls the handler.
    let (sender, receiver) = mpsc::channel();
    quoter.begin_ping(4)?.on_reply(move |reply| {
        let _ = sender.send(reply);
    })?;
    println!("handled: {}", receiver.recv()??);

    // A call is a future of any executor.
    println!("awaited: {:?}", block_on(sum(&quoter))?);
    Ok(())
}

/// Adds up two quotes that are asked for at the same time.
async fn sum(quoter: &Quoter) -> Result<f64, GetQuoteErrorBuf> {
    let first = quoter.begin_get_quote("ACME", &[0.25])?;
    let second = quoter.begin_get_quote("ACME", &[1.0])?;
    Ok(first.await?.curve[0] + second.await?.curve[0])
}

/// Runs one future on this thread. Applications have an executor for that.
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
