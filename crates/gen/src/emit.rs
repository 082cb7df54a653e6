//! Renders the tables of a catalog, and the types of its tools, as Rust.
//!
//! Emitted code is data and names types of `mcp_broker::catalog`; no text of a server becomes code, an
//! identifier or a comment. Equal plans give equal bytes.

use broker_config::{Config, Embedder};
use broker_model::access::{DenyMask, NarrowMask};
use broker_model::item::ItemKind;
use broker_model::lock::Lock;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::embedder_table::{EmbedderTable, ModelTable};
use crate::plan::Plan;
use crate::tables::{
    self, AccessTable, Entry, EntryKind, Item, ListedSchemas, Source, Span, Tables,
};
use broker_model::header_params::{HeaderParam, HeaderParamKind};

/// The name of the file with the tables; `include_catalog!` includes it.
pub const CATALOG_FILE: &str = "catalog.rs";
/// The name of the file with the text; the tables include it.
pub const BLOB_FILE: &str = "catalog.json";
/// The name of the file with the search index; the tables include it.
pub const SEARCH_FILE: &str = "search.index";
/// The names of the files with the vectors by each model; the tables include them.
pub const VECTOR_FILES: [&str; 2] = ["search.vectors", "search.multilingual.vectors"];

/// The name of the file with the types of the tools; `include_tools!` includes it.
pub const TOOLS_FILE: &str = "tools.rs";

/// The output of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The content of [`CATALOG_FILE`].
    pub tables: String,
    /// The content of [`BLOB_FILE`].
    pub blob: String,
    /// The content of [`SEARCH_FILE`].
    pub search: Vec<u8>,
    /// The content of each of [`VECTOR_FILES`]; one for each model of the embedder.
    pub vectors: Vec<Vec<u8>>,
    /// The content of [`TOOLS_FILE`].
    pub tools: String,
    /// The digest of everything that callers can see and call.
    pub catalog_digest: String,
}

/// The files of a build, by name.
pub fn files(emitted: &Emitted) -> Vec<(&'static str, &[u8])> {
    let mut files = vec![
        (CATALOG_FILE, emitted.tables.as_bytes()),
        (BLOB_FILE, emitted.blob.as_bytes()),
        (SEARCH_FILE, emitted.search.as_slice()),
        (TOOLS_FILE, emitted.tools.as_bytes()),
    ];
    let vectors = VECTOR_FILES.into_iter().zip(&emitted.vectors);
    files.extend(vectors.map(|(name, bytes)| (name, bytes.as_slice())));
    files
}

/// Renders everything. `lock` must be fresh for `config`, and `plan` made of both.
pub fn emit(config: &Config, lock: &Lock, plan: &Plan<'_>) -> Emitted {
    let tables = tables::tables(config, lock, plan);
    let embedder = tables.search.embedder.as_ref();
    let models = embedder.map_or(&[][..], |embedder| &embedder.models);
    Emitted {
        vectors: models.iter().map(|model| model.vectors.clone()).collect(),
        tables: render(&catalog(&tables)),
        tools: render(&crate::types::types(plan).tokens),
        blob: tables.blob,
        search: tables.search.index,
        catalog_digest: tables.catalog_digest,
    }
}

