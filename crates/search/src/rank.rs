//! The ranking of tools for a query: words and vectors, fused.

use std::ops::Range;

use crate::index::Index;
use crate::model_vectors::{Embedding, ModelVectors};
use crate::query::Query;
use crate::scope::SearchScope;
use crate::vectors::StaticTable;

/// The saturation of a term's occurrences: `k1` of BM25.
const SATURATION: f64 = 1.2;
/// The share of similarity in the score of a tool, by the table.
const TABLE_SHARE: f64 = 0.5;
/// The share of similarity in the score of a tool, by a model, whose vectors say more.
const MODEL_SHARE: f64 = 0.6;
/// The share of the cosine in the confidence in the first hit.
const COSINE_SHARE: f64 = 0.3;
/// A first hit with a lower confidence may be the wrong one. Chosen on the first half of the development queries, so that it
/// marks at least 60 % of the wrong first hits and at most 15 % of the right ones.
const WEAK_CONFIDENCE: f64 = 0.45;
/// The number of tools in a block. The best score of each block is kept.
const BLOCK: usize = 64;

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
    pub hits: Hits,
    /// Whether the first hit may be the wrong one: it contains few of the rare words of the query, and its meaning is not near.
    pub is_weak: bool,
}

/// Hits, the best first. A caller takes few of many, so that they are looked for one by one.
#[derive(Clone, Debug)]
pub struct Hits {
    first: u32,
    /// By tool; 0 for those that are not hits or were taken.
    scores: Vec<f64>,
    /// The best score of each block of [`BLOCK`] tools.
    best: Vec<f64>,
    /// The tools that call themselves deprecated, the worst first. They follow all others.
    deprecated: Vec<Hit>,
    /// The score of the hit that was taken last: no later one has a higher score.
    last: f64,
}

impl Hits {
    fn new(first: u32, mut scores: Vec<f64>, deprecated: impl Iterator<Item = u32>) -> Self {
        let mut late = Vec::new();
        for tool in deprecated {
            let place = tool.checked_sub(first).map(|at| at as usize);
            let score = place.and_then(|at| scores.get_mut(at));
            let score = score.map_or(0.0, std::mem::take);
            if score > 0.0 {
                late.push(Hit { tool, score });
            }
        }
        // They are in the order of the index.
        late.reverse();
        late.sort_by(|one, other| one.score.total_cmp(&other.score));
        let best = scores.chunks(BLOCK).map(maximum).collect();
        Self {
            first,
            scores,
            best,
            deprecated: late,
            last: 1.0,
        }
    }

    /// Returns the first hit.
    fn first(&self) -> Option<u32> {
        let others = || self.deprecated.last().map(|hit| hit.tool);
        self.peek().map(|at| self.first + at as u32).or_else(others)
    }

    /// Returns the place of the best score; of equal ones the first.
    fn peek(&self) -> Option<usize> {
        let best = maximum(&self.best);
        if best <= 0.0 {
            return None;
        }
        let block = self.best.iter().position(|score| *score == best)?;
        let from = block * BLOCK;
        let at = self.scores[from..]
            .iter()
            .position(|score| *score == best)?;
        Some(from + at)
    }
}

impl Iterator for Hits {
    type Item = Hit;

    fn next(&mut self) -> Option<Hit> {
        let Some(at) = self.peek() else {
            let hit = self.deprecated.pop()?;
            self.last = self.last.min(hit.score);
            return Some(Hit {
                score: self.last,
                ..hit
            });
        };
        let score = std::mem::take(&mut self.scores[at]);
        let block = at / BLOCK;
        let end = self.scores.len().min((block + 1) * BLOCK);
        self.best[block] = maximum(&self.scores[block * BLOCK..end]);
        self.last = score;
        Some(Hit {
            tool: self.first + at as u32,
            score,
        })
    }
}

/// Returns the largest score. Scores are not negative.
fn maximum(scores: &[f64]) -> f64 {
    let larger = |best, score: &f64| if *score > best { *score } else { best };
    scores.iter().fold(0.0, larger)
}

/// The vectors for the similarity of a query and a tool.
#[derive(Clone, Copy, Debug)]
pub enum Similarity<'a> {
    /// No vectors: words count alone.
    None,
    /// The table, and the vectors of the index. Without those, words count alone.
    Table(&'a StaticTable),
    /// A model: its tool vectors, and its query vector. If their dimensions differ, words count alone.
    Model(&'a ModelVectors<'a>, &'a Embedding),
}

impl<'a> From<Option<&'a StaticTable>> for Similarity<'a> {
    fn from(table: Option<&'a StaticTable>) -> Self {
        table.map_or(Self::None, Self::Table)
    }
}

impl Similarity<'_> {
    /// Returns the cosines of a query and all tools; empty if words count alone.
    fn cosines(self, index: &Index<'_>, text: &str) -> Vec<f32> {
        match self {
            Self::Table(table) => {
                let vector = table.query(text);
                vector.map_or_else(Vec::new, |vector| index.cosines(&vector).collect())
            }
            Self::Model(vectors, query) if vectors.dimensions() == query.dimensions() => {
                vectors.cosines(query)
            }
            Self::Model(..) | Self::None => Vec::new(),
        }
    }

    const fn share(self) -> f64 {
        match self {
            Self::Model(..) => MODEL_SHARE,
            Self::Table(_) | Self::None => TABLE_SHARE,
        }
    }
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
    /// The share of similarity in a score.
    pub(crate) share: f64,
}

