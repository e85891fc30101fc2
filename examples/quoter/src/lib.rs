//! A source of quotes and its client: the types of `idl/quoter.idl`, and the servant.

use chronorb::prelude::*;

chronorb::include_idl!("quoter");

/// A book of one symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct Book {
    /// The symbol.
    pub symbol: String,
    /// The offers, the best first.
    pub levels: Vec<Level>,
}

impl Book {
    /// Returns a small book of the symbol `ACME`.
    pub fn acme() -> Self {
        let levels = (0..3).map(|n| Level {
            px: 100.0 + 0.5 * f64::from(n),
            qty: 10 * (n + 1),
        });
        Self {
            symbol: "ACME".to_owned(),
            levels: levels.collect(),
        }
    }
}

impl QuoterServant for Book {
    fn get_quote<'a>(
        &self,
        call: &Call<'a>,
        symbol: &'a str,
        shifts: &'a [f64],
    ) -> Result<Quote<'a>, GetQuoteError<'a>> {
        if symbol != self.symbol {
            return Err(UnknownSymbol { symbol }.into());
        }
        // The results are made in the arena of the call: nothing is allocated.
        let levels = call.slice(&self.levels)?;
        let best = self.levels.first().map_or(0.0, |level| level.px);
        let curve = call.fill(shifts.len(), |n| best + shifts[n])?;
        Ok(Quote {
            symbol,
            levels,
            curve,
        })
    }

    fn ping(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}
