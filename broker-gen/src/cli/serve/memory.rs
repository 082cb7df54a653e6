//! The catalog in memory: borrows from tables that live as long as the process.

use mcp_broker::catalog::{
    AccessTable, Area, Catalog, EmbedderTable, Entry, EntryKind, HeaderParam, ModelTable,
    SEARCH_TABLE, SearchTables, Source, Span, Tool,
};

use crate::tables::{self, Tables};
use crate::vectors_file;
use broker_model::header_params;

/// The catalog with the content of these tables.
pub(super) fn catalog(tables: Tables) -> &'static Catalog {
    // A compiled-in catalog is never freed either, and a process makes one.
    let tables: &'static Tables = Box::leak(Box::new(tables));
    Box::leak(Box::new(Catalog {
        format: tables.format,
        catalog_digest: &tables.catalog_digest,
        root_digest: &tables.root_digest,
        config_digest: &tables.config_digest,
        config_name: &tables.config_name,
        config: &tables.config,
        blob: &tables.blob,
        entries: each(&tables.entries, entry),
        tools: each(&tables.tools, tool),
        flat_order: &tables.flat_order,
        sources: each(&tables.sources, source),
        areas: each(&tables.areas, area),
        access: tables.access.as_ref().map(access),
        search: SearchTables {
            index: &tables.search.index,
            table: tables.search.has_table.then_some(&SEARCH_TABLE),
            embedder: tables.search.embedder.as_ref().map(embedder),
        },
    }))
}

fn each<From, To>(list: &'static [From], convert: impl Fn(&'static From) -> To) -> &'static [To] {
    list.iter().map(convert).collect::<Vec<_>>().leak()
}

fn embedder(table: &'static vectors_file::EmbedderTable) -> EmbedderTable {
    let model = |model: &'static vectors_file::ModelTable| ModelTable {
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
            tables::EntryKind::Tool(id) => EntryKind::Tool(*id),
        },
        head: span(entry.head),
        desc: span(entry.desc),
        desc_head: span(entry.desc_head),
        desc_etag: &entry.desc_etag,
    }
}

fn tool(tool: &'static tables::Tool) -> Tool {
    Tool {
        entry: tool.entry,
        source: tool.source,
        name: &tool.name,
        flat_name: &tool.flat_name,
        digest: &tool.digest,
        args_schema: span(tool.args_schema),
        output_schema: tool.output_schema.map(span),
        list_head: span(tool.list_head),
        header_params: each(&tool.header_params, header_param),
        idempotent: tool.idempotent,
        allow: tool.allow,
        narrowed: &tool.narrowed,
        deny: &tool.deny,
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
        lock: span(source.lock),
        tools: &source.tools,
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

fn area(area: &'static tables::Area) -> Area {
    Area {
        entry: area.entry,
        summary: &area.summary,
    }
}

const fn span(span: tables::Span) -> Span {
    Span {
        at: span.at,
        len: span.len,
    }
}
