//! Where a variable stands in a shell command, and that a value never becomes syntax there. The
//! shell of the machine is the judge.

use super::*;
use crate::config::shell::rewrite;

fn rewritten(text: &str) -> String {
    rewrite(text)
        .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .0
        .replace("MCP_BROKER_ARG_", "P")
}

#[test]
fn each_place_has_its_form() {
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
fn shell_place_refuses_what_cannot_be_quoted() {
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
fn a_script_without_variables_is_left_to_the_shell() {
    for text in [
        r"a $'it\'s' | b",
        "a $(case x in x) b;; esac)",
        "a $((1<<2)) | b\nc",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn private_variables_hold_what_was_written() {
    let source = source_with_command(r#""a | b ${X:-d} ${Y} ${X:-d}""#);
    let CommandLine::Shell { variables, .. } = &source.command else {
        panic!("{:?}", source.command);
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
fn cfg_12_a_value_never_becomes_syntax() {
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
        let (rewritten, variables) = rewrite(script).unwrap();
        for value in values {
            #[expect(
                clippy::disallowed_methods,
                reason = "a shell is the only judge of its syntax"
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
