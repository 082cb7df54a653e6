//! Models of this machine: small ones that the tests make, hostile folders, and with `MCP_BROKER_TEST_MODEL` the cosines
//! that are published for all-MiniLM-L6-v2.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// The words of the vocabulary, after the marks.
const WORDS: [&str; 8] = ["read", "write", "file", "send", "mail", "query", ":", "the"];
const WIDTH: usize = 8;

/// A folder with the files of a model.
struct Folder(TempDir);

impl Folder {
    fn new(config: &Value, tensors: &[u8]) -> Self {
        let folder = Self(TempDir::new().expect("a folder"));
        folder.write("config.json", config.to_string().as_bytes());
        folder.write("tokenizer.json", tokenizer().to_string().as_bytes());
        folder.write("model.safetensors", tensors);
        folder
    }

    fn bert() -> Self {
        Self::new(&config("bert"), &weights(true))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, bytes).expect("writable");
    }

    fn open(&self) -> Result<LocalModel, String> {
        let name = self.0.path().to_str().expect("a path").to_owned();
        let opened = LocalModel::open(&name, Path::new("/"), &|_| None);
        opened.map_err(|error| error.to_string())
    }

    fn refusal(&self) -> String {
        self.open().expect_err("the model is refused")
    }
}

fn tokenizer() -> Value {
    let marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
    let all = marks.iter().chain(&WORDS).zip(0..);
    let vocabulary: BTreeMap<_, u32> = all.map(|(word, at)| (*word, at)).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2],
        },
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
}

fn config(kind: &str) -> Value {
    json!({
        "model_type": kind, "vocab_size": 12, "hidden_size": WIDTH, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 40, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute",
    })
}

/// Returns the tensors of a transformer with numbers that look random.
fn weights(is_finite: bool) -> Vec<u8> {
    let square = [WIDTH, WIDTH];
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".into(), vec![12, WIDTH]),
        (
            "embeddings.position_embeddings.weight".into(),
            vec![40, WIDTH],
        ),
        (
            "embeddings.token_type_embeddings.weight".into(),
            vec![2, WIDTH],
        ),
    ];
    let norms = [
        "embeddings",
        "encoder.layer.0.attention.output",
        "encoder.layer.0.output",
    ];
    for part in norms {
        for member in ["weight", "bias"] {
            shapes.push((format!("{part}.LayerNorm.{member}"), vec![WIDTH]));
        }
    }
    let dense = [
        ("attention.self.query", square),
        ("attention.self.key", square),
        ("attention.self.value", square),
        ("attention.output.dense", square),
        ("intermediate.dense", [16, WIDTH]),
        ("output.dense", [WIDTH, 16]),
    ];
    for (part, shape) in dense {
        shapes.push((format!("encoder.layer.0.{part}.weight"), shape.to_vec()));
        shapes.push((format!("encoder.layer.0.{part}.bias"), vec![shape[0]]));
    }
    let mut state = 1u32;
    let tensors = shapes.into_iter().map(|(name, shape)| {
        let count = shape.iter().product();
        let numbers = (0..count).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match is_finite {
                true => (state >> 16) as f32 / 65_536.0 - 0.5,
                false => f32::NAN,
            }
        });
        (name, shape, numbers.collect::<Vec<_>>())
    });
    safetensors(&tensors.collect::<Vec<_>>())
}

