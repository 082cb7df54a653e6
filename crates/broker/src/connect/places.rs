//! The place of each client's file, for a user and for a project.

use std::env;
use std::path::PathBuf;

use super::client::Client;
use super::error::{ConnectError, usage};

/// For whom an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// All projects of this user.
    User,
    /// The project in the working folder.
    Project,
}

/// The operating systems whose paths are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Linux, and other systems that follow the XDG specification.
    Linux,
    /// macOS.
    Mac,
}

/// The system and the environment on which the places of files depend.
pub(super) struct Places<'a> {
    /// The operating system.
    pub(super) system: System,
    /// Reads a variable.
    pub(super) variable: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The working folder.
    pub(super) folder: PathBuf,
}

impl Places<'_> {
    /// A folder that a variable names; empty and relative ones do not count.
    fn named(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|path| path.is_absolute())
    }

    fn home(&self) -> Result<PathBuf, ConnectError> {
        let Some(home) = self.named("HOME") else {
            return usage(
                "the variable `HOME` does not name an absolute folder; set it, or name the file with `--file`",
            );
        };
        Ok(home)
    }

    /// The folder of settings on Linux.
    fn config(&self) -> Result<PathBuf, ConnectError> {
        match self.named("XDG_CONFIG_HOME") {
            Some(folder) => Ok(folder),
            None => Ok(self.home()?.join(".config")),
        }
    }

    /// The folder of settings of a desktop program.
    fn application(&self) -> Result<PathBuf, ConnectError> {
        match self.system {
            System::Linux => self.config(),
            System::Mac => Ok(self.home()?.join("Library/Application Support")),
        }
    }
}

impl Client {
    /// The client's own file.
    pub(super) fn file(self, scope: Scope, places: &Places<'_>) -> Result<PathBuf, ConnectError> {
        match scope {
            Scope::User => self.user_file(places),
            Scope::Project => {
                let name = match self {
                    Self::ClaudeCode => ".mcp.json",
                    Self::Cursor => ".cursor/mcp.json",
                    Self::VsCode => ".vscode/mcp.json",
                    Self::Codex => ".codex/config.toml",
                    Self::Gemini => ".gemini/settings.json",
                    Self::Zed => ".zed/settings.json",
                    Self::Copilot => ".github/mcp.json",
                    Self::OpenCode => "opencode.json",
                    Self::Roo => ".roo/mcp.json",
                    Self::Claude
                    | Self::Windsurf
                    | Self::Cline
                    | Self::Continue
                    | Self::LmStudio
                    | Self::Goose
                    | Self::Json => {
                        return usage(format!(
                            "{} has no file for a project; leave out `--scope`, or name a file with `--file`",
                            self.title()
                        ));
                    }
                };
                Ok(places.folder.join(name))
            }
        }
    }

