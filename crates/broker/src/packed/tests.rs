//! Packed catalogs as they are written and read, and bytes that are not a catalog.

use proptest::prelude::*;

use super::*;
use crate::catalog::{
    AccessTable, DenyMask, Embedder, EmbedderTable, Entry, EntryKind, FORMAT, HeaderParam,
    HeaderParamKind, Item, ItemKind, ListedSchemas, ModelTable, NONE, NarrowMask, SEARCH_TABLE,
    SearchTables, Source, Span,
};

const BLOB: &str = "/ /a /a/t schema lock";

const fn part(at: u32, len: u32) -> Span {
    Span { at, len }
}

/// A catalog with a value in every field.
static FULL: Catalog = Catalog {
    format: FORMAT,
    catalog_digest: "sha256/1:00",
    root_digest: "sha256/1:01",
    config_digest: "sha256/1:02",
    config_name: "c.json",
    config: r#"{"mcpServers":{}}"#,
    blob: BLOB,
    entries: &[
        Entry {
            path: "/",
            words: "\t",
            kind: EntryKind::Node {
                children: &[1],
                tree: part(0, 1),
                tree_etag: "\"t\"",
            },
            head: part(0, 1),
            desc: part(0, 1),
            desc_head: part(0, 1),
            desc_etag: "\"d\"",
        },
        Entry {
            path: "/t",
            words: "t\t",
            kind: EntryKind::Item(0),
            head: part(2, 2),
            desc: part(5, 4),
            desc_head: part(5, 2),
            desc_etag: "\"e\"",
        },
    ],
    items: &[Item {
        entry: 1,
        source: 0,
        kind: ItemKind::Template,
        id: "x://{a}",
        key: "template:x://{a}",
        flat_name: "t",
        digest: "sha256/1:03",
        args_schema: part(10, 6),
        output_schema: Some(part(10, 6)),
        list_head: part(0, 0),
        listed: Some(ListedSchemas {
            input: part(10, 6),
            output: Some(part(10, 5)),
        }),
        header_params: &[HeaderParam {
            name: "A",
            pointer: &["a", "b"],
            kind: HeaderParamKind::Integer,
        }],
        idempotent: true,
        for_pages_only: false,
        requires_task: true,
        unvalidated: false,
        audit: &["/a"],
        allow: 1 << 63,
        narrowed: &[NarrowMask {
            to: 2,
            narrowing: 0,
        }],
        deny: &[DenyMask { to: 4, except: 1 }],
    }],
    flat_order: &[0],
    sources: &[Source {
        path: "/",
        protocol_version: "2025-11-25",
        sensitive_words: 1,
        lock: part(17, 4),
        items: &[0],
    }],
    access: Some(AccessTable {
        digest: "sha256/1:04",
        groups: &["a", "b"],
        narrowings: &["{}"],
        local: 1,
        secret: 2,
        anonymous: 0,
        operators: Some(3),
        is_forbidden_shown: true,
    }),
    search: SearchTables {
        index: &[1, 2, 3],
        table: Some(&SEARCH_TABLE),
        embedder: Some(EmbedderTable {
            embedder: Embedder::OpenAi,
            models: &[ModelTable {
                name: "m",
                files: Some("sha256/1:05"),
                dimensions: 2,
                vectors: &[4, 5],
            }],
        }),
    },
};

fn read(bytes: Vec<u8>) -> Result<Catalog, PackedError> {
    read_catalog(bytes.leak())
}

#[test]
fn catalog_is_read_with_every_field_as_it_was_written() {
    for catalog in [&FULL, &NONE] {
        let bytes = catalog_bytes(catalog);
        let again = read(bytes.clone()).expect("it is a catalog");
        assert_eq!(format!("{again:?}"), format!("{catalog:?}"));
        assert_eq!(catalog_bytes(&again), bytes);
    }
}

