use chronorb::prelude::*;
use chronorb_generated_tests::recursive::nest::{Expression, Walker};

fn simplified(walker: &Walker) -> Result<Expression<'_>, SystemException> {
    let mut scope = Scope::new(4096);
    walker.simplify_in(&mut scope, &Expression::Number(1.0))
}

fn main() {}
