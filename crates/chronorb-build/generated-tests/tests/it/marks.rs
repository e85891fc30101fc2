//! Annotations that choose other types: inline text, references that are never nil, sequences that
//! are decoded element by element.

use chronorb::prelude::*;
use chronorb_generated_tests::marks::marks::{
    Desk, DeskServant, DeskSkeleton, Fill, Instrument, Symbol,
};

/// A trader that is its own neighbour.
struct Trader;

impl DeskServant for Trader {
    fn next(&self, call: &Call<'_>) -> Result<Desk, SystemException> {
        let object = call.poa().id_to_reference(call.object_id());
        Ok(Desk::unchecked_narrow(&object.expect("it is active")))
    }

    fn echo(
        &self,
        _: &Call<'_>,
        what: &Instrument,
        other: &Symbol,
    ) -> Result<Instrument, SystemException> {
        let name = if other.is_empty() { what.name } else { *other };
        Ok(Instrument { name, ..*what })
    }

    fn other(
        &self,
        _: &Call<'_>,
        from: &Desk,
        third: &mut Object,
    ) -> Result<Object, SystemException> {
        let old = third.clone();
        *third = from.as_object().clone();
        Ok(old)
    }

    fn nothing(&self, _: &Call<'_>) -> Result<Option<Object>, SystemException> {
        Ok(None)
    }

    fn sum<'a>(
        &self,
        _: &Call<'a>,
        list: chronorb::data::Lazy<'a, Fill<'a>>,
        after: &'a str,
    ) -> Result<f64, SystemException> {
        let mut sum = 0.0;
        let mut begun = after.is_empty();
        for fill in list.iter().expect("for the first time") {
            let fill = fill?;
            if begun {
                sum += fill.prices.iter().sum::<f64>();
            }
            begun |= fill.order == after;
        }
        Ok(sum)
    }
}

/// Returns a desk that is called directly, through its POA, and over the loop-back.
///
/// The last has owned results.
fn desks() -> [(Orb, Desk); 4] {
    ["direct", "poa", "off", "owned"].map(|way| {
        let is_owned = way == "owned";
        let collocation = if is_owned { "off" } else { way };
        let args = ["test", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        args.extend(["-ORBCollocation".to_owned(), collocation.to_owned()]);
        let orb = Orb::init(&mut args).expect("an ORB");
        let root = orb.root_poa().expect("a POA");
        let served = if is_owned {
            root.serve(crate::owned::desk())
        } else {
            root.serve(DeskSkeleton::new(Trader))
        };
        let object = served.expect("served");
        root.manager().activate().expect("activated");
        let desk = Desk::narrow(&object).expect("asked").expect("a desk");
        (orb, desk)
    })
}

#[test]
fn text_is_kept_where_it_stands() {
    for (_orb, desk) in desks() {
        let instrument = Instrument {
            name: "ACME".parse().expect("short"),
            currency: "EUR".parse().expect("short"),
            venues: ["XETR".parse().expect("short"), "".parse().expect("short")],
            price: 10.5,
        };
        let empty = "".parse().expect("short");
        assert_eq!(desk.echo(&instrument, &empty), Ok(instrument));
        let other = "OTHER".parse().expect("short");
        assert_eq!(
            desk.echo(&instrument, &other).expect("called").name,
            "OTHER"
        );
    }
}

#[test]
fn references_that_are_never_nil_are_no_options() {
    for (_orb, desk) in desks() {
        let next: Desk = desk.next().expect("called");
        assert_eq!(next, desk);
        let mut third = next.as_object().clone();
        let other: Object = desk.other(&desk, &mut third).expect("called");
        assert_eq!(other, third);
        assert_eq!(desk.nothing(), Ok(None));
    }
}

#[test]
fn a_lazy_sequence_is_gone_through_after_all_parameters_were_read() {
    let prices: Vec<f64> = (0..100).map(f64::from).collect();
    let fills: Vec<_> = (0..50)
        .map(|at| Fill {
            order: if at == 9 { "begin" } else { "other" },
            prices: &prices,
        })
        .collect();
    for (_orb, desk) in desks() {
        let sum = prices.iter().sum::<f64>();
        assert_eq!(desk.sum(&fills, ""), Ok(50.0 * sum));
        assert_eq!(desk.sum(&fills, "begin"), Ok(40.0 * sum));
        assert_eq!(desk.sum(&[], ""), Ok(0.0));
    }
}
