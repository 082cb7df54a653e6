//! Patterns of ECMA-262 as they are read, with the flag `u` and without it.

use super::*;
use serde_json::json;

fn matches(pattern: &str, text: &str) -> bool {
    let schema = json!({"pattern": pattern});
    let validator = crate::compile(&schema);
    let validator = validator.unwrap_or_else(|problem| panic!("{pattern}: {}", problem.message));
    validator.is_valid(&json!(text))
}

#[test]
fn pattern_with_one_meaning_keeps_its_text() {
    for pattern in [
        "^[a-z0-9_-]+$",
        r"^\d{4}-\d{2}$",
        r"^[\w.-]+@[\w-]+\.\w+$",
        r"^(?:a|b)*?\/x\.y$",
        r"^(?<year>\d+)-\k<year>$",
        r"\bword\b",
        r"^(?!x)(?=y)(?<=z)é$",
        r"[\p{L}\d]",
        "[-a]",
        "[a-]",
    ] {
        let read = read(pattern).unwrap();
        assert_eq!((read.text.as_str(), read.is_legacy), (pattern, false));
    }
}

#[test]
fn pattern_of_ecma_262_matches_as_in_javascript() {
    // Verdicts of `new RegExp(pattern, "u")`, else of `new RegExp(pattern)`, by node.
    for (pattern, text, expected) in [
        ("^[^]*$", "any\ntext", true),
        ("^[]$", "", false),
        ("a[]", "a", false),
        ("^.$", "\r", false),
        ("^.$", "\u{2028}", false),
        ("^.$", "😀", true),
        ("(?s:^.$)", "\n", true),
        (r"^[\w-.]+$", "a-.b", true),
        (r"^[\w-.]+$", "a+b", false),
        (r"^[[a]$", "[", true),
        (r"^[a&&b]$", "&", true),
        (r"^[a&&b]$", "c", false),
        (r"^\<b\>$", "<b>", true),
        (r"^{a}$", "{a}", true),
        (r"^a{,3}$", "a{,3}", true),
        (r"^a{,3}$", "aa", false),
        (r"^\cA$", "\u{1}", true),
        (r"^[\b]$", "\u{8}", true),
        (r"^\0$", "\0", true),
        (r"^\x41\u0042\u{43}$", "ABC", true),
        (r"^\ud83d\ude00$", "😀", true),
        (r"^\u{10ffff}$", "\u{10ffff}", true),
        (r"^\1(a)$", "\u{1}a", false),
        (r"^(a)\1$", "aa", true),
        (r"^(a)\10$", "a\u{8}", true),
        (r"^\07$", "\u{7}", true),
        (r"^[\W]$", "é", true),
        (r"^[^\W]$", "é", false),
        (r"^\w$", "é", false),
        (r"^\s$", "\u{feff}", true),
        (r"^\p{Lu}$", "É", true),
        (r"^\P{L}$", "1", true),
        (r"^[\u4e00-\u9fff]+$", "漢字", true),
        (r"^\A$", "A", true),
        (r"^a]$", "a]", true),
        (r"^\-$", "-", true),
        (r"^\@$", "@", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
    }
}

#[test]
fn pattern_that_needs_no_u_flag_is_marked() {
    for pattern in [r"^[\w-.]+$", r"^\<$", "^{a}$", r"\A", "]", r"\07", r"\-"] {
        assert!(read(pattern).unwrap().is_legacy, "{pattern}");
    }
    assert!(!read(r"^[^]*$").unwrap().is_legacy);
}

#[test]
fn pattern_outside_ecma_262_is_not_read() {
    for pattern in [
        "(",
        ")",
        "a**",
        "*a",
        "a++",
        "(?>a)",
        "(?P<n>a)",
        "(?#a)",
        "(?i)a",
        "[b-a]",
        "[a",
        r"a\",
        "^*",
        "(?<=a)*",
        "x{2}{3}",
        r"(?<n>a)\k<m>",
        r"(?<n>a)\kn>",
        r"[\ud800-\udbff]",
        "(?-:a)",
    ] {
        assert_eq!(read(pattern), None, "{pattern}");
    }
    assert_eq!(read(&"(".repeat(100_000)), None);
    assert_eq!(
        read(&format!("{}{}", "(".repeat(300), ")".repeat(300))),
        None
    );
}
