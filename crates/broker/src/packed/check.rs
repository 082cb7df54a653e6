//! Checks of a catalog that was read: each index and each span must be inside its table, since callers of the tables do not
//! check them.

use super::codec::Malformed;
use crate::catalog::{Catalog, EntryKind, Item, Span};

/// The maximum number of groups: each is a bit of a mask.
const MAX_GROUPS: usize = 64;

/// Checks a catalog.
pub(super) fn check(catalog: &Catalog) -> Result<(), Malformed> {
    entries(catalog)?;
    for item in catalog.items {
        check_item(catalog, item)?;
    }
    for source in catalog.sources {
        span(catalog, source.lock)?;
        indices(source.items, catalog.items.len())?;
    }
    indices(catalog.flat_order, catalog.items.len())?;
    let groups = catalog.access.map_or(0, |access| access.groups.len());
    require(groups <= MAX_GROUPS, "it has too many groups")
}

/// Checks that the entries are sorted, and that each child comes after its node, so that no walk is endless.
fn entries(catalog: &Catalog) -> Result<(), Malformed> {
    let first = catalog.entries.first().map(|entry| entry.path);
    require(first == Some("/"), "it has no root")?;
    let mut pairs = catalog.entries.windows(2);
    let sorted = pairs.all(|pair| match pair {
        [first, second] => first.path.as_bytes() < second.path.as_bytes(),
        _ => true,
    });
    require(sorted, "its entries are not sorted")?;
    for (at, entry) in (0..).zip(catalog.entries) {
        for part in [entry.head, entry.desc, entry.desc_head] {
            span(catalog, part)?;
        }
        match &entry.kind {
            EntryKind::Node { children, tree, .. } => {
                span(catalog, *tree)?;
                indices(children, catalog.entries.len())?;
                let follow = children.iter().all(|child| *child > at);
                require(follow, "a node is below itself")?;
            }
            EntryKind::Item(id) => {
                let item = catalog.items.get(*id as usize);
                require(
                    item.is_some_and(|item| item.entry == at),
                    "an entry has another item",
                )?;
            }
        }
    }
    Ok(())
}

fn check_item(catalog: &Catalog, item: &Item) -> Result<(), Malformed> {
    indices(&[item.entry], catalog.entries.len())?;
    indices(&[item.source], catalog.sources.len())?;
    let listed = item
        .listed
        .map(|listed| [Some(listed.input), listed.output]);
    let parts = [
        Some(item.args_schema),
        Some(item.list_head),
        item.output_schema,
    ];
    let parts = parts.into_iter().chain(listed.into_iter().flatten());
    for part in parts.flatten() {
        span(catalog, part)?;
    }
    let narrowings = catalog.access.map_or(0, |access| access.narrowings.len());
    let used: Vec<_> = item.narrowed.iter().map(|mask| mask.narrowing).collect();
    indices(&used, narrowings)
}

fn span(catalog: &Catalog, span: Span) -> Result<(), Malformed> {
    let at = span.at as usize;
    let end = at.saturating_add(span.len as usize);
    require(
        catalog.blob.get(at..end).is_some(),
        "a span is outside the text",
    )
}

fn indices(list: &[u32], length: usize) -> Result<(), Malformed> {
    let inside = list.iter().all(|index| (*index as usize) < length);
    require(inside, "an index is outside its table")
}

fn require(holds: bool, reason: &'static str) -> Result<(), Malformed> {
    match holds {
        true => Ok(()),
        false => Err(Malformed(reason)),
    }
}
