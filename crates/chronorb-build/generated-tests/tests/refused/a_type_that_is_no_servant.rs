use std::sync::Arc;

use chronorb::prelude::*;
use chronorb_generated_tests::shapes::{TopServant, TopSkeleton};

struct Forgotten;

struct Servant;

impl TopServant for Servant {
    fn on_top(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}

fn main() {
    TopSkeleton::new(Forgotten);
    TopSkeleton::new(Arc::new(Servant));
}