    fn user_file(self, places: &Places<'_>) -> Result<PathBuf, ConnectError> {
        Ok(match self {
            Self::Claude => places
                .application()?
                .join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => match places.named("CLAUDE_CONFIG_DIR") {
                Some(folder) => folder.join(".claude.json"),
                None => places.home()?.join(".claude.json"),
            },
            Self::Cursor => places.home()?.join(".cursor/mcp.json"),
            Self::VsCode => places.application()?.join("Code/User/mcp.json"),
            Self::Codex => match places.named("CODEX_HOME") {
                Some(folder) => folder.join("config.toml"),
                None => places.home()?.join(".codex/config.toml"),
            },
            Self::Gemini => match places.named("GEMINI_CLI_HOME") {
                Some(folder) => folder.join(".gemini/settings.json"),
                None => places.home()?.join(".gemini/settings.json"),
            },
            Self::Windsurf => places.home()?.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => match places.system {
                System::Linux => places.config()?.join("zed/settings.json"),
                System::Mac => places.home()?.join(".config/zed/settings.json"),
            },
            Self::Cline => places.application()?.join(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            Self::Roo => places.application()?.join(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            Self::Copilot => match places.named("COPILOT_HOME") {
                Some(folder) => folder.join("mcp-config.json"),
                None => places.home()?.join(".copilot/mcp-config.json"),
            },
            // These programs use the folder of XDG on macOS as well.
            Self::OpenCode => places.config()?.join("opencode/opencode.json"),
            Self::Goose => places.config()?.join("goose/config.yaml"),
            Self::Continue => match places.named("CONTINUE_GLOBAL_DIR") {
                Some(folder) => folder.join("config.yaml"),
                None => places.home()?.join(".continue/config.yaml"),
            },
            Self::LmStudio => places.home()?.join(".lmstudio/mcp.json"),
            Self::Json => {
                return usage(
                    "the file of the client is not known; name it with `--file`, or leave out `--write`",
                );
            }
        })
    }
}

/// The working folder.
pub(super) fn working_folder() -> Result<PathBuf, ConnectError> {
    env::current_dir()
        .map_err(|error| ConnectError::Usage(format!("the working folder cannot be read: {error}")))
}

/// Returns the file of a client on this machine.
pub(super) fn file_of(client: Client, scope: Scope) -> Result<PathBuf, ConnectError> {
    let system = if cfg!(target_os = "macos") {
        System::Mac
    } else {
        System::Linux
    };
    let places = Places {
        system,
        variable: &|name| env::var_os(name).map(PathBuf::from),
        folder: working_folder()?,
    };
    client.file(scope, &places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    fn file(
        client: Client,
        scope: Scope,
        system: System,
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let places = Places {
            system,
            variable: &variable,
            folder: "/project".into(),
        };
        match client.file(scope, &places) {
            Ok(path) => Ok(path.to_str().unwrap().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn user_file_of_each_client_is_at_its_place() {
        const VSCODE_MAC: &str = "/h/Library/Application Support/Code/User";
        let home = &[("HOME", "/h")];
        for (client, linux, mac) in [
            (
                Client::Claude,
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json".to_owned(),
            ),
            (Client::ClaudeCode, "/h/.claude.json", String::new()),
            (Client::Cursor, "/h/.cursor/mcp.json", String::new()),
            (
                Client::VsCode,
                "/h/.config/Code/User/mcp.json",
                format!("{VSCODE_MAC}/mcp.json"),
            ),
            (Client::Codex, "/h/.codex/config.toml", String::new()),
            (Client::Gemini, "/h/.gemini/settings.json", String::new()),
            (
                Client::Windsurf,
                "/h/.codeium/windsurf/mcp_config.json",
                String::new(),
            ),
            (Client::Zed, "/h/.config/zed/settings.json", String::new()),
            (
                Client::Cline,
                "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                format!(
                    "{VSCODE_MAC}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
                ),
            ),
            (
                Client::Roo,
                "/h/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                format!(
                    "{VSCODE_MAC}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
                ),
            ),
            (
                Client::Copilot,
                "/h/.copilot/mcp-config.json",
                String::new(),
            ),
            (
                Client::OpenCode,
                "/h/.config/opencode/opencode.json",
                String::new(),
            ),
            (Client::Goose, "/h/.config/goose/config.yaml", String::new()),
            (Client::Continue, "/h/.continue/config.yaml", String::new()),
            (Client::LmStudio, "/h/.lmstudio/mcp.json", String::new()),
        ] {
            let mac = if mac.is_empty() { linux } else { &mac };
            let found = |system| file(client, Scope::User, system, home);
            assert_eq!(found(System::Linux).unwrap(), linux);
            assert_eq!(found(System::Mac).unwrap(), mac);
            let error = file(client, Scope::User, System::Linux, &[]).unwrap_err();
            assert!(error.contains("`HOME`"), "{error}");
        }
    }

    #[test]
    fn user_file_follows_the_variables_of_the_client() {
        let variables = &[
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "/l"),
            ("GEMINI_CLI_HOME", "/g"),
            ("COPILOT_HOME", "/p"),
            ("CONTINUE_GLOBAL_DIR", "/n"),
        ];
        let found = |client, system| file(client, Scope::User, system, variables).unwrap();
        assert_eq!(found(Client::Zed, System::Linux), "/x/zed/settings.json");
        assert_eq!(
            found(Client::Zed, System::Mac),
            "/h/.config/zed/settings.json"
        );
        assert_eq!(
            found(Client::VsCode, System::Linux),
            "/x/Code/User/mcp.json"
        );
        assert_eq!(found(Client::Codex, System::Mac), "/c/config.toml");
        assert_eq!(found(Client::ClaudeCode, System::Linux), "/l/.claude.json");
        assert_eq!(
            found(Client::Gemini, System::Linux),
            "/g/.gemini/settings.json"
        );
        for (client, expected) in [
            (Client::Copilot, "/p/mcp-config.json"),
            (Client::Continue, "/n/config.yaml"),
            (Client::Goose, "/x/goose/config.yaml"),
            (Client::OpenCode, "/x/opencode/opencode.json"),
        ] {
            assert_eq!(found(client, System::Mac), expected);
        }
        let relative = &[("HOME", "/h"), ("CODEX_HOME", "c")];
        let found = file(Client::Codex, Scope::User, System::Linux, relative);
        assert_eq!(found.unwrap(), "/h/.codex/config.toml");
    }

    #[test]
    fn project_file_is_in_the_working_folder_or_refused() {
        for client in Client::value_variants() {
            let found = file(*client, Scope::Project, System::Linux, &[]);
            match client {
                Client::Claude
                | Client::Windsurf
                | Client::Cline
                | Client::Continue
                | Client::LmStudio
                | Client::Goose
                | Client::Json => {
                    assert!(found.unwrap_err().contains("`--file`"));
                }
                _ => assert!(found.unwrap().starts_with("/project/"), "{client:?}"),
            }
        }
    }
}
