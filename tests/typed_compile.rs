//! What must not compile does not, with an error that a person understands.

#[test]
fn misuse_of_generated_types_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/typed/*.rs");
}
