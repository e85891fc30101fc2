//! The excerpt of the book's page on servants.

use chronorb::prelude::*;
use chronorb_generated_tests::owned::pages::{
    BoardBuf, GetErrorBuf, Level, Listener, QuoteBuf, Source, SourceOwnedServant, SourceSkeleton,
    UnknownBuf,
};

use crate::ways::in_each_way;

struct Market {
    quotes: Vec<QuoteBuf>,
}

impl SourceOwnedServant for Market {
    fn get(&self, _: &Call<'_>, symbol: &str, _: &[Level]) -> Result<QuoteBuf, GetErrorBuf> {
        match self.quotes.iter().find(|quote| quote.symbol == symbol) {
            Some(quote) => Ok(quote.clone()),
            None => Err(UnknownBuf {
                symbol: symbol.to_owned(),
            }
            .into()),
        }
    }

    fn show(&self, _: &Call<'_>, title: &str) -> Result<BoardBuf, SystemException> {
        Ok(BoardBuf {
            title: title.to_owned(),
            quotes: self.quotes.clone(),
        })
    }

    fn subscribe(&self, _: &Call<'_>, _: Option<&Listener>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn quotes_are_found_and_shown() {
    let quote = QuoteBuf {
        symbol: "ACME".to_owned(),
        levels: vec![Level { px: 1.0, qty: 2 }],
    };
    let market = || Market {
        quotes: vec![quote.clone()],
    };
    for served in in_each_way(|| SourceSkeleton::new(market())) {
        let source = Source::unchecked_narrow(&served.object);
        assert_eq!(source.get("ACME", &[]).expect("called"), quote);
        let unknown = source.get("NADA", &[]);
        assert!(matches!(unknown, Err(GetErrorBuf::Unknown(unknown)) if unknown.symbol == "NADA"));
        let board = source.show("today").expect("called");
        assert_eq!(board.quotes.as_slice(), std::slice::from_ref(&quote));
    }
}