/// The tables as a static item; the text is in a file beside it.
fn catalog(tables: &Tables) -> TokenStream {
    let Tables {
        format,
        catalog_digest,
        root_digest,
        config_digest,
        config_name,
        config,
        blob: _,
        entries,
        items,
        flat_order,
        sources,
        access,
        search,
    } = tables;
    let access = option(access.as_ref());
    let table = search
        .has_table
        .then(|| quote!(&::mcp_broker::catalog::SEARCH_TABLE));
    let table = option(table.as_ref());
    let embedder = option(search.embedder.as_ref());
    let needs_models = search.embedder.as_ref().map(needed_feature);
    quote! {
        #needs_models

        pub static CATALOG: ::mcp_broker::catalog::Catalog = {
            use ::mcp_broker::catalog::{Catalog, Entry, EntryKind, Item, ItemKind, Source, Span};
            Catalog {
                format: #format,
                catalog_digest: #catalog_digest,
                root_digest: #root_digest,
                config_digest: #config_digest,
                config_name: #config_name,
                config: #config,
                blob: include_str!(#BLOB_FILE),
                entries: &[#(#entries),*],
                items: &[#(#items),*],
                flat_order: &[#(#flat_order),*],
                sources: &[#(#sources),*],
                access: #access,
                search: ::mcp_broker::catalog::SearchTables {
                    index: include_bytes!(#SEARCH_FILE),
                    table: #table,
                    embedder: #embedder,
                },
            }
        };
    }
}

/// A build of a catalog for `HF` fails without the feature that runs its models.
fn needed_feature(embedder: &EmbedderTable) -> TokenStream {
    match embedder.embedder {
        Embedder::Hf => quote! {
            const _: () = assert!(
                ::mcp_broker::catalog::HAS_LOCAL_MODELS,
                "the embedder HF needs the feature hf: cargo build --release --locked --features hf",
            );
        },
        Embedder::OpenAi | Embedder::Bm25 => TokenStream::new(),
    }
}

/// Tokens as formatted source under a header. Deterministic: no time, no path.
fn render(tokens: &TokenStream) -> String {
    let file = syn::parse2(tokens.clone()).expect("the emitter writes a valid file");
    format!(
        "// @generated by broker-gen from config and lock. Do not edit: lock and build again.\n\n{}",
        prettyplease::unparse(&file)
    )
}

impl ToTokens for Span {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { at, len } = self;
        tokens.extend(quote!(Span { at: #at, len: #len }));
    }
}

/// The expression of an optional value.
fn option(value: Option<&impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(Some(#value)),
        None => quote!(None),
    }
}

impl ToTokens for EmbedderTable {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            digest: _,
            embedder,
            models,
        } = self;
        let embedder = match embedder {
            Embedder::Hf => quote!(Hf),
            Embedder::OpenAi => quote!(OpenAi),
            Embedder::Bm25 => quote!(Bm25),
        };
        let models = models.iter().zip(VECTOR_FILES).map(|(model, file)| {
            let ModelTable {
                name,
                files,
                dimensions,
                vectors: _,
            } = model;
            let files = option(files.as_ref());
            quote! {
                ::mcp_broker::catalog::ModelTable {
                    name: #name, files: #files, dimensions: #dimensions,
                    vectors: include_bytes!(#file),
                }
            }
        });
        tokens.extend(quote! {
            ::mcp_broker::catalog::EmbedderTable {
                embedder: ::mcp_broker::catalog::Embedder::#embedder, models: &[#(#models),*],
            }
        });
    }
}

impl ToTokens for AccessTable {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            digest,
            groups,
            narrowings,
            local,
            secret,
            anonymous,
            operators,
            is_forbidden_shown,
        } = self;
        let operators = option(operators.as_ref());
        tokens.extend(quote! {
            ::mcp_broker::catalog::AccessTable {
                digest: #digest, groups: &[#(#groups),*], narrowings: &[#(#narrowings),*],
                local: #local, secret: #secret, anonymous: #anonymous, operators: #operators,
                is_forbidden_shown: #is_forbidden_shown,
            }
        });
    }
}

impl ToTokens for Entry {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            path,
            words,
            kind,
            head,
            desc,
            desc_head,
            desc_etag,
        } = self;
        tokens.extend(quote! {
            Entry {
                path: #path, words: #words, kind: #kind, head: #head,
                desc: #desc, desc_head: #desc_head, desc_etag: #desc_etag,
            }
        });
    }
}

impl ToTokens for EntryKind {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Node {
                children,
                tree,
                tree_etag,
            } => quote! {
                EntryKind::Node { children: &[#(#children),*], tree: #tree, tree_etag: #tree_etag }
            },
            Self::Item(id) => quote!(EntryKind::Item(#id)),
        });
    }
}

impl ToTokens for Item {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            entry,
            source,
            kind,
            id,
            key,
            flat_name,
            digest,
            args_schema,
            output_schema,
            list_head,
            listed,
            header_params,
            idempotent,
            for_pages_only,
            requires_task,
            unvalidated,
            audit,
            allow,
            narrowed,
            deny,
        } = self;
        let kind = match kind {
            ItemKind::Tool => quote!(Tool),
            ItemKind::Prompt => quote!(Prompt),
            ItemKind::Template => quote!(Template),
            ItemKind::Resource => quote!(Resource),
        };
        let output_schema = option(output_schema.as_ref());
        let listed = option(listed.as_ref());
        let narrowed = narrowed.iter().map(
            |NarrowMask { to, narrowing }| quote!(::mcp_broker::catalog::NarrowMask { to: #to, narrowing: #narrowing }),
        );
        let deny = deny
            .iter()
            .map(|DenyMask { to, except }| quote!(::mcp_broker::catalog::DenyMask { to: #to, except: #except }));
        let header_params = header_params.iter().map(header_param);
        let allow = if *allow == u64::MAX {
            quote!(u64::MAX)
        } else {
            quote!(#allow)
        };
        tokens.extend(quote! {
            Item {
                entry: #entry, source: #source, kind: ItemKind::#kind, id: #id, key: #key, flat_name: #flat_name, digest: #digest,
                args_schema: #args_schema, output_schema: #output_schema, list_head: #list_head,
                listed: #listed, header_params: &[#(#header_params),*], idempotent: #idempotent, for_pages_only: #for_pages_only, requires_task: #requires_task, unvalidated: #unvalidated,
                audit: &[#(#audit),*],
                allow: #allow,
                narrowed: &[#(#narrowed),*], deny: &[#(#deny),*],
            }
        });
    }
}

impl ToTokens for ListedSchemas {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { input, output } = self;
        let output = option(output.as_ref());
        tokens.extend(quote! {
            ::mcp_broker::catalog::ListedSchemas { input: #input, output: #output }
        });
    }
}

/// The expression of an argument that a client repeats as a header.
fn header_param(param: &HeaderParam) -> TokenStream {
    let HeaderParam {
        name,
        pointer,
        kind,
    } = param;
    let kind = match kind {
        HeaderParamKind::Text => quote!(Text),
        HeaderParamKind::Integer => quote!(Integer),
        HeaderParamKind::Boolean => quote!(Boolean),
    };
    quote! {
        ::mcp_broker::catalog::HeaderParam {
            name: #name, pointer: &[#(#pointer),*],
            kind: ::mcp_broker::catalog::HeaderParamKind::#kind,
        }
    }
}

impl ToTokens for Source {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            path,
            protocol_version,
            sensitive_words,
            lock,
            items,
        } = self;
        tokens.extend(quote! {
            Source {
                path: #path, protocol_version: #protocol_version, sensitive_words: #sensitive_words, lock: #lock,
                items: &[#(#items),*],
            }
        });
    }
}
