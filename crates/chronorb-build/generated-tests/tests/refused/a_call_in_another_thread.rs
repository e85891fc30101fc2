use std::thread;

use chronorb::prelude::*;
use chronorb_generated_tests::shapes::TopServant;

struct Servant;

impl TopServant for Servant {
    fn on_top(&self, call: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        thread::scope(|scope| {
            scope.spawn(|| call.arena().used());
        });
        Ok(n)
    }
}

fn main() {}
