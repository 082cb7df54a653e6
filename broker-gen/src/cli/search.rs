//! `search`: the tools that a search of callers finds, and why. Starts no server.

use broker_build::build_script;
use broker_build::embedder_table::EmbedderTable;
use broker_build::plan::{self, Entry, Plan, ToolEntry};
use broker_build::tables;
use broker_build::tables::summary::tool_summary;
use broker_build::vectors_file;
use broker_config::Config;
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, NodePath, text};
use broker_search::{
    DEFAULT_HITS, Embedding, Explanation, Index, MAX_HITS, MAX_QUERY_CHARS, MatchKind,
    ModelVectors, Ranking, SearchScope, Similarity, StaticTable, TABLE, WordPart,
};
use clap::Args;
use serde_json::{Value, json};

use super::{output, vectors};

/// Maximum length of a summary in a line, in characters.
const SUMMARY: usize = 100;

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The words to search for: two to six, of action, object and product.
    #[arg(value_parser = query)]
    query: String,
    /// Show why each tool was found, word by word.
    #[arg(long)]
    explain: bool,
    /// The number of tools, at most 50.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HITS, value_parser = limit)]
    limit: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn query(text: &str) -> Result<String, String> {
    match broker_search::is_query(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "expected 1 to {MAX_QUERY_CHARS} characters, with at least one letter or digit"
        )),
    }
}

fn limit(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=MAX_HITS).contains(number))
        .ok_or_else(|| format!("expected a number from 1 to {MAX_HITS}"))
}

