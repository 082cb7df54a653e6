//! The ranking of tools for a query: words and vectors, fused.

use crate::index::Index;
use crate::query::Query;
use crate::scope::SearchScope;
use crate::vectors::StaticTable;

/// How soon further occurrences of a term add little: `k1` of BM25.
const SATURATION: f64 = 1.2;
/// The share of similarity in the score of a tool.
const SIMILARITY_SHARE: f64 = 0.5;
/// The best cosine below which a query may fit no tool.
const WEAK_COSINE: f64 = 0.40;
/// The share of the words of a query in the best hit below which it may fit no tool.
const WEAK_COVERAGE: f64 = 0.30;

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its number in the index.
    pub tool: u32,
    /// From 0 to 1, not rounded.
    pub score: f64,
}

/// The tools that were found.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The best first; equal scores in the order of the index.
    pub hits: Vec<Hit>,
    /// Whether the query may fit none of the tools: neither the words nor the meaning of the best hit are near.
    pub is_weak: bool,
}

/// The parts of the scores of all tools.
pub(crate) struct Scores {
    pub(crate) query: Query,
    /// By tool; 0 for tools outside the scope.
    pub(crate) words: Vec<f64>,
    pub(crate) best_words: f64,
    /// By tool, also outside the scope; empty without vectors.
    pub(crate) cosines: Vec<f32>,
    pub(crate) cosine_range: (f32, f32),
}

/// Ranks the tools of a scope for a query, those for which `is_searched` is true. Only tools with a score above 0 are
/// hits. A table without vectors in the index, or the other way round, means that words alone count.
pub fn search(
    index: &Index<'_>,
    scope: &SearchScope,
    table: Option<&StaticTable>,
    text: &str,
    is_searched: impl Fn(u32) -> bool,
) -> Ranking {
    let scores = Scores::new(index, scope, table, text);
    let tools = (0..index.tools()).filter(|tool| scope.contains(*tool) && is_searched(*tool));
    let hits = tools.map(|tool| Hit {
        tool,
        score: scores.score(tool),
    });
    let mut hits: Vec<_> = hits.filter(|hit| hit.score > 0.0).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    let is_weak = hits
        .first()
        .is_none_or(|best| scores.is_weak(index, best.tool));
    Ranking { hits, is_weak }
}

impl Scores {
    pub(crate) fn new(
        index: &Index<'_>,
        scope: &SearchScope,
        table: Option<&StaticTable>,
        text: &str,
    ) -> Self {
        let query = Query::new(index, scope, text);
        let mut words = vec![0f64; index.tools() as usize];
        for term in &query.terms {
            let factor = term.weight * rarity(scope.count(), scope.tool_count(index, term.term));
            for (tool, weight) in index
                .postings(term.term)
                .filter(|(tool, _)| scope.contains(*tool))
            {
                words[tool as usize] += factor * saturated(weight);
            }
        }
        let vector = table.and_then(|table| table.query(text));
        let cosines: Vec<f32> =
            vector.map_or_else(Vec::new, |vector| index.cosines(&vector).collect());
        let mut range = (f32::INFINITY, f32::NEG_INFINITY);
        for (tool, cosine) in (0..).zip(&cosines) {
            if scope.contains(tool) {
                range = (range.0.min(*cosine), range.1.max(*cosine));
            }
        }
        Self {
            best_words: words.iter().copied().fold(0.0, f64::max),
            query,
            words,
            cosines,
            cosine_range: range,
        }
    }

    /// The score of a tool of the scope.
    pub(crate) fn score(&self, tool: u32) -> f64 {
        let words = match self.best_words > 0.0 {
            true => self.words[tool as usize] / self.best_words,
            false => 0.0,
        };
        match (self.similarity(tool), self.best_words > 0.0) {
            (None, _) => words,
            (Some(similarity), false) => similarity,
            (Some(similarity), true) => {
                (1.0 - SIMILARITY_SHARE) * words + SIMILARITY_SHARE * similarity
            }
        }
    }

    /// The cosine of a tool relative to the smallest and the largest one of the scope.
    pub(crate) fn similarity(&self, tool: u32) -> Option<f64> {
        let cosine = *self.cosines.get(tool as usize)?;
        let (min, max) = self.cosine_range;
        match max > min {
            true => Some(f64::from(cosine - min) / f64::from(max - min)),
            false => Some(1.0),
        }
    }

    /// Whether neither words nor meaning of a tool are near to the query.
    fn is_weak(&self, index: &Index<'_>, best: u32) -> bool {
        let (_, cosine) = self.cosine_range;
        let is_far = self.cosines.is_empty() || f64::from(cosine) < WEAK_COSINE;
        is_far && self.coverage(index, best) < WEAK_COVERAGE
    }

    /// The share of the words of the query that a tool contains.
    fn coverage(&self, index: &Index<'_>, tool: u32) -> f64 {
        let is_covered = |word: usize| {
            let terms = self.query.terms.iter().filter(|term| term.word == word);
            terms
                .into_iter()
                .any(|term| index.postings(term.term).any(|(other, _)| other == tool))
        };
        let count = self.query.words.len();
        let covered = (0..count).filter(|word| is_covered(*word)).count();
        covered as f64 / count.max(1) as f64
    }
}

/// How much a term says: the fewer tools contain it, the more.
pub(crate) fn rarity(tools: u32, with_term: u32) -> f64 {
    let (tools, with_term) = (f64::from(tools), f64::from(with_term));
    (1.0 + (tools - with_term + 0.5) / (with_term + 0.5)).ln()
}

/// The part of a term's weight that counts.
pub(crate) fn saturated(weight: f64) -> f64 {
    weight * (SATURATION + 1.0) / (weight + SATURATION)
}
