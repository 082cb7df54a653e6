//! JUnit XML: a suite for each source of the lock, a case for each tool, so that unchanged tools are shown
//! as passed. Written here: `quick-junit` would add five crates for two short functions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use broker_doctor::change;
use broker_drift::{Class, FailOn};
use broker_model::terminal::Text;
use broker_model::text;

use super::{Block, BlockKind, ReportView};

/// The result of a case.
enum Verdict {
    Passed,
    Failed,
    Error,
}

/// The document.
pub(super) fn document(shown: &ReportView<'_>, fail_on: FailOn) -> Text {
    let blocks = shown.blocks();
    let mut suites: BTreeMap<&str, Vec<(&str, Option<&Block<'_>>)>> = BTreeMap::new();
    for source in shown.locked {
        // A source that `--source` leaves out has no cases.
        if shown
            .asked
            .is_some_and(|asked| !asked.contains(&source.path))
        {
            continue;
        }
        let cases = suites.entry(source.path.as_str()).or_default();
        for tool in &source.exposed {
            cases.push((tool.upstream_name.as_str(), None));
        }
    }
    for block in &blocks {
        let cases = suites.entry(block.source).or_default();
        let name = match (block.kind, block.tool) {
            (BlockKind::Lint | BlockKind::Problem, _) => block.title.as_str(),
            (BlockKind::Drift, tool) => tool.unwrap_or("(the source itself)"),
        };
        match cases.iter_mut().find(|(known, _)| *known == name) {
            Some((_, found)) => *found = Some(block),
            None => cases.push((name, Some(block))),
        }
    }
    let unchecked = |cases: &[(&str, Option<&Block<'_>>)]| {
        let mut found = cases.iter().filter_map(|(_, block)| *block);
        found.any(|block| block.class == Class::Unchecked)
    };
    let (mut body, mut total) = (Text::new(), [0; 4]);
    for (source, cases) in &suites {
        // Tools of a source that could not be checked have neither passed nor failed.
        let skipped = unchecked(cases);
        let mut counts = [0; 4];
        let mut inner = Text::new();
        for (name, block) in cases {
            let verdict = match block {
                None => Verdict::Passed,
                Some(block) if block.class == Class::Unchecked => Verdict::Error,
                Some(block) if block.fails(fail_on) => Verdict::Failed,
                Some(_) => Verdict::Passed,
            };
            counts[0] += 1;
            let open = text!(
                "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
                escaped(source),
                escaped(name)
            );
            match (verdict, block) {
                (Verdict::Passed, None) if skipped => {
                    counts[3] += 1;
                    inner.push(text!(
                        "{}><skipped message=\"the source could not be checked\"/></testcase>\n",
                        open
                    ));
                }
                (Verdict::Passed, None) => inner.push(text!("{}/>\n", open)),
                (Verdict::Passed, Some(block)) => inner.push(text!(
                    "{}><system-out>{}</system-out></testcase>\n",
                    open,
                    escaped(&finding_texts(shown, block))
                )),
                (verdict, Some(block)) => {
                    let tag = if matches!(verdict, Verdict::Error) {
                        "error"
                    } else {
                        "failure"
                    };
                    counts[if tag == "error" { 2 } else { 1 }] += 1;
                    let first = block.findings.first();
                    let message = first.map_or(String::new(), |one| {
                        format!("{} ({})", one.message, one.rule)
                    });
                    inner.push(text!(
                        "{}><{} type=\"{}\" message=\"{}\">{}</{}></testcase>\n",
                        open,
                        tag,
                        block.class.as_str(),
                        escaped(&message),
                        escaped(&finding_texts(shown, block)),
                        tag
                    ));
                }
                (_, None) => {}
            }
        }
        body.push(text!(
            "  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n",
            escaped(source),
            attributes(counts),
            inner
        ));
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    text!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"broker-gen\" {}>\n{}</testsuites>\n",
        attributes(total),
        body
    )
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn attributes([tests, failures, errors, skipped]: [usize; 4]) -> String {
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"0\""
    )
}

/// All findings of one tool.
fn finding_texts(shown: &ReportView<'_>, block: &Block<'_>) -> String {
    let mut out = String::new();
    for finding in block.findings {
        let _ = writeln!(
            out,
            "{}[{}] {}",
            finding.severity.as_str(),
            finding.rule,
            finding.message
        );
        if !finding.pointer.is_empty() {
            line(&mut out, &format!("at {}", finding.pointer));
        }
        for text in [change(finding, shown.sides.names())]
            .into_iter()
            .chain(finding.example())
        {
            if !text.is_empty() {
                line(&mut out, &text);
            }
        }
        line(&mut out, &format!("help: {}", finding.remedy));
    }
    out
}

/// Text for XML 1.0: markup as entities, invalid characters as escapes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in broker_model::text::shown(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // In an attribute a bare newline would be read as a blank.
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_text_that_xml_forbids_is_escaped() {
        assert_eq!(
            escaped("<a b=\"c\">&\n\u{1b}\u{0}\u{ffff}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#10;\\u{1b}\\u{0}\\u{ffff}"
        );
    }
}