pub(super) async fn run(args: &SearchArgs) -> Exit {
    match render(args).await {
        Ok(text) => {
            match args.json {
                true => output::document(&text),
                false => output::data(&text),
            }
            Exit::Ok
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// A tool that was found.
struct Found<'p> {
    path: &'p NodePath,
    summary: String,
    /// Rounded to two decimals, as callers see it.
    score: f64,
    explanation: Option<Explanation>,
}

async fn render(args: &SearchArgs) -> Result<Text, Vec<Diagnostic>> {
    let file = &args.file.config;
    let shown = file.to_string_lossy();
    let (config, lock) = build_script::read(file, &shown)?;
    let mut plan = plan::plan(&config, &lock.sources)?;
    plan.vectors = vectors_file::load(&config, &plan, file, &shown)?;
    output::diagnostics(&plan.warnings);
    let tables = tables::search_tables(&config, &plan);
    let index = Index::new(&tables.index).expect("the index was made by this program");
    let table = tables
        .has_table
        .then(|| StaticTable::new(&TABLE).expect("a test reads the table"));
    let scope = SearchScope::new(&index, |_| true);
    let embedded = embedded(&config, tables.embedder.as_ref(), args).await?;
    let vectors = embedded.as_ref().map(|(bytes, query)| {
        let tools = ModelVectors::new(bytes, index.tools());
        (tools.expect("they were made by this program"), query)
    });
    let similarity = match &vectors {
        Some((tools, query)) => Similarity::Model(tools, query),
        None => table.as_ref().into(),
    };
    let among = 0..index.tools();
    let Ranking { hits, is_weak } =
        broker_search::search(&index, &scope, similarity, &args.query, among);
    let tools = tools(&plan);
    let found: Vec<_> = hits
        .take(args.limit)
        .map(|hit| {
            let (path, tool) = tools[hit.tool as usize];
            let explain = || Explanation::new(&index, &scope, similarity, &args.query, hit.tool);
            Found {
                path,
                summary: tool_summary(tool),
                score: (hit.score * 100.0).round() / 100.0,
                explanation: args.explain.then(explain),
            }
        })
        .collect();
    Ok(match args.json {
        true => Text::json(&document(&args.query, &found, is_weak)),
        false => human(&found, is_weak, tools.len()),
    })
}

/// Returns the vectors of the tools, and the vector of the query by the same model; `None` without
/// a model.
async fn embedded(
    config: &Config,
    table: Option<&EmbedderTable>,
    args: &SearchArgs,
) -> Result<Option<(Vec<u8>, Embedding)>, Vec<Diagnostic>> {
    let (Some(table), Some(models)) = (table, vectors::open(config, &args.file.config)?) else {
        return Ok(None);
    };
    let (at, query) = models
        .query(&args.query)
        .await
        .map_err(|error| vectors::unavailable(&error))?;
    let model = table.models.get(at).map(|model| model.vectors.clone());
    Ok(model.map(|vectors| (vectors, query)))
}

/// Returns the tools in the order of the index: sorted by path.
fn tools<'p>(plan: &'p Plan<'_>) -> Vec<(&'p NodePath, &'p ToolEntry<'p>)> {
    let entries = plan.entries.iter();
    entries
        .filter_map(|(path, entry)| match entry {
            Entry::Tool(tool) => Some((path, tool)),
            Entry::Node { .. } => None,
        })
        .collect()
}

fn human(found: &[Found<'_>], is_weak: bool, tools: usize) -> Text {
    let mut out = Text::new();
    if found.is_empty() {
        out.push(text!("none of {} was found\n", counted(tools, "tool")));
    }
    for hit in found {
        let summary = shown_line(&hit.summary, SUMMARY);
        let score = format!("{:.2}", hit.score);
        out.push(text!("{}  {}  {}\n", score, hit.path, summary));
        if let Some(explanation) = &hit.explanation {
            out.push(explained(explanation));
        }
    }
    if is_weak {
        out.push("weak: neither the words nor the meaning of the best tool are near\n");
    }
    out
}

/// The parts of a score, one line for each word.
fn explained(explanation: &Explanation) -> Text {
    let mut lines = Vec::new();
    for word in &explanation.words {
        let addition = format!("{:.2}", word.part);
        lines.push([word.word.clone(), addition, origin(word)]);
    }
    if let Some(words) = explanation.words_score {
        let sum: f64 = explanation.words.iter().map(|word| word.part).sum();
        let share = format!("{words:.2} of the best sum of words");
        lines.push(["words".to_owned(), format!("{sum:.2}"), share]);
    }
    if let (Some(cosine), Some(similarity)) = (explanation.cosine, explanation.similarity) {
        let share = format!("{similarity:.2} between the farthest and the nearest tool");
        lines.push(["cosine".to_owned(), format!("{cosine:.2}"), share]);
    }
    let width = lines.iter().map(|[name, ..]| name.chars().count()).max();
    let width = width.unwrap_or(0);
    lines
        .iter()
        .map(|[name, number, rest]| {
            let line = format!("{name:width$}  {number:>5}  {rest}");
            text!("      {}\n", line)
        })
        .collect()
}

/// The term that a word of the query found.
fn origin(word: &WordPart) -> String {
    let Some(term) = &word.term else {
        return "no tool has it".to_owned();
    };
    let how = match word.kind {
        Some(MatchKind::Alias) => format!("stands for `{term}`, "),
        Some(MatchKind::Typo) => format!("corrected to `{term}`, "),
        Some(MatchKind::Word) | None => format!("stem `{term}`, "),
    };
    let missing = if word.part > 0.0 {
        ""
    } else {
        ", not this one"
    };
    format!("{how}in {}{missing}", counted(word.tools as usize, "tool"))
}

fn document(query: &str, found: &[Found<'_>], is_weak: bool) -> Value {
    let hits = found.iter().map(|hit| {
        let mut out =
            json!({"path": hit.path.as_str(), "summary": hit.summary, "score": hit.score});
        if let Some(explanation) = &hit.explanation {
            let words = explanation.words.iter().map(|word| {
                json!({
                    "word": word.word,
                    "term": word.term,
                    "match": word.kind.map(match_name),
                    "tools": word.tools,
                    "part": word.part,
                })
            });
            out["explanation"] = json!({
                "words": words.collect::<Vec<_>>(),
                "words_score": explanation.words_score,
                "cosine": explanation.cosine,
                "similarity": explanation.similarity,
                "score": explanation.score,
            });
        }
        out
    });
    json!({"query": query, "hits": hits.collect::<Vec<_>>(), "weak": is_weak})
}

const fn match_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Word => "word",
        MatchKind::Alias => "alias",
        MatchKind::Typo => "typo",
    }
}
