//! Files with the expected output of a program.

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// The maximum number of lines of a difference that is shown.
const MAX_SHOWN_LINES: usize = 200;

/// Compares a text with the file of its expected form; `UPDATE_EXPECT=1` writes the file.
#[track_caller]
pub fn assert_expected(file: &Path, text: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file, text).expect("the expected text can be written");
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs; review the difference and run the test with UPDATE_EXPECT=1\n{}",
        file.display(),
        text_difference(&expected, text)
    );
}

/// The unified diff from an expected text to the actual one, cut if it is long.
pub fn text_difference(expected: &str, actual: &str) -> String {
    let diff = TextDiff::from_lines(expected, actual);
    let all = diff.unified_diff().header("expected", "actual").to_string();
    let mut lines = all.lines();
    let mut shown: String = lines
        .by_ref()
        .take(MAX_SHOWN_LINES)
        .flat_map(|line| [line, "\n"])
        .collect();
    let left = lines.count();
    if left > 0 {
        shown.push_str(&format!("({left} more lines of the difference)\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_texts_shows_changed_lines_with_their_context() {
        let lines = |range: std::ops::Range<usize>| -> String {
            range.map(|line| format!("line {line}\n")).collect()
        };
        let expected = lines(0..1000);
        let actual = expected.replace("line 500\n", "another\n");
        assert_eq!(
            text_difference(&expected, &actual),
            "--- expected\n+++ actual\n@@ -498,7 +498,7 @@\n line 497\n line 498\n line 499\n-line 500\n+another\n line 501\n line 502\n line 503\n"
        );
        let cut = text_difference(&expected, "");
        assert_eq!(cut.lines().count(), MAX_SHOWN_LINES + 1);
        assert!(
            cut.ends_with("\n(803 more lines of the difference)\n"),
            "{cut}"
        );
        assert_eq!(text_difference(&expected, &expected), "");
    }

    #[test]
    fn text_that_differs_from_its_file_fails_with_the_difference() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "one\ntwo\nthree\n").expect("it is written");
        let failed = std::panic::catch_unwind(|| assert_expected(file.path(), "one\n2\nthree\n"));
        let message = failed.expect_err("it differs");
        let message = message.downcast_ref::<String>().expect("a text");
        assert!(message.contains(" one\n-two\n+2\n three\n"), "{message}");
    }
}
