//! The page as parts: prose, commands with their outputs, and files. A block of another kind is an
//! error, so that no block is unused.

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    /// Prose, which is kept unchanged.
    Prose(String),
    /// A `json`, `rust` or `toml` block after a line that ends with the file's name: `` `name`: ``.
    File {
        language: String,
        name: String,
        text: String,
    },
    /// An `sh` block. Without an output it prints nothing.
    Command {
        line: usize,
        text: String,
        output: Option<Output>,
    },
}

/// The `text` or `json` block that directly follows a command.
#[derive(Debug)]
pub(crate) struct Output {
    language: String,
    pub(crate) text: String,
}

impl Page {
    /// Reads a page.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut prose = String::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                if line.trim_start().starts_with("```") {
                    return Err(format!("line {number}: an indented block is not run"));
                }
                prose += line;
                prose += "\n";
                continue;
            };
            let mut block = String::new();
            loop {
                match lines.next() {
                    Some(("```", _)) => break,
                    Some((line, _)) => block = block + line + "\n",
                    None => return Err(format!("line {number}: the block has no end")),
                }
            }
            let name = name_before(&prose);
            let follows = prose.is_empty();
            match (language, name, parts.last_mut()) {
                ("sh", ..) => {
                    parts.push(Part::Prose(std::mem::take(&mut prose)));
                    parts.push(Part::Command {
                        line: number,
                        text: block,
                        output: None,
                    });
                }
                ("json" | "rust" | "toml", Some(name), _) => {
                    parts.push(Part::Prose(std::mem::take(&mut prose)));
                    parts.push(Part::File {
                        language: language.to_owned(),
                        name,
                        text: block,
                    });
                }
                ("json" | "text", _, Some(Part::Command { output, .. }))
                    if follows && output.is_none() =>
                {
                    *output = Some(Output {
                        language: language.to_owned(),
                        text: block,
                    });
                }
                _ => {
                    return Err(format!(
                        "line {number}: a block that is neither a command nor an output nor a named file"
                    ));
                }
            }
        }
        parts.push(Part::Prose(prose));
        Ok(Self { parts })
    }

    /// The page as text.
    pub(crate) fn render(&self) -> String {
        let fenced = |language: &str, text: &str| format!("```{language}\n{text}```\n");
        let part = |part: &Part| match part {
            Part::Prose(text) => text.clone(),
            Part::File { language, text, .. } => fenced(language, text),
            Part::Command { text, output, .. } => {
                let output = output
                    .as_ref()
                    .map(|output| fenced(&output.language, &output.text));
                fenced("sh", text) + &output.unwrap_or_default()
            }
        };
        self.parts.iter().map(part).collect()
    }
}

impl Output {
    /// Replaces the outputs of the page by the real ones.
    pub(crate) fn renew(shown: &mut Option<Self>, seen: String) {
        let is_json = seen.starts_with('{') && seen.lines().count() == 1;
        *shown = (!seen.is_empty()).then(|| Self {
            language: if is_json { "json" } else { "text" }.to_owned(),
            text: seen,
        });
    }
}

/// The name that the last line of the prose ends with, in backticks and before a colon.
fn name_before(prose: &str) -> Option<String> {
    let (_, name) = prose.trim_end().strip_suffix("`:")?.rsplit_once('`')?;
    Some(name.to_owned())
}

#[test]
fn tutorial_page_is_parsed_without_unused_blocks() {
    let text = "a\n\n```sh\nls\n```\n```text\nx\n```\n\nThe file `a/b.json`:\n\n```json\n{}\n```\n";
    let page = Page::parse(text).expect("a good page");
    assert_eq!(page.render(), text);
    let kinds = page.parts.iter().map(|part| match part {
        Part::Prose(_) => "prose".to_owned(),
        Part::File { name, .. } => name.clone(),
        Part::Command { output, .. } => output.as_ref().expect("an output").text.clone(),
    });
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["prose", "x\n", "prose", "a/b.json", "prose"]
    );
    for wrong in [
        "```text\nno command\n```\n",
        "```sh\nls\n```\nprose\n\n```text\nx\n```\n",
        "```sh\nls\n```\n\n```text\nx\n```\n\n```text\nx\n```\n",
        "no name:\n\n```rust\n```\n",
        "```bash\nls\n```\n",
        "- item\n  ```sh\n  ls\n  ```\n",
        "```sh\nls\n",
    ] {
        assert!(Page::parse(wrong).is_err(), "{wrong}");
    }
}
