//! Calls with values and references of the other crate's types.

use std::sync::Arc;

use chronorb::prelude::*;
use chronorb_extern_tests::cellar::house::{
    Cellar, CellarServant, CellarSkeleton, Stock, StockBuf, TakeError,
};
use chronorb_extern_tests::town;
use chronorb_generated_tests::base::house::base::{Inner, Pair};
use chronorb_generated_tests::base::house::{Base, BaseServant, CheckedError};

struct Vault;

impl BaseServant for Vault {
    fn label<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("vault")
    }

    fn height(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(-3)
    }

    fn set_height(&self, _: &Call<'_>, value: i32) -> Result<(), SystemException> {
        match value {
            ..0 => Ok(()),
            _ => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                0,
                CompletionStatus::No,
            )),
        }
    }

    fn checked<'a>(&self, _: &Call<'a>, p: &'a [Pair]) -> Result<&'a [Pair], CheckedError> {
        match p.len() {
            0 => Err(Inner { n: 0 }.into()),
            _ => Ok(p),
        }
    }
}

impl CellarServant for Vault {
    fn take<'a>(&self, _: &Call<'a>, wanted: &Stock<'a>) -> Result<Stock<'a>, TakeError> {
        match wanted.bottles.len() {
            0 => Err(Inner { n: 7 }.into()),
            _ => Ok(*wanted),
        }
    }

    fn temperature(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(11)
    }
}

/// Returns a cellar that is called directly, through its POA, and over the loop-back.
fn cellars() -> [(Orb, Cellar); 3] {
    ["direct", "poa", "off"].map(|collocation| {
        let args = ["test", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        args.extend(["-ORBCollocation".to_owned(), collocation.to_owned()]);
        let orb = Orb::init(&mut args).expect("an ORB");
        let root = orb.root_poa().expect("a POA");
        let object = root.serve(CellarSkeleton::new(Vault)).expect("served");
        root.manager().activate().expect("activated");
        let cellar = Cellar::narrow(&object).expect("asked").expect("a cellar");
        (orb, cellar)
    })
}

#[test]
fn inherited_operations_of_the_other_crate_are_called() {
    for (_orb, cellar) in cellars() {
        assert_eq!(cellar.label().expect("called"), "vault");
        assert_eq!(cellar.height().expect("called"), -3);
        cellar.set_height(-4).expect("called");
        assert!(cellar.set_height(4).is_err());
        assert_eq!(cellar.temperature().expect("called"), 11);
    }
}

#[test]
fn a_derived_reference_is_one_of_the_base_in_the_other_crate() {
    for (_orb, cellar) in cellars() {
        let base = Base::from(cellar);
        let pairs = [Pair { x: 1, y: 2 }];
        assert_eq!(base.checked(&pairs).expect("called"), pairs);
        let error = base.checked(&[]).expect_err("nothing to check");
        assert_eq!(error, CheckedError::Inner(Inner { n: 0 }));
    }
}

#[test]
fn types_and_exceptions_of_the_other_crate_travel() {
    for (_orb, cellar) in cellars() {
        let stock = StockBuf {
            place: Pair { x: 1, y: 2 },
            bottles: vec![Pair { x: 3, y: 4 }],
            neighbours: vec![None],
        };
        let arena = chronorb::data::Arena::new(1 << 12);
        let view = stock.as_view_in(&arena).expect("room");
        assert_eq!(cellar.take(&view).expect("called"), stock);
        let error = cellar.take(&Stock::default()).expect_err("nothing wanted");
        assert_eq!(error, TakeError::Inner(Inner { n: 7 }));
    }
}

#[test]
fn a_servant_can_be_shared_as_one_of_the_base() {
    let vault = Arc::new(Vault);
    let base: Arc<dyn BaseServant> = vault;
    assert_eq!(Arc::strong_count(&base), 1);
}

#[test]
fn modules_in_files_of_their_own_find_each_other() {
    let square = town::town::SquareBuf {
        size: Pair { x: 5, y: 6 },
        name: "old".to_owned(),
    };
    let region = town::country::RegionBuf {
        squares: vec![square],
    };
    assert_eq!(region.squares[0].size.x, 5);
    assert_eq!(town::country::TOWNS, town::FOUNDED / 10);
}

#[test]
fn files_that_include_the_same_one_agree_about_its_types() {
    use chronorb_extern_tests::shared::grapes::grapes::{Colour, Kind, KindBuf};
    use chronorb_extern_tests::shared::{guests, wine};

    // The result of one file's interface has the type of the other's parameter.
    fn pour(press: &wine::Press, guest: &guests::Guest) -> Result<(), SystemException> {
        let kind: KindBuf = press.pressed(1997).map_err(|_| unsupported())?;
        guest.drink(&kind.as_view())
    }
    fn unsupported() -> SystemException {
        SystemException::new(SystemExceptionKind::NoImplement, 0, CompletionStatus::No)
    }
    let _: fn(&wine::Press, &guests::Guest) -> Result<(), SystemException> = pour;
    let kind = Kind {
        name: "Riesling",
        of: Colour::White,
    };
    assert_eq!(kind.to_owned().as_view(), kind);
}
