//! The embedder `HF` with the real programs: vectors of a lock, a served broker, other and missing models. The model is
//! a small table that the test makes, or the folder that `MCP_BROKER_TEST_MODEL` names.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, Output, Run, binary, contains};
use serde_json::{Value, json};
use tempfile::TempDir;

const CONFIG: &str = include_str!("../../smoke_config.json");
const LOCK: &str = include_str!("../../smoke_config.lock.json");

/// The words that the small model knows, with the direction of each.
const WORDS: [(&str, [f32; 3]); 8] = [
    ("[UNK]", [0.1, 0.1, 0.1]),
    ("hexadecimal", [1.0, 0.0, 0.0]),
    ("hex", [1.0, 0.0, 0.0]),
    ("sixteen", [1.0, 0.1, 0.0]),
    ("time", [0.0, 1.0, 0.0]),
    ("now", [0.0, 1.0, 0.0]),
    ("json", [0.0, 0.0, 1.0]),
    ("file", [0.3, 0.3, 0.3]),
];

/// A folder with a config, its lock and models.
struct Bench {
    folder: TempDir,
    model: PathBuf,
}

impl Bench {
    /// With the model in the folder that the config names.
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let model = match std::env::var_os("MCP_BROKER_TEST_MODEL") {
            Some(model) => model.into(),
            None => small_model(&folder.path().join("models/small"), 1.0),
        };
        let bench = Self { folder, model };
        bench.write("config.lock.json", LOCK);
        bench.search(&json!({"embedder": "HF", "hf_model": bench.model, "timeout": 30}));
        bench
    }

    fn search(&self, search: &Value) {
        let mut config: Value = serde_json::from_str(CONFIG).expect("JSON");
        config.as_object_mut().expect("an object").remove("$schema");
        config["search"] = search.clone();
        self.write("config.json", &config.to_string());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("writable");
    }

    fn run(&self, args: &[&str]) -> Run {
        let program = Run::new(Path::new(env!("CARGO_BIN_EXE_broker-gen")));
        let beside = binary("toolbox-mcp");
        let folder = beside.parent().expect("a folder").to_owned();
        let run = program.folder(self.folder.path()).args(args);
        run.args(["--config", "config.json"]).env("PATH", folder)
    }

    fn verb(&self, verb: &str) -> Output {
        self.run(&[verb]).output()
    }

    fn fine(&self, verb: &str) -> Output {
        let output = self.verb(verb);
        assert_eq!(output.code, Some(0), "{verb}: {}", output.stderr);
        output
    }

    fn serve(&self) -> Run {
        self.run(&["serve", "127.0.0.1:0"])
    }
}

