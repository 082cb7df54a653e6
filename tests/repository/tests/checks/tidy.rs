//! The house rules that a compiler does not check: one purpose a file, said at its top, and no
//! left-overs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// Lines of a source file, and of a test file.
const MOST_LINES: usize = 500;
const MOST_TEST_LINES: usize = 800;

pub(super) fn sources() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let mut folders: Vec<PathBuf> = ["benches", "broker-gen", "crates", "src", "tests"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    let mut found = vec![root.join("build.rs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)
            .expect("the folder is readable")
            .flatten()
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir()
                && !matches!(name.as_str(), "golden" | "target" | "node_modules" | "venv")
            {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("sources are UTF-8");
        (
            path.strip_prefix(root).expect("below the root").to_owned(),
            text,
        )
    };
    found.into_iter().map(read).collect()
}

pub(super) fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|stem| stem == "tests")
}

#[test]
fn files_have_a_header_and_stay_small() {
    let mut problems = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//! ") {
            problems.push(format!(
                "{} does not begin with its purpose",
                path.display()
            ));
        }
        let (lines, most) = (
            text.lines().count(),
            if is_test(&path) {
                MOST_TEST_LINES
            } else {
                MOST_LINES
            },
        );
        if lines > most {
            problems.push(format!(
                "{} has {lines} lines, at most {most}",
                path.display()
            ));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn files_have_no_left_over_marks() {
    // Put together here, so that this file does not find itself.
    let marks: Vec<String> = [
        "to do!(",
        "FIX ME",
        "TO DO",
        "dbg !(",
        "unimplemented !(",
        "#[all ow(",
        "#[ign ore",
        "should_ panic",
    ]
    .iter()
    .map(|mark| mark.replace(' ', ""))
    .collect();
    let mut problems = Vec::new();
    for (path, text) in sources() {
        for (index, line) in text.lines().enumerate() {
            if let Some(mark) = marks.iter().find(|mark| line.contains(mark.as_str())) {
                problems.push(format!("{}:{}: {mark}", path.display(), index + 1));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn unsafe_code_is_only_in_the_operating_system_layer() {
    let keyword = ["uns", "afe {"].concat();
    let places: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| text.contains(&keyword))
        .collect();
    for (path, text) in &places {
        assert!(
            path.ends_with("crates/process/src/unix.rs"),
            "{}",
            path.display()
        );
        assert_eq!(
            text.matches(&keyword).count(),
            text.matches("// SAFETY:").count(),
            "{}",
            path.display()
        );
    }
}

/// The folders of the surfaces.
const SURFACES: [&str; 3] = [
    "crates/surface/src",
    "crates/surface-http/src",
    "crates/surface-mcp/src",
];

#[test]
fn surfaces_reach_servers_only_through_core() {
    for (path, text) in sources() {
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        let is_surface = SURFACES.iter().any(|folder| path.starts_with(folder));
        if is_surface && !is_test(&path) {
            assert!(
                !code.contains("broker_mcp") && !code.contains("broker_process"),
                "{} talks to sources past core",
                path.display()
            );
            let product = code.split("#[cfg(test)]").next().unwrap_or_default();
            let names_core = product.match_indices("Core").any(|(at, name)| {
                let next = product[at + name.len()..].chars().next();
                next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
            });
            assert!(
                !names_core,
                "{} knows another broker than its parameter",
                path.display()
            );
        }
    }
}

#[test]
fn listener_uses_only_the_transport_of_mcp() {
    let mut uses = 0;
    for (path, text) in sources() {
        if !path.starts_with("crates/surface-http/src") || is_test(&path) {
            continue;
        }
        for used in text.split("broker_surface_mcp::").skip(1) {
            uses += 1;
            assert!(
                used.starts_with("http::") || used.starts_with("McpSettings"),
                "{} uses more than the transport",
                path.display()
            );
        }
    }
    assert!(uses > 5, "the files were read");
}

/// The page that programs get in `details.help`, over HTTP only.
const HELP_PAGE: &str = "const ERRORS_PAGE: &str = \"docs/errors.md\";";

/// Errors and results reach callers, who have neither these pages nor the config.
#[test]
fn messages_to_callers_name_no_page_and_no_limit_of_the_config() {
    let folders = [
        "core/src/call",
        "core/src/errors",
        "core/src/listing",
        "surface/src",
        "surface-http/src",
        "surface-mcp/src",
    ];
    for (path, text) in sources() {
        let reaches = |folder| path.starts_with(Path::new("crates").join(folder));
        let is_page_test =
            path.ends_with("errors_page.rs") || path.ends_with("pipeline/respond_tests.rs");
        if is_test(&path) || is_page_test || !folders.into_iter().any(reaches) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("//") && *line != HELP_PAGE)
        {
            assert!(
                !line.contains("`limits.") && !line.contains("docs/"),
                "{}: {line}",
                path.display()
            );
        }
    }
}

#[test]
fn json_rpc_is_read_and_written_only_in_wire() {
    let member = ["json", "rpc"].concat();
    let ours = [
        "broker-gen/src",
        "crates/broker/src",
        "crates/core/src",
        "crates/files/src",
        "crates/gen/src",
        "crates/mcp/src",
        "crates/config/src",
        "crates/model/src",
        "crates/process/src",
        "crates/review/src",
        "crates/surface/src",
        "crates/surface-http/src",
        "crates/surface-mcp/src",
        "src",
    ];
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let is_ours = ours.iter().any(|folder| path.starts_with(folder)) && !is_test(&path);
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        if is_ours && code.is_some_and(|code| code.contains(&member)) {
            problems.push(path.display().to_string());
        }
    }
    assert!(
        problems.is_empty(),
        "these name a message's members: {problems:#?}"
    );
    let (_, codec) = sources()
        .into_iter()
        .find(|(path, _)| path.ends_with("crates/wire/src/write.rs"))
        .expect("the writers");
    assert!(
        codec.contains(&member),
        "the mark is what the writers write"
    );
}

#[test]
fn standard_output_and_error_are_written_only_by_output_modules() {
    // Each of them takes `broker_model::terminal::Text`; the stdio surface writes JSON-RPC.
    let outputs = [
        "crates/gen/src/build_script.rs",
        "broker-gen/src/cli/output.rs",
        "crates/broker/src/logging.rs",
        // Only what `crates/broker/src/logging.rs` hands it.
        "crates/broker/src/logging/queue.rs",
        "crates/surface-mcp/src/stdio/output.rs",
    ];
    let parts = [
        "stdout()",
        "stderr()",
        "print!(",
        "println!(",
        ".from_literal(",
        "Text::from_literal",
        "/dev/stdout",
        "/dev/stderr",
    ];
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy();
        let ours = [
            "broker-gen/src",
            "crates/broker/src",
            "crates/core/src",
            "crates/gen/src",
            "crates/mcp/src",
            "crates/config/src",
            "crates/model/src",
            "crates/process/src",
            "crates/review/src",
            "crates/surface/src",
            "crates/surface-http/src",
            "crates/surface-mcp/src",
            "crates/terminal/src",
            "crates/wire/src",
            "src",
        ];
        if !ours.iter().any(|folder| path.starts_with(folder))
            || outputs.contains(&&*name)
            || name.ends_with("model/src/terminal.rs")
        {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && parts.iter().any(|part| line.contains(part)) {
                problems.push(format!("{name}:{}: {line}", index + 1));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// A phrase that `docs/internals/writing.md` advises against.
struct Phrase {
    text: &'static str,
    /// Words before the phrase that make it good English, and words after it.
    except: [&'static [&'static str]; 2],
    advice: &'static str,
}

const fn phrase(text: &'static str, advice: &'static str) -> Phrase {
    Phrase {
        text,
        except: [&[], &[]],
        advice,
    }
}

const PEOPLE: &str = "name the caller, the client, the process or the person";
const PHRASES: [Phrase; 22] = [
    phrase("whoever", PEOPLE),
    phrase("nobody", PEOPLE),
    phrase("somebody", PEOPLE),
    phrase("everybody", PEOPLE),
    phrase("held against", "compared with"),
    phrase("hold against", "compare with"),
    phrase("holds against", "compares with"),
    phrase("at noon", "while it runs"),
    phrase("mend", "fix, correct"),
    phrase("mends", "fixes, corrects"),
    phrase("mended", "fixed, corrected"),
    phrase("ails", "fails, lacks"),
    phrase("not innocent", "suspicious"),
    phrase("anew", "again"),
    phrase("but for", "except"),
    phrase("of its own", "its, separate"),
    phrase("of their own", "their, separate"),
    phrase("hears", "receives"),
    phrase("told", "reported, informed"),
    Phrase {
        text: "stands",
        except: [&[], &["for"]],
        advice: "is, has, contains",
    },
    Phrase {
        text: "is no",
        except: [&["there"], &["longer", "more", "less"]],
        advice: "is not a",
    },
    Phrase {
        text: "are no",
        except: [&["there"], &["longer", "more", "less"]],
        advice: "are not",
    },
];

/// Texts that are data: names of tests in a generated table, phrases that the lint searches for, and the page that
/// lists the phrases.
const QUOTES: [&str; 4] = [
    "docs/internals/writing.md",
    "crates/review/src/lint/phrases.rs",
    "crates/review/src/lint/tests.rs",
    "tests/repository/tests/checks/tidy.rs",
];

/// Every text that people write: sources, pages, scripts and templates.
fn written_texts() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let mut open = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)
            .expect("the folder is readable")
            .flatten()
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = path.strip_prefix(root).expect("below the root").to_owned();
            let is_data = matches!(
                name.as_str(),
                "golden" | "pairs" | "seeds" | "target" | "node_modules" | "venv" | "LICENSE"
            ) || (name.starts_with('.')
                && !matches!(name.as_str(), ".ci" | ".github"));
            if is_data {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            if matches!(
                extension,
                None | Some(
                    "rs" | "md" | "toml" | "sh" | "py" | "js" | "mjs" | "ts" | "in" | "yml"
                )
            ) && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((relative, text));
            }
        }
    }
    found
}

