//! The parts of a command that a lock does not contain.

use super::*;

fn config(source: &str, env: &str) -> Config {
    let text = format!(r#"{{"tree":[{{"path":"/a","source":{{{source},"env":{{{env}}}}}}}]}}"#);
    Config::parse("c.json", text.as_bytes())
        .expect("valid")
        .config
}

/// The words of the first source with each hidden part in angle brackets.
fn shown(source: &str) -> Vec<String> {
    shown_with(source, "")
}

fn shown_with(source: &str, env: &str) -> Vec<String> {
    let config = config(source, env);
    let source = config.sources().next().expect("a source");
    let words = Words::from_command(&source.process().unwrap().command);
    let hidden = words.hidden(&config.literal_secrets(), true);
    let of_word = words.texts.iter().zip(hidden);
    of_word
        .map(|(word, hidden)| {
            let mut out = String::new();
            let mut at = 0;
            for one in hidden {
                out.push_str(&word[at..one.range.start]);
                out.push_str(&format!("‹{}›", &word[one.range.clone()]));
                at = one.range.end;
            }
            out + &word[at..]
        })
        .collect()
}

fn args(words: &[&str]) -> Vec<String> {
    let args = serde_json::json!(words);
    let mut shown = shown(&format!(r#""command":"x","args":{args}"#));
    shown.remove(0);
    shown
}

fn masked(source: &str) -> Vec<String> {
    let config = config(source, "");
    let source = config.sources().next().expect("a source");
    let found = source
        .process()
        .unwrap()
        .literal_secret_arguments()
        .into_iter();
    found.map(str::to_owned).collect()
}

#[test]
fn secret_of_an_option_hides_the_word() {
    assert_eq!(
        args(&[
            "--token",
            "lit1",
            "--api-key=lit2",
            "--port",
            "80",
            "--password",
            "-x1y2"
        ]),
        [
            "--token",
            "‹lit1›",
            "‹--api-key=lit2›",
            "--port",
            "80",
            "--password",
            "‹-x1y2›"
        ]
    );
    // The next option is not the value.
    assert_eq!(
        args(&["--no-auth-token", "--port", "80", "--secret", "-v"]),
        ["--no-auth-token", "--port", "80", "--secret", "-v"]
    );
}

#[test]
fn secret_variables_and_headers_hide_the_word() {
    for (word, hidden) in [
        ("API_TOKEN=lit", true),
        ("--env=API_TOKEN=lit", true),
        ("-eAPI_TOKEN=lit", true),
        ("Authorization: Bearer lit", true),
        ("--header=Authorization:Bearer lit", true),
        ("X-API-Key:lit", true),
        ("${API_TOKEN:-lit}", true),
        ("--token=a-${X}", true),
        ("LEVEL=debug", false),
        // An image and a requirement.
        ("token-server:1.2", false),
        ("secret-tools==1.2", false),
        ("@scope/token-mcp@1.2.3", false),
    ] {
        let expected = if hidden {
            format!("‹{word}›")
        } else {
            word.to_owned()
        };
        assert_eq!(args(&[word]), [expected]);
    }
    let after = args(&["--header", "my-token:lit"]);
    assert_eq!(after, ["--header", "‹my-token:lit›"]);
}

#[test]
fn variable_without_a_literal_stays_as_written() {
    for word in [
        "--token=${TOKEN}",
        "Authorization: Bearer ${TOKEN}",
        "Authorization:${AUTH}",
        "API_KEY=${KEY}",
        "postgres://${USER}:${PASSWORD}@db.example/x",
        "${HOME}/x",
        "${PORT:-8080}",
        "https://h/?api_key=${KEY}&page=2",
    ] {
        assert_eq!(args(&["--token", "${A}", word]), ["--token", "${A}", word]);
    }
}

#[test]
fn url_user_part_is_hidden_and_its_host_is_not() {
    for (word, expected) in [
        (
            "postgres://me:pw@db.example:5432/x",
            "postgres://‹me:pw›@db.example:5432/x",
        ),
        ("https://me@h/x@1", "https://‹me›@h/x@1"),
        (
            "--db=postgres://me:${PW}@h/x",
            "--db=postgres://‹me:${PW}›@h/x",
        ),
        ("postgres://me:p/w@h/x", "postgres://‹me:p/w›@h/x"),
        ("https://h:80/@scope/x", "https://h:80/@scope/x"),
        (
            "https://h/?a=1&api_key=lit#x",
            "https://h/?a=1&api_key=‹lit›#x",
        ),
        ("git+https://h/x", "git+https://h/x"),
    ] {
        assert_eq!(args(&[word]), [expected]);
    }
}

#[test]
fn absolute_path_outside_the_folder_is_hidden() {
    for (word, expected) in [
        ("/home/me/my server.js", "‹/home/me/my server.js›"),
        ("/srv/broker/server.js", "‹/srv/broker/server.js›"),
        ("/srv/broker", "‹/srv/broker›"),
        ("/srv/brokers/x", "‹/srv/brokers/x›"),
        ("/srv/broker/../x", "‹/srv/broker/../x›"),
        ("./x/y", "./x/y"),
        ("x/y", "x/y"),
        ("--config=/etc/x", "--config=‹/etc/x›"),
        ("--config=/etc/${A}/x", "--config=‹/etc/${A}/x›"),
        ("${DIR:-/home/me}/x", "${DIR:-‹/home/me›}/x"),
        ("src=/home/me,dst=/data", "src=‹/home/me›,dst=‹/data›"),
        ("{\"dir\":\"/home/my me\"}", "{\"dir\":\"‹/home/my me›\"}"),
        ("file:///home/me/x", "file://‹/home/me/x›"),
        ("https://h/x", "https://h/x"),
        ("C:\\Users\\me", "‹C:\\Users\\me›"),
        ("@scope/server@1.0.0", "@scope/server@1.0.0"),
    ] {
        assert_eq!(args(&[word]), [expected]);
    }
    assert_eq!(shown(r#""command":"/usr/bin/x y""#), ["‹/usr/bin/x›", "y"]);
}

#[test]
fn words_of_a_shell_command_are_searched_one_by_one() {
    let line = r#""command":"cd /opt/x && TOKEN='l 1' server --token \"lit\" --key $KEY '${A}' 2>/dev/null|tee log""#;
    assert_eq!(
        shown(line),
        [
            "cd",
            "‹/opt/x›",
            "&&",
            "‹TOKEN='l 1'›",
            "server",
            "--token",
            "‹\"lit\"›",
            "--key",
            "$KEY",
            "''\"${A}\"''",
            "2",
            ">",
            "‹/dev/null›",
            "|",
            "tee",
            "log"
        ]
    );
    assert_eq!(masked(line), ["l 1", "lit"]);
    assert_eq!(
        args(&["-c", "exec server --token lit --dir /opt/x;true"]),
        ["-c", "exec server --token ‹lit› --dir ‹/opt/x›;true"]
    );
    assert_eq!(
        shown(r#""command":["sh","-c","server --token lit ${A}"]"#),
        ["sh", "-c", "server --token ‹lit› ${A}"]
    );
}

#[test]
fn word_that_repeats_a_secret_of_env_is_hidden() {
    let shown = shown_with(
        r#""command":["x","a-canary-b","canar","sh","-c","echo canary"]"#,
        r#""API_KEY":"canary","LEVEL":"x","B_TOKEN":"${T}""#,
    );
    assert_eq!(
        shown,
        ["x", "‹a-canary-b›", "canar", "sh", "-c", "‹echo canary›"]
    );
}

#[test]
fn secret_values_in_commands_are_masked_and_warned_about() {
    let source = r#""command":"x","args":["--token=lit1","--api-key","lit2","--port","80","--token","${A}",
        "API_TOKEN=lit3","postgres://me:lit4@h","--secret=a-${B}","--max-tokens","4096","--token-file","f","--use-token=true"]"#;
    assert_eq!(masked(source), ["lit1", "lit2", "lit3", "lit4"]);
    let warnings = config(source, "").literal_secrets_in_commands();
    let places: Vec<_> = warnings
        .iter()
        .map(|one| one.pointer.as_deref().expect("a pointer"))
        .collect();
    let at = |index: usize| format!("/tree/0/source/args/{index}");
    assert_eq!(places, [at(0), at(2), at(7), at(8), at(9)]);
    assert!(
        warnings
            .iter()
            .all(|one| !one.is_error() && one.position.is_some())
    );
    let texts: String = warnings.iter().map(ToString::to_string).collect();
    assert!(
        (1..5).all(|n| !texts.contains(&format!("lit{n}"))),
        "{texts}"
    );
    assert!(
        texts.contains("the value of `--token`") && texts.contains("`${NAME}`"),
        "{texts}"
    );
}

#[test]
fn hidden_parts_of_any_word_are_in_order_and_within_it() {
    let pieces = [
        "--token", "=", "://", "@", "/", "é", "'", "\"", " ", "${A}", "${A:-/x}", ":", "\\", ";",
        "$", "C:\\", "?", "&", "api_key=", "file://", "lit",
    ];
    let mut state = 1u64;
    for _ in 0..3_000 {
        let mut word = String::new();
        for _ in 0..6 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            word.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        for (shell, script) in [(false, None), (false, Some(1)), (true, None)] {
            let words = Words {
                texts: vec!["--secret", &word],
                shell,
                script,
            };
            let mut at = 0;
            for one in words.hidden(&["lit"], true).remove(1) {
                assert!(
                    one.range.start >= at && one.range.end <= word.len(),
                    "{word:?}"
                );
                assert!(word.get(one.range.clone()).is_some(), "{word:?}");
                if let Some(value) = one.secret.and_then(|secret| secret.value) {
                    assert!(word.get(value).is_some(), "{word:?}");
                }
                at = one.range.end;
            }
        }
    }
}
