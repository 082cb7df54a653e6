//! Here-documents: their operator, and their bodies. Bodies are not rewritten.

use super::Rewriter;
use crate::template::variable;

impl Rewriter<'_> {
    /// `<<WORD` or `<<-WORD`: the body follows after the line.
    pub(super) fn here_operator(&mut self) {
        self.copy(2);
        let tabs = self.rest().starts_with('-');
        self.copy(usize::from(tabs));
        let blank = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.copy(blank);
        let end = self
            .rest()
            .find(|c: char| {
                c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')')
            })
            .unwrap_or(self.rest().len());
        let written = &self.rest()[..end];
        let word: String = written
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        if word.is_empty()
            || word.contains(['$', '`'])
            || written.matches(['\'', '"']).count() % 2 == 1
        {
            self.unsure = true;
            return;
        }
        self.here.push((word, tabs));
        self.copy(end);
    }

    /// After the line: the bodies up to each delimiter in turn. A variable in one is refused.
    pub(super) fn here_bodies(&mut self) {
        for (word, tabs) in std::mem::take(&mut self.here) {
            while !self.rest().is_empty() {
                let end = self
                    .rest()
                    .find('\n')
                    .map_or(self.rest().len(), |at| at + 1);
                let line = self.rest()[..end].trim_end_matches('\n');
                let line = if tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                let last = line == word;
                let stop = self.at + end;
                while self.at < stop {
                    if let Some((part, length)) = variable(self.rest()) {
                        self.misplaced(&part, "in a here-document");
                        self.copy(length);
                    } else {
                        self.copy_char();
                    }
                }
                if last {
                    break;
                }
            }
        }
    }
}
