//! The merge of two audits files, entry by entry. It is pure.
//!
//! | the entry | the result |
//! |---|---|
//! | both sides have it | once, with the comment that a side changed |
//! | one side added it | it is there, after the entry that is before it on that side |
//! | one side removed it, and the other has it unchanged | it is not there |
//! | both sides changed it, or one side removed what the other one changed | a conflict; its message names the line |
//! | both sides changed its comment | a conflict; its message names the line |

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Block, Blocks, Key, split};

/// Maximum number of conflicts that are named; more are counted.
const MAX_NAMED: usize = 20;

/// The conflicts of a merge, as messages.
#[derive(Default)]
struct Conflicts {
    named: Vec<String>,
    more: usize,
}

impl Conflicts {
    fn push(&mut self, message: impl FnOnce() -> String) {
        match self.named.len() < MAX_NAMED {
            true => self.named.push(message()),
            false => self.more += 1,
        }
    }

    fn into_messages(mut self) -> Vec<String> {
        if self.more > 0 {
            self.named.push(format!("{} more conflicts", self.more));
        }
        self.named
    }
}

/// Merges two texts. `base` is the last common one. An error has the conflicts, as messages.
pub(super) fn merge(base: Option<&str>, ours: &str, theirs: &str) -> Result<String, Vec<String>> {
    let base = base.unwrap_or_default();
    if ours == theirs || base == theirs {
        return Ok(ours.to_owned());
    }
    if base == ours {
        return Ok(theirs.to_owned());
    }
    let sides = [base, ours, theirs].map(split);
    let [Some(base), Some(our_blocks), Some(their_blocks)] = sides else {
        let message =
            "the audits are not written as one table for each entry, such as `[[audits]]`";
        return Err(vec![message.to_owned()]);
    };
    let merge = Merge {
        base: &base,
        ours: &our_blocks,
        theirs: &their_blocks,
    };
    merge.run(ours, line_end(ours))
}

