//! Variables that a command asks for by name, such as `docker run -e NAME`: a client hands on all of its variables, and a
//! broker those that `inherit_env` names.

use broker_config::client_file::Spanned;
use broker_config::launcher::AskedVariables;
use broker_config::{OPENAI_KEY_VARIABLE, is_own_variable};

use super::{Members, Reader};
use crate::cli::import::out::Out;

impl<'a> Reader<'a, '_> {
    /// Adds the variables that a command asks for to `inherit_env`. A variable with a value in `env` is left out. `words` are
    /// the words of the command in the file.
    pub(super) fn inherit_asked(
        &mut self,
        entry: &'a Spanned,
        words: &[&str],
        members: &mut Members,
    ) {
        let mut asked = Self::asked(words);
        for file in asked.files.clone() {
            if let Some(text) = (self.read_file)(&file) {
                asked.add_lines(&text);
            }
        }
        let has_value = |name: &str| entry.get("env").is_some_and(|env| env.get(name).is_some());
        let names = asked.names.into_iter();
        let names: Vec<String> = names
            .filter(|name| !has_value(name) && !is_own_variable(name))
            .collect();
        for name in names {
            self.variables.named(&name, self.name, false);
            let (key, added) = match name == OPENAI_KEY_VARIABLE {
                // No pattern of `inherit_env` matches it.
                true => {
                    let value = Out::Template(format!("${{{name}}}"));
                    ("env", Out::Object(vec![(name, value)]))
                }
                false => ("inherit_env", Out::List(vec![Out::text(&name)])),
            };
            match (members.get_mut(key), added) {
                (Some(Out::List(all)), Out::List(added)) => all.extend(added),
                (Some(Out::Object(all)), Out::Object(added)) => all.extend(added),
                (_, added) => {
                    members.insert(key, added);
                }
            }
        }
    }

    fn asked(words: &[&str]) -> AskedVariables {
        // A command without arguments is one text with several words.
        match words {
            [one] if one.contains(char::is_whitespace) => {
                AskedVariables::parse(&one.split_whitespace().collect::<Vec<_>>())
            }
            words => AskedVariables::parse(words),
        }
    }
}
