use chronorb::prelude::*;
use chronorb_generated_tests::recursive::nest::{Expression, Walker};

fn both(walker: &Walker, scope: &mut Scope) -> Result<bool, SystemException> {
    let first = walker.simplify_in(scope, &Expression::Number(1.0))?;
    let second = walker.simplify_in(scope, &Expression::Number(2.0))?;
    Ok(first == second)
}

fn main() {}
