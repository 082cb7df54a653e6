//! Command strings: which are split, and into what.

use proptest::prelude::*;

use super::*;
use crate::command::{Split, split};

fn split_words(text: &str) -> Vec<String> {
    match split(text) {
        Split::Words(words) => words.iter().map(|word| word.raw().to_owned()).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn command_without_shell_syntax_is_split_as_in_a_shell() {
    for (text, words) in [
        ("npx -y a@1", &["npx", "-y", "a@1"][..]),
        ("  a\t b ", &["a", "b"]),
        (r#"a "b c" 'd  e' f"g"'h'"#, &["a", "b c", "d  e", "fgh"]),
        (r#"a "" ''"#, &["a", "", ""]),
        (r"a b\ c \| \\", &["a", "b c", "|", "\\"]),
        (r#"a "x\"y" "\z" 'it\'"#, &["a", "x\"y", "\\z", "it\\"]),
        (r#"a "*;|&" '$x `y` #'"#, &["a", "*;|&", "$x `y` #"]),
        ("a --x=1 k=v", &["a", "--x=1", "k=v"]),
        (
            "a ${X} \"${Y:-p q}\" '${Z}' p${W:-a;b}s",
            &["a", "${X}", "${Y:-p q}", "${Z}", "p${W:-a;b}s"],
        ),
        ("ä 'ö ü'", &["ä", "ö ü"]),
    ] {
        assert_eq!(split_words(text), words, "{text}");
    }
}

#[test]
fn command_with_shell_syntax_needs_a_shell() {
    for text in [
        "a | b",
        "a & b",
        "a; b",
        "a < b",
        "a > b",
        "a (b)",
        "a $b",
        "a `b`",
        "a *",
        "a ?",
        "a ~",
        "a #b",
        "a\nb",
        "A=b c",
        " A=b",
        "a \"$b\"",
        "a \"`b`\"",
        r"a \$b",
        r#"a "\$b""#,
        "$(a)",
        "a ${X} | b",
        "A=${X} b",
    ] {
        assert_eq!(split(text), Split::Shell, "{text}");
    }
    assert!(
        source_with_command("\"a | b\"")
            .process()
            .unwrap()
            .is_shell()
    );
    assert!(
        !source_with_command("\"a '|' b\"")
            .process()
            .unwrap()
            .is_shell()
    );
    assert!(
        !source_with_command("[\"a | b\"]")
            .process()
            .unwrap()
            .is_shell()
    );
    let source = parse(&with_source(r#""args":["$x;"]"#)).config;
    assert_eq!(
        words(&source.sources().next().unwrap().process().unwrap().command),
        ["x", "$x;"]
    );
    let text = r#"{"tree":[{"path":"/a","source":{"command":"a | b","args":[]}}]}"#;
    let config = parse(text).config;
    assert_eq!(
        words(&config.sources().next().unwrap().process().unwrap().command),
        ["a | b"]
    );
}

#[test]
fn command_word_has_its_pointer() {
    for (command, want) in [
        ("\"x ${A} b\"", vec!["/command"; 3]),
        ("\"x | y ${A}\"", vec!["/command"]),
        (r#"["x", "${A}"]"#, vec!["/command/0", "/command/1"]),
        (
            r#"["x", "${A}"],"args":["b"]"#,
            vec!["/command/0", "/command/1", "/args/0"],
        ),
        (
            r#""x","args":["a","b"]"#,
            vec!["/command", "/args/0", "/args/1"],
        ),
    ] {
        assert_eq!(
            source_with_command(command).process().unwrap().places,
            want,
            "{command}"
        );
    }
}

#[test]
fn command_value_stays_one_argument() {
    let source = source_with_command("\"x ${A} 'p${A}'\"");
    let hostile = "a b\"'; rm\n${B}";
    let CommandLine::Direct { args, .. } = &source.process().unwrap().command else {
        panic!("{:?}", source.process().unwrap().command);
    };
    let expanded: Vec<_> = args
        .iter()
        .map(|arg| arg.expand(&|_| Some(hostile.to_owned())).unwrap())
        .collect();
    assert_eq!(expanded, [hostile.to_owned(), format!("p{hostile}")]);
}

/// As a careful person writes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}

proptest! {
    #[test]
    fn command_words_quoted_are_split_unchanged(words in proptest::collection::vec("[^\0]{0,8}", 1..5)) {
        prop_assume!(words.iter().all(|word| !word.contains("${")));
        let line: Vec<String> = words.iter().map(|word| quote(word)).collect();
        prop_assert_eq!(split_words(&line.join(" ")), words);
    }

    #[test]
    fn command_split_of_any_text_does_not_panic(text in "[ab \"'\\\\$`{}:A|\n()<#ä=-]{0,30}") {
        let _outcome = split(&text);
        if crate::Template::parse(&text).is_ok() {
            let _outcome = crate::shell::rewrite(&text);
        }
    }

    #[test]
    fn command_rewrite_of_any_tokens_does_not_panic(
        tokens in proptest::collection::vec(
            proptest::sample::select(vec![
                "sh", "-c", "${X}", "'${X}'", "|", "||", "&", ">", ";", "\\;", "(", ")", "$(", "<(", "<<<",
                "\"", "'", "\n", "find", "-exec", "{}", "xargs", "-I", "env", "-S", "eval", "case", "esac",
                "while", "done", "{", "}", "$SHELL", "python", "-e", "ssh", "awk", ".", "-", " ", " ", " ",
            ]),
            0..16,
        ),
    ) {
        let _outcome = crate::shell::rewrite(&tokens.join(" "));
        let _outcome = crate::shell::rewrite(&tokens.concat());
    }
}
