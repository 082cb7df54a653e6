//! The config that a broker runs with: the compiled-in one, or a file that fits it.

use std::path::{Path, PathBuf};

use broker_config::narrow::{self, KnownTools};
use broker_config::{Config, MAX_BYTES, Machine, Parsed, Template};
use broker_files::ReadError;
use broker_mcp::Environment;
use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use super::failure::Failure;
use crate::catalog::Catalog;
use broker_surface_http::{BadEntry, HostPolicy};

/// A config, and the folder of its relative paths.
#[derive(Debug)]
pub(super) struct LoadedConfig {
    pub(super) config: Config,
    pub(super) base: PathBuf,
    pub(super) warnings: Vec<Diagnostic>,
}

impl LoadedConfig {
    /// Reads `file`, if given, and compares it with the compiled-in config.
    pub(super) fn load(catalog: &Catalog, file: Option<&Path>) -> Result<Self, Failure> {
        let compiled = || -> Result<Parsed, Failure> {
            let mut parsed = Config::parse(catalog.config_name, catalog.config.as_bytes())
                .map_err(Failure::Diagnostics)?;
            catalog.use_word_lists(&mut parsed.config);
            Ok(parsed)
        };
        let Some(file) = file else {
            let Parsed { config, warnings } = compiled()?;
            return Ok(Self {
                config,
                base: PathBuf::from("."),
                warnings,
            });
        };
        let Self {
            mut config,
            base,
            warnings,
        } = Self::read(file)?;
        catalog.use_word_lists(&mut config);
        // Usually the file is the one that the build read; then the comparison is skipped.
        if config.compiled_text() != catalog.config {
            fits(catalog, &compiled()?.config, &config)?;
        }
        Ok(Self {
            base,
            config,
            warnings,
        })
    }

    /// Reads a config without a comparison.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let name = file.display().to_string();
        let bytes = broker_files::read(file, MAX_BYTES).map_err(|error| {
            let code = match error {
                ReadError::Size(_) => DiagnosticCode::ConfigSize,
                _ => DiagnosticCode::ConfigUnreadable,
            };
            let unreadable = Diagnostic::error(code, format!("cannot read the config: {error}"));
            Failure::Diagnostics(vec![unreadable.in_file(name.as_str())])
        })?;
        let exists = |program: &str| broker_files::exists(program, file);
        let parsed = Config::parse_file(&name, &bytes, &exists).map_err(Failure::Diagnostics)?;
        let base = parsed.config.base(file);
        let Parsed { config, warnings } = parsed.without_own_broker(Machine {
            base: &std::path::absolute(&base).unwrap_or_else(|_| base.clone()),
            program: &broker_files::program_name,
            is_config: &|other| broker_files::is_same_file(other, file),
            exists: &|other| other.exists(),
            variable: &|name| std::env::var(name).ok(),
        });
        Ok(Self {
            config,
            base,
            warnings,
        })
    }

    /// The policy of `allowed_hosts`, `--allow-host` and `allowed_origins`. Entries that cannot be used
    /// are added to `diagnostics`, including all missing variables.
    pub(super) fn host_policy(
        &self,
        allow_host: &[String],
        environment: &Environment,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> HostPolicy {
        let mut expand = |key: &str, templates: &[Template]| -> Vec<String> {
            let mut texts = Vec::new();
            for (index, template) in templates.iter().enumerate() {
                match template.expand(&|name| environment.get(name).map(str::to_owned)) {
                    Ok(text) => texts.push(text),
                    Err(missing) => diagnostics.extend(missing.iter().map(|variable| {
                        let message = format!("the variable `{}` is not set", variable.0);
                        let place = format!("/{key}/{index}");
                        let missing = Diagnostic::error(DiagnosticCode::EnvMissing, message);
                        self.config.place(missing.at(place))
                    })),
                }
            }
            texts
        };
        let mut hosts = expand("allowed_hosts", &self.config.allowed_hosts);
        let origins = expand("allowed_origins", &self.config.allowed_origins);
        let configured = hosts.len();
        hosts.extend_from_slice(allow_host);
        HostPolicy::new(&hosts, &origins).unwrap_or_else(|bad| {
            let diagnostic = unusable(bad, configured);
            diagnostics.push(if diagnostic.pointer.is_some() {
                self.config.place(diagnostic)
            } else {
                diagnostic
            });
            HostPolicy::default()
        })
    }
}

/// Refuses a config that would expose more, or other tools, than the compiled-in one. Core applies its
/// restrictions.
fn fits(catalog: &Catalog, compiled: &Config, given: &Config) -> Result<(), Failure> {
    let known = |path: &NodePath| known_tools(catalog, path);
    match narrow::compare(compiled, given, &known) {
        Ok(_) => Ok(()),
        Err(diagnostics) => Err(Failure::Diagnostics(diagnostics)),
    }
}

/// Returns the tools of a source in the lock; empty if the catalog has no such source.
fn known_tools(catalog: &Catalog, path: &NodePath) -> KnownTools {
    let locked = catalog
        .sources
        .iter()
        .find(|source| source.path == path.as_str())
        .and_then(|source| LockedSource::from_compiled(catalog.text(source.lock)).ok());
    let Some(locked) = locked else {
        return KnownTools::default();
    };
    KnownTools {
        exposed: locked
            .exposed
            .into_iter()
            .map(|tool| tool.upstream_name)
            .collect(),
        hidden: locked.hidden.into_iter().map(|tool| tool.name).collect(),
    }
}

