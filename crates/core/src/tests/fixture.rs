//! Two sources under one tree: `/a` with tools `echo` and `twin`, `/a/deep/b` with tool `echo`,
//! and a node without any, `/empty`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use broker_config::Config;
use broker_mcp::{DriftCheck as _, Environment, State};
use broker_model::digest::{Digest, etag};
use broker_model::item::ItemKind;
use broker_model::path_words::words_of_path;
use broker_model::{NodePath, Snapshot};
use broker_search::Document;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::catalog::{
    Catalog, Entry, EntryKind, FORMAT, Item, ListedSchemas, SearchTables, Source, Span,
};
use crate::sources::fake::Fake;
use crate::sources::slot::{Phase, RunningSource, SharedSlotState, SlotDriftCheck};
use crate::sources::upstream::Upstream;
use crate::{
    Args, Broker, CallContext, Core, CoreBuilder, CoreError, Description, Detail, FoundItem,
    Identity, Name, Operation, Outcome, Reply, Request, RequestId, ResultForm, SearchQuery,
    StartMode, descriptions_json,
};

pub(crate) static CALLER: Identity = Identity::anonymous();

/// The output schema of `/a/echo` in the catalog; the listing of its server has none.
const OUTPUT_SCHEMA: &str = r#"{"type":"object"}"#;

/// The listing of a source without drift.
pub(crate) fn snapshot(names: &[&str]) -> Snapshot {
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tools = names.iter().map(|name| {
        let tool = json!({"name": name, "description": "Says it back.", "inputSchema": schema});
        tool.as_object().unwrap().clone().into()
    });
    Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "fixture", "version": "1"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({"tools": {}}),
        instructions: None,
        tools: tools.collect(),
    }
}

struct Blob(String);

impl Blob {
    fn push(&mut self, text: &str) -> Span {
        let at = self.0.len() as u32;
        self.0.push_str(text);
        Span {
            at,
            len: text.len() as u32,
        }
    }
}

fn leak<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

