//! The bound on the code of a whole lock, through the same code with a smaller figure.

use broker_config::Config;
use broker_model::Snapshot;
use broker_model::snapshot::ListedTool;
use serde_json::{Value, json};

use super::{MAX_LOCK_BYTES, SchemaOf, Types, generate, types_within};
use crate::plan;

/// Members of the schemas of two large tools.
const LARGE: usize = 30;
/// Members of the schemas of a small one.
const SMALL: usize = 2;

/// A schema with so many members.
fn schema(count: usize) -> Value {
    let members = (0..count).map(|index| (format!("m{index}"), json!({"type": "string"})));
    json!({"type": "object", "properties": Value::Object(members.collect())})
}

/// The bytes of code of a tool with so many members in arguments and output.
fn bytes(count: usize, with_constructors: bool) -> usize {
    let of = [SchemaOf::Args, SchemaOf::Output].map(|of| {
        let mut made = generate::generate(of, Some(&schema(count)));
        if !with_constructors {
            made.shorten();
        }
        made.size.bytes
    });
    of.iter().sum()
}

/// Types of the tools `/n/a`, `/n/b` and `/n/c` within so many bytes. The last one is small.
fn of_three(bytes: usize) -> Types {
    let text = r#"{"tree": [{"path": "/n", "source": {"command": "server"}}]}"#;
    let config = Config::parse("config.json", text.as_bytes())
        .expect("the config is valid")
        .config;
    let tools = [("a", LARGE), ("b", LARGE), ("c", SMALL)];
    let tools = tools.map(|(name, count)| -> ListedTool {
        let schema = schema(count);
        let tool = json!({"name": name, "inputSchema": schema, "outputSchema": schema});
        tool.as_object().expect("an object").clone().into()
    });
    let snapshot = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "n", "version": "1"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({}),
        instructions: None,
        tools: tools.into(),
    };
    let source = config.sources().next().expect("there is one source");
    let sources = [source.to_locked(&snapshot)];
    let plan = plan::plan(&config, &sources).expect("the plan is valid");
    types_within(&plan, bytes)
}

fn lines(types: &Types) -> Vec<String> {
    types.fallbacks.iter().map(ToString::to_string).collect()
}

/// The lines that `lock` prints of tools whose types do not fit into the bound.
fn listed(tools: &[&str]) -> Vec<String> {
    let lines = tools.iter().flat_map(|tool| {
        ["Args", "Output"].map(|of| {
            format!("/n/{tool} {of}: a JSON map: the code of the lock would be larger than 64 MiB")
        })
    });
    lines.collect()
}

/// The number of the six types that have members, and of those that have setters.
fn counted(types: &Types) -> (usize, usize) {
    let text = types.to_text();
    (
        text.matches("pub m0:").count(),
        text.matches("pub fn with_m0(").count(),
    )
}

#[test]
fn type_of_a_tool_over_the_lock_limit_is_a_map() {
    assert_eq!(MAX_LOCK_BYTES, 64 << 20);
    let whole = of_three(MAX_LOCK_BYTES);
    assert_eq!(lines(&whole), listed(&[]));
    assert_eq!(counted(&whole), (6, 6));

    let none = of_three(0);
    assert_eq!(lines(&none), listed(&["a", "b", "c"]));
    assert_eq!(counted(&none), (0, 0));

    let room_for_one = bytes(LARGE, true);
    let one = of_three(room_for_one);
    assert_eq!(lines(&one), listed(&["b", "c"]));
    assert_eq!(counted(&one), (2, 2));

    // A small tool still finds room behind a large one that does not.
    let some = of_three(room_for_one + bytes(LARGE, false) - 1);
    assert_eq!(lines(&some), listed(&["b"]));
    assert_eq!(counted(&some), (4, 4));

    // Where there is room for the types alone, constructors and setters are left out.
    let bare = of_three(room_for_one + bytes(LARGE, false) + bytes(SMALL, false));
    assert_eq!(lines(&bare), listed(&[]));
    assert_eq!(counted(&bare), (6, 2));
}