fn unusable(bad: BadEntry, configured: usize) -> Diagnostic {
    let diagnostic = |message: String| Diagnostic::error(DiagnosticCode::ConfigType, message);
    match bad {
        BadEntry::Host(index) if index >= configured => {
            diagnostic("a value of `--allow-host` is not `host` or `host:port`".to_owned())
        }
        BadEntry::Host(index) => diagnostic("the host is not `host` or `host:port`".to_owned())
            .at(format!("/allowed_hosts/{index}")),
        BadEntry::Origin(index) => {
            diagnostic("the origin is not `https://host` or `https://host:port`".to_owned())
                .at(format!("/allowed_origins/{index}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A catalog that has only the fields that a start compares.
    fn built_from(config: &Config) -> &'static Catalog {
        Box::leak(Box::new(Catalog {
            format: crate::catalog::FORMAT,
            catalog_digest: "",
            root_digest: "",
            config_digest: "",
            config_name: "c.json",
            config: Box::leak(config.compiled_text().into_boxed_str()),
            blob: "",
            entries: &[],
            items: &[],
            flat_order: &[],
            sources: &[],
            access: None,
            search: crate::catalog::SearchTables::EMPTY,
        }))
    }

    /// Writes `text` to a file and starts the settings of a broker that was built from `built` with it.
    fn started(built: &str, text: &str) -> Result<LoadedConfig, Failure> {
        let config = Config::parse("c.json", built.as_bytes())
            .expect("it can be built")
            .config;
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let file = folder.path().join("c.json");
        std::fs::write(&file, text).expect("written");
        LoadedConfig::load(built_from(&config), Some(&file))
    }

    fn paths(config: &Config) -> Vec<&str> {
        config
            .sources()
            .map(|source| source.path.as_str())
            .collect()
    }

    fn object(members: &[String]) -> String {
        format!("{{{}}}", members.join(","))
    }

    /// The members of one source, one of every kind that is compared.
    fn source_members(at: usize) -> Vec<String> {
        vec![
            format!(r#""command":"server{at}""#),
            r#""args":["x","${VARIABLE}"]"#.to_owned(),
            r#""env":{"Z":"1","API_TOKEN":"written out","A":"2"}"#.to_owned(),
            r#""path_aliases":{"t":"u","a":"b"}"#.to_owned(),
            r#""tool_overrides":{"t":{"timeout":5,"example_args":{"y":1,"x":{"c":1,"b":2}}},"s":{"summary":"S"}}"#
                .to_owned(),
        ]
    }

    /// Two texts of one config: entries in the same order, members of objects in another.
    fn permuted() -> impl Strategy<Value = (Vec<String>, String, String)> {
        let names: Vec<String> = (0..12).map(|at| format!("s{at}")).collect();
        let members = Just(source_members(0).len()).prop_flat_map(|count| {
            let order: Vec<usize> = (0..count).collect();
            (
                Just(order.clone()).prop_shuffle(),
                Just(order).prop_shuffle(),
            )
        });
        let size = 1..=names.len();
        (
            Just(names).prop_shuffle(),
            size,
            members,
            any::<(bool, bool)>(),
        )
            .prop_map(|(mut names, size, (first, second), (tree, swap))| {
                names.truncate(size);
                let text = |order: &[usize], swap: bool| {
                    let entries = names.iter().enumerate().map(|(at, name)| {
                        let members = source_members(at);
                        let members: Vec<String> = order
                            .iter()
                            .map(|member| members[*member].clone())
                            .collect();
                        let source = object(&members);
                        if tree {
                            object(&[
                                format!(r#""path":"/{name}""#),
                                format!(r#""source":{source}"#),
                            ])
                        } else {
                            format!(r#""{name}":{source}"#)
                        }
                    });
                    let entries: Vec<String> = entries.collect();
                    let (servers, types) = if tree {
                        (
                            format!(r#""tree":[{}]"#, entries.join(",")),
                            r#""types":true"#,
                        )
                    } else {
                        (
                            format!(r#""mcpServers":{}"#, object(&entries)),
                            r#""types":true"#,
                        )
                    };
                    let mut top = [servers, types.to_owned()];
                    if swap {
                        top.reverse();
                    }
                    object(&top)
                };
                let texts = (text(&first, false), text(&second, swap));
                (names.clone(), texts.0, texts.1)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn config_in_any_order_starts_with_the_file_of_its_build(
            (names, built, reordered) in permuted()
        ) {
            let expected: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
            for given in [&built, &reordered] {
                let settings = started(&built, given).expect("it starts");
                prop_assert_eq!(paths(&settings.config), expected.clone());
            }
            let config = Config::parse("c.json", built.as_bytes()).expect("right").config;
            let alone = LoadedConfig::load(built_from(&config), None).expect("it starts");
            prop_assert_eq!(paths(&alone.config), expected);
        }
    }

    #[test]
    fn config_with_entries_in_another_order_is_refused() {
        let (built, given) = (
            r#"{"mcpServers":{"b":{"command":"x"},"a":{"command":"x"}}}"#,
            r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}"#,
        );
        let Err(Failure::Diagnostics(found)) = started(built, given) else {
            panic!("it starts with another order");
        };
        assert_eq!(found[0].code, DiagnosticCode::LockMismatch);
        assert!(
            found[0].message.ends_with("another order"),
            "{}",
            found[0].message
        );
    }
}