#[test]
fn phrases_to_avoid_are_not_used() {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut problems = Vec::new();
    let texts = written_texts()
        .into_iter()
        .filter(|(path, _)| !QUOTES.iter().any(|quote| path == Path::new(quote)));
    for (path, text) in texts {
        // A phrase can be broken between two lines, also of a comment.
        let lines: Vec<String> = text
            .lines()
            .map(|line| {
                line.trim_start_matches([' ', '/', '!', '#', '>', '*'])
                    .to_lowercase()
            })
            .collect();
        for (index, line) in lines.iter().enumerate() {
            let next = lines.get(index + 1).map_or("", String::as_str);
            let with_next = format!("{line} {next}");
            for phrase in &PHRASES {
                for (at, _) in with_next.match_indices(phrase.text) {
                    let (before, rest) = (&with_next[..at], &with_next[at + phrase.text.len()..]);
                    let [words_before, words_after] = phrase.except;
                    let is_phrase = at < line.len()
                        && !is_word(before.chars().next_back())
                        && !is_word(rest.chars().next())
                        && !words_before
                            .iter()
                            .any(|word| before.trim_end().ends_with(word))
                        && !words_after
                            .iter()
                            .any(|word| rest.trim_start().starts_with(word));
                    if is_phrase {
                        problems.push(format!(
                            "{}:{}: `{}`: write: {}",
                            path.display(),
                            index + 1,
                            phrase.text,
                            phrase.advice
                        ));
                    }
                }
            }
        }
    }
    assert!(
        problems.is_empty(),
        "docs/internals/writing.md explains how to write instead of:\n{}",
        problems.join("\n")
    );
}

