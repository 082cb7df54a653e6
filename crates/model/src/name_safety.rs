//! Names that a reader may take for other ones: with hidden characters, of mixed scripts (UTS 39), or with the look of
//! another entry or of a sensitive word. Such a name is left out until the config gives it an alias.

use std::collections::BTreeMap;

use unicode_security::restriction_level::{RestrictionLevel, RestrictionLevelDetection};

use crate::look::{nfkc, skeleton};
use crate::sensitive_words;
use crate::text::{is_invisible, shown_line};
use crate::trust::SensitiveNames;
use crate::unseen::{Unseen, unseen_characters};

/// A name with the segment of its path.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'n> {
    /// The name as the server sent it.
    pub name: &'n str,
    /// The segment, if the config gives it. Then the name is not checked, and the segment is what others are compared with.
    pub alias: Option<&'n str>,
}

impl<'n> Entry<'n> {
    fn shown(&self) -> &'n str {
        self.alias.unwrap_or(self.name)
    }
}

/// For each of the entries of a node, the reason why its name is not safe, in one line; `None` if it is.
///
/// Of several names that look the same, the only one that is ASCII stays.
pub fn reasons(entries: &[Entry<'_>], sensitive: &SensitiveNames) -> Vec<Option<String>> {
    let mut by_look: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        let names = by_look.entry(skeleton(entry.shown())).or_default();
        if !names.contains(&entry.shown()) {
            names.push(entry.shown());
        }
    }
    let reason = |entry: &Entry<'_>| {
        if entry.alias.is_some() {
            return None;
        }
        find_reason(entry.name, sensitive).or_else(|| {
            let alike = by_look.get(&skeleton(entry.name))?;
            let other = looks_like(entry.name, alike)?;
            Some(format!("the name looks like `{}`", shown_line(other, 80)))
        })
    };
    entries.iter().map(reason).collect()
}

/// The other one of names with the same look, if this one has to go.
fn looks_like<'n>(name: &str, alike: &[&'n str]) -> Option<&'n str> {
    let is_only_ascii = name.is_ascii() && alike.iter().filter(|one| one.is_ascii()).count() == 1;
    match is_only_ascii {
        true => None,
        false => alike.iter().copied().find(|other| *other != name),
    }
}

/// The reason why a name is not safe, whatever names are beside it.
fn find_reason(name: &str, sensitive: &SensitiveNames) -> Option<String> {
    // Line ends and tabs are usual in texts, and not in names.
    if let Some(c) = name.chars().find(|c| c.is_control()) {
        return Some(format!(
            "the name has the control character U+{:04X}",
            u32::from(c)
        ));
    }
    if let Some(unseen) = unseen_characters(name).first() {
        let kind = match unseen.kind {
            Unseen::Hidden | Unseen::Tag => "hidden",
            Unseen::Bidirectional => "bidirectional",
            Unseen::Control => "control",
        };
        let code = u32::from(unseen.c);
        return Some(format!("the name has the {kind} character U+{code:04X}"));
    }
    if mixes_scripts(name) {
        return Some("the name mixes scripts, or has characters of rare ones".to_owned());
    }
    let words = sensitive_words::words(&nfkc(name));
    let listed = sensitive_words::words(name);
    let of_parameters = words.iter().find_map(|word| {
        // A word that is listed in another form, such as full width, is a look-alike too.
        let known = sensitive_words::find_kind(word).map(|_| word.as_str());
        let known = known.filter(|word| !listed.iter().any(|own| own == word));
        known.or_else(|| sensitive_words::look_alike(word))
    });
    let of_names = || {
        let known = sensitive.find_look_alike(name)?;
        let is_itself = sensitive.find_written(name).is_some();
        (!is_itself).then_some(known)
    };
    let word = of_parameters.or_else(of_names)?;
    let word = shown_line(word, 80);
    Some(format!("the name has a word that looks like `{word}`"))
}

/// Whether a name is less than moderately restrictive (UTS 39). Only characters of identifiers have a script here.
fn mixes_scripts(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    let normal = nfkc(name);
    let letters: String = normal
        .chars()
        .filter(|c| unicode_ident::is_xid_continue(*c) && !is_invisible(*c))
        .collect();
    match letters.as_str().detect_restriction_level() {
        RestrictionLevel::ASCIIOnly
        | RestrictionLevel::SingleScript
        | RestrictionLevel::HighlyRestrictive
        | RestrictionLevel::ModeratelyRestrictive => false,
        RestrictionLevel::MinimallyRestrictive | RestrictionLevel::Unrestricted => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<Option<String>> {
        let entries: Vec<_> = names
            .iter()
            .map(|name| Entry { name, alias: None })
            .collect();
        reasons(&entries, &SensitiveNames::default())
    }

    #[test]
    fn names_of_one_script_are_safe() {
        let names = [
            "get_file",
            "github/git_commit",
            "New Tool",
            "查询天气",
            "ファイルを読む_v2",
            "파일_읽기",
            "прочитать_файл",
            "lire_déjà",
            "נתונים",
            "🚀 deploy",
            "get_token",
            "delete_file",
            "می‌خواهم",
        ];
        for (name, reason) in names.iter().zip(found(&names)) {
            assert_eq!(reason, None, "{name}");
        }
    }

    #[test]
    fn unsafe_name_is_found_with_its_reason() {
        for (name, part) in [
            ("rеad_file", "mixes scripts"),
            ("αdd", "mixes scripts"),
            ("read\u{200b}file", "hidden character U+200B"),
            ("read\u{202e}elif", "bidirectional character U+202E"),
            ("read\nfile", "control character U+000A"),
            ("ｔoken_get", "looks like `token`"),
            ("ｄｅｌｅｔｅ_file", "looks like `delete`"),
            ("get_ur1", "looks like `url`"),
        ] {
            let found = found(&[name]).remove(0).unwrap_or_default();
            assert!(found.contains(part), "{name}: {found}");
        }
    }

    #[test]
    fn name_with_the_look_of_another_entry_is_left_out_alone() {
        let alike = found(&["copy", "сору", "paste"]);
        assert_eq!(alike[0], None);
        assert_eq!(alike[1].as_deref(), Some("the name looks like `copy`"));
        assert_eq!(alike[2], None);
        // Neither is the plain one.
        let both = found(&["item_1", "item_l"]);
        assert!(both.iter().all(Option::is_some), "{both:?}");
    }

    #[test]
    fn name_that_the_config_gives_an_alias_is_safe() {
        let entry = |name, alias| Entry { name, alias };
        let entries = [
            entry("copy", None),
            entry("сору", Some("copy_ru")),
            entry("rеad", Some("read")),
        ];
        let found = reasons(&entries, &SensitiveNames::default());
        assert_eq!(found, [None, None, None]);
    }
}
