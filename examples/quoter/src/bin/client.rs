//! Asks for quotes: `quoter-client REFERENCE [SYMBOL]`.

use std::error::Error;

use chronorb::prelude::*;
use quoter_example::{GetQuoteError, Quoter};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let reference = args
        .get(1)
        .ok_or("usage: quoter-client REFERENCE [SYMBOL]")?;
    let symbol = args.get(2).map_or("ACME", String::as_str);

    let object = orb.string_to_object(reference)?;
    let quoter = Quoter::narrow(&object)?.ok_or("the object is no Quoter")?;
    println!("ping: {}", quoter.ping(4)?);

    // The plain method returns what it owns.
    let quote = quoter.get_quote(symbol, &[0.25, 1.0])?;
    for level in &quote.levels {
        println!("{}: {} at {}", quote.symbol, level.qty, level.px);
    }

    // Its twin borrows from the scope, and allocates nothing.
    let mut scope = Scope::new(64 * 1024);
    match quoter.get_quote_in(&mut scope, "NONE", &[]) {
        Ok(quote) => println!("{} has {} levels", quote.symbol, quote.levels.len()),
        Err(GetQuoteError::UnknownSymbol(unknown)) => println!("no quote of {}", unknown.symbol),
        Err(GetQuoteError::System(exception)) => return Err(exception.into()),
    }
    Ok(())
}
