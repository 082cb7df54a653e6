//! Converted arguments under random rules: what the rules of access and the schema of a tool accepted is what its server
//! gets.

use harness::faults::scaled;
use harness::{Bench, Broker, Run, binary};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

const TOOLS: usize = 24;
const PROPERTIES: [&str; 4] = ["a", "b", "c", "d"];

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // Xorshift, whose period is enough.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn is_one_of(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// A tool, the arguments that its rule allows, and what checks both.
struct Tool {
    schema: Value,
    allowed: Value,
    accepts: Validator,
    allows: Validator,
}

impl Tool {
    fn random(random: &mut Random) -> Self {
        let (mut properties, mut rules, mut required) = (Map::new(), Map::new(), Vec::new());
        for name in PROPERTIES {
            let (own, rule) = match random.below(6) {
                0 => (json!({"type": "integer"}), json!({"maximum": 5})),
                1 => (json!({"type": "number"}), json!({"minimum": 0})),
                2 => (json!({"type": "boolean"}), json!({"const": true})),
                3 => (json!({"type": "string"}), json!({"maxLength": 2})),
                4 => (
                    json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
                    json!({"not": {"const": 7}}),
                ),
                _ => continue,
            };
            properties.insert(name.to_owned(), own);
            if random.is_one_of(2) {
                rules.insert(name.to_owned(), rule);
            }
            if random.is_one_of(4) {
                required.push(name);
            }
        }
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let allowed = json!({ "properties": rules });
        let compiled = |schema: &Value| jsonschema::validator_for(schema).expect("a schema");
        Self {
            accepts: compiled(&schema),
            allows: compiled(&allowed),
            schema,
            allowed,
        }
    }

    /// The arguments that the server must get, or the code of the refusal.
    fn expected(&self, args: &Map<String, Value>) -> Result<Value, &'static str> {
        let given = Value::Object(args.clone());
        let sent = match self.accepts.is_valid(&given) {
            true => given,
            false => self.converted(args),
        };
        match (self.accepts.is_valid(&sent), self.allows.is_valid(&sent)) {
            (false, _) => Err("args_invalid"),
            (true, false) => Err("forbidden"),
            (true, true) => Ok(sent),
        }
    }

    /// The documented conversion of flat arguments.
    fn converted(&self, args: &Map<String, Value>) -> Value {
        let mut sent = args.clone();
        for (name, value) in args {
            let own = &self.schema["properties"][name];
            let types = [&own["type"], &own["anyOf"][0]["type"]];
            let wants = |kind: &str| types.iter().any(|found| **found == kind);
            let is_required = self.schema["required"]
                .as_array()
                .is_some_and(|required| required.iter().any(|one| one == name));
            match value {
                Value::Null if !own.is_null() && own["anyOf"].is_null() && !is_required => {
                    sent.remove(name);
                }
                Value::String(text) if !wants("string") => {
                    let read: Option<Value> = serde_json::from_str(text).ok();
                    let read = read.filter(|_| !text.contains(' '));
                    let fits = |read: &Value| match read {
                        Value::Number(number) => {
                            wants("number") || (wants("integer") && number.is_i64())
                        }
                        Value::Bool(_) => wants("boolean"),
                        _ => false,
                    };
                    if let Some(read) = read.filter(fits) {
                        sent.insert(name.clone(), read);
                    }
                }
                _ => {}
            }
        }
        Value::Object(sent)
    }
}

fn argument(random: &mut Random) -> Value {
    let integer = random.below(12) as i64 - 3;
    match random.below(10) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!("true"),
        3 => json!("false"),
        4 => json!(integer.to_string()),
        5 => json!(format!("{integer}.5")),
        6 => json!(format!(" {integer}")),
        7 => json!(integer),
        8 => json!(random.is_one_of(2)),
        _ => json!("text"),
    }
}

#[test]
fn server_gets_the_bytes_that_schema_and_rules_accepted() {
    let random = &mut Random(0x9e37_79b9_7f4a_7c15);
    let tools: Vec<_> = (0..TOOLS).map(|_| Tool::random(random)).collect();
    let bench = Bench::new();
    bench.configure([("s", json!({"coerce": true}))]);
    let named = |at: usize| format!("t{at:02}");
    let listed = tools.iter().enumerate();
    let listed: Vec<_> = listed
        .map(|(at, tool)| json!({"name": named(at), "inputSchema": tool.schema}))
        .collect();
    bench.script("s", &json!({ "tools": listed }));
    let rules = tools.iter().enumerate();
    let rules: Vec<_> = rules
        .map(|(at, tool)| json!({"allow": [format!("/s/{}", named(at))], "to": ["all"], "args": tool.allowed}))
        .collect();
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("a config");
    config["access"] = json!({"groups": ["all"], "anonymous": ["all"], "rules": rules});
    bench.write("c.json", &config.to_string());
    bench.lock();
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]));

    let (mut sent, mut refused) = (Vec::new(), 0);
    for _ in 0..scaled("MCP_BROKER_COERCED_CALLS", 2_000) {
        let at = random.below(TOOLS);
        let mut args = Map::new();
        for name in PROPERTIES {
            if random.is_one_of(2) {
                args.insert(name.to_owned(), argument(random));
            }
        }
        let body = json!({"path": format!("/s/{}", named(at)), "args": args});
        let reply = broker.post("/meta_call", &body);
        let code = reply.json()["error"]["code"].as_str().map(str::to_owned);
        match tools[at].expected(&args) {
            Ok(expected) => {
                assert_eq!(code, None, "{body}: {}", reply.text());
                sent.push(expected);
            }
            Err(expected) => {
                assert_eq!(
                    code.as_deref(),
                    Some(expected),
                    "{body}: {}",
                    tools[at].allowed
                );
                refused += 1;
            }
        }
    }
    let journal = bench.journal("s", "call");
    let got: Vec<_> = journal
        .iter()
        .map(|call| call["arguments"].clone())
        .collect();
    assert_eq!(got, sent);
    assert!(
        sent.len() > 100 && refused > 100,
        "{} {refused}",
        sent.len()
    );
}
