//! The part of a lock that the config gives: the locked form of a snapshot, and the settings that a reviewer sees.

use std::collections::BTreeSet;

use broker_model::codes::LeftOutCode;
use broker_model::digest::Digest;
use broker_model::item::ItemKind;
use broker_model::left_out::{LeftOut, MAX_NAME_CHARS};
use broker_model::lock::{
    Command, EndpointSettings, HiddenTool, HttpSettings, LockedSource, LockedTool, ShellCommand,
    SourceSettings, VOLATILE_INSTRUCTIONS, Word, strip_volatile,
};
use broker_model::public_names::PublicNames;
use broker_model::snapshot::Snapshot;
use broker_model::trust::{TrustLevel, WordList};
use serde_json::{Map, Value};

use super::confidential::{Words, hidden_in_url, without_secret_values};
use super::{Config, Endpoint, HttpEndpoint, ProcessEndpoint, Source};

impl Source {
    /// Returns the locked form of a snapshot: filtered, aliased, sorted, without volatile members. Names are checked
    /// by the planner, for lock and build alike.
    pub fn to_locked(&self, snapshot: &Snapshot) -> LockedSource {
        let mut source = LockedSource {
            path: self.path.clone(),
            backend: self.backend(),
            config_digest: self.digest(),
            server_info: snapshot.server_info.clone(),
            protocol_version: snapshot.protocol_version.clone(),
            capabilities: snapshot.capabilities.clone(),
            instructions: match self.volatile.contains(VOLATILE_INSTRUCTIONS) {
                true => None,
                false => snapshot.instructions.clone(),
            },
            package: None,
            settings: None,
            sensitive_words: word_list(self),
            url_path: None,
            volatile: self.volatile.clone(),
            exposed: Vec::new(),
            hidden: Vec::new(),
            left_out: Vec::new(),
            more_left_out: None,
            kept: None,
        };
        let mut exposed = Vec::new();
        for tool in &snapshot.tools {
            let mut raw = tool.read();
            strip_volatile(tool.name(), &mut raw, &self.volatile);
            let name = tool.name().to_owned();
            if self.exposure.exposes(&name) {
                exposed.push((name, raw));
            } else {
                source.hidden.push(HiddenTool {
                    name,
                    digest: Digest::from_tool(&raw),
                });
            }
        }
        let (exposed, unsafe_parts) = without_unsafe_names(self, exposed);
        let leaves = self.leaves(&exposed);
        source.exposed = exposed
            .into_iter()
            .zip(leaves)
            .map(|((name, raw), leaf)| LockedTool::new(name, raw, leaf))
            .collect();
        source
            .exposed
            .sort_by(|a, b| a.upstream_name.cmp(&b.upstream_name));
        source.hidden.sort_by(|a, b| a.name.cmp(&b.name));
        source.leave_out(snapshot.left_out.iter().cloned().chain(unsafe_parts));
        source
    }
}

impl Config {
    /// Adds the members of version 2 to a locked source: the config fields in plain text, summary and search hints of
    /// each tool.
    pub fn describe(
        &self,
        locked: &mut LockedSource,
        summary: impl Fn(&Source, &LockedTool) -> String,
    ) {
        let Some(source) = self.source(&locked.path) else {
            return;
        };
        locked.settings = Some(self.lock_settings(source));
        for tool in &mut locked.exposed {
            tool.summary = Some(summary(source, tool));
            let own = source.overrides.get(&tool.upstream_name);
            tool.search_hints = own
                .map(|own| own.compiled_hints(&tool.digest))
                .unwrap_or_default();
        }
    }

    /// Returns the fields of a source that a lock repeats in plain text.
    pub fn lock_settings(&self, source: &Source) -> SourceSettings {
        let filter: BTreeSet<&String> = source.exposure.filter().patterns().iter().collect();
        let default = TrustLevel::default_of(source.backend());
        SourceSettings {
            trust: source.trust.filter(|level| *level != default),
            endpoint: match &source.endpoint {
                Endpoint::Process(process) => {
                    EndpointSettings::Process(self.command_words(process))
                }
                Endpoint::Http(http) => EndpointSettings::Http(http_settings(http)),
            },
            tool_filter: filter.into_iter().cloned().collect(),
            path_aliases: source.aliases.clone(),
        }
    }

    fn command_words(&self, process: &ProcessEndpoint) -> Command {
        let words = Words::from_command(&process.command);
        let hidden = words.hidden(&self.literal_secrets(), true);
        let of_word = words.texts.iter().zip(hidden);
        let list = of_word
            .map(|(text, hidden)| Word::hiding(text, hidden.into_iter().map(|one| one.range)))
            .collect();
        match words.shell {
            true => Command::Shell(ShellCommand { shell: list }),
            false => Command::Direct(list),
        }
    }

    /// Collects the public names of the config: paths of nodes, and the names of tools and their aliases.
    pub fn public_names(&self) -> PublicNames {
        let mut names = PublicNames::default();
        self.nodes()
            .for_each(|node| names.add_path(node.path.as_str()));
        for source in self.sources() {
            for (tool, alias) in &source.aliases {
                names.add(tool);
                names.add(alias);
            }
            for (key, alias) in &source.item_aliases {
                names.add_key(key);
                names.add(alias);
            }
            names.add_filter(source.exposure.filter());
            names.add_filter(&source.exposure.items().prompt_filter);
            source.overrides.keys().for_each(|key| names.add_key(key));
        }
        names
    }
}

fn http_settings(http: &HttpEndpoint) -> HttpSettings {
    // As in the digest, so that another value of a secret changes neither.
    let url = without_secret_values(http.url.raw());
    let names: BTreeSet<_> = http
        .headers
        .keys()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let hidden = hidden_in_url(&url).into_iter().map(|one| one.range);
    HttpSettings {
        url: Word::hiding(&url, hidden),
        header_names: names.into_iter().collect(),
    }
}

/// Returns the version of the list of sensitive words, as a source that is locked now has it.
fn word_list(source: &Source) -> Option<WordList> {
    let version = source.exposure.sensitive().version();
    let is_compared = source.exposure.level() == TrustLevel::Untrusted;
    Some(version).filter(|version| is_compared && *version != WordList::First)
}

/// The key of an entry, and the entry as the server sent it.
type Entry = (String, Map<String, Value>);

/// The entries whose names are safe, and the records of the other ones.
fn without_unsafe_names(source: &Source, exposed: Vec<Entry>) -> (Vec<Entry>, Vec<LeftOut>) {
    let reasons = source.unsafe_names(&exposed);
    let (mut safe, mut left_out) = (Vec::new(), Vec::new());
    for ((key, raw), reason) in exposed.into_iter().zip(reasons) {
        let Some(reason) = reason else {
            safe.push((key, raw));
            continue;
        };
        let (kind, id) = ItemKind::parse_key(&key);
        left_out.push(LeftOut {
            kind,
            name: Some(id.chars().take(MAX_NAME_CHARS).collect()),
            code: LeftOutCode::NameUnsafe,
            place: "/name".to_owned(),
            reason,
            digest: Digest::from_tool(&raw),
        });
    }
    (safe, left_out)
}
