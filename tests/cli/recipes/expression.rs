//! Expressions of GitHub Actions, as far as the workflows of this project use them: members, texts, `==`, `!=`, `&&`,
//! `||`, `!`, parentheses, `always()`, `success()` and `failure()`.

use serde_json::Value;

/// The values that an expression can name, and the state of the job.
pub(super) struct Context {
    pub(super) values: Value,
    /// Whether an earlier step, or a job that this one needs, failed.
    pub(super) has_failed: bool,
}

/// The parts of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Name(String),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 7] = ["==", "!=", "&&", "||", "!", "(", ")"];

impl Context {
    /// Whether a step or a job runs: without a function of the state it runs only if nothing failed.
    pub(super) fn allows(&self, condition: Option<&Value>) -> bool {
        let Some(condition) = condition.and_then(Value::as_str) else {
            return !self.has_failed;
        };
        let names_state = ["always()", "failure()", "success()"]
            .iter()
            .any(|function| condition.contains(function));
        (names_state || !self.has_failed) && is_true(&self.evaluate(condition))
    }

    /// A text with the values of its `${{ … }}`.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").expect("the expression ends");
            out.push_str(&shown(&self.evaluate(expression)));
            out.push_str(rest);
        }
        out
    }

    fn evaluate(&self, expression: &str) -> Value {
        let tokens = tokens(expression);
        let mut parser = Parser {
            context: self,
            tokens: &tokens,
        };
        let value = parser.or();
        assert!(
            parser.tokens.is_empty(),
            "{expression}: {:?}",
            parser.tokens
        );
        value
    }

    fn named(&self, name: &str) -> Value {
        // A member that is absent is null.
        let mut value = &self.values;
        for part in name.split('.') {
            match value.get(part) {
                Some(inner) => value = inner,
                None => return Value::Null,
            }
        }
        value.clone()
    }
}

fn tokens(mut text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return out;
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)) {
            out.push(Token::Symbol(symbol));
            text = &text[symbol.len()..];
        } else if let Some(rest) = text.strip_prefix('\'') {
            let (inner, rest) = rest.split_once('\'').expect("the text ends");
            out.push(Token::Text(inner.to_owned()));
            text = rest;
        } else {
            let fine = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let end = text.find(|c| !fine(c)).unwrap_or(text.len());
            assert!(end > 0, "not understood: {text}");
            out.push(Token::Name(text[..end].to_owned()));
            text = &text[end..];
        }
    }
}

struct Parser<'a> {
    context: &'a Context,
    tokens: &'a [Token],
}

impl Parser<'_> {
    fn takes(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.first(), Some(Token::Symbol(one)) if *one == symbol);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn or(&mut self) -> Value {
        let mut left = self.and();
        while self.takes("||") {
            let right = self.and();
            left = if is_true(&left) { left } else { right };
        }
        left
    }

    fn and(&mut self) -> Value {
        let mut left = self.equal();
        while self.takes("&&") {
            let right = self.equal();
            left = if is_true(&left) { right } else { left };
        }
        left
    }

    fn equal(&mut self) -> Value {
        let left = self.single();
        if self.takes("==") {
            return (shown(&left) == shown(&self.single())).into();
        }
        if self.takes("!=") {
            return (shown(&left) != shown(&self.single())).into();
        }
        left
    }

    fn single(&mut self) -> Value {
        if self.takes("!") {
            return (!is_true(&self.single())).into();
        }
        if self.takes("(") {
            let inner = self.or();
            assert!(self.takes(")"), "a parenthesis is open");
            return inner;
        }
        let (token, rest) = self.tokens.split_first().expect("a value");
        self.tokens = rest;
        match token {
            Token::Text(text) => text.as_str().into(),
            Token::Symbol(symbol) => panic!("`{symbol}` is not a value"),
            Token::Name(name) if self.takes("(") => {
                assert!(self.takes(")"), "{name} has arguments");
                match name.as_str() {
                    "always" => true.into(),
                    "success" => (!self.context.has_failed).into(),
                    "failure" => self.context.has_failed.into(),
                    other => panic!("the function `{other}` is not known"),
                }
            }
            Token::Name(name) if name == "true" => true.into(),
            Token::Name(name) if name == "false" => false.into(),
            Token::Name(name) => self.context.named(name),
        }
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn expressions_follow_the_rules_of_the_runner() {
    let values = serde_json::json!({"github": {"actor": "dependabot[bot]", "event_name": "pull_request",
        "event": {"number": 7}}});
    let context = |has_failed| Context {
        values: values.clone(),
        has_failed,
    };
    let fine = context(false);
    assert_eq!(
        fine.fill("n ${{ github.event.number }}, ${{ github.none.x }}."),
        "n 7, ."
    );
    for (condition, wanted, after_failure) in [
        ("github.actor == 'dependabot[bot]'", true, false),
        (
            "github.actor != 'dependabot[bot]' && (github.event_name == 'push' || true)",
            false,
            false,
        ),
        (
            "always() && github.event_name == 'pull_request'",
            true,
            true,
        ),
        ("failure()", false, true),
        ("!github.none", true, false),
    ] {
        let allows = |context: &Context| context.allows(Some(&condition.into()));
        assert_eq!(
            (allows(&fine), allows(&context(true))),
            (wanted, after_failure),
            "{condition}"
        );
    }
}
