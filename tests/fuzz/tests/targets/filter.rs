//! Filters: the order of patterns never matters, a deny always wins, and denying more never admits
//! more. An input consists of patterns and names, one line each, separated by an empty line.

use broker_model::filter::ToolFilter;
use fuzz::behaviour;

#[test]
fn filter_of_any_patterns_is_independent_of_their_order() {
    let words = [
        "*", "?", "!", "{a,b}", "[a-z]", "[!a]", "**", "get_", "\\", "\n", "\n\n", "{", "[",
    ];
    fuzz::run("filter", &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (patterns, names) = text.split_once("\n\n").unwrap_or((&text, "get_file"));
        let patterns: Vec<&str> = patterns.split('\n').take(20).collect();
        let mut turned = patterns.clone();
        turned.reverse();
        turned.rotate_left(patterns.len() / 3);
        let (filter, other) = match (ToolFilter::compile(&patterns), ToolFilter::compile(&turned)) {
            (Ok(filter), Ok(other)) => (filter, other),
            (Err(first), Err(second)) if first.len() == second.len() => {
                return Ok(behaviour(first.len()));
            }
            _ => return Err("the order decides whether it is a filter".to_owned()),
        };
        let without_denies: Vec<_> = patterns
            .iter()
            .filter(|pattern| !pattern.starts_with('!'))
            .collect();
        let allowing =
            ToolFilter::compile(&without_denies).map_err(|error| format!("{error:?}"))?;
        let mut admitted = 0u32;
        for name in names.split('\n').take(20) {
            if filter.admits(name) != other.admits(name) {
                return Err(format!("the order decides over `{name}`"));
            }
            if filter.admits(name) && !allowing.admits(name) {
                return Err(format!("a deny admits `{name}`"));
            }
            let mut denied = patterns.clone();
            denied.push("!**");
            let none = ToolFilter::compile(&denied).map_err(|error| format!("{error:?}"))?;
            if none.admits(name) {
                return Err(format!("`{name}` is admitted though everything is denied"));
            }
            admitted += u32::from(filter.admits(name));
        }
        Ok(behaviour((patterns.len(), admitted)))
    });
}
