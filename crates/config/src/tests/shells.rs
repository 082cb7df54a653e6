//! Variables of a shell command: their places, and that a value never becomes syntax there, as the
//! shell of the machine confirms.

use std::collections::BTreeMap;

use super::*;
use crate::Template;
use crate::shell::{Rewritten, rewrite};

fn rewritten(text: &str) -> String {
    rewrite(text)
        .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .script
        .replace("MCP_BROKER_ARG_", "P")
}

#[test]
fn shell_variable_is_quoted_for_its_place() {
    for (text, want) in [
        ("a | b ${X}", r#"a | b "${P1}""#),
        (r#"a; b "x ${X} y""#, r#"a; b "x ${P1} y""#),
        ("a; b 'x ${X} y'", r#"a; b 'x '"${P1}"' y'"#),
        ("K=${X} a ${X} ${Y:-d e}", r#"K="${P1}" a "${P1}" "${P2}""#),
        (
            r#"a "$(b ${X} "${X}")" ${X}"#,
            r#"a "$(b "${P1}" "${P1}")" "${P1}""#,
        ),
        (
            r#"a "$(b (c) ')' ")" ${X})${X}""#,
            r#"a "$(b (c) ')' ")" "${P1}")${P1}""#,
        ),
        (r"a | b \${X} \'${X}", r#"a | b \${X} \'"${P1}""#),
        (r#"a "\"${X}" '\'${X}"#, r#"a "\"${P1}" '\'"${P1}""#),
        ("a # it's ${X}\nb ${X}", "a # it's ${X}\nb \"${P1}\""),
        (r#"true; a \ #${X} "z""#, r#"true; a \ #"${P1}" "z""#),
        ("a; b \\;#'${X}'", r#"a; b \;#''"${P1}"''"#),
        ("a; b\u{a0}#${X}", "a; b\u{a0}#\"${P1}\""),
        ("a; b\\\n#${X}", "a; b\\\n#\"${P1}\""),
        ("a; b \\\n#${X}'\nc ${X}", "a; b \\\n#${X}'\nc \"${P1}\""),
        ("a#'${X}'", r#"a#''"${P1}"''"#),
        ("a `b '` ${X}", r#"a `b '` "${P1}""#),
        (
            "cat <<E ${X}\nplain\nE\nb ${X}",
            "cat <<E \"${P1}\"\nplain\nE\nb \"${P1}\"",
        ),
        ("cat <<-'E'\n\tE\nb ${X}", "cat <<-'E'\n\tE\nb \"${P1}\""),
        ("a <<< ${X}\nb", "a <<< \"${P1}\"\nb"),
        (
            "case a in a) b ${X};; esac",
            r#"case a in a) b "${P1}";; esac"#,
        ),
        ("a $HOME ${X} $$", r#"a $HOME "${P1}" $$"#),
    ] {
        assert_eq!(rewritten(text), want, "{text}");
    }
}

#[test]
fn shell_place_that_cannot_be_quoted_is_refused() {
    for text in [
        "a `b ${X}`",
        r#"a "`b ${X}`""#,
        "cat <<E\n${X}\nE\n",
        "cat <<'E'\nx ${X}",
        "cat <<-E <<F\n\tE\n${X}\nF\n",
        "cat <<\"$E\"\n${X}",
        "a $((1 + ${X}))",
        r"a $'it\'s ${X}'",
        "a $(case x in x) b ${X};; esac)",
    ] {
        let text = serde_json::to_string(text).unwrap();
        let found = only(&format!(
            r#"{{"tree":[{{"path":"/a","source":{{"command":{text}}}}}]}}"#
        ));
        assert_eq!(found.code, Code::ShellPlace, "{text}");
        assert!(found.message.contains("`${X}`"), "{found}");
    }
}

#[test]
fn shell_script_without_variables_is_unchanged() {
    for text in [
        r"a $'it\'s' | b",
        "a $(case x in x) b;; esac)",
        "a $((1<<2)) | b\nc",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn shell_private_variables_hold_the_written_text() {
    let source = source_with_command(r#""a | b ${X:-d} ${Y} ${X:-d}""#);
    let CommandLine::Shell { variables, .. } = &source.process().unwrap().command else {
        panic!("{:?}", source.process().unwrap().command);
    };
    let held: Vec<_> = variables
        .iter()
        .map(|(name, held)| (name.as_str(), held.raw()))
        .collect();
    assert_eq!(
        held,
        [
            ("MCP_BROKER_ARG_1", "${X:-d}"),
            ("MCP_BROKER_ARG_2", "${Y}")
        ]
    );
}

#[test]
fn shell_value_never_becomes_syntax() {
    let values = [
        "a b",
        "$(echo no)",
        "`echo no`",
        "'; echo no; '",
        "\"; echo no; \"",
        "*",
        "x\ny",
        "\\",
    ];
    for script in [
        "printf %s ${X} | cat",
        r#"printf %s "${X}" | cat"#,
        "printf %s '${X}' | cat",
        r#"printf %s "$(printf %s ${X})" | cat"#,
        "printf %s $(printf %s '' && true)${X} | cat",
        "Y=${X}; printf %s \"$Y\"",
        "printf %s '' # it's\nprintf %s ${X}",
    ] {
        let Rewritten {
            script: rewritten,
            variables,
            ..
        } = rewrite(script).unwrap();
        for value in values {
            #[expect(
                clippy::disallowed_methods,
                reason = "only a shell can check its syntax"
            )]
            let mut shell = std::process::Command::new("/bin/sh");
            shell.arg("-c").arg(&rewritten);
            for (name, template) in &variables {
                let held = template.expand(&|_| Some(value.to_owned())).unwrap();
                shell.env(name, held);
            }
            let output = shell.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), value, "{script}");
        }
    }
}

/// Runs a command line of a config as a source would be started, with a value for `${X}`.
fn run(command: &str, value: &str) -> String {
    let source = source_with_command(command);
    let expand = |template: &Template| template.expand(&|_| Some(value.to_owned())).unwrap();
    let (program, args, variables) = match &source.process().unwrap().command {
        CommandLine::Shell {
            script, variables, ..
        } => {
            let args = vec!["-c".to_owned(), script.clone()];
            ("/bin/sh".to_owned(), args, variables.clone())
        }
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let mut words: Vec<String> = args.iter().map(expand).collect();
            let mut variables = BTreeMap::new();
            if let Some(script) = script {
                words[script.at].clone_from(&script.text);
                variables.clone_from(&script.variables);
            }
            (expand(program), words, variables)
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "only a shell can check its syntax"
    )]
    let mut process = std::process::Command::new(program);
    process.args(args).stderr(std::process::Stdio::null());
    for (name, template) in &variables {
        process.env(name, expand(template));
    }
    let output = process.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A command string as a config has it.
fn string(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn shell_value_is_data_in_the_script_of_any_known_shell() {
    let strings = [
        "sh -c 'printf %s ${X}'",
        r#"/bin/sh -c "printf %s ${X}""#,
        r"sh -c printf\ %s\ ${X}",
        "sh -ec 'printf %s ${X}'",
        "sh -eo noglob -c 'printf %s ${X}'",
        "sh -c -- 'printf %s ${X}'",
        "sh -c -e 'printf %s ${X}'",
        "sh +x -c 'printf %s ${X}'",
        "env A=1 sh -c 'printf %s ${X}'",
        r#"env -u A A=1 B=${X} sh -c 'printf %s "$B"'"#,
        r#"env -u A A=1 B=${X} sh -c 'B=${X}; printf %s "$B"'"#,
        "env -- sh -c 'printf %s ${X}'",
        "nice -n 1 sh -c 'printf %s ${X}'",
        "nice -1 sh -c 'printf %s ${X}'",
        "timeout -k 1 5 sh -c 'printf %s ${X}'",
        "timeout --signal KILL 5 env nice sh -c 'printf %s ${X}'",
        r#"sh -c "sh -c 'printf %s ${X}'""#,
        r#"sh -c "sh -c 'sh -c \"printf %s \\\"${X}\\\"\"'""#,
        "true; sh -c 'printf %s ${X}'",
        r#"true && sh -c "printf %s ${X}""#,
        "true | exec sh -c 'printf %s ${X}'",
        "exec timeout 5 sh -c 'printf %s ${X}' | cat",
        "A=1 B=2 sh -c 'printf %s ${X}'; true",
        ">/dev/null 2>&1 true; if true; then sh -c 'printf %s ${X}'; fi",
        "2>/dev/null sh -c 'printf %s ${X}' 2>&1 | cat",
        "(sh -c 'printf %s ${X}')",
        "case a in a) sh -c 'printf %s ${X}';; esac",
        r#"printf %s "$(sh -c 'printf %s ${X}')""#,
        r#"true; sh -c 'printf %s "$(printf %s ${X})"'"#,
        r#"true; sh -c "sh -c 'printf %s ${X}'""#,
        r"true; sh -c 'sh -c '\''printf %s ${X}'\'''",
        "true; sh -c '# it is\nprintf %s ${X}'",
        r#"true; sh -c 'printf %s "$1"' - ${X}"#,
        "sh -c 'true $((1 + 1)); true' && printf %s ${X}",
        "echo a | xargs sh -c 'printf %s ${X}'",
        "echo a | xargs -0 -n 1 -I{} sh -c 'printf %s ${X}'",
        "echo a | xargs --replace sh -c 'printf %s ${X}'",
        "echo a | xargs --delimiter '\n' --max-chars 100 sh -c 'printf %s ${X}'",
        r"find / -maxdepth 0 -exec sh -c 'printf %s ${X}' \;",
        "find / -maxdepth 0 -exec env A=1 sh -c 'printf %s ${X}' ';' -quit",
        r"find / -maxdepth 0 -exec sh -c 'printf %s ${X}' {} +",
        r"true; find / -maxdepth 0 -exec true \; -exec sh -c 'printf %s ${X}' \;",
        r#"true; find / -maxdepth 0 -exec sh -c 'printf %s "$1"' - ${X} \;"#,
        // What reaches the standard input of a shell with a script is data to it.
        "printf %s ${X} | sh -c cat",
        "printf %s ${X} | sh -c 'cat; true'",
        "printf %s ${X} | { cat; sh </dev/null; }",
        "printf %s ${X} && echo true | sh",
        "printf %s ${X}; printf true | sh",
        "printf %s ${X} | cat\necho true | sh",
        "printf %s ${X} | cat || true | sh",
        "printf %s ${X} >&1 & wait; echo true | sh",
        "case a in sh|bash) true;; *) printf %s ${X};; esac",
        "printf %s ${X} | tr -d '' | cat",
    ];
    let lists = [
        r#"["sh", "-c", "printf %s ${X}"]"#,
        r#"["/usr/bin/env", "sh", "-c", "printf %s '${X}'"]"#,
        r#""sh", "args": ["-c", "printf %s \"${X}\""]"#,
        r#"["find", "/", "-maxdepth", "0", "-exec", "sh", "-c", "printf %s ${X}", ";"]"#,
    ];
    let values = [
        "$(echo no)",
        "`echo no`",
        "'; echo no; '",
        "\"; echo no; \"",
        "a\nb",
        "; echo no",
        "\\",
        "${X}",
    ];
    let commands = strings.iter().map(|text| string(text));
    for command in commands.chain(lists.map(str::to_owned)) {
        for value in values {
            assert_eq!(run(&command, value), value, "{command}");
        }
    }
    // A script that consists of the value alone runs the program of that name, and does not read the
    // value as code.
    for text in [
        "sh -c '${X}'",
        "sh -c ${X}",
        "true; sh -c ${X}",
        r#"sh -c "${X}""#,
    ] {
        assert_eq!(run(&string(text), "echo no; echo no"), "", "{text}");
    }
}

#[test]
fn shell_value_that_would_become_code_is_refused() {
    for text in [
        "eval ${X}",
        "true; eval ${X}",
        r#"true; eval "a ${X}""#,
        "true; sh -c 'eval ${X}'",
        "command eval ${X}; true",
        "trap '${X}' EXIT; a",
        "alias a='${X}'; a",
        r#"true; sh -c "$A ${X}""#,
        r#"true; sh -c "`a` ${X}""#,
        r#"true; sh -c "$(a) ${X}""#,
        r#"true; sh -c "\${A} ${X}""#,
        "sh -${X} 'a ${X}'",
        "env -i sh -c 'a ${X}'",
        "env - sh -c 'a ${X}'",
        "true; exec -c sh -c 'a ${X}'",
        "env -S 'sh -c' 'a ${X}'",
        "env -S 'sh -c ${X}'",
        "env --split-string='sh -c ${X}'",
        "true; sh -c 'cat <<E\n${X}\nE\n'",
        "sh -c 'a `b ${X}`'",
        "sh -c 'a $((1 + ${X}))'",
        "true; bash <<< ${X}",
        r#"true; sh -c 'a "'${X}"#,
    ] {
        let command = string(text);
        let config = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
        let found = only(&config);
        assert_eq!(found.code, Code::ShellPlace, "{text}");
        assert!(found.message.contains("${"), "{found}");
    }
}

/// The errors of a config with this command, in which all variables are `${X}`.
fn refused(text: &str) {
    let command = string(text);
    let config = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
    let found = only(&config);
    assert_eq!(found.code, Code::ShellPlace, "{text}");
    assert!(found.message.contains("`${X}`"), "{text}: {found}");
    assert!(!found.remedy().is_empty(), "{text}");
}

#[test]
fn shell_value_piped_into_a_shell_is_refused() {
    for text in [
        "printf '%s' ${X} | sh",
        "echo 'a ${X}' | bash",
        "echo ${X} | cat | /bin/sh -e",
        "echo ${X} |& bash",
        "echo ${X} |\n  sh",
        "echo ${X} | # a comment\n sh",
        "echo ${X} | sh -s a b",
        "echo ${X} | sh -",
        "echo ${X} | sh /dev/stdin",
        "echo ${X} | env A=1 sh",
        "echo ${X} | exec nice timeout 5 sh",
        "echo ${X} | busybox sh",
        "echo ${X} | A=1 sh 2>&1 | cat",
        "echo ${X} | . /dev/stdin",
        "echo ${X} | $SHELL",
        "echo ${X} | sh 3</dev/null",
        "echo ${X} | sh </dev/stdin",
        "echo ${X} | (cd /; sh)",
        "echo ${X} | { true; sh; }",
        "echo ${X} | while true; do sh; done",
        "echo ${X} | if true; then sh; fi",
        "echo ${X} | (case a in a) sh;; esac)",
        "echo ${X} | cat \"$(sh)\"",
        "echo ${X} | sh -c 'true; sh'",
        "echo ${X} | sh -c sh",
        "(echo ${X}) | sh",
        "{ echo a; echo ${X}; echo b; } | sh",
        "for i in ${X} b; do echo \"$i\"; done | sh",
        "if true; then echo ${X}; fi | sh",
        "echo \"$(true; printf %s ${X})\" | sh",
        "echo \"$(true)\" ${X} \"$(true)\" | sh",
        "echo \"$(printf %s ${X} | sh)\"",
        "true; echo a | tee >(cat ${X}) | sh",
        "echo ${X} | tee >(sh)",
        "cat <<< ${X} | sh",
        "bash <(echo ${X})",
        "bash < <(echo ${X})",
        ". <(echo ${X})",
        "sh -c 'echo ${X} | sh'",
        "echo ${X} | xargs -I{} sh -c 'echo {}'",
        "echo ${X} | xargs --replace=A sh -c 'echo A'",
        "echo ${X} | xargs sh -c",
        r"echo ${X} | find / -maxdepth 0 -exec sh \;",
        // The text of a script is put together from a substitution.
        "sh -c \"$(printf %s ${X})\"",
        "eval \"$(printf %s ${X})\"",
        "eval $(echo ${X})",
    ] {
        refused(text);
    }
}

#[test]
fn shell_value_in_a_script_for_an_unknown_shell_is_refused() {
    for text in [
        "$SHELL -c 'a ${X}'",
        "\"$SHELL\" -ec 'a ${X}'",
        "true; exec $BASH -c 'a ${X}'",
        "${SHELL} -c 'a ${X}'",
        "${SHELL:-/bin/sh} -c ${X}",
        "true | ${MY_SHELL} -c 'a ${X}'",
        "find ${X} -exec sh -c 'cat {}' ';'",
        r"true; find . -name ${X} -exec sh -c 'cat {}' \;",
        r"find . -exec sh -c 'a' \; -exec sh -c 'a `b ${X}`' \;",
        r"true; find . -exec sh -c 'eval ${X}' \;",
        r"find . -exec env -i sh -c 'a ${X}' \;",
        "sh $OPTIONS -c 'a ${X}'",
    ] {
        refused(text);
    }
    let list = r#"{"tree":[{"path":"/a","source":{"command":["${SHELL}","-c","a ${X}"]}}]}"#;
    let found = only(list);
    assert_eq!(
        found.message,
        "a shell command has `${X}` in a script for an unknown shell"
    );
    let twice = r"find . -exec sh -c 'a ${Y}' \; -exec sh -c 'b ${X}' \;";
    refused(twice);
}

#[test]
fn shell_value_in_a_script_of_another_language_gives_a_warning() {
    let warned = |command: &str| -> Vec<Code> {
        let text = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
        let warnings = parse(&text).warnings;
        warnings.iter().map(|warning| warning.code).collect()
    };
    for command in [
        r#"["python3.12", "-c", "print('${X}')"]"#,
        r#"["node", "--eval", "f('${X}')"]"#,
        r#"["node", "--eval=f('${X}')"]"#,
        r#"["perl", "-we", "${X}"]"#,
        r#"["ssh", "-p", "22", "host", "run ${X}"]"#,
        r#"["docker", "exec", "c", "sh", "-c", "run ${X}"]"#,
        r#""true; python -c '${X}' | cat""#,
        r#""sh -c 'python -c ${X}'""#,
        r#""echo ${X} | python3 -""#,
        r#""echo ${X} | node""#,
        r#""echo ${X} | ssh host""#,
        r#""echo ${X} | sudo sh""#,
        r#""echo ${X} | docker exec -i c sh""#,
        r#""echo ${X} | xargs ssh host""#,
        r#""echo ${X} | xargs -I{} python -c '{}'""#,
        r#""echo ${X} | while read -r l; do eval \"$l\"; done""#,
        r#""echo ${X} | while read -r l; do sh -c \"$l\"; done""#,
        r#""$PROGRAM -c 'a ${X}'""#,
        r#"["${PROGRAM}", "-c", "a ${X}"]"#,
        r#"["perl", "-e", "1;", "-e", "${X}"]"#,
        r#"["awk", "-F", ":", "{ print ${X} }", "file"]"#,
        r#"["sed", "-e", "s/a/b/", "-e", "s/a/${X}/"]"#,
        r#"["parallel", "a", "${X}"]"#,
    ] {
        assert_eq!(warned(command), [Code::ShellPlace], "{command}");
    }
    for command in [
        r#"["python", "-m", "server", "-c", "${X}"]"#,
        r#"["python", "server.py", "-c", "${X}"]"#,
        r#"["node", "server.js", "-e", "${X}"]"#,
        r#"["npx", "-y", "some-server@1", "-c", "${X}"]"#,
        r#"["docker", "run", "-e", "TOKEN=${X}", "image"]"#,
        r#"["ssh", "-i", "${KEY}", "${HOST}", "server"]"#,
        r#"["sh", "${FOLDER}/run.sh", "${X}"]"#,
        r#"["sh", "run.sh", "-c", "${X}"]"#,
        r#"["env", "A=${X}", "server"]"#,
        r#"["env", "-S", "node --x", "server.js", "${X}"]"#,
        r#""true; sh run.sh ${X}""#,
        r#""true; echo eval ${X}""#,
        r#""echo ${X} | python3 server.py""#,
        r#""echo ${X} | python3 -c 'import server'""#,
        r#""echo ${X} | grep sh""#,
        r#""echo ${X} | tee bash; echo a | sh""#,
        r#""echo ${X} | xargs sh run.sh""#,
        r#""echo ${X} | xargs sh -c 'a \"$1\"' -""#,
        r#"["${SERVER}", "--config", "${X}"]"#,
        r#"["${SHELL_TOOLS}/server", "--config", "${X}"]"#,
        r#"["awk", "-v", "a=${X}", "{ print a }", "${FILE}"]"#,
        r#"["sed", "-n", "-f", "${SCRIPT}", "${FILE}"]"#,
        r#"["find", "${X}", "-exec", "sh", "-c", "cat \"$1\"", "-", "{}", ";"]"#,
    ] {
        assert_eq!(warned(command), [], "{command}");
    }
}

#[test]
fn shell_script_digest_covers_the_text_as_written() {
    let covered = |command: &str| {
        let source = source_with_command(command);
        crate::digest::members(&source)[1..3].to_vec()
    };
    let direct = covered(r#"["sh", "-c", "a '${X}' \"${Y}\""]"#);
    assert_eq!(direct[0].1, "sh");
    assert_eq!(direct[1].1, serde_json::json!(["-c", "a '${X}' \"${Y}\""]));
    let shell = covered(r#""true; sh -c \"a ${X}\" ${Y}""#);
    assert_eq!(
        shell[0].1,
        serde_json::json!({"shell": "true; sh -c \"a ${X}\" \"${Y}\""})
    );
}
