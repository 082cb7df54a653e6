//! Why a tool has its score, word by word.

use crate::index::Index;
use crate::query::MatchKind;
use crate::rank::{Scores, Similarity, rarity, saturated};
use crate::scope::SearchScope;

/// The parts of the score of a tool.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Each word of the query, with what it adds.
    pub words: Vec<WordPart>,
    /// The share of the best sum of the words that the tool has, if any tool has one.
    pub words_score: Option<f64>,
    /// The cosine of the vectors of query and tool, with vectors.
    pub cosine: Option<f32>,
    /// The cosine relative to the cosines of the other tools, from 0 to 1.
    pub similarity: Option<f64>,
    /// The score.
    pub score: f64,
}

/// The addition of a word of a query to the score of a tool.
#[derive(Clone, Debug)]
pub struct WordPart {
    /// The word.
    pub word: String,
    /// The term of the index; `None` if the index has no term for the word.
    pub term: Option<String>,
    /// The kind of match that found the term.
    pub kind: Option<MatchKind>,
    /// The number of tools that contain the term.
    pub tools: u32,
    /// The addition to the sum of the words; 0 if the tool does not contain it.
    pub part: f64,
}

impl Explanation {
    /// Makes the explanation of the score of a tool of the scope.
    pub fn new(
        index: &Index<'_>,
        scope: &SearchScope,
        similarity: Similarity<'_>,
        text: &str,
        tool: u32,
    ) -> Self {
        let scores = Scores::new(index, scope, similarity, text);
        let mut words = Vec::new();
        for (at, word) in scores.query.words.iter().enumerate() {
            let mut terms = scores
                .query
                .terms
                .iter()
                .filter(|term| term.word == at)
                .peekable();
            if terms.peek().is_none() {
                words.push(WordPart {
                    word: word.word.clone(),
                    term: None,
                    kind: None,
                    tools: 0,
                    part: 0.0,
                });
            }
            words.extend(terms.map(|term| {
                let tools = scope.tool_count(index, term.term);
                let weight = index.postings(term.term).find(|(other, _)| *other == tool);
                let part = weight.map_or(0.0, |(_, weight)| saturated(weight));
                WordPart {
                    word: word.word.clone(),
                    term: Some(String::from_utf8_lossy(index.term(term.term)).into_owned()),
                    kind: Some(term.kind),
                    tools,
                    part: term.weight * rarity(scope.count(), tools) * part,
                }
            }));
        }
        let best = scores.best_words;
        Self {
            words,
            words_score: (best > 0.0).then(|| scores.words[tool as usize] / best),
            cosine: scores.cosines.get(tool as usize).copied(),
            similarity: scores.similarity(tool),
            score: scores.score(tool),
        }
    }
}
