//! A desk whose results are owned, with the behaviour of the borrowing one.

use chronorb::data::Lazy;
use chronorb::prelude::*;
use chronorb_generated_tests::owned::marks::marks::{
    Desk, DeskOwnedServant, DeskSkeleton, Fill, Instrument, Symbol,
};

type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of a trader that is its own neighbour.
pub(crate) fn desk() -> DeskSkeleton<impl DeskOwnedServant> {
    DeskSkeleton::new(Trader)
}

struct Trader;

impl DeskOwnedServant for Trader {
    fn next(&self, call: &Call<'_>) -> Returns<Desk> {
        let object = call.poa().id_to_reference(call.object_id());
        Ok(Desk::unchecked_narrow(&object.expect("it is active")))
    }

    fn echo(&self, _: &Call<'_>, what: &Instrument, other: &Symbol) -> Returns<Instrument> {
        let name = if other.is_empty() { what.name } else { *other };
        Ok(Instrument { name, ..*what })
    }

    fn other(&self, _: &Call<'_>, from: &Desk, third: &mut Object) -> Returns<Object> {
        Ok(std::mem::replace(third, from.as_object().clone()))
    }

    fn nothing(&self, _: &Call<'_>) -> Returns<Option<Object>> {
        Ok(None)
    }

    fn sum<'a>(&self, _: &Call<'a>, list: Lazy<'a, Fill<'a>>, after: &str) -> Returns<f64> {
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