/// Ranks the tools of a scope for a query, those with a number in `among`. Only tools with a score above 0 are hits.
pub fn search(
    index: &Index<'_>,
    scope: &SearchScope,
    similarity: Similarity<'_>,
    text: &str,
    among: Range<u32>,
) -> Ranking {
    let scores = Scores::new(index, scope, similarity, text);
    // A caller who names the word looks for such tools.
    let deprecated = match scores.query.asks_for_deprecated() {
        true => None,
        false => index.deprecated(),
    };
    let deprecated = deprecated.into_iter().flatten();
    let hits = Hits::new(among.start, scores.score_range(scope, among), deprecated);
    let is_weak = hits
        .first()
        .is_none_or(|best| scores.is_weak(index, scope, best));
    Ranking { hits, is_weak }
}

impl Scores {
    pub(crate) fn new(
        index: &Index<'_>,
        scope: &SearchScope,
        similarity: Similarity<'_>,
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
        let cosines = similarity.cosines(index, query.english.as_deref().unwrap_or(text));
        let range = if scope.has_all_tools() {
            range_of(cosines.iter().copied())
        } else {
            let pairs = (0..).zip(&cosines);
            range_of(pairs.filter_map(|(tool, cosine)| scope.contains(tool).then_some(*cosine)))
        };
        Self {
            best_words: words.iter().copied().fold(0.0, f64::max),
            query,
            words,
            cosines,
            cosine_range: range,
            share: similarity.share(),
        }
    }

    /// Returns the scores of some tools; 0 for those outside the scope.
    fn score_range(&self, scope: &SearchScope, tools: Range<u32>) -> Vec<f64> {
        let range = tools.start as usize..tools.end as usize;
        let words = &self.words[range.clone()];
        let mut scores: Vec<f64> = match self.cosines.get(range) {
            Some(cosines) => {
                let parts = words.iter().zip(cosines);
                parts
                    .map(|(words, cosine)| self.fused(*words, Some(*cosine)))
                    .collect()
            }
            None => words.iter().map(|words| self.fused(*words, None)).collect(),
        };
        if !scope.has_all_tools() {
            for (score, tool) in scores.iter_mut().zip(tools) {
                if !scope.contains(tool) {
                    *score = 0.0;
                }
            }
        }
        scores
    }

    /// Returns the score of a tool of the scope.
    pub(crate) fn score(&self, tool: u32) -> f64 {
        let tool = tool as usize;
        self.fused(self.words[tool], self.cosines.get(tool).copied())
    }

    /// Returns the score of the sum of the words and the cosine of a tool.
    fn fused(&self, words: f64, cosine: Option<f32>) -> f64 {
        let words = match self.best_words > 0.0 {
            true => words / self.best_words,
            false => 0.0,
        };
        match (cosine, self.best_words > 0.0) {
            (None, _) => words,
            (Some(cosine), false) => self.relative(cosine),
            (Some(cosine), true) => (1.0 - self.share) * words + self.share * self.relative(cosine),
        }
    }

    /// Returns the cosine of a tool relative to the smallest and the largest one of the scope.
    pub(crate) fn similarity(&self, tool: u32) -> Option<f64> {
        let cosine = *self.cosines.get(tool as usize)?;
        Some(self.relative(cosine))
    }

    fn relative(&self, cosine: f32) -> f64 {
        let (min, max) = self.cosine_range;
        match max > min {
            true => f64::from(cosine - min) / f64::from(max - min),
            false => 1.0,
        }
    }

    /// Whether neither words nor meaning of a tool are near to the query.
    fn is_weak(&self, index: &Index<'_>, scope: &SearchScope, best: u32) -> bool {
        let covered = self.coverage(index, scope, best);
        let confidence = match self.cosines.get(best as usize) {
            Some(cosine) => (1.0 - COSINE_SHARE) * covered + COSINE_SHARE * f64::from(*cosine),
            None => covered,
        };
        confidence < WEAK_CONFIDENCE
    }

    /// Returns the share of the words of the query that a tool contains. A rare word counts more.
    fn coverage(&self, index: &Index<'_>, scope: &SearchScope, tool: u32) -> f64 {
        let (mut covered, mut all) = (0.0, 0.0);
        for word in 0..self.query.words.len() {
            let terms = || self.query.terms.iter().filter(|term| term.word == word);
            let rarities =
                terms().map(|term| rarity(scope.count(), scope.tool_count(index, term.term)));
            let rarity = rarities
                .reduce(f64::max)
                .unwrap_or_else(|| rarity(scope.count(), 0));
            all += rarity;
            let is_covered =
                terms().any(|term| index.postings(term.term).any(|(other, _)| other == tool));
            if is_covered {
                covered += rarity;
            }
        }
        match all > 0.0 {
            true => covered / all,
            false => 0.0,
        }
    }
}

/// Returns the smallest and the largest number. Comparisons are cheaper than `min` and `max`: these treat a NaN apart,
/// and the numbers contain no NaN.
fn range_of(numbers: impl Iterator<Item = f32>) -> (f32, f32) {
    numbers.fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), number| {
        (
            if number < min { number } else { min },
            if number > max { number } else { max },
        )
    })
}

/// Returns the rarity of a term: the fewer tools contain it, the rarer it is.
pub(crate) fn rarity(tools: u32, with_term: u32) -> f64 {
    let (tools, with_term) = (f64::from(tools), f64::from(with_term));
    (1.0 + (tools - with_term + 0.5) / (with_term + 0.5)).ln()
}

/// Returns the part of a term's weight that counts.
pub(crate) fn saturated(weight: f64) -> f64 {
    weight * (SATURATION + 1.0) / (weight + SATURATION)
}
