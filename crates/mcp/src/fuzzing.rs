//! The entry point for the fuzz target of tool lists.

use serde_json::{Map, Value};

use crate::list;

/// A tool's name and its members.
pub type Listed = (String, Map<String, Value>);

/// Reads the pages of a list up to the last page. Returns the tools by name with their members, or the
/// reason why the list is refused.
pub fn listing(pages: &[&[u8]], limit: usize) -> Result<Vec<Listed>, String> {
    let listed = list::read(pages, limit).map_err(|failure| failure.message)?;
    let tools = listed.tools.iter();
    Ok(tools
        .map(|tool| (tool.name().to_owned(), tool.read()))
        .collect())
}
