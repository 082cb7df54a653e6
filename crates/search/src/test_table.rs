//! The table of this package, read once for all tests.

use std::sync::LazyLock;

use crate::vectors::StaticTable;

/// The digests in the README of the table.
#[test]
fn files_have_the_digests_that_their_page_names() {
    use sha2::{Digest as _, Sha256};
    let page = include_str!("../table/README.md");
    let files: [(&str, &[u8]); 2] = [
        ("static128.safetensors", crate::TABLE.vectors),
        ("vocab.txt", crate::TABLE.vocabulary.as_bytes()),
    ];
    for (name, bytes) in files {
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = format!("| `{name}` | `{digest}` |");
        assert!(page.contains(&row), "{row}");
    }
}

pub(crate) fn table() -> &'static StaticTable {
    static TABLE: LazyLock<StaticTable> =
        LazyLock::new(|| StaticTable::new(&crate::TABLE).expect("the package has a table"));
    &TABLE
}
