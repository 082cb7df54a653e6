//! The last stderr lines of the processes of a source, for operators.

use crate::Fleet;
use crate::sources::time::rfc3339;

/// The output of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutput {
    /// The path of its node.
    pub path: &'static str,
    /// Its processes; none if it is reached by a URL.
    pub processes: Vec<ProcessOutput>,
}

/// The output of one process of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The state, as `/sources` shows it.
    pub state: &'static str,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// The last lines of the process that runs or of the last one, oldest first, redacted and printable.
    pub lines: Vec<String>,
}

impl ServerOutput {
    /// Finds the output of the source that has a path or an entry at it.
    pub(crate) fn find(fleet: &Fleet, path: &str) -> Option<Self> {
        let sources = fleet.catalog.sources.iter().enumerate();
        let holding = sources.filter(|(_, source)| is_below(path, source.path));
        let (at, source) = holding.max_by_key(|(_, source)| source.path.len())?;
        let statuses = fleet.statuses(at);
        let lines = fleet.last_lines(at);
        let processes = statuses
            .iter()
            .zip(lines)
            .map(|(status, lines)| ProcessOutput {
                state: status.state.as_str(),
                since: rfc3339(status.since),
                lines,
            });
        Some(Self {
            path: source.path,
            processes: processes.collect(),
        })
    }
}

/// Whether a path is that of a source or below it.
fn is_below(path: &str, source: &str) -> bool {
    let rest = path.strip_prefix(source);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || source == "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_below_its_source_by_whole_segments() {
        for (path, source, expected) in [
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/", "/a", false),
            ("/x", "/", true),
        ] {
            assert_eq!(is_below(path, source), expected, "{path} {source}");
        }
    }
}