fn text(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The summary of an entry. That of `/a` is made of the names of its tools.
pub(super) fn summary(path: &str) -> String {
    match path {
        "/a" => "echo, twin".to_owned(),
        _ => format!("at {path}"),
    }
}

fn head(path: &str, kind: &str) -> String {
    let summary = summary(path);
    format!("{{\"path\":\"{path}\",\"type\":\"{kind}\",\"summary\":\"{summary}\"")
}

/// The tree as a catalog, rendered the way the build renders it.
pub(crate) fn catalog() -> &'static Catalog {
    let mut blob = Blob(String::new());
    let nodes = ["/", "/a", "/a/deep", "/a/deep/b", "/empty"];
    let tools = [
        ("/a/echo", 0u32, "echo"),
        ("/a/twin", 0, "twin"),
        ("/a/deep/b/echo", 1, "echo"),
    ];
    let mut paths = nodes.to_vec();
    paths.extend(tools.iter().map(|(path, ..)| *path));
    paths.sort_unstable();
    let at = |path: &str| paths.iter().position(|known| *known == path).unwrap() as u32;
    let children_of = |node: &str| -> Vec<u32> {
        match node {
            "/" => vec![at("/a"), at("/empty")],
            "/a" => vec![at("/a/deep"), at("/a/echo"), at("/a/twin")],
            "/a/deep" => vec![at("/a/deep/b")],
            "/a/deep/b" => vec![at("/a/deep/b/echo")],
            _ => vec![],
        }
    };
    let is_tool = |path: &str| tools.iter().any(|(tool, ..)| *tool == path);
    let kind = |path: &str| if is_tool(path) { "tool" } else { "node" };
    let schema = snapshot(&["x"]).tools[0].read()["inputSchema"].to_string();
    let mut tables = Vec::new();
    let mut entries = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let own = head(path, kind(path));
        let head_span = blob.push(&own);
        let (entry_kind, desc, desc_head) =
            if let Some((_, source, name)) = tools.iter().find(|(tool, ..)| tool == path) {
                let before = format!("{own},\"args_schema\":");
                let desc = format!("{before}{schema}}}");
                let span = blob.push(&desc);
                let raw = &snapshot(&[name]).tools[0].read();
                let list_head = blob.push("\"description\":\"Says it back.\"");
                let args_schema = Span {
                    at: span.at + before.len() as u32,
                    len: schema.len() as u32,
                };
                let output_schema = (*path == "/a/echo").then(|| blob.push(OUTPUT_SCHEMA));
                tables.push(Item {
                    entry: index as u32,
                    source: *source,
                    kind: ItemKind::Tool,
                    id: text((*name).to_owned()),
                    key: text((*name).to_owned()),
                    flat_name: text(path[1..].replace('/', "-")),
                    digest: text(Digest::from_tool(raw).as_str().to_owned()),
                    args_schema,
                    output_schema,
                    list_head,
                    listed: Some(ListedSchemas {
                        input: args_schema,
                        output: output_schema,
                    }),
                    header_params: &[],
                    idempotent: true,
                    for_pages_only: false,
                    requires_task: false,
                    unvalidated: false,
                    audit: &[],
                    allow: u64::MAX,
                    narrowed: &[],
                    deny: &[],
                });
                let desc_head = Span {
                    len: span.len - 1,
                    ..span
                };
                (
                    EntryKind::Item(tables.len() as u32 - 1),
                    (span, desc),
                    desc_head,
                )
            } else {
                let children = children_of(path);
                let heads: Vec<_> = children
                    .iter()
                    .map(|child| head(paths[*child as usize], kind(paths[*child as usize])) + "}")
                    .collect();
                let heads = heads.join(",");
                let tree = format!("{own},\"children\":[{heads}]}}");
                let before = format!("{own},\"description\":\"d\"");
                let desc = format!("{before},\"children\":[{heads}]}}");
                let span = blob.push(&desc);
                let desc_head = Span {
                    len: before.len() as u32,
                    ..span
                };
                let kind = EntryKind::Node {
                    children: leak(children),
                    tree_etag: text(etag(tree.as_bytes())),
                    tree: blob.push(&tree),
                };
                (kind, (span, desc), desc_head)
            };
        entries.push(Entry {
            path: text((*path).to_owned()),
            words: text(words_of_path(path)),
            kind: entry_kind,
            head: head_span,
            desc: desc.0,
            desc_head,
            desc_etag: text(etag(desc.1.as_bytes())),
        });
    }
    let mut flat_order: Vec<u32> = (0..tables.len() as u32).collect();
    flat_order.sort_by_key(|at| tables[*at as usize].flat_name);
    let config = config(json!({}), json!({}));
    let sources = [("/a", vec!["echo", "twin"]), ("/a/deep/b", vec!["echo"])]
        .into_iter()
        .enumerate()
        .map(|(index, (path, names))| {
            let source = config.source(&NodePath::parse(path).unwrap()).unwrap();
            let locked = source.to_locked(&snapshot(&names));
            let of_source = tables
                .iter()
                .enumerate()
                .filter(|(_, tool)| tool.source == index as u32);
            Source {
                path,
                protocol_version: "2025-11-25",
                sensitive_words: 2,
                lock: blob.push(&locked.to_json().to_string()),
                items: leak(of_source.map(|(at, _)| at as u32).collect()),
            }
        })
        .collect();
    let documents: Vec<_> = tables
        .iter()
        .map(|tool| Document {
            name: tool.id,
            place: entries[tool.entry as usize].path.split('/').collect(),
            ..Document::default()
        })
        .collect();
    let search = SearchTables {
        index: leak(broker_search::index_bytes(&documents, None)),
        table: None,
        embedder: None,
    };
    Box::leak(Box::new(Catalog {
        format: FORMAT,
        catalog_digest: "sha256/1:catalog",
        root_digest: "",
        config_digest: "",
        config_name: "config.json",
        config: "{}",
        blob: text(blob.0),
        entries: leak(entries),
        items: leak(tables),
        flat_order: leak(flat_order),
        sources: leak(sources),
        access: None,
        search,
    }))
}

/// A core over [`catalog`] with scripted sources that have no outcome yet.
pub(crate) struct Fixture {
    pub(crate) core: Core,
    pub(crate) sources: [Arc<Fake>; 2],
}

/// `a` and `b` are further members of the two sources.
pub(crate) fn config(a: Value, b: Value) -> Config {
    config_with(a, b, None)
}

/// [`config`] with a section `access`.
pub(crate) fn config_with(a: Value, b: Value, access: Option<Value>) -> Config {
    let source = |more: Value| {
        let mut source = json!({"backend": "stdio", "command": "server"});
        let more = more.as_object().unwrap().clone();
        source.as_object_mut().unwrap().extend(more);
        source
    };
    let mut config = json!({"tree": [
        {"path": "/a", "type": "node", "source": source(a), "children": [
            {"path": "/a/deep", "type": "node", "children": [
                {"path": "/a/deep/b", "type": "node", "source": source(b)}]}]},
        {"path": "/empty", "type": "node"},
    ]});
    if let Some(access) = access {
        config["access"] = access;
    }
    let parsed = Config::parse("config.json", config.to_string().as_bytes());
    parsed.unwrap().config
}

