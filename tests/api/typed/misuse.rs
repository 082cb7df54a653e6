//! Invalid uses of the types do not compile, with an understandable error.

#[test]
fn typed_misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/typed/*.rs");
}
