//! The summary of a source without one: the names of its tools. The generator makes it of all tools, the core of
//! those that exist for a caller.

use std::fmt::Write as _;

/// The maximum length of a summary with more than one name, in characters.
const MAX_CHARS: usize = 100;

/// `read_file, write_file and 9 more`; `None` without names.
pub fn summary<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let (first, others) = names.split_first()?;
    let mut out = (*first).to_owned();
    for (at, name) in others.iter().enumerate() {
        let rest = others.len() - at;
        let after = if rest > 1 { more(rest - 1).len() } else { 0 };
        if out.len() + ", ".len() + name.len() + after > MAX_CHARS {
            out.push_str(&more(rest));
            break;
        }
        write!(out, ", {name}").expect("a string takes all text");
    }
    Some(out)
}

fn more(count: usize) -> String {
    format!(" and {count} more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_as_many_names_as_fit_and_counts_the_others() {
        assert_eq!(summary([]), None);
        assert_eq!(summary(["one"]).as_deref(), Some("one"));
        assert_eq!(summary(["one", "two"]).as_deref(), Some("one, two"));
        let names: Vec<String> = (0..40).map(|at| format!("tool_number_{at:02}")).collect();
        let text = summary(names.iter().map(String::as_str)).unwrap();
        assert!(
            text.ends_with(" and 35 more") && text.len() <= MAX_CHARS,
            "{text}"
        );
        assert_eq!(text.matches(", ").count(), 4);
        let long = "x".repeat(200);
        let text = summary([long.as_str(), "b", "c"]).unwrap();
        assert_eq!(text, format!("{long} and 2 more"));
    }
}
