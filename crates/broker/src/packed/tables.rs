//! The bytes of the tables of a catalog. Each type is listed once, for writing and for reading.

use super::codec::{Input, Malformed, Packed};
use crate::catalog::{
    AccessTable, Catalog, DenyMask, Embedder, EmbedderTable, Entry, EntryKind, FORMAT, HeaderParam,
    HeaderParamKind, Item, ItemKind, ListedSchemas, ModelTable, NarrowMask, SEARCH_TABLE,
    SearchTables, Source, Span, TableFiles,
};

/// Writes and reads a type by its fields, in this order.
macro_rules! by_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Packed for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($field.write(out);)*
            }

            fn read(input: &mut Input) -> Result<Self, Malformed> {
                Ok(Self { $($field: Packed::read(input)?),* })
            }
        }
    };
}

/// Writes and reads a type without fields by a number for each case.
macro_rules! by_numbers {
    ($type:ident { $($case:ident = $number:literal),* $(,)? }) => {
        impl Packed for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(match self { $(Self::$case => $number),* });
            }

            fn read(input: &mut Input) -> Result<Self, Malformed> {
                Ok(match input.byte()? {
                    $($number => Self::$case,)*
                    _ => return Err(Malformed("a kind is unknown")),
                })
            }
        }
    };
}

/// Reads a catalog, and compares its format first: another one has other fields.
pub(super) fn read(bytes: &'static [u8]) -> Result<Catalog, Unreadable> {
    let mut input = Input::new(bytes);
    match u32::read(&mut Input::new(bytes))? {
        FORMAT => {}
        found => return Err(Unreadable::Format(found)),
    }
    let catalog = Catalog::read(&mut input)?;
    input.end()?;
    Ok(catalog)
}

/// Returns the bytes of a catalog.
pub(super) fn write(catalog: &Catalog) -> Vec<u8> {
    let mut out = Vec::new();
    catalog.write(&mut out);
    out
}

/// The reason why a catalog cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It has this format.
    Format(u32),
    /// It is not a catalog.
    Malformed(Malformed),
}

impl From<Malformed> for Unreadable {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

by_fields!(Catalog {
    format,
    catalog_digest,
    root_digest,
    config_digest,
    config_name,
    config,
    blob,
    entries,
    items,
    flat_order,
    sources,
    access,
    search,
});
by_fields!(Span { at, len });
by_fields!(Entry {
    path,
    words,
    kind,
    head,
    desc,
    desc_head,
    desc_etag
});
by_fields!(Item {
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
});
by_fields!(ListedSchemas { input, output });
by_fields!(HeaderParam {
    name,
    pointer,
    kind
});
by_fields!(NarrowMask { to, narrowing });
by_fields!(DenyMask { to, except });
by_fields!(Source {
    path,
    protocol_version,
    sensitive_words,
    lock,
    items
});
by_fields!(AccessTable {
    digest,
    groups,
    narrowings,
    local,
    secret,
    anonymous,
    operators,
    is_forbidden_shown,
});
by_fields!(SearchTables {
    index,
    table,
    embedder
});
by_fields!(EmbedderTable { embedder, models });
by_fields!(ModelTable {
    name,
    files,
    dimensions,
    vectors
});
by_numbers!(ItemKind {
    Tool = 0,
    Prompt = 1,
    Template = 2,
    Resource = 3
});
by_numbers!(HeaderParamKind {
    Text = 0,
    Integer = 1,
    Boolean = 2
});
by_numbers!(Embedder {
    Bm25 = 0,
    Hf = 1,
    OpenAi = 2
});

/// The table is in the program.
impl Packed for &'static TableFiles {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut Input) -> Result<Self, Malformed> {
        Ok(&SEARCH_TABLE)
    }
}

impl Packed for EntryKind {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Node {
                children,
                tree,
                tree_etag,
            } => {
                out.push(0);
                children.write(out);
                tree.write(out);
                tree_etag.write(out);
            }
            Self::Item(id) => {
                out.push(1);
                id.write(out);
            }
        }
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::Node {
                children: Packed::read(input)?,
                tree: Packed::read(input)?,
                tree_etag: Packed::read(input)?,
            },
            1 => Self::Item(Packed::read(input)?),
            _ => return Err(Malformed("a kind is unknown")),
        })
    }
}