/// A core that runs with further members of its sources in its config.
pub(super) fn setup(
    mode: StartMode,
    a: Value,
    b: Value,
) -> Result<Core, Vec<broker_model::Diagnostic>> {
    setup_of(&config(a, b), mode)
}

fn setup_of(config: &Config, mode: StartMode) -> Result<Core, Vec<broker_model::Diagnostic>> {
    built(config, |builder| builder.mode(mode))
}

pub(super) fn built(
    config: &Config,
    with: impl FnOnce(CoreBuilder<'_>) -> CoreBuilder<'_>,
) -> Result<Core, Vec<broker_model::Diagnostic>> {
    built_over(catalog(), config, with)
}

pub(crate) fn built_over(
    catalog: &'static Catalog,
    config: &Config,
    with: impl FnOnce(CoreBuilder<'_>) -> CoreBuilder<'_>,
) -> Result<Core, Vec<broker_model::Diagnostic>> {
    let environment = Environment::new(BTreeMap::new(), None);
    let builder = Core::builder(catalog).config(config, Path::new("."));
    with(builder.environment(&environment)).build()
}

/// A plain broker with further parts.
pub(super) fn fixture_built(with: impl FnOnce(CoreBuilder<'_>) -> CoreBuilder<'_>) -> Fixture {
    served(built(&config(json!({}), json!({})), with).unwrap())
}

/// [`fixture_built`] with a section `access`.
pub(super) fn fixture_built_with(
    access: Value,
    with: impl FnOnce(CoreBuilder<'_>) -> CoreBuilder<'_>,
) -> Fixture {
    served(built(&config_with(json!({}), json!({}), Some(access)), with).unwrap())
}

pub(super) fn fixture_of(mode: StartMode, a: Value, b: Value) -> Fixture {
    served(setup(mode, a, b).unwrap())
}

fn access(rules: Value) -> Value {
    json!({"groups": ["first", "second"], "anonymous": ["*"], "rules": rules})
}

/// A plain broker with rules of access for the groups `first` and `second`. [`CALLER`] has both.
pub(super) fn fixture_with(rules: Value) -> Fixture {
    let config = config_with(json!({}), json!({}), Some(access(rules)));
    served(setup_of(&config, StartMode::Plain).unwrap())
}

/// The same with these further members of both sources.
pub(super) fn fixture_with_members(rules: Value, members: Value) -> Fixture {
    let config = config_with(members.clone(), members, Some(access(rules)));
    served(setup_of(&config, StartMode::Plain).unwrap())
}

/// [`fixture_with`] over another catalog, with these further members of the two sources.
pub(crate) fn fixture_over(catalog: &'static Catalog, rules: Value, [a, b]: [Value; 2]) -> Fixture {
    let config = config_with(a, b, Some(access(rules)));
    served(built_over(catalog, &config, |builder| builder.mode(StartMode::Plain)).unwrap())
}

/// A broker that shows denials, whose callers may only use `/a/twin`. It hides `/a/echo` and all tools of `/a/deep/b`.
pub(super) fn fixture_that_shows_denials() -> Fixture {
    let rules = json!([{"allow": ["/a/twin"], "to": ["*"]}]);
    let access =
        json!({"groups": ["first"], "anonymous": ["*"], "rules": rules, "denied": "forbidden"});
    let (a, b) = (
        json!({"tool_filter": ["twin"]}),
        json!({"tool_filter": ["other"]}),
    );
    served(setup_of(&config_with(a, b, Some(access)), StartMode::Plain).unwrap())
}

/// A caller with a key, in these groups.
pub(super) fn member_of(groups: &[&str]) -> Identity {
    let groups: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
    Identity::key("key", groups)
}

/// Puts sources of tests into the slots of a core.
pub(super) fn served(core: Core) -> Fixture {
    let sources = [Fake::new(), Fake::new()];
    let slots = sources.iter().map(|fake| {
        let state = SharedSlotState::new(Phase::Active, 1);
        RunningSource::new(Upstream::Fake(fake.clone()), None, state)
    });
    core.0.call_path().fleet.adopt(slots.collect());
    Fixture { core, sources }
}

pub(super) fn fixture(mode: StartMode) -> Fixture {
    fixture_of(mode, json!({}), json!({}))
}

impl Fixture {
    /// A source lists what it listed when it was locked.
    pub(crate) fn matches(&self, source: usize) {
        let names: &[&str] = [&["echo", "twin"][..], &["echo"]][source];
        self.lists(source, &snapshot(names));
    }

    pub(crate) fn lists(&self, source: usize, snapshot: &Snapshot) -> broker_mcp::Verdict {
        let fleet = &self.core.0.call_path().fleet;
        let running = fleet.slots.get().expect("it was adopted")[source].load_full();
        let drift_check = SlotDriftCheck {
            drift_state: fleet.drift_state.clone(),
            source,
            instance: 0,
            state: running.state.clone(),
        };
        let verdict = drift_check.check(snapshot);
        self.sources[source].set(State::Ready, None);
        verdict
    }

    /// Has the core take other rules, and another filter of the source of `/a`, as a reload does.
    pub(super) fn takes(&self, rules: Value, of_a: Value) {
        let config = config_with(of_a, json!({}), Some(access(rules)));
        let environment = Environment::new(BTreeMap::new(), None);
        let prepared = self
            .core
            .prepare(&config, &environment, Path::new("."))
            .unwrap();
        let fleet = &self.core.0.call_path().fleet;
        fleet.drift_state.hide(prepared.hidden);
        fleet.terms.store(prepared.terms);
        fleet.drift_state.count_tool_change();
    }

    pub(super) async fn call(&self, path: &str, args: Value) -> Result<Outcome, Box<CoreError>> {
        call(&self.core, &CALLER, path, args).await
    }
}

/// Calls the tool at `path`.
pub(super) async fn call(
    core: &Core,
    caller: &Identity,
    path: &str,
    args: Value,
) -> Result<Outcome, Box<CoreError>> {
    let context = context(core);
    call_in(core, caller, context, path, args).await
}

/// The context of a caller that asks for nothing in particular.
pub(crate) fn context(core: &Core) -> CallContext {
    let form = ResultForm::Configured {
        limit: crate::ResultLimit::Configured,
        reserved_chars: 0,
        note_chars: 0,
        keeps_whole: false,
    };
    CallContext::new(
        RequestId::new(&["r-1"]),
        core.services().memory().account(),
        form,
    )
}

/// A call of the tool at `path`.
pub(crate) fn request(caller: &Identity, context: CallContext, path: &str, args: Value) -> Request {
    let text = Bytes::from(args.to_string());
    Request {
        identity: caller.clone(),
        context,
        path: path.to_owned().into(),
        operation: Operation::CallTool(Args::Read { text, value: args }),
    }
}

pub(super) async fn call_in(
    core: &Core,
    caller: &Identity,
    context: CallContext,
    path: &str,
    args: Value,
) -> Result<Outcome, Box<CoreError>> {
    core.call(request(caller, context, path, args)).await
}

pub(super) fn json_of(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

/// The entries to describe.
pub(super) enum Describe<'a> {
    One(&'a str),
    Many(&'a [String]),
}

/// Where a search looks and how much it answers.
pub(super) struct SearchOptions<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) limit: usize,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self {
            path: None,
            limit: crate::DEFAULT_HITS,
        }
    }
}

/// The operations of a broker as the replies of the meta API.
pub(super) trait MetaReplies: Broker {
    fn tree(&self, caller: &Identity, path: &str, depth: u8) -> Result<Reply, Box<CoreError>> {
        self.list(caller, path, depth).map(|it| it.reply())
    }

    fn described(&self, caller: &Identity, what: Describe<'_>) -> Result<Reply, Box<CoreError>> {
        let account = self.services().memory().account();
        match what {
            Describe::One(path) => {
                let mut described = now(self.describe(caller, &[path], &account))?;
                described.remove(0).map(Description::into_reply)
            }
            Describe::Many(paths) => {
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                let described = now(self.describe(caller, &paths, &account))?;
                let body = descriptions_json(&paths, &described, |one| one.json().into());
                let etag = Some(self.services().entity_tag(caller, &body));
                Ok(Reply { body, etag })
            }
        }
    }

    fn found(
        &self,
        caller: &Identity,
        query: &str,
        options: SearchOptions<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let SearchOptions { path, limit } = options;
        let account = &self.services().memory().account();
        let detail = Detail::Listing;
        let what = SearchQuery {
            query,
            path,
            limit,
            detail,
            account,
        };
        let body = now(self.search(caller, what))?.json(query);
        Ok(Reply { body, etag: None })
    }

    /// Resolves a path with the suggestions of an unknown one.
    fn lookup(&self, caller: &Identity, path: &str) -> Result<(), Box<CoreError>> {
        self.described(caller, Describe::One(path)).map(drop)
    }

    fn flat(&self, caller: &Identity, name: &str) -> Option<FoundItem> {
        self.look_up(caller, Name::Flat(name, None)).ok()
    }
}

impl<B: Broker> MetaReplies for B {}

/// Returns the output of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("the operation waits"),
    }
}