/// Words that make sentences of comments hard to read, with the maximum per 10 000 words of comments of product code.
const MAX_PER_TEN_THOUSAND: [(&[&str], usize); 3] = [
    (&["that of", "those of"], 2),
    (&["which"], 28),
    (&["nothing", "none"], 20),
];

#[test]
fn comments_name_the_thing_again() {
    let product = written_texts().into_iter().filter(|(path, _)| {
        let mut folders = path.iter();
        path.extension() == Some("rs".as_ref())
            && !path.ends_with("tests.rs")
            && !folders.any(|folder| ["tests", "benches"].map(AsRef::as_ref).contains(&folder))
    });
    let comments: Vec<String> = product
        .flat_map(|(_, text)| {
            let lines = text.lines().map(str::trim_start);
            let lines = lines.filter_map(|line| line.strip_prefix("//"));
            lines.map(str::to_lowercase).collect::<Vec<_>>()
        })
        .collect();
    let words: Vec<&str> = comments
        .iter()
        .flat_map(|line| line.split([' ', '/', '!', ',', '.', ':', ';', '(', ')']))
        .filter(|word| !word.is_empty())
        .collect();
    assert!(words.len() > 100_000, "{} words", words.len());
    for (phrases, most) in MAX_PER_TEN_THOUSAND {
        let is_phrase = |at: usize, phrase: &str| {
            let mut parts = phrase.split(' ').zip(&words[at..]);
            parts.all(|(part, word)| part == *word)
        };
        let found = (0..words.len() - 1).filter(|at| {
            let mut phrases = phrases.iter();
            phrases.any(|phrase| is_phrase(*at, phrase))
        });
        let (found, allowed) = (found.count(), words.len() * most / 10_000);
        assert!(
            found <= allowed,
            "{phrases:?}: {found} times in {} words of comments, at most {allowed}: docs/internals/writing.md says what to write",
            words.len()
        );
    }
}

#[test]
fn functions_are_not_called_of() {
    let is_of = |line: &str| {
        let name = line
            .split("fn of")
            .nth(1)
            .filter(|_| !line.trim_start().starts_with("//"));
        name.is_some_and(|rest| rest.starts_with(['(', '<', '_']))
    };
    let product = sources()
        .into_iter()
        .filter(|(path, _)| !is_test(path) && !path.starts_with("benches"));
    let found: Vec<String> = product
        .flat_map(|(path, text)| {
            let code = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            let lines = code.lines().filter(|line| is_of(line));
            lines
                .map(|line| format!("{}: {}", path.display(), line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(
        found.is_empty(),
        "{found:#?}: docs/internals/writing.md says how to name them"
    );
}
