//! Reports in every format, for programs and for people, and their exit codes.

use std::collections::BTreeSet;

use broker_schema::compile;
use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

/// Two locks with a change of every kind, in hostile words where a server chooses them.
fn bench() -> Bench {
    let bench = Bench::new();
    let hostile = "x\n::error::forged,a:b <b>|`*</failure>]]>&\u{1b}[31m";
    let mut asking = tool("asking");
    asking["inputSchema"] = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut asked = asking.clone();
    asked["inputSchema"]["required"] = json!(["a"]);
    let mut said = tool("said");
    said["description"] = format!("Reads. {hostile}").into();
    write_lock(
        &bench,
        "old",
        &config(json!({})),
        &[asking, tool("said"), tool("left"), tool("kept")],
    );
    write_lock(
        &bench,
        "new",
        &config(json!({"tool_filter": ["!hid"]})),
        &[asked, said, tool("kept"), tool("came"), tool("hid")],
    );
    bench
}

fn diff(bench: &Bench, args: &[&str]) -> Output {
    let mut all = vec!["diff", "old.lock.json", "new.lock.json"];
    all.extend(args);
    bench.run(&all)
}

#[test]
fn sarif_report_is_valid_with_lines_and_stable_fingerprints() {
    let mut schema: Value = serde_json::from_str(include_str!("../data/sarif-2.1.0.schema.json"))
        .expect("the schema is JSON");
    // One pattern, of members that are not written, has a bracket too many for a strict engine.
    for part in ["run", "toolComponent"] {
        let language = schema["definitions"][part]["properties"]["language"].as_object_mut();
        let pattern = language.and_then(|language| language.remove("pattern"));
        assert!(pattern.is_some(), "{part} has the pattern");
    }
    let validator = compile(&schema).expect("the schema compiles");
    let bench = bench();
    let read = |output: Output| -> Value {
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        serde_json::from_str(&output.stdout).expect("SARIF is JSON")
    };
    let document = read(diff(&bench, &["--format", "sarif"]));
    let errors = validator.failures(&schema, &document, 5);
    assert!(errors.is_empty(), "{errors:#?}");

    let results = document["runs"][0]["results"].as_array().expect("results");
    let lock = bench.read("new.lock.json");
    let lines: Vec<&str> = lock.lines().collect();
    let line_of = |rule: &str| {
        let result = results
            .iter()
            .find(|result| result["ruleId"] == rule)
            .unwrap_or_else(|| panic!("{rule}: {document:#}"));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "new.lock.json");
        let line = place["region"]["startLine"].as_u64().expect("a line");
        lines[usize::try_from(line).expect("small") - 1]
            .trim()
            .to_owned()
    };
    assert_eq!(line_of("input-required-added"), "\"a\": {");
    assert_eq!(line_of("description-changed"), "\"description\": [");
    assert_eq!(line_of("tool-gone"), "{", "of its source");
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index");
        let rule =
            &document["runs"][0]["tool"]["driver"]["rules"][usize::try_from(index).expect("small")];
        assert_eq!(rule["id"], result["ruleId"]);
    }

    let prints = |document: &Value| -> BTreeSet<String> {
        let results = document["runs"][0]["results"].as_array().expect("results");
        let prints = results.iter().map(|result| {
            result["partialFingerprints"]["brokerFinding/v1"]
                .as_str()
                .expect("a fingerprint")
                .to_owned()
        });
        prints.collect()
    };
    let before = prints(&document);
    assert_eq!(before.len(), results.len(), "no two are the same");
    // Further down in the file, and against another old lock, they are what they were.
    bench.write("new.lock.json", &format!("\n\n{lock}"));
    assert_eq!(prints(&read(diff(&bench, &["--format", "sarif"]))), before);
}

