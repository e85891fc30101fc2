//! Wrong uses of generated code, and the compiler's errors.

#[test]
fn wrong_uses_of_generated_code_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
