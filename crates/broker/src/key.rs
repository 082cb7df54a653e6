//! `key new`: makes an API key, and the entry of the config that accepts it. The key is printed once and not stored.

use std::time::SystemTime;

use broker_config::identities::{RESERVED_SUBJECTS, is_key_name};
use broker_identity::key::{self, RandomError};
use broker_model::redact::Secret;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_model::utc::UtcTime;
use serde_json::Value;

use crate::cli::NewKeyArgs;

/// A new key, for standard output, and a line for people.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The key and its entry. No other text may show it.
    pub(crate) key: Text,
    /// The instructions for the key and its entry.
    pub(crate) note: Text,
}

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// An argument is not valid.
    #[error("{0}")]
    Usage(String),
    /// The system gives no random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Makes a key.
pub(crate) fn run(args: &NewKeyArgs) -> Result<Answer, KeyError> {
    check_name(&args.name, "the name of a key")?;
    if RESERVED_SUBJECTS.contains(&&*args.name) {
        let message = format!(
            "`{}` is the name of callers without a key: choose another one",
            args.name
        );
        return Err(KeyError::Usage(message));
    }
    for group in &args.groups {
        check_name(group, "the name of a group")?;
    }
    let not_after = args.not_after.as_deref().map(time).transpose()?;
    let key = key::generate()?;
    let entry = entry(args, &key, not_after);
    Ok(Answer {
        key: match args.json {
            true => {
                let value = Value::from(key.expose());
                text!("{}\n", format!(r#"{{"key":{value},"entry":{entry}}}"#))
            }
            false => text!("{}\n{}\n", key.expose(), entry),
        },
        note: text!(
            "Give the key to the caller: it is not shown again. Add the object to `identities.keys` of the config, or to its `keys_file`, and reload."
        ),
    })
}

/// The entry of the config, with its members in the order of the documentation.
fn entry(args: &NewKeyArgs, key: &Secret, not_after: Option<UtcTime>) -> String {
    let (name, digest) = (Value::from(args.name.as_str()), key::digest(key.expose()));
    let groups = Value::from(args.groups.clone());
    let end = not_after.map(|time| format!(r#","not_after":"{time}""#));
    let end = end.unwrap_or_default();
    format!(r#"{{"name":{name},"sha256":"{digest}","groups":{groups}{end}}}"#)
}

fn check_name(name: &str, kind: &str) -> Result<(), KeyError> {
    if is_key_name(name) && !key::is_well_formed(name) {
        return Ok(());
    }
    // Someone may pass a key in place of a name; a message goes to logs.
    let shown = match key::has_prefix(name) {
        true => "the argument".to_owned(),
        false => format!("`{}`", shown_line(name, 80)),
    };
    Err(KeyError::Usage(format!(
        "{shown} is not {kind}: expected 1 to 64 letters, digits, `.`, `_` and `-`"
    )))
}

fn time(text: &str) -> Result<UtcTime, KeyError> {
    let usage = |message: &str| Err(KeyError::Usage(message.to_owned()));
    match UtcTime::parse(text) {
        None => usage(
            "`--not-after` takes a time in UTC with whole seconds, such as `2027-01-31T12:00:00Z`",
        ),
        Some(time) if time.to_system_time() <= SystemTime::now() => {
            usage("`--not-after` is in the past: the key would never be accepted")
        }
        Some(time) => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use broker_config::identities::parse_file;

    use super::*;

    fn args(name: &str, groups: &[&str], not_after: Option<&str>) -> NewKeyArgs {
        NewKeyArgs {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            not_after: not_after.map(str::to_owned),
            json: false,
        }
    }

    #[test]
    fn new_key_and_its_entry_belong_together() {
        let end = "2999-01-01T00:00:00Z";
        let answer = run(&args("ci", &["a", "b"], Some(end))).unwrap();
        let text = answer.key.as_str().to_owned();
        let [key, entry] = text.lines().collect::<Vec<_>>()[..] else {
            panic!("two lines");
        };
        assert!(key::is_well_formed(key));
        let file = format!(r#"{{"keys":[{entry}]}}"#);
        let keys = parse_file("k.json", file.as_bytes()).unwrap();
        assert_eq!(
            (keys[0].name.as_str(), keys[0].sha256),
            ("ci", key::digest(key))
        );
        assert_eq!(keys[0].groups, ["a", "b"]);
        assert_eq!(keys[0].not_after.unwrap().to_string(), end);
        assert!(!answer.note.as_str().contains(key));
    }

    #[test]
    fn new_key_with_an_invalid_argument_is_refused() {
        for wrong in [
            args("", &[], None),
            args("a b", &[], None),
            args("a", &["x/y"], None),
            args("a", &[], Some("2999-01-01")),
            args("a", &[], Some("2020-01-01T00:00:00Z")),
        ] {
            assert!(matches!(run(&wrong), Err(KeyError::Usage(_))), "{wrong:?}");
        }
        let key = key::generate().unwrap();
        let error = run(&args(key.expose(), &[], None)).unwrap_err();
        assert!(!error.to_string().contains(key.expose()));
    }
}
