//! Invalid uses of the types do not compile, with an understandable error.

#[test]
fn misuse_of_generated_types_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/typed/*.rs");
}
