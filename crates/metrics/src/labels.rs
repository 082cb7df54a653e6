//! The values of labels that name tools and sources. They are made once, from the catalog.

use std::collections::HashSet;
use std::fmt::Write as _;

use broker_model::item::ItemKind;

use crate::description::{CatalogDescription, ToolDescription, Transport};
use crate::ended_call::Method;

/// The value of a label for everything that is not in the list of its values.
pub const OTHER: &str = "_other";
/// The value of a label for a tool and a source before they are resolved.
pub const UNKNOWN: &str = "_unknown";

/// The maximum number of sources with separate series about sources; further sources are counted together, as `_other`.
pub const MAX_SOURCES: usize = 96;

/// The maximum size of the text of a tool in a scrape: 2 000 tools have 16 MiB with everything else.
const MAX_TOOL_BYTES: usize = ((16 << 20) - (512 << 10)) / 2000;
/// The maximum size of the text of a tool without its values of labels, in 40 lines with numbers of 12 digits.
const FIXED_TOOL_BYTES: usize = 6_150;
/// The lines of a tool that have its path, its upstream name, and its source.
const LINES: [usize; 3] = [23, 17, 38];
/// The lengths to which values can be cut.
const LENGTHS: [usize; 14] = [
    1 << 16,
    512,
    384,
    256,
    192,
    128,
    96,
    80,
    64,
    56,
    48,
    40,
    32,
    24,
];

/// The labels of a catalog.
#[derive(Debug)]
pub(crate) struct Labels {
    /// The labels of the tools, in the order of the catalog.
    pub(crate) tools: Box<[ToolLabels]>,
    /// The labels of the sources, in the order of the catalog.
    pub(crate) sources: Box<[SourceLabels]>,
}

/// The labels of a tool.
#[derive(Debug)]
pub(crate) struct ToolLabels {
    /// The path for callers.
    pub(crate) path: Box<str>,
    /// The name at the server; the path for resources and templates.
    pub(crate) upstream_name: Box<str>,
    /// The index of its source.
    pub(crate) source: usize,
    /// The method that calls it.
    pub(crate) method: Method,
    /// The name of the label for path and name.
    pub(crate) key: &'static str,
}

/// The labels of a source.
#[derive(Debug)]
pub(crate) struct SourceLabels {
    /// Its path.
    pub(crate) path: Box<str>,
    /// The transport to its server.
    pub(crate) transport: Transport,
}

impl Labels {
    /// Makes the labels. Values are cut only if the text of a scrape would be too large otherwise.
    pub(crate) fn new(catalog: &CatalogDescription<'_>) -> Self {
        let length = max_length(catalog);
        let mut names = HashSet::new();
        let sources = catalog.sources.iter().map(|source| SourceLabels {
            path: unique(&mut names, "", 0, cut(source.path, length)),
            transport: source.transport,
        });
        let sources = sources.collect();
        let tools = catalog.tools.iter().map(|tool| {
            let (key, name) = key_and_name(tool);
            let path = unique(&mut names, key, usize::MAX, cut(tool.path, length));
            let source = tool.source as usize;
            ToolLabels {
                path,
                upstream_name: unique(&mut names, key, source, cut(name, length)),
                source,
                method: Method::from_kind(tool.kind),
                key,
            }
        });
        let tools = tools.collect();
        Self { tools, sources }
    }
}

/// Returns the name of the label of an item, and the item's name for its server. A URI can name a host, so that
/// resources and templates have the path.
const fn key_and_name<'a>(tool: &ToolDescription<'a>) -> (&'static str, &'a str) {
    match tool.kind {
        ItemKind::Tool => ("gen_ai_tool_name", tool.upstream_name),
        ItemKind::Prompt => ("gen_ai_prompt_name", tool.upstream_name),
        ItemKind::Template | ItemKind::Resource => ("mcp_broker_item", tool.path),
    }
}

/// Returns the length to which values must be cut, so that the tools have at most their part of a scrape.
fn max_length(catalog: &CatalogDescription<'_>) -> usize {
    let tools = catalog.tools.len();
    let most = MAX_TOOL_BYTES * tools.max(2000);
    let fits = |length: usize| {
        let size = |tool: &ToolDescription<'_>| {
            let source = catalog.sources.get(tool.source as usize);
            let source = source.map_or(UNKNOWN, |source| source.path);
            let values = [tool.path, key_and_name(tool).1, source];
            let values = values.map(|value| escaped_len(value).min(length));
            let lines = values.iter().zip(LINES).map(|(bytes, lines)| bytes * lines);
            lines.sum::<usize>()
        };
        catalog.tools.iter().map(size).sum::<usize>() + FIXED_TOOL_BYTES * tools <= most
    };
    let length = LENGTHS.into_iter().find(|length| fits(*length));
    length.unwrap_or(LENGTHS[LENGTHS.len() - 1])
}

/// Returns the bytes of a value in a scrape.
fn escaped_len(value: &str) -> usize {
    value.chars().map(escaped_char_len).sum()
}

fn escaped_char_len(char: char) -> usize {
    char.len_utf8() + usize::from(['\\', '"', '\n'].contains(&char))
}

/// Cuts a value to a length: a hash of it and its end, because the end tells tools of one source apart.
fn cut(value: &str, length: usize) -> String {
    if escaped_len(value) <= length {
        return value.to_owned();
    }
    let mut text = format!("~{:010x}~", hash(value) >> 24);
    let (mut begin, mut room) = (value.len(), length.saturating_sub(text.len()));
    for (at, char) in value.char_indices().rev() {
        let Some(left) = room.checked_sub(escaped_char_len(char)) else {
            break;
        };
        (begin, room) = (at, left);
    }
    text.push_str(&value[begin..]);
    text
}

/// Returns the FNV-1a hash of a value: it is the same in every process, so that a restart keeps the series.
fn hash(value: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    value.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the value, with a number if another label of the same kind has it: a scrape with a series twice is not valid.
fn unique(
    names: &mut HashSet<(&'static str, usize, Box<str>)>,
    key: &'static str,
    source: usize,
    value: String,
) -> Box<str> {
    let mut name: Box<str> = value.as_str().into();
    let mut number = 2;
    while !names.insert((key, source, name.clone())) {
        let mut numbered = value.clone();
        // Writing to a string cannot fail.
        let _ = write!(numbered, "~{number}");
        name = numbered.into();
        number += 1;
    }
    name
}