#[test]
fn junit_report_has_a_case_for_each_tool_and_true_counts() {
    let bench = bench();
    let text = diff(&bench, &["--format", "junit"]).stdout;
    let document =
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let all = |tag: &'static str| {
        document
            .descendants()
            .filter(move |node| node.has_tag_name(tag))
    };
    let suite = all("testsuite").next().expect("a suite");
    assert_eq!(suite.attribute("name"), Some("/a"));
    for (attribute, tag) in [
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
    ] {
        let count = all(tag).count().to_string();
        assert_eq!(
            suite.attribute(attribute),
            Some(count.as_str()),
            "{attribute}"
        );
        let whole = document.root_element().attribute(attribute);
        assert_eq!(whole, Some(count.as_str()), "{attribute}");
    }
    let case = |name: &str| {
        all("testcase")
            .find(|node| node.attribute("name") == Some(name))
            .unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let failure = |name: &str| {
        case(name)
            .children()
            .find(|node| node.has_tag_name("failure"))
    };
    assert!(
        failure("kept").is_none() && failure("came").is_none(),
        "{text}"
    );
    let gone = failure("left").expect("a failure");
    assert_eq!(gone.attribute("type"), Some("gone"));
    let said = failure("said").expect("a failure");
    contains(
        said.text().expect("text"),
        &["</failure>]]>&\\u{1b}[31m", "help: review it"],
    );
}

#[test]
fn github_annotations_are_one_line_each_and_cannot_be_forged() {
    let bench = bench();
    let text = diff(&bench, &["--format", "github"]).stdout;
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("::")).collect();
    let report = diff(&bench, &["--format", "json"]).stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let count = |list: &str| -> usize {
        let entries = report[list].as_array().expect("a list").iter();
        entries
            .map(|entry| entry["findings"].as_array().expect("findings").len())
            .sum()
    };
    assert_eq!(commands.len(), count("tools") + count("sources"), "{text}");
    for command in &commands {
        let known = ["::error file=", "::warning file=", "::notice file="];
        assert!(
            known.iter().any(|begin| command.starts_with(begin)),
            "{command}"
        );
        assert!(command.contains("file=new.lock.json,line="), "{command}");
    }
    contains(
        &text,
        &[
            "title=breaking /a/asking (input-required-added)::`a` is now required%0Afor example the call {}%0A",
        ],
    );
}

#[test]
fn markdown_report_is_short_and_has_no_markup_of_a_server() {
    let bench = Bench::new();
    let tools: Vec<Value> = (0..10).map(|at| tool(&format!("t{at}"))).collect();
    let changed: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut tool = tool.clone();
            tool["inputSchema"]["properties"] = json!({"a|<b>": {"type": "string"}});
            tool["inputSchema"]["required"] = json!(["a|<b>"]);
            tool
        })
        .collect();
    write_lock(&bench, "old", &config(json!({})), &tools);
    write_lock(&bench, "new", &config(json!({})), &changed);
    let text = diff(&bench, &["--format", "markdown"]).stdout;
    let folded = text.find("<details>").expect("details");
    let after = text.find("</details>").expect("an end");
    let seen = text[..folded].lines().count() + text[after..].lines().count();
    assert!(seen <= 24, "{seen} lines:\n{text}");
    let rows: Vec<&str> = text[..folded]
        .lines()
        .filter(|line| line.starts_with("| **breaking**"))
        .collect();
    // Tools with equal findings share a row.
    let [row] = rows.as_slice() else {
        panic!("{text}")
    };
    assert_eq!(row.matches('|').count(), 5, "{row}");
    assert_eq!(row.matches("<code>").count(), 10, "{row}");
    assert!(!row.contains("<b>"), "{row}");
    contains(
        &text,
        &[
            "### MCP tools: the lock changes what is served\n",
            "0 same, 10 breaking",
        ],
    );
}

