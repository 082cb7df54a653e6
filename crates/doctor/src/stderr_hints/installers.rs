//! Errors of npm, uv and pip in the output of a server: a folder that cannot be written, a full disk, and a package that
//! the registry does not have. The finding names the variable that says where, and whether the server gets it.

use broker_mcp::StartHints;

use super::{FailedStart, StderrHint};
use crate::finding::Code;

/// An installer, and its variables.
struct Installer {
    name: &'static str,
    /// The beginning of the names of its variables, in lower case.
    prefix: &'static str,
    /// Whether a line in lower case is one of its messages.
    is_line: fn(&str) -> bool,
    /// Parts of a path, and the variable for the folder. The last one is for every other path.
    folders: &'static [(&'static str, &'static str)],
    registry: &'static str,
    /// Phrases of a package that is missing, in lower case.
    missing: &'static [&'static str],
}

const INSTALLERS: [Installer; 3] = [
    Installer {
        name: "npm",
        prefix: "npm_config_",
        is_line: |line| line.starts_with("npm error") || line.starts_with("npm err!"),
        folders: &[
            ("_cacache", "NPM_CONFIG_CACHE"),
            ("lib/node_modules", "NPM_CONFIG_PREFIX"),
            ("", "NPM_CONFIG_CACHE"),
        ],
        registry: "NPM_CONFIG_REGISTRY",
        missing: &[
            "e404",
            "404 not found",
            "etarget",
            "no matching version found",
        ],
    },
    Installer {
        name: "uv",
        prefix: "uv_",
        // uv begins with one of these marks; servers that it starts rarely do so.
        is_line: |line| {
            let line = line.trim_start();
            ["error: ", "caused by: ", "×", "╰", "├", "│"]
                .iter()
                .any(|mark| line.starts_with(mark))
        },
        folders: &[
            ("/uv/tools", "UV_TOOL_DIR"),
            ("/uv/python", "UV_PYTHON_INSTALL_DIR"),
            ("", "UV_CACHE_DIR"),
        ],
        registry: "UV_DEFAULT_INDEX",
        missing: &[
            "404 not found",
            "was not found in the package registry",
            "there is no version of",
        ],
    },
    Installer {
        name: "pip",
        prefix: "pip_",
        is_line: |line| line.starts_with("error: "),
        folders: &[
            ("site-packages", "PIP_TARGET"),
            ("dist-packages", "PIP_TARGET"),
            ("", "PIP_CACHE_DIR"),
        ],
        registry: "PIP_INDEX_URL",
        missing: &[
            "could not find a version that satisfies",
            "no matching distribution found",
            "http error 404",
            "404 client error",
        ],
    },
];

/// An error of the file system.
const FOLDER_ERRORS: [(&[&str], &str); 3] = [
    (
        &["eacces", "permission denied (os error 13)", "[errno 13]"],
        "may not write into its folder",
    ),
    (
        &["erofs", "(os error 30)", "[errno 30]"],
        "cannot write into its folder, since the file system is read-only",
    ),
    (
        &["enospc", "(os error 28)", "[errno 28]"],
        "has no space left on the disk of its folder",
    ),
];

/// Recognises an error of an installer.
pub(crate) fn find(start: FailedStart<'_>) -> Option<StderrHint> {
    let lines = start.stderr.iter().chain(start.stdout);
    let lines: Vec<String> = lines.map(|line| line.to_lowercase()).collect();
    INSTALLERS.iter().find_map(|one| {
        let own: Vec<&str> = lines
            .iter()
            .map(String::as_str)
            .filter(|line| (one.is_line)(line))
            .collect();
        let has = |phrases: &[&str]| {
            own.iter()
                .any(|line| phrases.iter().any(|phrase| line.contains(phrase)))
        };
        // `os error` is of uv, `errno` of pip.
        let is_style = match one.name {
            "uv" => has(&["os error"]),
            "pip" => has(&["[errno"]),
            _ => true,
        };
        let folder = FOLDER_ERRORS
            .iter()
            .find(|(phrases, _)| is_style && has(phrases));
        match folder {
            Some((_, what)) => Some(one.folder_hint(what, &own, start.hints)),
            None if has(one.missing) => Some(one.missing_hint(start.hints)),
            None => None,
        }
    })
}

impl Installer {
    fn folder_hint(&self, what: &str, lines: &[&str], hints: &StartHints) -> StderrHint {
        let has = |part: &str| lines.iter().any(|line| line.contains(part));
        let variable = self.folders.iter().find(|(part, _)| has(part));
        let variable = variable.map_or(self.registry, |(_, variable)| variable);
        StderrHint {
            code: Code::CacheUnwritable,
            message: format!("{} {what}: {}", self.name, state(variable, hints)),
            remedy: format!(
                "Let `{variable}` name a folder that the broker's user can write and that has space, where the broker is started or in the source's `env`; or install the server beforehand."
            ),
        }
    }