fn line_end(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

struct Merge<'m, 't> {
    base: &'m Blocks<'t>,
    ours: &'m Blocks<'t>,
    theirs: &'m Blocks<'t>,
}

impl<'t> Merge<'_, 't> {
    fn run(&self, whole: &str, line_end: &str) -> Result<String, Vec<String>> {
        let mut conflicts = Conflicts::default();
        self.changed_twice(&mut conflicts);
        let head = three_way(self.base.head, self.ours.head, self.theirs.head);
        let head = head.unwrap_or_else(|| {
            conflicts.push(|| "both sides changed the comment at the beginning".to_owned());
            self.ours.head
        });
        let mut merged: Vec<(&Block<'t>, &str)> = Vec::new();
        for block in &self.ours.blocks {
            match self.text_of(block) {
                Ok(None) => {}
                Ok(Some(text)) => merged.push((block, text)),
                Err(BothChanged) => conflicts.push(|| {
                    let line = line_of(whole, block.text);
                    format!("both sides changed the comment of the entry in line {line} of ours, or one side removed the entry")
                }),
            }
        }
        let new = self.new_of_theirs(&merged);
        if !conflicts.named.is_empty() {
            return Err(conflicts.into_messages());
        }
        let mut texts = Vec::with_capacity(merged.len() + new.len());
        for at in 0..=merged.len() {
            texts.extend(new.get(&at).into_iter().flatten().map(|block| block.text));
            texts.extend(merged.get(at).map(|(_, text)| *text));
        }
        Ok(joined(head, &texts, line_end))
    }

    /// The text of an entry of ours in the result; `None` if theirs removed it.
    fn text_of(&self, ours: &Block<'t>) -> Result<Option<&'t str>, BothChanged> {
        let text = match (self.base.find(&ours.key), self.theirs.find(&ours.key)) {
            (None, None) => Some(ours.text),
            (Some(base), None) if is_same(base.text, ours.text) => return Ok(None),
            (Some(_), None) => None,
            (None, Some(theirs)) => is_same(ours.text, theirs.text).then_some(ours.text),
            (Some(base), Some(theirs)) => three_way(base.text, ours.text, theirs.text),
        };
        text.map(Some).ok_or(BothChanged)
    }

    /// Finds the entries of the base that both sides changed, or that one side changed and the other one removed.
    fn changed_twice(&self, conflicts: &mut Conflicts) {
        let (ours, theirs) = (self.added(self.ours), self.added(self.theirs));
        let none = BTreeSet::new();
        for block in &self.base.blocks {
            let of_ours = self.ours.find(&block.key);
            let of_theirs = self.theirs.find(&block.key);
            if let (None, Some(theirs)) = (of_ours, of_theirs)
                && !is_same(block.text, theirs.text)
            {
                conflicts.push(|| {
                    "ours removed an entry of which theirs changed the comment".to_owned()
                });
            }
            if of_ours.is_some() || of_theirs.is_some() {
                continue;
            }
            let [ours, theirs] =
                [&ours, &theirs].map(|added| added.get(&*block.subject).unwrap_or(&none));
            let what = match (ours.is_empty(), theirs.is_empty()) {
                _ if ours == theirs => continue,
                (true, false) => "ours removed an entry that theirs changed",
                (false, true) => "theirs removed an entry that ours changed",
                _ => "both sides changed an entry",
            };
            conflicts.push(|| {
                let mut lines = block.text.lines();
                let first = lines.find(|line| line.trim_start().starts_with("source"));
                format!("{what}: {}", first.unwrap_or_default().trim())
            });
        }
    }

    /// The entries that a side added, by what they are about.
    fn added<'b>(&self, side: &'b Blocks<'t>) -> BTreeMap<&'b str, BTreeSet<&'b Key>> {
        let mut added: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let blocks = side.blocks.iter();
        for one in blocks.filter(|one| self.base.find(&one.key).is_none()) {
            added.entry(&*one.subject).or_default().insert(&one.key);
        }
        added
    }

    /// Returns the new entries of theirs by the index of the merged entry that they precede. They come after the entry
    /// that is before them in theirs, and after entries that only ours has.
    fn new_of_theirs(&self, merged: &[(&Block<'t>, &str)]) -> BTreeMap<usize, Vec<&Block<'t>>> {
        let places = merged.iter().enumerate();
        let places: BTreeMap<&Key, usize> =
            places.map(|(at, (block, _))| (&block.key, at)).collect();
        // The index of the next merged entry that theirs has too.
        let mut next_common = vec![merged.len(); merged.len() + 1];
        for at in (0..merged.len()).rev() {
            let is_common = self.theirs.find(&merged[at].0.key).is_some();
            next_common[at] = if is_common { at } else { next_common[at + 1] };
        }
        let mut new: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        let mut after = 0;
        for block in &self.theirs.blocks {
            let key = &block.key;
            if let Some(at) = places.get(key) {
                after = at + 1;
            } else if self.base.find(key).is_none() && self.ours.find(key).is_none() {
                new.entry(next_common[after]).or_default().push(block);
            }
        }
        new
    }
}

/// Both sides changed the comment of an entry, or one side removed what the other one changed.
struct BothChanged;

/// The text of the side that changed it; `None` if both did, in different ways.
fn three_way<'t>(base: &'t str, ours: &'t str, theirs: &'t str) -> Option<&'t str> {
    if is_same(ours, theirs) || is_same(base, theirs) {
        Some(ours)
    } else if is_same(base, ours) {
        Some(theirs)
    } else {
        None
    }
}

/// Whether both are the same except for empty lines at the end. These depend on the text that follows.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end() == other.trim_end()
}

fn line_of(whole: &str, text: &str) -> usize {
    let at = whole.find(text).unwrap_or_default();
    whole[..at].lines().count() + 1
}

/// Returns the texts, with an empty line inserted where two texts had no empty line between them.
fn joined(head: &str, texts: &[&str], line_end: &str) -> String {
    let mut whole = head.to_owned();
    for text in texts {
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push_str(line_end);
        }
        let is_spaced = whole.is_empty() || whole.ends_with("\n\n") || whole.ends_with("\r\n\r\n");
        if !is_spaced {
            whole.push_str(line_end);
        }
        whole.push_str(text);
    }
    let length = whole.trim_end().len();
    whole.truncate(length);
    if !whole.is_empty() {
        whole.push_str(line_end);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(tool: &str, who: &str) -> String {
        format!("[[audits]]\nsource = \"/a\"\ntool = \"{tool}\"\nwho = \"{who}\"\n")
    }

    fn file(entries: &[String]) -> String {
        format!("# head\n\n{}", entries.join("\n"))
    }

    #[test]
    fn entries_that_both_sides_append_are_all_there_in_order() {
        let base = file(&[audit("x", "A")]);
        let ours = file(&[audit("x", "A"), audit("y", "A"), audit("both", "A")]);
        let theirs = file(&[audit("x", "A"), audit("z", "B"), audit("both", "A")]);
        let merged = merge(Some(&base), &ours, &theirs).unwrap();
        let expected = [
            audit("x", "A"),
            audit("y", "A"),
            audit("z", "B"),
            audit("both", "A"),
        ];
        assert_eq!(merged, file(&expected));
        assert_eq!(merge(Some(&base), &merged, &theirs).unwrap(), merged);
        // Without a base: both sides added the file.
        assert_eq!(
            merge(None, &ours, &theirs).unwrap(),
            file(&[
                audit("x", "A"),
                audit("y", "A"),
                audit("z", "B"),
                audit("both", "A"),
            ])
        );
    }

    #[test]
    fn entry_that_one_side_removed_or_changed_is_that_of_the_side() {
        let base = file(&[audit("x", "A"), audit("y", "A")]);
        let ours = file(&[audit("y", "A"), audit("z", "A")]);
        let theirs = file(&[audit("x", "A"), audit("y", "B")]);
        let merged = merge(Some(&base), &ours, &theirs).unwrap();
        assert_eq!(merged, file(&[audit("z", "A"), audit("y", "B")]));
    }

    #[test]
    fn comments_of_the_side_that_changed_them_are_kept() {
        let base = file(&[audit("x", "A"), audit("y", "A")]);
        let ours = base.replacen("[[audits]]", "# of ours\n[[audits]]", 1);
        let theirs = base
            .replace("# head", "# their head")
            .replace("who = \"A\"\n\n", "who = \"A\" # why\n\n");
        let merged = merge(Some(&base), &ours, &base.replace("# head", "# their head")).unwrap();
        assert!(
            merged.starts_with("# their head\n\n# of ours\n[[audits]]"),
            "{merged}"
        );
        let found = merge(Some(&base), &ours, &theirs).unwrap_err();
        assert!(found[0].contains("line 3 of ours"), "{found:?}");
    }

    #[test]
    fn entry_that_both_sides_changed_is_a_conflict() {
        let base = file(&[audit("x", "A"), audit("y", "A")]);
        let ours = file(&[audit("x", "B"), audit("y", "A")]);
        let theirs = file(&[audit("x", "C"), audit("y", "A")]);
        let found = merge(Some(&base), &ours, &theirs).unwrap_err();
        assert_eq!(found, ["both sides changed an entry: source = \"/a\""]);
        let removed = file(&[audit("y", "A"), audit("z", "A")]);
        let found = merge(Some(&base), &removed, &theirs).unwrap_err();
        assert_eq!(
            found,
            ["ours removed an entry that theirs changed: source = \"/a\""]
        );
        let found = merge(Some(&base), &ours, &removed).unwrap_err();
        assert_eq!(
            found,
            ["theirs removed an entry that ours changed: source = \"/a\""]
        );
        // The same change on both sides is not a conflict.
        let both = file(&[audit("x", "B"), audit("y", "A"), audit("z", "A")]);
        assert_eq!(merge(Some(&base), &ours, &both).unwrap(), both);
    }

    #[test]
    fn many_conflicts_are_counted() {
        let with = |who: &str| {
            let entries: Vec<_> = (0..100)
                .map(|tool| audit(&format!("t{tool}"), who))
                .collect();
            file(&entries)
        };
        let found = merge(Some(&with("A")), &with("B"), &with("C")).unwrap_err();
        assert_eq!(found.len(), MAX_NAMED + 1);
        assert_eq!(found.last().map(String::as_str), Some("80 more conflicts"));
    }

    #[test]
    fn text_in_another_form_is_a_conflict_if_both_sides_changed_it() {
        let base = "audits = []\n";
        let other = "audits = []\n# x\n";
        assert_eq!(merge(Some(base), base, other).unwrap(), other);
        let found = merge(Some(base), "audits = []\n# y\n", other).unwrap_err();
        assert!(found[0].contains("`[[audits]]`"), "{found:?}");
    }
}
