//! Programs that use generated code wrongly, and what the compiler tells them.

#[test]
fn wrong_uses_of_generated_code_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
