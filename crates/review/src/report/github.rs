//! Workflow commands of GitHub Actions: an annotation for each finding, on its line of the lock.

use broker_drift::FindingSeverity;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown;

use super::ReportView;
use super::places::Places;

/// The commands, and the counts in a line of plain text.
pub(super) fn commands(shown: &ReportView<'_>, places: &Places<'_>) -> Text {
    let mut out = Text::new();
    for block in shown.blocks() {
        for finding in block.findings {
            let command = match finding.severity {
                FindingSeverity::Error => "error",
                FindingSeverity::Warning => "warning",
                FindingSeverity::Note => "notice",
            };
            let place = places.find(block.source, block.tool, &finding.pointer);
            let mut text = finding.message.clone();
            for part in finding
                .example()
                .into_iter()
                .chain([finding.remedy.clone()])
            {
                text = format!("{text}\n{part}");
            }
            out.push(text!(
                "::{} file={},line={},title={}::{}\n",
                command,
                property(&places.file),
                place.line,
                property(&format!(
                    "{} {} ({})",
                    block.class.as_str(),
                    block.title,
                    finding.rule
                )),
                data(&text)
            ));
        }
    }
    out.push(text!("{}\n", shown.report.counts()));
    out
}

/// The text of a message. Characters that would end the message and invisible characters are escaped.
fn data(text: &str) -> String {
    shown(text).replace('%', "%25").replace('\n', "%0A")
}

/// Escapes a property: also its colons and commas.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn github_annotation_escapes_line_ends_and_separators() {
        assert_eq!(
            data("a%\n::error::b\r\u{202e}"),
            "a%25%0A::error::b\\u{d}\\u{202e}"
        );
        assert_eq!(property("a,b:c"), "a%2Cb%3Ac");
    }
}
