//! One function decides what a caller may see and call.

use std::path::Path;

use super::tidy::{is_test, sources};

/// Code that reads the rules of a tool, or asks them. The listing asks once, for all of its parts; a call asks again before
/// it is sent.
const MARKS: [(&str, &[&str]); 8] = [
    ("RowRef", &[]),
    ("tool.allow", &[]),
    ("tool.narrowed", &[]),
    ("tool.deny", &[]),
    (
        ".decide(",
        &[
            "crates/core/src/call/recheck.rs",
            "crates/core/src/listing/scope.rs",
        ],
    ),
    (".offers(", &[]),
    (".admits(identity", &[]),
    (" Policy::new(", &["crates/core/src/sources/setup.rs"]),
];
const ADMISSION: &str = "crates/core/src/admission";

#[test]
fn rules_of_access_are_asked_by_admission_alone() {
    let (mut problems, mut in_admission) = (Vec::new(), 0);
    for (path, text) in sources() {
        let is_runtime = [
            "crates/core/src",
            "crates/broker/src",
            "crates/surface/src",
            "crates/surface-http/src",
            "crates/surface-mcp/src",
        ]
        .iter()
        .any(|folder| path.starts_with(folder));
        if !is_runtime || is_test(&path) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let code = code.unwrap_or_default();
        for (mark, others) in MARKS {
            let has_mark = code.contains(mark);
            if path.starts_with(ADMISSION) {
                in_admission += usize::from(has_mark);
            } else if has_mark && !others.iter().any(|other| path == Path::new(other)) {
                problems.push(format!("{}: {mark}", path.display()));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "only {ADMISSION} decides: {problems:#?}"
    );
    assert!(
        in_admission >= MARKS.len(),
        "the marks are those of the code"
    );
}