    fn missing_hint(&self, hints: &StartHints) -> StderrHint {
        let mut message = format!(
            "the package registry does not have the package, or not in this version; {}",
            state(self.registry, hints)
        );
        let withheld = hints.installer_withheld.iter().filter(|name| {
            let lower = name.to_ascii_lowercase();
            lower.starts_with(self.prefix) && !is_same(name, self.registry)
        });
        let withheld: Vec<_> = withheld.map(|name| format!("`{name}`")).collect();
        if !withheld.is_empty() {
            message = format!(
                "{message}; set here and withheld, since they have secrets: {}",
                withheld.join(", ")
            );
        }
        StderrHint {
            code: Code::PackageMissing,
            message,
            remedy: format!(
                "Check the name and the version of the package in the command; a private package needs its registry in `{}`. A variable with a secret is passed on if `inherit_env` names it.",
                self.registry
            ),
        }
    }
}

/// Says whether a variable is set here, and whether the server gets it.
fn state(variable: &str, hints: &StartHints) -> String {
    let has = |names: &[String]| names.iter().any(|name| is_same(name, variable));
    if has(&hints.installer_given) {
        format!("`{variable}` is set, and passed on")
    } else if has(&hints.installer_withheld) {
        format!("`{variable}` is set here and withheld, since it has a secret")
    } else {
        format!("`{variable}` is not set here")
    }
}

/// Whether two names are of one variable: npm reads its variables in upper and lower case.
fn is_same(name: &str, variable: &str) -> bool {
    name == variable || (variable.starts_with("NPM_") && name.eq_ignore_ascii_case(variable))
}

#[cfg(test)]
mod tests {
    use broker_mcp::SourceFailure;
    use broker_model::SourceCause;

    use super::*;

    fn found(said: &str, hints: &StartHints) -> Option<StderrHint> {
        let failure = SourceFailure::new(SourceCause::ExitBeforeReady, "no answer");
        let stderr: Vec<_> = said.lines().map(str::to_owned).collect();
        find(FailedStart {
            failure: &failure,
            program: "npx",
            withheld: &[],
            empty_variables: &[],
            hints,
            stderr: &stderr,
            stdout: &[],
        })
    }

    #[test]
    fn error_of_an_installer_names_its_variable_and_its_state() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let hints = StartHints {
            installer_given: names(&["npm_config_cache", "UV_TOOL_DIR"]),
            installer_withheld: names(&["PIP_INDEX_URL", "NPM_CONFIG_//h/:_authToken"]),
            ..StartHints::default()
        };
        for (said, code, part) in [
            (
                "npm error code EACCES\nnpm error syscall mkdir\nnpm error path /nonexistent/.npm",
                Code::CacheUnwritable,
                "npm may not write into its folder: `NPM_CONFIG_CACHE` is set, and passed on",
            ),
            (
                "npm ERR! code EROFS\nnpm ERR! path /usr/lib/node_modules/x",
                Code::CacheUnwritable,
                "read-only: `NPM_CONFIG_PREFIX` is not set here",
            ),
            (
                "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write",
                Code::CacheUnwritable,
                "no space left",
            ),
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://h/x - Not found",
                Code::PackageMissing,
                "`NPM_CONFIG_REGISTRY` is not set here; set here and withheld, since they have secrets: `NPM_CONFIG_//h/:_authToken`",
            ),
            (
                "error: Failed to initialize cache at `/x/.cache/uv`\n  Caused by: failed to create directory `/x/.cache/uv`: Permission denied (os error 13)",
                Code::CacheUnwritable,
                "uv may not write into its folder: `UV_CACHE_DIR` is not set here",
            ),
            (
                "error: failed to create directory `/x/uv/tools`: Read-only file system (os error 30)",
                Code::CacheUnwritable,
                "`UV_TOOL_DIR` is set, and passed on",
            ),
            (
                "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because x was not found in the package registry and you require x",
                Code::PackageMissing,
                "`UV_DEFAULT_INDEX` is not set here",
            ),
            (
                "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
                Code::CacheUnwritable,
                "pip has no space left on the disk of its folder: `PIP_CACHE_DIR` is not set here",
            ),
            (
                "ERROR: Could not find a version that satisfies the requirement x\nERROR: No matching distribution found for x",
                Code::PackageMissing,
                "`PIP_INDEX_URL` is set here and withheld, since it has a secret",
            ),
        ] {
            let hint = found(said, &hints).expect(said);
            assert_eq!(hint.code, code, "{said}");
            assert!(hint.message.contains(part), "{}", hint.message);
        }
    }

    #[test]
    fn error_of_the_server_itself_is_not_one_of_its_installer() {
        for said in [
            "",
            "Error: EACCES: permission denied, open '/data/x'",
            "PermissionError: [Errno 13] Permission denied: '/data/x'",
            "thread 'main' panicked: Os { code: 13, kind: PermissionDenied }",
            "404 Not Found",
        ] {
            assert_eq!(found(said, &StartHints::default()), None, "{said}");
        }
    }
}