#[test]
fn report_formats_are_written_to_files_next_to_the_output() {
    let bench = bench();
    let files = [
        "json=r.json",
        "sarif=r.sarif",
        "junit=r.xml",
        "markdown=r.md",
        "github=r.txt",
        "human=r.out",
    ];
    let mut args = Vec::new();
    for file in &files {
        args.extend(["--output", *file]);
    }
    let output = diff(&bench, &args);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    for (form, file) in files.iter().filter_map(|file| file.split_once('=')) {
        let alone = diff(&bench, &["--format", form]);
        assert_eq!(bench.read(file), alone.stdout, "{form}");
        assert_eq!(alone.code, Some(3));
    }
    assert_eq!(bench.read("r.out"), output.stdout);

    // The findings are still printed, and their exit code takes precedence over that of a failed write.
    std::fs::create_dir(bench.path("folder.json")).expect("a new folder");
    let output = diff(&bench, &["--output", "json=folder.json"]);
    assert_eq!(output.code, Some(3));
    contains(&output.stderr, &["error: `folder.json` cannot be written"]);
    assert!(!output.stdout.is_empty());
    let same = bench.run(&[
        "diff",
        "old.lock.json",
        "old.lock.json",
        "--output",
        "json=folder.json",
    ]);
    assert_eq!(same.code, Some(1));
    for wrong in ["r.json", "yaml=r.yaml", "json="] {
        assert_eq!(diff(&bench, &["--output", wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn fail_on_a_class_fails_for_every_worse_class() {
    let code = |bench: &Bench, classes: &str| diff(bench, &["--fail-on", classes]).code;
    let text_only = Bench::new();
    let mut reworded = tool("x");
    reworded["description"] = "Does x otherwise.".into();
    write_lock(&text_only, "old", &config(json!({})), &[tool("x")]);
    write_lock(
        &text_only,
        "new",
        &config(json!({})),
        &[reworded.clone(), tool("came")],
    );
    for (classes, expected) in [
        ("text", 3),
        ("equivalent", 3),
        ("compatible", 0),
        ("breaking,gone", 0),
        ("added", 3),
        ("breaking,added", 3),
    ] {
        assert_eq!(code(&text_only, classes), Some(expected), "{classes}");
    }
    // New tools are the mildest change, so that `added` alone hides no other one.
    assert_eq!(code(&bench(), "added"), Some(3));
    write_lock(&text_only, "new", &config(json!({})), &[reworded]);
    for (classes, expected) in [("added", 3), ("breaking,added", 0)] {
        assert_eq!(code(&text_only, classes), Some(expected), "{classes}");
    }
    // A tool that left is worse than one that broke, and is never hidden by what was asked for.
    assert_eq!(code(&bench(), "breaking"), Some(3));
    assert_eq!(code(&bench(), "text"), Some(3));
    assert_eq!(code(&bench(), "same"), Some(2), "`same` cannot fail");
    assert_eq!(code(&bench(), "nonsense"), Some(2));
}

#[test]
fn strict_report_classifies_the_schemas_as_written() {
    let bench = Bench::new();
    let with = |additional: Value| {
        let mut tool = tool("x");
        tool["inputSchema"] = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "additionalProperties": additional,
        });
        tool
    };
    write_lock(&bench, "old", &config(json!({})), &[with(json!(true))]);
    write_lock(&bench, "new", &config(json!({})), &[with(json!(false))]);
    let class = |args: &[&str]| {
        let output = diff(&bench, args);
        let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
        report["tools"][0]["class"]
            .as_str()
            .expect("a class")
            .to_owned()
    };
    assert_eq!(class(&["--format", "json"]), "compatible");
    assert_eq!(class(&["--format", "json", "--strict"]), "breaking");
}

#[test]
fn human_report_shows_the_changed_sentence_within_80_columns() {
    let bench = Bench::new();
    let text = |end: &str| {
        let mut tool = tool("x");
        let sentence = "Reads a file of the project and gives its text, with the lines numbered. ";
        tool["description"] = format!("{sentence}{sentence}{end}").into();
        tool["inputSchema"] = json!({"type": "object", "properties": {"mode": {"enum": ["one", "two", "three of them", "four of them", "five of them", end]}}});
        tool
    };
    write_lock(
        &bench,
        "old",
        &config(json!({})),
        &[text("It never writes.")],
    );
    write_lock(
        &bench,
        "new",
        &config(json!({})),
        &[text("It writes where it has to.")],
    );
    let output = diff(&bench, &[]).stdout;
    assert!(
        output.lines().all(|line| line.chars().count() <= 80),
        "{output}"
    );
    contains(
        &output,
        &[
            "breaking: /a/x\n",
            "    -It never writes.\n    +It writes where it has to.\n",
            "    -  \"It never writes.\"\n    +  \"It writes where it has to.\"\n",
            "    for example the call {\"mode\":\"It never writes.\"}\n",
            "\nhelp: review it;",
        ],
    );
}

/// So many tools, `tool_000` and so on, with these descriptions.
fn described(count: usize, text: impl Fn(usize) -> String) -> Vec<Value> {
    let named = |number: usize| {
        let mut tool = tool(&format!("tool_{number:03}"));
        tool["description"] = text(number).into();
        tool
    };
    (0..count).map(named).collect()
}

#[test]
fn markdown_fits_a_comment_and_a_second_file_has_the_rest() {
    let bench = Bench::new();
    for side in ["old", "new"] {
        let words = format!("{side} `a` | [b](c) <d> ").repeat(120);
        let tools = described(60, |number| format!("{number} {words}"));
        write_lock(&bench, side, &config(json!({})), &tools);
    }
    let args = [
        "diff",
        "old.lock.json",
        "new.lock.json",
        "--output",
        "markdown=changes.md",
    ];
    let output = bench.run(&args);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let (comment, whole) = (bench.read("changes.md"), bench.read("changes.whole.md"));
    assert!(
        comment.chars().count() <= 65_536,
        "{}",
        comment.chars().count()
    );
    contains(
        &comment,
        &["and 30 more, in changes.whole.md\n", "</details>"],
    );
    // An underscore is escaped.
    let last = "tool&#95;059";
    assert!(!comment.contains(last) && whole.contains(last));
    assert!(!whole.contains("\nand "), "it is whole");
}

#[test]
fn markdown_names_the_first_tools_of_a_row_and_the_second_file_all() {
    let bench = Bench::new();
    for (side, text) in [("old", "One."), ("new", "Two.")] {
        let tools = described(50, |_| text.to_owned());
        write_lock(&bench, side, &config(json!({})), &tools);
    }
    let args = [
        "diff",
        "old.lock.json",
        "new.lock.json",
        "--output",
        "markdown=c.md",
    ];
    assert_eq!(bench.run(&args).code, Some(3));
    let (comment, whole) = (bench.read("c.md"), bench.read("c.whole.md"));
    contains(&comment, &["<code>/a/tool&#95;000</code>", " and 40 more"]);
    assert_eq!(
        whole.matches("<code>/a/tool&#95;049</code>").count(),
        2,
        "{whole}"
    );
    assert!(!whole.contains("more"), "{whole}");
}

/// Real releases that rename, add and rewrite many tools.
#[test]
fn markdown_of_real_releases_fits_a_comment() {
    let pairs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drift/pairs");
    let mut seen = 0;
    for entry in std::fs::read_dir(pairs).expect("the pairs are there") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = std::fs::read(&path).expect("readable");
        let pair: Value = serde_json::from_slice(&text).expect("JSON");
        let bench = Bench::new();
        for side in ["old", "new"] {
            let tools = pair[side]["tools"].as_array().expect("tools");
            write_lock(&bench, side, &config(json!({})), tools);
        }
        let args = [
            "diff",
            "old.lock.json",
            "new.lock.json",
            "--output",
            "markdown=c.md",
        ];
        let code = bench.run(&args).code;
        assert!(matches!(code, Some(0 | 3)), "{path:?}: {code:?}");
        let chars = bench.read("c.md").chars().count();
        assert!(chars <= 65_536, "{path:?}: {chars}");
        seen += 1;
    }
    assert!(seen >= 7, "{seen}");
}

/// The steps of a workflow that read the files run after every exit code.
#[test]
fn check_that_compares_nothing_writes_its_reports() {
    for (name, text, code) in [
        ("bad.json", "{ bad", 2),
        ("absent.json", "", 2),
        ("c.json", r#"{"tree": []}"#, 5),
    ] {
        let bench = Bench::new();
        if !text.is_empty() {
            bench.write(name, text);
        }
        let files = ["--output", "sarif=r.sarif", "--output", "markdown=r.md"];
        let output = bench.run(&[&["check", "--config", name][..], &files].concat());
        assert_eq!(output.code, Some(code), "{name}: {}", output.stderr);
        for file in ["r.sarif", "r.md"] {
            assert!(!bench.read(file).is_empty(), "{name}: {file}");
        }
    }
}
