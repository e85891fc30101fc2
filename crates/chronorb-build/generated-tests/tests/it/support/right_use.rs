//! A right use, which compiles. So each wrong one is refused for its own reason.

use chronorb::prelude::*;
use chronorb_generated_tests::shapes::TopServant;

struct Servant;

impl TopServant for Servant {
    fn on_top(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}

fn main() {}
