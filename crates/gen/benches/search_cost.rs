//! The instructions of a search over 2 000 and 10 000 tools, counted by callgrind, beside those of a `meta_desc` over
//! HTTP (`tests/hot_path/bounds.tsv`). The tools are the recorded ones of 55 servers, repeated under other nodes with an
//! additional word; the queries are the development queries. Runs itself under valgrind.

use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use broker_build::plan::plan;
use broker_build::search_documents::search_documents;
use broker_config::Config;
use broker_model::lock::Lock;
use broker_search::{
    Document, Index, SearchScope, Similarity, StaticTable, TABLE, index_bytes, search,
};
use harness::Run;
use serde_json::Value;

/// The numbers of tools, each with its bound in requests of `meta_desc`.
const SIZES: [(usize, u64); 2] = [(2_000, 16), (10_000, 55)];
/// The name of the request in `bounds.tsv`, and the column of its instructions in the profile `release`.
const UNIT: (&str, usize) = ("http meta_desc", 4);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, tools, rounds] = &arguments[..]
        && option == "--run"
    {
        run(tools.parse()?, rounds.parse()?);
        return Ok(());
    }
    let unit = unit().ok_or("bounds.tsv has no instructions of meta_desc")?;
    let mut out = std::io::stdout().lock();
    let mut is_over = false;
    for (tools, bound) in SIZES {
        let [once, twice] = [1, 2].map(|rounds| count(tools, rounds));
        let query = (twice? - once?) / queries().len() as u64;
        let times = query as f64 / unit as f64;
        is_over |= query > bound * unit;
        writeln!(
            out,
            "{tools} tools: {query} instructions a query, {times:.1} of meta_desc (at most {bound})"
        )?;
    }
    match is_over {
        true => Err("a search costs more than its bound".into()),
        false => Ok(()),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The instructions of the request that searches are compared with.
fn unit() -> Option<u64> {
    let bounds = read("tests/hot_path/bounds.tsv");
    let mut rows = bounds
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&UNIT.0))?;
    row.get(UNIT.1)?.parse().ok()
}

fn queries() -> Vec<String> {
    let files = ["first_half", "second_half"];
    let text: String = files
        .map(|half| read(&format!("tests/search/queries/{half}.jsonl")))
        .concat();
    let query = |line| {
        let query: Value = serde_json::from_str(line).expect("a query");
        query["query"].as_str().expect("a text").to_owned()
    };
    text.lines().map(query).collect()
}

/// All queries, so many times, over so many tools.
fn run(tools: usize, rounds: usize) {
    let file = |name: &str| read(&format!("tests/corpus-broker/{name}"));
    let config = Config::parse("config.json", file("config.json").as_bytes());
    let config = config.expect("the config is valid").config;
    let lock = Lock::parse("config.lock.json", &file("config.lock.json")).expect("a lock");
    let plan = plan(&config, &lock.sources).expect("config and lock fit");
    let recorded = search_documents(&plan);
    let words: Vec<String> = (0..tools)
        .map(|at| format!("copy{}", at / recorded.len()))
        .collect();
    let documents: Vec<Document<'_>> = (0..tools)
        .map(|at| {
            let mut document = recorded[at % recorded.len()].clone();
            document.place.push(&words[at]);
            document
        })
        .collect();
    let table = StaticTable::new(&TABLE).expect("the table of the package");
    let bytes = index_bytes(&documents, Some(&table));
    let index = Index::new(&bytes).expect("it was made now");
    let scope = SearchScope::new(&index, |_| true);
    let queries = queries();
    for _ in 0..rounds {
        for query in &queries {
            black_box(search(
                &index,
                &scope,
                Similarity::Table(&table),
                query,
                0..index.tools(),
            ));
        }
    }
}

fn count(tools: usize, rounds: usize) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Run::new(Path::new("valgrind"))
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([&own])
        .args(["--run", &tools.to_string(), &rounds.to_string()])
        .output();
    let mut lines = output.stderr.lines();
    let collected = lines.find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match collected {
        Some(count) if output.code == Some(0) => Ok(count),
        _ => Err(format!("callgrind failed: {}", output.stderr)),
    }
}
