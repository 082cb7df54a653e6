//! `page`: writes the lock as one HTML file that needs no network, for the readers of a change. Starts no server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use broker_build::build_script;
use broker_build::left_out_audits::shown;
use broker_build::{plan, tables};
use broker_core::catalog::{Catalog, EntryKind, Span};
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file::write_whole;
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;

use super::output::{self, say};
use super::serve::memory;

#[derive(Debug, Args)]
pub(super) struct PageArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The file to write; one that exists is replaced. Equal locks give equal bytes.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

pub(super) fn run(args: &PageArgs) -> Exit {
    let made = document(&args.file.config).and_then(|document| write(&args.out, &document));
    match made {
        Ok(()) => {
            say(text!("wrote {}", args.out.display()));
            Exit::Ok
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// The data of the document.
#[derive(Serialize)]
struct Data<'a> {
    config: &'a str,
    root_digest: &'a str,
    catalog_digest: &'a str,
    sources: Vec<SourceRow<'a>>,
    left_out: Vec<LeftOutRow<'a>>,
    tree: &'a RawValue,
    entries: BTreeMap<&'a str, &'a RawValue>,
}

#[derive(Serialize)]
struct SourceRow<'a> {
    path: &'a str,
    server: String,
    protocol_version: &'a str,
    exposed: usize,
    hidden: usize,
    package: Option<String>,
}

#[derive(Serialize)]
struct LeftOutRow<'a> {
    what: String,
    state: &'static str,
    code: String,
    reason: &'a str,
}

/// Makes the document of a config and its lock. Parts that are left out and not accepted are shown: people decide about them.
fn document(file: &Path) -> Result<String, Vec<Diagnostic>> {
    let (config, lock) = build_script::read(file, &file.to_string_lossy())?;
    let plan = plan::plan(&config, &lock.sources)?;
    let tables = tables::tables(&config, &lock, &plan);
    let catalog = memory::catalog(tables).map_err(|full| vec![*full])?;
    let tree = tree(catalog, 0);
    let entries = catalog.entries.iter();
    let entries = entries.map(|entry| (entry.path, raw(slice(catalog, entry.desc))));
    let data = Data {
        config: catalog.config_name,
        root_digest: catalog.root_digest,
        catalog_digest: catalog.catalog_digest,
        sources: sources(&lock),
        left_out: left_out(&lock),
        tree: raw(&tree),
        entries: entries.collect(),
    };
    let data = serde_json::to_string(&data).expect("texts and numbers always serialize");
    Ok(broker_web::document(&data))
}

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("the texts of a catalog are JSON")
}

/// Returns the listing of an entry with everything below it.
fn tree(catalog: &Catalog, at: u32) -> String {
    let entry = catalog.entry(at);
    let mut out = slice(catalog, entry.head).to_owned();
    if let EntryKind::Node { children, .. } = entry.kind {
        let children: Vec<_> = children.iter().map(|child| tree(catalog, *child)).collect();
        out.push_str(&format!(",\"children\":[{}]", children.join(",")));
    }
    out.push('}');
    out
}

fn slice(catalog: &Catalog, span: Span) -> &str {
    &catalog.blob[span.at as usize..][..span.len as usize]
}

fn sources(lock: &Lock) -> Vec<SourceRow<'_>> {
    let rows = lock.sources.iter().map(|source| {
        let text = |name| source.server_info[name].as_str().unwrap_or_default();
        SourceRow {
            path: source.path.as_str(),
            server: format!("{} {}", text("name"), text("version")),
            protocol_version: &source.protocol_version,
            exposed: source.exposed.len(),
            hidden: source.hidden.len(),
            package: source.package.as_ref().map(|package| {
                let version = package.version.as_deref().unwrap_or_default();
                format!("{} {version}", package.name)
            }),
        }
    });
    rows.collect()
}

fn left_out(lock: &Lock) -> Vec<LeftOutRow<'_>> {
    let parts = lock.left_out_parts().into_iter();
    let rows = parts.map(|part| LeftOutRow {
        what: shown(&part),
        state: part.state(),
        code: part.code.to_string(),
        reason: part.reason,
    });
    rows.collect()
}

fn write(path: &Path, document: &str) -> Result<(), Vec<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| write_whole(path, document.as_bytes()));
    written.map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
    })
}
