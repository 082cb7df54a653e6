//! A command line in one text, split by blanks and quotes. No shell is involved: a text with an operator or an
//! expansion of a shell is not split.

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

/// Splits a command line at blanks outside quotes; quotes are removed. `None` if a quote is not closed, if it begins
/// with an assignment, or if a shell would do more than split it.
pub fn split_line(line: &str) -> Option<Words> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '\\' if c == '"' && matches!(chars.peek(), Some('"' | '\\')) => {
                            text.extend(chars.next());
                        }
                        '`' if c == '"' => return None,
                        inner => text.push(inner),
                    }
                }
            }
            '$' if chars.peek() == Some(&'(') => return None,
            '|' | '&' | ';' | '<' | '>' | '`' | '\n' | '\r' | '\0' => return None,
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.is_empty())?;
    let is_assignment = program
        .split_once('=')
        .is_some_and(|(name, _)| crate::template::is_variable_name(name));
    (!is_assignment).then(|| Words {
        program,
        args: words.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_split_by_blanks_and_quotes_only() {
        for (line, words) in [
            ("python3 server.py", Some(vec!["python3", "server.py"])),
            (
                "  npx\t-y  'a b' \"c d\"e ",
                Some(vec!["npx", "-y", "a b", "c de"]),
            ),
            (
                r#"x "a\"b" 'c\d' C:\e"#,
                Some(vec!["x", "a\"b", r"c\d", r"C:\e"]),
            ),
            ("x '' \"\"", Some(vec!["x", "", ""])),
            (
                "x $HOME ${A} ~/b *",
                Some(vec!["x", "$HOME", "${A}", "~/b", "*"]),
            ),
            ("x 'a", None),
            ("x | y", None),
            ("x > y", None),
            ("x && y", None),
            ("x $(y)", None),
            ("x `y`", None),
            ("A=1 x", None),
            ("\"\" x", None),
            ("", None),
        ] {
            let found = split_line(line).map(|found| {
                std::iter::once(found.program)
                    .chain(found.args)
                    .collect::<Vec<_>>()
            });
            let words = words.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(found, words, "{line}");
        }
    }
}
