//! A SARIF report within the limits of code scanning, which refuses a larger one.

use harness::Bench;
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

/// The report on two locks of so many tools, whose texts are `old` and `new`; the JSON report has all findings.
fn report(tools: usize, texts: [&str; 2]) -> (Value, usize) {
    let bench = Bench::new();
    for (side, text) in ["old", "new"].into_iter().zip(texts) {
        let named = |number: usize| {
            let mut tool = tool(&format!("t{number}"));
            tool["description"] = text.into();
            tool["title"] = side.into();
            tool["icons"] = json!([{"src": format!("https://{side}.example/i.png")}]);
            tool
        };
        let tools: Vec<_> = (0..tools).map(named).collect();
        write_lock(&bench, side, &config(json!({})), &tools);
    }
    let files = ["sarif=r.sarif", "json=r.json"].map(|file| ["--output", file]);
    let args = [
        "diff",
        "old.lock.json",
        "new.lock.json",
        "--format",
        "junit",
    ];
    let args = [args.as_slice(), files.concat().as_slice()].concat();
    assert_eq!(bench.run(&args).code, Some(3));
    let read = |file| serde_json::from_str::<Value>(&bench.read(file)).expect("JSON");
    let schema = read_schema();
    let document = read("r.sarif");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    assert!(validator.is_valid(&document));
    let all = read("r.json");
    let findings = all["tools"].as_array().expect("tools").iter();
    let findings = findings.map(|tool| tool["findings"].as_array().expect("findings").len());
    (document, findings.sum())
}

fn read_schema() -> Value {
    let text = include_str!("../data/sarif-2.1.0.schema.json");
    let mut schema: Value = serde_json::from_str(text).expect("JSON");
    // One pattern, of members that are not written, has a bracket too many for a strict engine.
    for part in ["run", "toolComponent"] {
        let language = schema["definitions"][part]["properties"]["language"].as_object_mut();
        language.expect("a member").remove("pattern");
    }
    schema
}

/// The results, and the notice on those that are left out.
fn parts(document: &Value) -> (&[Value], &str) {
    let run = &document["runs"][0];
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    let notice = &invocation["toolExecutionNotifications"][0]["message"]["text"];
    let results = run["results"].as_array().expect("results");
    (results, notice.as_str().unwrap_or_default())
}

#[test]
fn sarif_of_more_results_than_code_scanning_takes_has_the_worst_and_a_count() {
    let (document, all) = report(9_000, ["One.", "Two."]);
    let (results, notice) = parts(&document);
    assert_eq!(results.len(), 25_000);
    let left = all - 25_000;
    assert!(
        left > 0 && notice.starts_with(&format!("{left} more results are")),
        "{notice}"
    );
    let class = |result: &Value| result["properties"]["class"].clone();
    assert_eq!(class(&results[0]), "security", "the worst is kept");
}

#[test]
fn sarif_of_long_texts_is_cut_by_its_size() {
    let texts = [1, 2].map(|number| format!("{number} {}", "word ".repeat(2_000)));
    let (document, all) = report(1_500, [&texts[0], &texts[1]]);
    let (results, notice) = parts(&document);
    assert!(document.to_string().len() <= 21 << 20);
    let left = all - results.len();
    assert!(
        left > 0 && notice.starts_with(&format!("{left} more results are")),
        "{notice}"
    );
}