/// The files of a table of vectors in the form of model2vec.
fn small_model(folder: &Path, factor: f32) -> PathBuf {
    fs::create_dir_all(folder).expect("writable");
    let vocabulary: serde_json::Map<String, Value> = WORDS
        .iter()
        .zip(0..)
        .map(|((word, _), at)| ((*word).to_owned(), json!(at)))
        .collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    let rows = WORDS.iter().flat_map(|(_, row)| row);
    let data: Vec<u8> = rows.flat_map(|it| (it * factor).to_le_bytes()).collect();
    let header = json!({"embeddings": {
        "dtype": "F32", "shape": [WORDS.len(), 3], "data_offsets": [0, data.len()],
    }});
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    let tensors = [&length[..], header.as_bytes(), &data].concat();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("writable");
    write("config.json", br#"{"model_type": "model2vec"}"#);
    write("tokenizer.json", tokenizer.to_string().as_bytes());
    write("model.safetensors", &tensors);
    folder.to_owned()
}

fn first(broker: &Broker, query: &str) -> String {
    let answer = broker.post("/meta_tree", &json!({"query": query}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer.get("degraded"), None, "{answer}");
    answer["children"][0]["path"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn local_model_makes_the_vectors_of_a_lock_and_of_queries() {
    let bench = Bench::new();
    contains(
        &bench.fine("vectors").stderr,
        &["embeds 8 texts", "wrote config.vectors"],
    );
    contains(
        &bench.fine("vectors").stderr,
        &["config.vectors is up to date"],
    );
    contains(
        &bench.run(&["verify", "--format", "json"]).output().stdout,
        &["\"verified\": true", "\"vectors\""],
    );
    let broker = Broker::start_ready(bench.serve());
    assert_eq!(
        first(&broker, "sixteen"),
        "/util/hex",
        "no text has the word"
    );
    drop(broker);
    let found = bench.run(&["search", "sixteen", "--explain"]).output();
    contains(&found.stdout, &["/util/hex", "cosine"]);

    // Words alone need no model.
    bench.write(
        "config.json",
        &fs::read_to_string(bench.folder.path().join("config.json"))
            .expect("readable")
            .replace(bench.model.to_str().expect("a path"), "moved"),
    );
    let refused = bench.serve().output();
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["vectors_stale", "the config names `moved`"],
    );
}

#[test]
fn start_needs_the_model_that_made_the_vectors() {
    let bench = Bench::new();
    bench.fine("vectors");
    let other = small_model(&bench.folder.path().join("models/other"), -2.0);
    let other = other.to_str().expect("a path");
    let refused = bench.serve().env("MCP_BROKER_HF_MODEL", other).output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["embedder_mismatch", "models/other", "sha256:"],
    );
    let missing = bench
        .serve()
        .env("MCP_BROKER_HF_MODEL", "org/none")
        .output();
    assert_eq!(missing.code, Some(4), "{}", missing.stderr);
    contains(
        &missing.stderr,
        &[
            "embedder_unavailable",
            "`org/none` was not found",
            "Nothing is downloaded",
        ],
    );
    let words = bench.serve().env("MCP_BROKER_HF_MODEL", "org/none");
    let broker = Broker::start_ready(words.env("MCP_BROKER_EMBEDDER", "BM25"));
    assert_eq!(first(&broker, "hex"), "/util/hex");
    drop(broker);
    let openai = bench.serve().env("MCP_BROKER_EMBEDDER", "OPENAI").output();
    assert_eq!(openai.code, Some(2), "{}", openai.stderr);
    contains(&openai.stderr, &["embedder_mismatch", "built for `HF`"]);

    // The same files in another place.
    let copy = bench.folder.path().join("copy");
    fs::create_dir(&copy).expect("writable");
    for name in [
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    ] {
        if bench.model.join(name).exists() {
            fs::copy(bench.model.join(name), copy.join(name)).expect("writable");
        }
    }
    if bench.model.join("1_Pooling").exists() {
        fs::create_dir(copy.join("1_Pooling")).expect("writable");
        fs::copy(
            bench.model.join("1_Pooling/config.json"),
            copy.join("1_Pooling/config.json"),
        )
        .expect("writable");
    }
    let copied = bench.serve().env("MCP_BROKER_HF_MODEL", &copy);
    assert_eq!(first(&Broker::start_ready(copied), "sixteen"), "/util/hex");
}

#[test]
fn second_model_embeds_queries_of_other_languages() {
    let bench = Bench::new();
    let second = small_model(&bench.folder.path().join("models/second"), 3.0);
    bench.search(&json!({
        "embedder": "HF", "hf_model": bench.model, "hf_multilingual_model": second, "timeout": 30,
    }));
    let made = bench.fine("vectors");
    assert_eq!(made.stderr.matches("embeds ").count(), 2, "{}", made.stderr);
    let broker = Broker::start_ready(bench.serve());
    assert_eq!(first(&broker, "sixteen"), "/util/hex");
    // Nearly all letters are those of another script; the second model knows one word.
    assert_eq!(
        first(&broker, "переведи пожалуйста это hexadecimal"),
        "/util/hex"
    );
    drop(broker);
    bench.search(&json!({"embedder": "HF", "hf_model": bench.model}));
    let stale = bench.verb("verify");
    assert_eq!(stale.code, Some(5), "{}", stale.stderr);
    contains(
        &format!("{}{}", stale.stdout, stale.stderr),
        &["2 models, and the config names 1"],
    );
}
