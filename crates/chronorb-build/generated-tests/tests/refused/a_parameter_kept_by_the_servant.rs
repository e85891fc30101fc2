use std::sync::OnceLock;

use chronorb::prelude::*;
use chronorb_generated_tests::recursive::nest::{
    Directory, Expression, Tree, WalkerServant,
};

struct Servant(OnceLock<Expression<'static>>);

impl WalkerServant for Servant {
    fn walk<'a>(
        &self,
        _: &Call<'a>,
        a: &Tree<'a>,
        _: &mut Tree<'a>,
    ) -> Result<Tree<'a>, SystemException> {
        Ok(*a)
    }

    fn simplify<'a>(
        &self,
        _: &Call<'a>,
        a: &Expression<'a>,
    ) -> Result<Expression<'a>, SystemException> {
        let _ = self.0.set(*a);
        Ok(*a)
    }

    fn list<'a>(
        &self,
        _: &Call<'a>,
        a: &Directory<'a>,
    ) -> Result<(Directory<'a>, u32), SystemException> {
        Ok((*a, 0))
    }
}

fn main() {}
