//! Prompts, templates and resources of a core, as programs that embed one find, read and narrow them.

use broker_build::{plan, tables};
use broker_config::Config;
use broker_core::{
    Args, Broker, CallContext, Core, CoreError, Identity, ListedItem, Name, Operation, ReadForm,
    Request, RequestId, Restrict, ResultForm,
};
use broker_model::CallCode;
use broker_model::Snapshot;
use broker_model::item::{ItemKind, id_of, object_schema};
use broker_model::lock::{LOCK_VERSION, Lock};
use broker_model::snapshot::ListedTool;
use serde_json::{Value, json};

use super::memory;

/// A listed object as a client of servers returns it.
fn listed(kind: ItemKind, raw: &Value) -> ListedTool {
    let mut raw = raw.as_object().expect("an object").clone();
    let key = kind.key(id_of(kind, &raw));
    let schema = object_schema(Default::default(), Vec::new());
    raw.insert("inputSchema".to_owned(), schema);
    ListedTool::new(key, &Value::Object(raw).to_string())
}

/// A core with a tool, two prompts, a template and a resource; none of its sources runs.
fn core() -> Core {
    let source = json!({
        "command": "x", "prompt_filter": ["*"], "resources": "locked", "resource_filter": ["*"],
    });
    let document = json!({"tree": [{"path": "/a", "source": source}]});
    let config = Config::parse("c.json", document.to_string().as_bytes());
    let config = config.expect("the config is valid").config;
    let tools = [
        (ItemKind::Tool, json!({"name": "tool"})),
        (ItemKind::Prompt, json!({"name": "p"})),
        (ItemKind::Prompt, json!({"name": "q"})),
        (
            ItemKind::Template,
            json!({"uriTemplate": "x://docs/{id}", "name": "doc"}),
        ),
        (
            ItemKind::Resource,
            json!({"uri": "x://docs/1", "name": "one"}),
        ),
    ];
    let snapshot = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "server"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({}),
        instructions: None,
        tools: tools.iter().map(|(kind, raw)| listed(*kind, raw)).collect(),
    };
    let sources = config.sources();
    let lock = Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "test".to_owned(),
        sources: sources.map(|source| source.to_locked(&snapshot)).collect(),
        left_out: Vec::new(),
    };
    let plan = plan::plan(&config, &lock.sources).expect("config and lock fit");
    let catalog = memory::catalog(tables::tables(&config, &lock, &plan)).expect("there is room");
    Core::builder(catalog)
        .build()
        .expect("the catalog is valid")
}

fn paths(items: Vec<ListedItem>) -> Vec<&'static str> {
    items.into_iter().map(|item| item.path).collect()
}

/// The lists of prompts, templates and resources.
fn lists(broker: &impl Broker, caller: &Identity) -> [Vec<&'static str>; 3] {
    [
        paths(broker.listed_items(caller, ItemKind::Prompt)),
        paths(broker.listed_items(caller, ItemKind::Template)),
        paths(broker.listed_items(caller, ItemKind::Resource)),
    ]
}

/// Returns the codes of the errors of reading a URI and of getting a prompt.
async fn codes(broker: &impl Broker, core: &Core, uri: &str, prompt: &str) -> [CallCode; 2] {
    let caller = Identity::local();
    let call = async |path: Result<&'static str, Box<CoreError>>, operation| {
        let request = Request {
            identity: caller.clone(),
            context: CallContext::new(
                RequestId::new(&["r"]),
                core.services().memory().account(),
                ResultForm::Whole,
            ),
            path: path?.into(),
            operation,
        };
        broker.call(request).await
    };
    let found = broker.look_up(&caller, Name::Uri(uri));
    let read = Operation::ReadResource(uri.into());
    let read = call(found.map(|found| found.item.path), read).await;
    let found = broker.look_up(&caller, Name::Prompt(prompt));
    let get = Operation::GetPrompt(Args::empty());
    let get = call(found.map(|found| found.item.path), get).await;
    [read, get].map(|answer| answer.map(|_| ()).expect_err("no source runs").code)
}

#[tokio::test]
async fn core_lists_finds_and_calls_prompts_and_resources() {
    let (core, caller) = (core(), Identity::local());
    assert_eq!(
        lists(&core, &caller),
        [vec!["/a/p", "/a/q"], vec!["/a/doc"], vec!["/a/one"]]
    );
    let prompt = core.look_up(&caller, Name::Prompt("q")).unwrap();
    assert_eq!(
        (prompt.item.path, prompt.item.source, prompt.item.kind),
        ("/a/q", "/a", ItemKind::Prompt)
    );
    let unknown = core.look_up(&caller, Name::Prompt("tool")).unwrap_err();
    assert_eq!(unknown.code, CallCode::PathNotFound);
    assert!(unknown.message.contains("`tool`"), "{}", unknown.message);
    let form = |uri: &str| {
        let found = core.look_up(&caller, Name::Uri(uri));
        found
            .map(|found| (found.item.path, found.item.source, found.read_form))
            .map_err(|error| error.code)
    };
    assert_eq!(form("x://docs/1"), Ok(("/a/one", "/a", ReadForm::Resource)));
    assert_eq!(form("x://docs/2"), Ok(("/a/doc", "/a", ReadForm::Template)));
    assert_eq!(form("x://docs/2/3"), Err(CallCode::PathNotFound));
    // The source does not run, and a known entry is asked for first.
    assert_eq!(
        codes(&core, &core, "x://docs/2", "p").await,
        [CallCode::Starting; 2]
    );
    assert_eq!(
        codes(&core, &core, "x://other", "none").await,
        [CallCode::PathNotFound; 2]
    );
}

#[tokio::test]
async fn wrapper_shows_and_reads_no_entry_that_it_leaves_out() {
    let (core, caller) = (core(), Identity::local());
    let narrow = Restrict::new(core.clone(), |_, item| {
        matches!(item.path, "/a/p" | "/a/doc")
    });
    assert_eq!(
        lists(&narrow, &caller),
        [vec!["/a/p"], vec!["/a/doc"], vec![]]
    );
    assert_eq!(
        narrow
            .look_up(&caller, Name::Prompt("p"))
            .unwrap()
            .item
            .source,
        "/a"
    );
    let found = narrow.look_up(&caller, Name::Uri("x://docs/2")).unwrap();
    assert_eq!((found.item.path, found.item.source), ("/a/doc", "/a"));
    let prompt = narrow.look_up(&caller, Name::Prompt("q")).unwrap_err();
    let resource = narrow
        .look_up(&caller, Name::Uri("x://docs/1"))
        .unwrap_err();
    assert_eq!([prompt.code, resource.code], [CallCode::PathNotFound; 2]);
    assert_eq!(
        codes(&narrow, &core, "x://docs/2", "p").await,
        [CallCode::Starting; 2]
    );
    assert_eq!(
        codes(&narrow, &core, "x://docs/1", "q").await,
        [CallCode::PathNotFound; 2]
    );
}