#[test]
fn catalog_that_is_cut_or_longer_or_of_another_format_is_refused() {
    let bytes = catalog_bytes(&FULL);
    for length in 0..bytes.len() {
        assert!(read(bytes[..length].to_vec()).is_err(), "{length}");
    }
    assert!(read([&bytes[..], &[0]].concat()).is_err());
    let mut other = bytes;
    other[0] ^= 0x40;
    assert!(matches!(read(other), Err(PackedError::Format(found)) if found == FORMAT ^ 0x40));
}

#[test]
fn catalog_with_an_index_or_a_span_outside_its_table_is_refused() {
    let changed = |change: fn(&mut Catalog)| {
        let mut catalog = read(catalog_bytes(&FULL)).expect("it is a catalog");
        change(&mut catalog);
        match read(catalog_bytes(&catalog)) {
            Err(PackedError::Damaged(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    let outside = "an index is outside its table";
    assert_eq!(
        changed(|catalog| catalog.blob = "é"),
        "a span is outside the text"
    );
    assert_eq!(changed(|catalog| catalog.entries = &[]), "it has no root");
    assert_eq!(changed(|catalog| catalog.flat_order = &[1]), outside);
    assert_eq!(changed(|catalog| catalog.sources = &[]), outside);
    assert_eq!(changed(|catalog| catalog.access = None), outside);
    assert_eq!(
        changed(|catalog| catalog.items = &[]),
        "an entry has another item"
    );
    let circle = changed(|catalog| {
        let root = Entry {
            path: "/",
            words: "",
            kind: EntryKind::Node {
                children: &[0],
                tree: part(0, 1),
                tree_etag: "",
            },
            head: part(0, 1),
            desc: part(0, 1),
            desc_head: part(0, 1),
            desc_etag: "",
        };
        catalog.entries = vec![root].leak();
    });
    assert_eq!(circle, "a node is below itself");
}

proptest! {
    #[test]
    fn reader_of_any_bytes_ends_without_a_panic(
        at in 0usize..2000, byte in any::<u8>(), random in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = catalog_bytes(&FULL);
        let at = at % bytes.len();
        bytes[at] = byte;
        // A catalog that is read can be walked.
        if let Ok(catalog) = read(bytes) {
            for entry in catalog.entries {
                catalog.text(entry.desc);
            }
        }
        prop_assert!(read([&FORMAT.to_le_bytes(), &random[..]].concat()).is_err());
    }

    #[test]
    fn each_changed_byte_after_the_program_is_refused(at in 0usize..2000, bit in 0u32..8) {
        let program = program();
        let mut packed = pack(&program, &catalog_bytes(&FULL)).expect("it is packed");
        let at = program.len() + at % (packed.len() - program.len());
        packed[at] ^= 1 << bit;
        prop_assert!(matches!(parts(&packed), Err(PackedError::Damaged(_))), "{}", at);
    }
}

fn program() -> Vec<u8> {
    ["a program\n", MARK, "and its end"].concat().into_bytes()
}

#[test]
fn packed_broker_has_the_program_and_the_catalog_and_is_packed_again_alike() {
    let (program, catalog) = (program(), catalog_bytes(&FULL));
    assert_eq!(parts(&program).expect("not damaged"), None);
    let packed = pack(&program, &catalog).expect("it is packed");
    let found = parts(&packed).expect("not damaged").expect("it is packed");
    assert_eq!((found.runtime, found.catalog), (&program[..], &catalog[..]));
    assert!(found.has_its_runtime);
    assert_eq!(pack(&packed, &catalog).expect("it is packed"), packed);
    let mut other = packed;
    other[0] ^= 1;
    let found = parts(&other).expect("not damaged").expect("it is packed");
    assert!(!found.has_its_runtime);
}

#[test]
fn program_without_the_mark_of_this_version_is_not_packed() {
    for program in [
        "",
        "#!/bin/sh\n",
        "mcp-broker 99 reads a packed catalog of form 1\n",
    ] {
        let refused = pack(program.as_bytes(), b"").expect_err("it is not a broker");
        assert!(matches!(refused, PackedError::NotABroker), "{refused}");
    }
}

#[test]
fn digest_of_a_file_is_that_of_sha256sum() {
    assert_eq!(
        sha256_text(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}
