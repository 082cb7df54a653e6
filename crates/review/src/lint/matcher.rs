//! A small language for phrases: consecutive words, `a|b` for alternatives, `..3` for up to three words of
//! the same sentence in between.

use std::collections::BTreeMap;

use broker_drift::encoded::Word;

/// One phrase.
#[derive(Debug)]
struct Phrase {
    rule: &'static str,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// Words that may precede it.
    gap: usize,
    any_of: Vec<&'static str>,
}

/// Phrases by their first word.
#[derive(Debug)]
pub(super) struct Matcher {
    phrases: Vec<Phrase>,
    by_first: BTreeMap<&'static str, Vec<usize>>,
}

/// The place of a phrase, in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) rule: &'static str,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Matcher {
    /// Parses lines, each with its rule.
    pub(super) fn new(lines: &[(&'static str, &'static str)]) -> Self {
        let phrases: Vec<Phrase> = lines
            .iter()
            .map(|(rule, line)| Phrase {
                rule,
                steps: steps(line),
            })
            .collect();
        let mut by_first: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, phrase) in phrases.iter().enumerate() {
            for word in &phrase.steps[0].any_of {
                by_first.entry(*word).or_default().push(index);
            }
        }
        Self { phrases, by_first }
    }

    /// Every phrase at every place where it begins.
    pub(super) fn hits(&self, words: &[Word]) -> Vec<Hit> {
        let mut hits = Vec::new();
        for (first, word) in words.iter().enumerate() {
            let Some(phrases) = self.by_first.get(word.text.as_str()) else {
                continue;
            };
            for phrase in phrases.iter().map(|index| &self.phrases[*index]) {
                if let Some(last) = reaches(words, first, &phrase.steps[1..]) {
                    hits.push(Hit {
                        rule: phrase.rule,
                        first,
                        last,
                    });
                }
            }
        }
        hits
    }
}

fn steps(line: &'static str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut gap = 0;
    for part in line.split_whitespace() {
        if let Some(most) = part.strip_prefix("..") {
            gap = most.parse().unwrap_or_default();
        } else {
            let any_of = part.split('|').collect();
            steps.push(Step { gap, any_of });
            gap = 0;
        }
    }
    steps
}

/// The last word of a match from `at`; a shorter match is tried first.
fn reaches(words: &[Word], at: usize, steps: &[Step]) -> Option<usize> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(at);
    };
    for next in at + 1..=at + 1 + step.gap {
        let word = words.get(next)?;
        if word.begins {
            return None;
        }
        if step.any_of.contains(&word.text.as_str())
            && let Some(last) = reaches(words, next, rest)
        {
            return Some(last);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift::encoded::words;

    #[test]
    fn phrase_gap_does_not_cross_a_sentence() {
        let matcher = Matcher::new(&[("r", "ignore|skip ..2 rules now")]);
        let hit = |text: &str| {
            matcher
                .hits(&words(text))
                .first()
                .map(|hit| (hit.first, hit.last))
        };
        assert_eq!(hit("Ignore rules now"), Some((0, 2)));
        assert_eq!(hit("please skip all the rules now"), Some((1, 5)));
        assert_eq!(hit("skip all of the rules now"), None);
        assert_eq!(hit("Ignore it. Rules now"), None);
        assert_eq!(hit("ignore rules"), None);
    }
}
