//! Files with the expected output of a program.

use std::fs;
use std::path::Path;

/// Compares a text with the file of its expected form; `UPDATE_EXPECT=1` writes the file.
#[track_caller]
pub fn assert_expected(file: &Path, text: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file, text).expect("the expected text can be written");
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs; review the difference and run the test with UPDATE_EXPECT=1\nexpected:\n{expected}\nactual:\n{text}",
        file.display()
    );
}
