//! The excerpts of the book's pages on the mapping, servants and value types, compiled and run.

use std::error::Error;
use std::sync::{Arc, mpsc};

use chronorb::config::OrbConfig;
use chronorb::data::CdrError;
use chronorb::prelude::*;
use chronorb::values::{DataInput, DataOutput};
use chronorb_generated_tests::pages::{
    Account, AccountFactory, AccountState, Board, BoardBuf, Closed, Content, GetError, GetErrorBuf,
    Kind, Level, Listener, ListenerServant, ListenerSkeleton, Map, MapServant, MapSkeleton,
    NamedPoint, NamedPointState, Point, PointState, Quote, QuoteBuf, Secret, SecretFactory,
    SecretState, Small, Source, SourceServant, SourceSkeleton, Unknown, Venue, Weather,
    WeatherServant, WeatherSkeleton,
};

type Outcome = Result<(), Box<dyn Error>>;

fn orb() -> Result<Orb, Box<dyn Error>> {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    Ok(Orb::with_config(OrbConfig::read(&mut args)?)?)
}

struct Market {
    quotes: Vec<QuoteBuf>,
}

impl SourceServant for Market {
    fn get<'a>(
        &self,
        call: &Call<'a>,
        symbol: &'a str,
        _: &'a [Level],
    ) -> Result<Quote<'a>, GetError<'a>> {
        match self.quotes.iter().find(|quote| quote.symbol == symbol) {
            Some(quote) => Ok(call.keep(quote.clone()).as_view()),
            None => Err(Unknown { symbol }.into()),
        }
    }

    fn show<'a>(&self, call: &Call<'a>, title: &'a str) -> Result<Board<'a>, SystemException> {
        let board = call.keep(BoardBuf {
            title: title.to_owned(),
            quotes: self.quotes.clone(),
        });
        Ok(board.as_view_in(call.arena())?)
    }

    fn subscribe(&self, _: &Call<'_>, target: Option<&Listener>) -> Result<(), SystemException> {
        if let Some(listener) = target {
            listener.changed("ACME")?;
        }
        Ok(())
    }
}

struct Log(mpsc::Sender<String>);

impl ListenerServant for Log {
    fn changed<'a>(&self, _: &Call<'a>, symbol: &'a str) -> Result<(), SystemException> {
        let _ = self.0.send(symbol.to_owned());
        Ok(())
    }
}

#[test]
fn results_are_kept_and_references_are_called() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let levels = vec![Level { px: 1.0, qty: 2 }];
    let quotes = vec![QuoteBuf {
        symbol: "ACME".to_owned(),
        levels,
    }];
    let object = root.serve(SourceSkeleton::new(Market { quotes }))?;
    let (log, changes) = mpsc::channel();
    let listener = root.serve(ListenerSkeleton::new(Log(log)))?;
    root.manager().activate()?;
    let source = Source::unchecked_narrow(&object);
    assert_eq!(source.get("ACME", &[])?.levels[0].qty, 2);
    assert!(matches!(
        source.get("NADA", &[]),
        Err(GetErrorBuf::Unknown(_))
    ));
    assert_eq!(source.show("today")?.quotes[0].symbol, "ACME");
    source.subscribe(Some(&Listener::unchecked_narrow(&listener)))?;
    assert_eq!(changes.recv()?, "ACME");
    let venue = Venue::unchecked_narrow(&object);
    assert_eq!(Source::from(venue).show("today")?.title, "today");
    Ok(orb.shutdown(true)?)
}

#[test]
fn exceptions_and_unions_have_the_forms_of_the_mapping() {
    let closed = GetError::from(Closed {});
    assert!(matches!(closed, GetError::Closed(_)));
    let text = Content::Text {
        discriminator: Kind::Text,
        value: "a",
    };
    assert_eq!(text.discriminator(), Kind::Text);
    assert_eq!(Content::Count(1).discriminator(), Kind::Number);
    assert_eq!(Small::Number(1).discriminator(), 1);
    assert_eq!(
        Small::Ratio {
            discriminator: 3,
            value: 0.5
        }
        .discriminator(),
        3
    );
    assert_eq!(Small::Other(9).discriminator(), 9);
}

