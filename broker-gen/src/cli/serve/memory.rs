//! The catalogs in memory. Like one that was compiled in, a catalog lives as long as the process, so that callers can keep
//! its texts; their number is bounded, and a catalog that comes back is used again.

use std::sync::{Mutex, PoisonError};

use mcp_broker::catalog::{
    AccessTable, Catalog, EmbedderTable, Entry, EntryKind, HeaderParam, Item, ListedSchemas,
    ModelTable, SEARCH_TABLE, SearchTables, Source, Span,
};

use broker_build::embedder_table;
use broker_build::tables::{self, Tables};
use broker_model::{Diagnostic, DiagnosticCode, header_params};

/// The maximum size of all catalogs of a process together, in bytes. The first one is not bounded.
const MAX_CATALOG_BYTES: usize = 512 << 20;
/// The minimum size that a catalog counts for.
const MIN_COUNTED_BYTES: usize = 64 << 10;

/// The catalogs of this process, each with its tables.
static CATALOGS: Mutex<Vec<(&'static Tables, &'static Catalog)>> = Mutex::new(Vec::new());

/// The catalog with the content of these tables, apart from settings that the lock does not cover: those are read from
/// the config.
///
/// # Errors
///
/// There is no room for another one.
pub(in crate::cli) fn catalog(mut tables: Tables) -> Result<&'static Catalog, Box<Diagnostic>> {
    let mut known = CATALOGS.lock().unwrap_or_else(PoisonError::into_inner);
    let config = tables.config.clone();
    for (other, catalog) in known.iter().rev() {
        tables.config.clone_from(&other.config);
        if tables == **other {
            return Ok(catalog);
        }
    }
    tables.config = config;
    let bytes = |tables: &Tables| {
        let models = tables
            .search
            .embedder
            .iter()
            .flat_map(|table| &table.models);
        let vectors: usize = models.map(|model| model.vectors.len()).sum();
        let texts = tables.blob.len() + tables.config.len() + tables.search.index.len();
        (2 * (texts + vectors)).max(MIN_COUNTED_BYTES)
    };
    let used: usize = known.iter().map(|(tables, _)| bytes(tables)).sum();
    if !known.is_empty() && used + bytes(&tables) > MAX_CATALOG_BYTES {
        let message = format!(
            "the {} locks that this process has taken leave no room for another one",
            known.len()
        );
        return Err(Box::new(Diagnostic::error(
            DiagnosticCode::CatalogsFull,
            message,
        )));
    }
    let (tables, catalog) = leaked(tables);
    known.push((tables, catalog));
    Ok(catalog)
}

fn leaked(tables: Tables) -> (&'static Tables, &'static Catalog) {
    let tables: &'static Tables = Box::leak(Box::new(tables));
    let catalog = Box::leak(Box::new(Catalog {
        format: tables.format,
        catalog_digest: &tables.catalog_digest,
        root_digest: &tables.root_digest,
        config_digest: &tables.config_digest,
        config_name: &tables.config_name,
        config: &tables.config,
        blob: &tables.blob,
        entries: each(&tables.entries, entry),
        items: each(&tables.items, item),
        flat_order: &tables.flat_order,
        sources: each(&tables.sources, source),
        access: tables.access.as_ref().map(access),
        search: SearchTables {
            index: &tables.search.index,
            table: tables.search.has_table.then_some(&SEARCH_TABLE),
            embedder: tables.search.embedder.as_ref().map(embedder),
        },
    }));
    (tables, catalog)
}

fn each<From, To>(list: &'static [From], convert: impl Fn(&'static From) -> To) -> &'static [To] {
    list.iter().map(convert).collect::<Vec<_>>().leak()
}

fn embedder(table: &'static embedder_table::EmbedderTable) -> EmbedderTable {
    let model = |model: &'static embedder_table::ModelTable| ModelTable {
        name: &model.name,
        files: model.files.as_deref(),
        dimensions: model.dimensions,
        vectors: &model.vectors,
    };
    EmbedderTable {
        embedder: table.embedder,
        models: each(&table.models, model),
    }
}

fn entry(entry: &'static tables::Entry) -> Entry {
    Entry {
        path: &entry.path,
        words: &entry.words,
        kind: match &entry.kind {
            tables::EntryKind::Node {
                children,
                tree,
                tree_etag,
            } => EntryKind::Node {
                children,
                tree: span(*tree),
                tree_etag,
            },
            tables::EntryKind::Item(id) => EntryKind::Item(*id),
        },
        head: span(entry.head),
        desc: span(entry.desc),
        desc_head: span(entry.desc_head),
        desc_etag: &entry.desc_etag,
    }
}

fn item(item: &'static tables::Item) -> Item {
    Item {
        entry: item.entry,
        source: item.source,
        kind: item.kind,
        id: &item.id,
        key: &item.key,
        flat_name: &item.flat_name,
        digest: &item.digest,
        args_schema: span(item.args_schema),
        output_schema: item.output_schema.map(span),
        list_head: span(item.list_head),
        listed: item.listed.map(|listed| ListedSchemas {
            input: span(listed.input),
            output: listed.output.map(span),
        }),
        header_params: each(&item.header_params, header_param),
        idempotent: item.idempotent,
        for_pages_only: item.for_pages_only,
        requires_task: item.requires_task,
        unvalidated: item.unvalidated,
        audit: each(&item.audit, |pointer| pointer.as_str()),
        allow: item.allow,
        narrowed: &item.narrowed,
        deny: &item.deny,
    }
}

fn header_param(param: &'static header_params::HeaderParam) -> HeaderParam {
    HeaderParam {
        name: &param.name,
        pointer: each(&param.pointer, |name| name.as_str()),
        kind: param.kind,
    }
}

fn source(source: &'static tables::Source) -> Source {
    Source {
        path: &source.path,
        protocol_version: &source.protocol_version,
        sensitive_words: source.sensitive_words,
        lock: span(source.lock),
        items: &source.items,
    }
}

fn access(access: &'static tables::AccessTable) -> AccessTable {
    AccessTable {
        digest: &access.digest,
        groups: each(&access.groups, |name| name.as_str()),
        narrowings: each(&access.narrowings, |schema| schema.as_str()),
        local: access.local,
        secret: access.secret,
        anonymous: access.anonymous,
        operators: access.operators,
        is_forbidden_shown: access.is_forbidden_shown,
    }
}

const fn span(span: tables::Span) -> Span {
    Span {
        at: span.at,
        len: span.len,
    }
}
