//! The figures of both catalogs, and the report.

use std::fmt::Write as _;

use serde_json::json;

use crate::caller::{Caller, RULES, Way};
use crate::refusals::{self, Refusal};
use crate::stage::{Stage, corpus_folder, recording};
use crate::tokens::{TOKENIZER, tokens};

/// The servers that most people use.
pub(crate) const COMMON: [&str; 4] = ["filesystem", "memory", "time", "everything"];

/// Everything that is measured.
pub(crate) struct Figures {
    pub(crate) common: Catalog,
    /// The start of a session of these servers with jobs.
    pub(crate) start_with_jobs: usize,
    pub(crate) corpus: Catalog,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) missing_arguments: Vec<(String, usize)>,
    pub(crate) failed: Vec<Refusal>,
}

/// The figures of one catalog, in tokens.
pub(crate) struct Catalog {
    name: &'static str,
    pub(crate) servers: usize,
    /// `tools/list` of all servers, as they answer it without a broker.
    pub(crate) raw: usize,
    /// The start of a session.
    pub(crate) start: usize,
    /// For each tool.
    pub(crate) by_tree: Vec<Way>,
    /// For each tool.
    pub(crate) by_search: Vec<Way>,
}

impl Figures {
    /// Starts the brokers and measures.
    pub(crate) fn measure() -> Self {
        let common = Stage::of(&COMMON);
        let figures = Catalog::measure("four servers", &common, &COMMON);
        let all = all_servers();
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        Self {
            common: figures,
            start_with_jobs: Caller::new(&Stage::with_jobs(&COMMON)).start_tokens(),
            corpus: Catalog::measure("corpus", &Stage::corpus(), &names),
            refused: refusals::of_calls(&common),
            missing_arguments: refusals::of_missing_arguments(&common),
            failed: refusals::of_sources(),
        }
    }

    /// The report, as Markdown.
    pub(crate) fn report(&self) -> String {
        let mut out = format!("Tokenizer: {TOKENIZER}.\n\n");
        for (at, rule) in RULES.iter().enumerate() {
            line(&mut out, &format!("{}. {rule}", at + 1));
        }
        line(
            &mut out,
            "\n| catalog | servers | tools | raw `tools/list` | session start | of raw |",
        );
        line(&mut out, "|---|---|---|---|---|---|");
        for (catalog, more, start) in [
            (&self.common, "", self.common.start),
            (&self.common, ", with jobs", self.start_with_jobs),
            (&self.corpus, "", self.corpus.start),
        ] {
            let raw = catalog.raw;
            let share = 100.0 * start as f64 / raw as f64;
            let (servers, tools) = (catalog.servers, catalog.by_tree.len());
            line(
                &mut out,
                &format!(
                    "| {}{more} | {servers} | {tools} | {raw} | {start} | {share:.1} % |",
                    catalog.name
                ),
            );
        }
        line(
            &mut out,
            "\n| to the first call, session start included | calls: median, highest | tokens: median | 90 % | highest |",
        );
        line(&mut out, "|---|---|---|---|---|");
        for catalog in [&self.common, &self.corpus] {
            line(&mut out, &ways(catalog.name, "by tree", &catalog.by_tree));
            if !catalog.by_search.is_empty() {
                line(
                    &mut out,
                    &ways(catalog.name, "by search", &catalog.by_search),
                );
                let found = catalog.by_search.iter().filter(|way| way.is_found).count();
                let of = catalog.by_search.len();
                line(
                    &mut out,
                    &format!(
                        "| {}, found by the first query | {found} of {of} | | | |",
                        catalog.name
                    ),
                );
            }
        }
        line(&mut out, "\n| refused call | code | tokens |");
        line(&mut out, "|---|---|---|");
        for refusal in self.refused.iter().chain(&self.failed) {
            let Refusal {
                code,
                cause,
                tokens,
            } = refusal;
            line(&mut out, &format!("| {cause} | `{code}` | {tokens} |"));
        }
        let of: Vec<usize> = self
            .missing_arguments
            .iter()
            .map(|(_, tokens)| *tokens)
            .collect();
        let (median, most, highest) = spread(&of);
        let count = of.len();
        line(
            &mut out,
            &format!(
                "| each of {count} tools of the four servers without arguments: median, 90 %, highest | `args_invalid` | {median}, {most}, {highest} |"
            ),
        );
        out
    }
}

impl Catalog {
    fn measure(name: &'static str, stage: &Stage, servers: &[&str]) -> Self {
        let caller = Caller::new(stage);
        let paths = stage.paths();
        let by_search = match has_search(stage) {
            true => {
                let wanted = paths.iter().filter(|path| !stage.is_deprecated(path));
                wanted.map(|path| caller.by_search(path)).collect()
            }
            false => Vec::new(),
        };
        Self {
            name,
            servers: servers.len(),
            raw: servers.iter().map(|server| raw_tokens(server)).sum(),
            start: caller.start_tokens(),
            by_tree: paths.iter().map(|path| caller.by_tree(path)).collect(),
            by_search,
        }
    }
}

/// Whether `meta_tree` searches.
fn has_search(stage: &Stage) -> bool {
    !stage
        .call("meta_tree", &json!({ "query": "time" }))
        .is_error
}

fn raw_tokens(server: &str) -> usize {
    tokens(&recording(server)["tools"].to_string())
}

fn all_servers() -> Vec<String> {
    let files = std::fs::read_dir(corpus_folder().join("servers")).expect("the recordings");
    let files = files.map(|file| file.expect("a recording").path());
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

fn ways(name: &str, how: &str, ways: &[Way]) -> String {
    let calls: Vec<usize> = ways.iter().map(|way| way.calls).collect();
    let costs: Vec<usize> = ways.iter().map(|way| way.tokens).collect();
    let ((calls, _, longest), (median, most, highest)) = (spread(&calls), spread(&costs));
    format!("| {name}, {how} | {calls}, {longest} | {median} | {most} | {highest} |")
}

/// The median, the value that 90 % do not exceed, and the highest one.
fn spread(values: &[usize]) -> (usize, usize, usize) {
    let mut values = values.to_vec();
    values.sort_unstable();
    let at = |percent: usize| values.get((values.len() * percent).div_ceil(100).saturating_sub(1));
    let at = |percent| at(percent).copied().unwrap_or_default();
    (at(50), at(90), at(100))
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes all text");
}
