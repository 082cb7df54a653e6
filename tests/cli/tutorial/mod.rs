//! Runs `docs/tutorial.md`: every command in one shell, every file written, every output compared.
//! `UPDATE_EXPECT=1` updates the page with the real outputs.

mod page;
mod session;
mod stable;

use std::fs;
use std::path::Path;

use page::{Page, Part};
use session::Session;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn tutorial_commands_print_the_shown_output() {
    let file = root().join("docs/tutorial.md");
    let text = fs::read_to_string(&file).expect("the page exists");
    let mut page =
        Page::parse(&text).expect("every block is a command, its output, or a named file");
    assert_eq!(page.render(), text, "the page is read whole");

    let mut session = Session::start(&["my-broker", "meeting"]);
    for part in &mut page.parts {
        match part {
            Part::Prose(_) => {}
            Part::File { name, text, .. } => session.write(name, text),
            Part::Command { line, text, output } => {
                let seen = session.run(text).unwrap_or_else(|seen| {
                    panic!("docs/tutorial.md:{line}: a command failed; it and its output:\n{text}\n{seen}")
                });
                let shown = output.as_ref().map_or("", |output| output.text.as_str());
                if seen != shown {
                    page::Output::renew(output, seen);
                }
            }
        }
    }
    session.end();
    harness::assert_expected(&file, &page.render());
}
