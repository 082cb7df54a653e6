//! The table of this package, read once for all tests.

use std::sync::LazyLock;

use crate::vectors::StaticTable;

pub(crate) fn table() -> &'static StaticTable {
    static TABLE: LazyLock<StaticTable> =
        LazyLock::new(|| StaticTable::new(&crate::TABLE).expect("the package has a table"));
    &TABLE
}