struct Places;

impl MapServant for Places {
    fn nearest<'a>(
        &self,
        _: &Call<'a>,
        to: Option<&Arc<dyn Point>>,
    ) -> Result<Option<Arc<dyn Point>>, SystemException> {
        let base = to.map(|to| to.point_state().clone()).unwrap_or_default();
        let named = NamedPointState {
            base,
            name: "here".to_owned(),
        };
        let named: Arc<dyn NamedPoint> = named.into();
        Ok(Some(named))
    }
}

#[test]
fn values_keep_their_type() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let object = root.serve(MapSkeleton::new(Places))?;
    root.manager().activate()?;
    let map = Map::unchecked_narrow(&object);
    let here: Arc<dyn Point> = PointState { x: 3, y: 4 }.into();
    let found = map.nearest(Some(&here))?.ok_or("an empty map")?;
    println!("{}", found.point_state().x);
    if let Some(named) = <dyn NamedPoint>::narrow(&found) {
        println!("{}", named.named_point_state().name);
    }
    assert_eq!(found.point_state().x, 3);
    Ok(orb.shutdown(true)?)
}

#[derive(Debug)]
struct CheckingAccount(AccountState);

impl Account for CheckingAccount {
    fn account_state(&self) -> &AccountState {
        &self.0
    }
    fn withdraw(&self, amount: i32) -> Result<i32, SystemException> {
        Ok(self.0.cents - amount)
    }
}

chronorb::impl_value!(CheckingAccount as Account);

struct Bank;

impl AccountFactory for Bank {
    fn unmarshal(&self, state: AccountState) -> Arc<dyn Account> {
        Arc::new(CheckingAccount(state))
    }
    fn open(&self, owner: &str) -> Result<Arc<dyn Account>, SystemException> {
        Ok(self.unmarshal(AccountState {
            owner: owner.to_owned(),
            cents: 0,
        }))
    }
}

#[derive(Debug)]
struct Hidden(SecretState);

impl Secret for Hidden {
    fn secret_state(&self) -> &SecretState {
        &self.0
    }

    fn marshal(&self, output: &mut DataOutput<'_>) -> Result<(), CdrError> {
        output.write_u8(VERSION)?;
        output.write_str(&self.0.text)
    }
}

chronorb::impl_value!(Hidden as Secret);

struct SecretHider;

impl SecretFactory for SecretHider {
    fn unmarshal(&self, input: &mut DataInput<'_>) -> Result<Arc<dyn Secret>, CdrError> {
        let _version = input.read_u8()?;
        let text = input.read_str()?.to_owned();
        Ok(Arc::new(Hidden(SecretState { text })))
    }
}

const VERSION: u8 = 1;

#[test]
fn factories_make_values_with_operations() -> Outcome {
    <dyn Account>::register_factory(Bank)?;
    <dyn Secret>::register_factory(SecretHider)?;
    let account = Bank.open("Ada")?;
    assert_eq!(account.withdraw(5)?, -5);
    Ok(())
}

struct Station(mpsc::Sender<f64>);

impl WeatherServant for Station {
    fn report(&self, _: &Call<'_>, celsius: f64) -> Result<(), SystemException> {
        let _ = self.0.send(celsius);
        Ok(())
    }
}

#[test]
fn every_member_of_a_group_gets_a_report() -> Outcome {
    let mut args = [
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBMulticast",
        "interface=lo&ttl=0",
    ]
    .map(str::to_owned)
    .to_vec();
    let orb = Orb::with_config(OrbConfig::read(&mut args)?)?;
    let poa = orb.root_poa()?;
    let (sender, reports) = mpsc::channel();
    let id = poa.activate_object(WeatherSkeleton::new(Station(sender)))?;
    poa.manager().activate()?;
    let group = orb.string_to_object("corbaloc:miop:1.0@1.0-Weather-1/239.192.0.7:5007")?;
    // A server: one more member.
    poa.associate_reference_with_id(&group, &id)?;
    // A client: every member gets it.
    Weather::unchecked_narrow(&group).report(21.5)?;
    assert!((reports.recv()? - 21.5).abs() < f64::EPSILON);
    Ok(orb.shutdown(true)?)
}
