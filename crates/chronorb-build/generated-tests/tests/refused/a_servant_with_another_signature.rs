use chronorb::prelude::*;
use chronorb_generated_tests::shapes::TopServant;

struct Servant;

impl TopServant for Servant {
    fn on_top(&self, _: &Call<'_>, n: i64) -> Result<i64, SystemException> {
        Ok(n)
    }
}

fn main() {}
