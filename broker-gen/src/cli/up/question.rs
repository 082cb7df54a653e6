//! A question to the person at the terminal.

use std::io;

use broker_model::terminal::Text;
use broker_model::{Diagnostic, DiagnosticCode, text};

use crate::cli::output;

/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Asks a question that `y` or `yes` confirms. The end of input is a no.
pub(super) async fn confirm(question: &Text) -> Result<bool, Vec<Diagnostic>> {
    let answer = answer(&text!("{} [y/N] ", question)).await?;
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// Asks for one of `count` numbers from 1. Anything else is `None`.
pub(super) async fn number(
    question: &Text,
    count: usize,
) -> Result<Option<usize>, Vec<Diagnostic>> {
    let answer = answer(&text!("{} [1-{}] ", question, count)).await?;
    let number = answer.parse::<usize>().ok();
    Ok(number.filter(|number| (1..=count).contains(number)))
}

/// Returns the line that the person types.
async fn answer(prompt: &Text) -> Result<String, Vec<Diagnostic>> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("the question cannot be asked: {error}");
        vec![Diagnostic::error(DiagnosticCode::TerminalNeeded, message)]
    };
    output::ask(prompt).map_err(|error| failed(&error))?;
    // The wait does not hold up an interrupt.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = Vec::new();
        let input = io::stdin().lock();
        io::BufRead::read_until(
            &mut io::Read::take(input, MAX_ANSWER_BYTES),
            b'\n',
            &mut line,
        )
        .map(|_| line)
    });
    let line = match read.await {
        Ok(read) => read.map_err(|error| failed(&error))?,
        Err(error) => return Err(failed(&error)),
    };
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}