/// Returns the bytes of a file of tensors.
fn safetensors(tensors: &[(String, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, numbers) in tensors {
        let begin = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let offsets = [begin, data.len()];
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": offsets});
        header.insert(name.clone(), tensor);
    }
    let header = Value::from(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}

async fn vector(model: &LocalModel, text: &str, kind: TextKind) -> Embedding {
    let vectors = model.embed(vec![text.to_owned()], kind).await;
    vectors.expect("a vector").remove(0)
}

fn cosine(a: &Embedding, b: &Embedding) -> f32 {
    let pairs = a.components().iter().zip(b.components());
    pairs.map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn transformers_give_a_vector_for_each_text() {
    for kind in ["bert", "xlm-roberta"] {
        let model = Folder::new(&config(kind), &weights(true));
        let model = model.open().expect("the model opens");
        assert_eq!(
            (model.dimensions(), model.identity().pooling.as_str()),
            (WIDTH, "mean")
        );
        let texts = ["read the file", "send mail", "read the file"].map(str::to_owned);
        let vectors = model
            .embed(texts.to_vec(), TextKind::Document)
            .await
            .expect("vectors");
        assert_eq!(vectors[0], vectors[2], "{kind}");
        assert!(cosine(&vectors[0], &vectors[1]) < 0.999, "{kind}");
        // Longer than the model reads: cut.
        vector(&model, &"file ".repeat(500), TextKind::Query).await;
        vector(&model, "", TextKind::Query).await;
    }
}

#[tokio::test]
async fn settings_of_the_folder_decide_pooling_prefixes_and_identity() {
    let folder = Folder::bert();
    let plain = folder.open().expect("the model opens");
    folder.write(
        "1_Pooling/config.json",
        br#"{"pooling_mode_cls_token": true}"#,
    );
    folder.write(
        "config_sentence_transformers.json",
        br#"{"prompts": {"query": "query: ", "document": ""}}"#,
    );
    let other = folder.open().expect("the model opens");
    assert_eq!(other.identity().pooling, "cls");
    assert_ne!(plain.identity().files, other.identity().files);
    let (query, document) = (
        vector(&other, "file", TextKind::Query).await,
        vector(&other, "file", TextKind::Document).await,
    );
    assert_ne!(query, document);
    assert_eq!(
        query,
        vector(&other, "query: file", TextKind::Document).await
    );
    assert_ne!(document, vector(&plain, "file", TextKind::Document).await);
}

#[tokio::test]
async fn tables_give_the_mean_of_their_rows() {
    let rows: Vec<f32> = (0..12).flat_map(|row| [1.0, row as f32]).collect();
    let tensors = [("embeddings".to_owned(), vec![12, 2], rows)];
    let table = Folder::new(&json!({"model_type": "model2vec"}), &safetensors(&tensors));
    let model = table.open().expect("the model opens");
    // `read` is row 4, `file` row 6.
    let found = vector(&model, "read file", TextKind::Query).await;
    assert_eq!(Some(found), Embedding::new(&[1.0, 5.0]));

    let mut weighted = tensors.to_vec();
    weighted.push((
        "weights".to_owned(),
        vec![12],
        (0..12).map(|it| f32::from(it == 6u8)).collect(),
    ));
    table.write("model.safetensors", &safetensors(&weighted));
    let model = table.open();
    // The text that finds out the dimensions has a weight.
    let found = vector(
        &model.expect("the model opens"),
        "read file",
        TextKind::Query,
    )
    .await;
    assert_eq!(Some(found), Embedding::new(&[1.0, 6.0]));
}

#[test]
fn hostile_folders_are_refused_and_the_file_is_named() {
    let with = |name: &str, value: Value| {
        let mut config = config("bert");
        config[name] = value;
        Folder::new(&config, &weights(true)).refusal()
    };
    for (name, value) in [
        ("hidden_size", json!(1u64 << 40)),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(-1)),
        ("hidden_size", json!(7)),
        ("hidden_size", json!(16)),
        ("num_hidden_layers", json!(1_000_000)),
        ("num_hidden_layers", json!(2)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(3)),
        ("vocab_size", json!(u64::MAX)),
        ("vocab_size", json!(1_999_999)),
        ("max_position_embeddings", json!(2)),
        ("layer_norm_eps", json!("x")),
        ("hidden_act", json!("exec")),
        ("model_type", json!("gpt2")),
        ("model_type", json!("\u{1b}[2J\u{202e}")),
    ] {
        let refusal = with(name, value);
        let names_file = ["config.json", "model.safetensors"]
            .iter()
            .any(|it| refusal.contains(it));
        assert!(
            names_file && !refusal.contains('\u{1b}'),
            "{name}: {refusal}"
        );
    }
    let good = weights(true);
    for length in [0, 4, 8, 100, good.len() / 2, good.len() - 1] {
        let refusal = Folder::new(&config("bert"), &good[..length]).refusal();
        assert!(refusal.contains("model.safetensors"), "{length}: {refusal}");
    }
    let mut endless = good;
    endless[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let refusal = Folder::new(&config("bert"), &endless).refusal();
    assert!(refusal.contains("model.safetensors"), "{refusal}");
    let refusal = Folder::new(&config("bert"), &weights(false)).refusal();
    assert!(refusal.contains("without a direction"), "{refusal}");
}

#[test]
fn hostile_settings_are_refused_and_the_file_is_named() {
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    for (name, bytes) in [
        ("config.json", &b"{"[..]),
        ("config.json", &b" ".repeat(2 << 20)),
        ("config.json", &deep),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", &deep),
        (
            "1_Pooling/config.json",
            br#"{"pooling_mode_mean_sqrt_len_tokens": true}"#,
        ),
        ("sentence_bert_config.json", br#"{"max_seq_length": -1}"#),
        ("config_sentence_transformers.json", br#"{"prompts": []}"#),
        (
            "modules.json",
            br#"[{"type": "sentence_transformers.models.Dense"}]"#,
        ),
    ] {
        let folder = Folder::bert();
        folder.write(name, bytes);
        let refusal = folder.refusal();
        assert!(refusal.contains(name), "{name}: {refusal}");
    }
    // A word with a number that no row has.
    let folder = Folder::bert();
    let mut other = tokenizer();
    other["model"]["vocab"]["file"] = json!(4_000_000_000u32);
    folder.write("tokenizer.json", other.to_string().as_bytes());
    assert!(folder.refusal().contains("cannot be used"));
    let missing = Folder::bert();
    fs::remove_file(missing.0.path().join("tokenizer.json")).expect("it exists");
    assert!(missing.refusal().contains("tokenizer.json"));
}

#[tokio::test]
async fn full_queue_refuses_and_callers_that_leave_are_skipped() {
    let folder = Folder::bert();
    let model = folder.open().expect("the model opens");
    let long = vec!["read the file ".repeat(40); 2000];
    // A future that was polled once has sent its job, and leaves when it is dropped.
    let mut jobs = Vec::new();
    for _ in 0..=MAX_WAITING + 1 {
        let mut job = Box::pin(model.embed(long.clone(), TextKind::Document));
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(job.as_mut().poll(context)));
        jobs.push((polled.await, job));
    }
    let busy = std::task::Poll::Ready(Err(EmbedError::Busy));
    assert_eq!(jobs.last().map(|(polled, _)| polled), Some(&busy));
    drop(jobs);
    // Otherwise this would wait for all of them.
    while model.embed(vec!["file".to_owned()], TextKind::Query).await == Err(EmbedError::Busy) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn published_cosines_are_reached() {
    let Ok(folder) = std::env::var("MCP_BROKER_TEST_MODEL") else {
        // Of a small model without training no cosine is known but this one.
        let model = Folder::bert().open().expect("the model opens");
        let (a, b) = (
            vector(&model, "read the file", TextKind::Query).await,
            vector(&model, "read the file", TextKind::Document).await,
        );
        assert!((cosine(&a, &b) - 1.0).abs() < 1e-5);
        return;
    };
    let model = LocalModel::open(&folder, Path::new("/"), &|_| None).expect("the model opens");
    let texts = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ];
    let vectors = model
        .embed(texts.map(str::to_owned).to_vec(), TextKind::Document)
        .await;
    let vectors = vectors.expect("vectors");
    for (a, b, published) in [(0, 1, 0.6660), (0, 2, 0.1046), (1, 2, 0.1411)] {
        let found = cosine(&vectors[a], &vectors[b]);
        assert!((found - published).abs() < 0.0005, "{a} {b}: {found}");
    }
}
