//! The file of vectors: which content is refused, and what a plan gets of it.

use broker_model::lock::Lock;

use super::*;
use crate::plan;

const LOCK: &str = include_str!("../../../../smoke_config.lock.json");
const CONFIG: &str = include_str!("../../../../smoke_config.json");

/// The smoke config with this section `search`.
fn config(search: &str) -> Config {
    let text = CONFIG.replacen('{', &format!("{{\"search\":{search},"), 1);
    let parsed = Config::parse("smoke_config.json", text.as_bytes());
    parsed.expect("the config is valid").config
}

const OPENAI: &str = r#"{"embedder":"OPENAI","openai_model":"m"}"#;

/// The vectors of all texts by a model of this name.
fn model(plan: &Plan<'_>, name: &str) -> ModelVectors {
    let vector = |text: &String| {
        let length = text.len() as f32;
        BASE64.encode(&[127, (length % 100.0) as u8, 3])
    };
    let texts = embedded_texts(plan).into_iter();
    ModelVectors {
        name: name.to_owned(),
        files: None,
        pooling: "endpoint".to_owned(),
        dimensions: 3,
        texts: texts
            .map(|(digest, text)| (digest, vector(&text)))
            .collect(),
    }
}

fn with_plan(config: &Config, run: impl FnOnce(&Plan<'_>)) {
    let lock = Lock::parse("smoke_config.lock.json", LOCK).expect("a lock");
    run(&plan::plan(config, &lock.sources).expect("config and lock fit"));
}

fn table(config: &Config, plan: &Plan<'_>, file: &VectorsFile) -> Result<EmbedderTable, String> {
    let read = VectorsFile::parse(&file.to_text())?;
    assert_eq!(read, *file);
    read.table(config, plan)
}

#[test]
fn file_of_all_texts_gives_the_vectors_of_all_tools() {
    let config = config(OPENAI);
    with_plan(&config, |plan| {
        let file = VectorsFile::new(Embedder::OpenAi, vec![model(plan, "m")]);
        let table = table(&config, plan, &file).expect("the file is complete");
        let tools = search_documents(plan).len() as u32;
        let vectors = &table.models[0].vectors;
        let vectors = broker_search::ModelVectors::new(vectors, tools).expect("of these tools");
        assert_eq!((vectors.dimensions(), table.digest), (3, file.digest));
    });
}

#[test]
fn missing_foreign_mixed_and_edited_vectors_are_refused() {
    let config = config(OPENAI);
    with_plan(&config, |plan| {
        let refused = |change: &dyn Fn(&mut ModelVectors)| {
            let mut model = model(plan, "m");
            change(&mut model);
            let file = VectorsFile::new(Embedder::OpenAi, vec![model]);
            table(&config, plan, &file).expect_err("it is refused")
        };
        let missing = refused(&|model| drop(model.texts.pop_first()));
        assert!(
            missing.contains("lack 1 text by the model `m`"),
            "{missing}"
        );
        let foreign = refused(&|model| {
            let vector = model.texts.values().next().cloned();
            model.texts.insert(text_digest("x"), vector.expect("one"));
        });
        assert!(foreign.contains("1 text that no tool has"), "{foreign}");
        let other = refused(&|model| model.name = "n".to_owned());
        assert!(
            other.contains("the model `n`, and the config names `m`"),
            "{other}"
        );
        let short = refused(&|model| model.dimensions = 4);
        assert!(short.contains("without 4 components"), "{short}");
        let none = refused(&|model| model.dimensions = 0);
        assert!(none.contains("0 dimensions"), "{none}");

        let both = [model(plan, "m"), model(plan, "m")].into();
        let both = VectorsFile::new(Embedder::OpenAi, both);
        let both = table(&config, plan, &both).expect_err("two models");
        assert!(both.contains("2 models, and the config names 1"), "{both}");
        let file = VectorsFile::new(Embedder::Hf, vec![model(plan, "m")]);
        let mixed = table(&config, plan, &file).expect_err("another embedder");
        assert!(
            mixed.contains("`HF`, and the config has `OPENAI`"),
            "{mixed}"
        );

        let file = VectorsFile::new(Embedder::OpenAi, vec![model(plan, "m")]);
        let text = file.to_text();
        let edited = VectorsFile::parse(&text.replacen("fw", "gw", 1)).expect_err("edited");
        assert!(edited.contains("were edited"), "{edited}");
        let newer = VectorsFile::parse(&text.replacen(": 1,", ": 2,", 1)).expect_err("newer");
        assert!(newer.contains("have the version 2"), "{newer}");
        assert!(VectorsFile::parse(&text[..text.len() / 2]).is_err());
    });
}

#[test]
fn digest_of_the_vectors_is_part_of_the_digest_of_the_catalog() {
    let config = config(OPENAI);
    let lock = Lock::parse("smoke_config.lock.json", LOCK).expect("a lock");
    let mut plan = plan::plan(&config, &lock.sources).expect("config and lock fit");
    let digest = |plan: &Plan<'_>| crate::tables::tables(&config, &lock, plan).catalog_digest;
    let without = digest(&plan);
    let file = VectorsFile::new(Embedder::OpenAi, vec![model(&plan, "m")]);
    plan.vectors = Some(table(&config, &plan, &file).expect("the file is complete"));
    let with = digest(&plan);
    let mut other = model(&plan, "m");
    other.pooling = "mean".to_owned();
    let file = VectorsFile::new(Embedder::OpenAi, vec![other]);
    plan.vectors = Some(table(&config, &plan, &file).expect("the file is complete"));
    assert!(with != without && digest(&plan) != with);
}
