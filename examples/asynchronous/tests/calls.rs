//! The program of the example, run against the server of the example `quoter`.

use std::error::Error;
use std::process::Command;

use chronorb::prelude::*;
use quoter_example::{Book, QuoterSkeleton};

#[test]
fn results_are_waited_for_handled_and_awaited() -> Result<(), Box<dyn Error>> {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let orb = Orb::init(&mut args)?;
    let root = orb.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Book::acme()))?;
    root.manager().activate()?;
    let mut client = Command::new(env!("CARGO_BIN_EXE_quoter-asynchronous"));
    let output = client.arg(orb.object_to_string(&object)).output()?;
    assert!(output.status.success(), "{output:?}");
    // As the tutorial shows it.
    let text = String::from_utf8_lossy(&output.stdout);
    let page = include_str!("../../../docs/src/tutorial-asynchronous.md");
    assert!(page.contains(&format!("```text\n{text}```")), "{text}");
    Ok(orb.shutdown(true)?)
}
