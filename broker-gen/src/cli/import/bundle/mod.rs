//! A bundle of MCP (`.mcpb`): a zip archive with `manifest.json` and the code of a server. Only the manifest is read; the
//! code is written to a folder if a person names one.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use broker_config::client_file::variable_for;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::foreign::{Foreign, text};

mod archive;
#[cfg(test)]
mod tests;

/// Maximum bytes of a bundle.
pub(super) const MAX_BUNDLE_BYTES: usize = 64 << 20;
/// Maximum bytes of its manifest.
const MAX_MANIFEST_BYTES: usize = 1 << 20;
/// Maximum bytes of its files, unpacked.
const MAX_UNPACKED_BYTES: usize = 256 << 20;
/// The modes of what is unpacked.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The name of the manifest in a bundle.
const MANIFEST: &str = "manifest.json";
/// The begin of a zip archive.
const MARK: &[u8] = b"PK\x03\x04";

/// Whether the bytes are a zip archive.
pub(super) fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK)
}

/// Reads the manifest of a bundle, and unpacks its files to `folder` if there is one.
pub(super) fn convert(
    file: &str,
    bytes: &[u8],
    folder: Option<&Path>,
) -> Result<Foreign, Vec<Diagnostic>> {
    let refused = |message: String| {
        let message = format!("the bundle is refused: {message}");
        vec![Diagnostic::error(DiagnosticCode::ImportServers, message).in_file(file)]
    };
    let entries = archive::entries(bytes).map_err(refused)?;
    let manifest = entries
        .iter()
        .find(|entry| entry.name == MANIFEST && !entry.is_folder);
    let manifest = manifest.ok_or_else(|| refused(format!("it has no `{MANIFEST}`")))?;
    let manifest = archive::unpack(bytes, manifest, MAX_MANIFEST_BYTES).map_err(refused)?;
    let manifest: Value = serde_json::from_slice(&manifest)
        .map_err(|error| refused(format!("`{MANIFEST}` is not JSON: {error}")))?;
    // The config is complete before any code is written.
    let place = match folder {
        Some(folder) => {
            let folder = std::path::absolute(folder).map_err(|error| refused(error.to_string()))?;
            let folder = folder.to_str().map(str::to_owned);
            folder.ok_or_else(|| refused("the folder of `--unpack` is not UTF-8".to_owned()))?
        }
        None => String::new(),
    };
    let digest = HEXLOWER.encode(&Sha256::digest(bytes));
    let foreign = server(&manifest, &place, &digest).map_err(refused)?;
    if let Some(folder) = folder {
        unpack(bytes, &entries, folder).map_err(refused)?;
    }
    Ok(foreign)
}

/// Writes the files of a bundle to a folder that must not exist.
fn unpack(bytes: &[u8], entries: &[archive::Entry], folder: &Path) -> Result<(), String> {
    let total: usize = entries.iter().map(|entry| entry.length).sum();
    if total > MAX_UNPACKED_BYTES {
        return Err(format!(
            "its files have {total} bytes unpacked; at most {MAX_UNPACKED_BYTES} are written"
        ));
    }
    let shown = folder.display();
    let make = |path: &Path| {
        DirBuilder::new()
            .mode(FOLDER_MODE)
            .recursive(true)
            .create(path)
    };
    DirBuilder::new()
        .mode(FOLDER_MODE)
        .create(folder)
        .map_err(|error| format!("the folder `{shown}` cannot be made: {error}"))?;
    let written = entries.iter().try_for_each(|entry| {
        let path = folder.join(&entry.name);
        let failed =
            |error: std::io::Error| format!("`{}` cannot be written: {error}", path.display());
        if entry.is_folder {
            return make(&path).map_err(failed);
        }
        if let Some(parent) = path.parent() {
            make(parent).map_err(failed)?;
        }
        let content = archive::unpack(bytes, entry, MAX_UNPACKED_BYTES)?;
        let mode = match entry.is_program {
            true => FILE_MODE | 0o100,
            false => FILE_MODE,
        };
        let mut file = OpenOptions::new();
        let file = file.write(true).create_new(true).mode(mode);
        let mut file = file.open(&path).map_err(failed)?;
        file.write_all(&content).map_err(failed)
    });
    if written.is_err() {
        // The folder is ours. The reported error is the first one.
        drop(fs::remove_dir_all(folder));
    }
    written
}

/// The server of a manifest. `folder` is where its files are; if it is empty, a variable names the folder.
fn server(manifest: &Value, folder: &str, digest: &str) -> Result<Foreign, String> {
    let name = text(manifest, &["name"]).ok_or("its manifest has no `name`")?;
    let about = manifest
        .get("server")
        .ok_or("its manifest has no `server`")?;
    let config = about.get("mcp_config").filter(|config| config.is_object());
    let context = Context {
        name,
        folder,
        settings: manifest.get("user_config"),
    };
    let system = match cfg!(target_os = "macos") {
        true => "darwin",
        false => "linux",
    };
    let overrides =
        config.and_then(|config| config.pointer(&format!("/platform_overrides/{system}")));
    let member = |key: &str| {
        let of_system = overrides.and_then(|overrides| overrides.get(key));
        of_system.or_else(|| config.and_then(|config| config.get(key)))
    };
    let entry_point = text(about, &["entry_point"]).unwrap_or_default();
    let default = || {
        let path = format!("${{__dirname}}/{entry_point}");
        match text(about, &["type"]).unwrap_or_default() {
            "node" => Ok(vec!["node".to_owned(), path]),
            "python" => Ok(vec!["python3".to_owned(), path]),
            "binary" => Ok(vec![path]),
            _ => Err("its manifest has no `command`".to_owned()),
        }
    };
    let words = match member("command").and_then(Value::as_str) {
        Some(command) => {
            let args = member("args").and_then(Value::as_array);
            let args = args.into_iter().flatten().filter_map(Value::as_str);
            std::iter::once(command)
                .chain(args)
                .map(str::to_owned)
                .collect()
        }
        None => default()?,
    };
    let mut words = words
        .iter()
        .map(|word| context.filled(word))
        .collect::<Result<Vec<_>, _>>()?;
    let command = words.remove(0);
    let mut env = Map::new();
    for (key, value) in member("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = value.as_str().unwrap_or_default();
        env.insert(key.clone(), context.filled(value)?.into());
    }
    let version = text(manifest, &["version"]).unwrap_or_default();
    let description = text(manifest, &["description"]).unwrap_or_default();
    let description = format!("{description} (bundle {version}, sha256:{digest})");
    super::foreign::literal(&description)?;
    let mut server = Map::new();
    server.insert("command".to_owned(), command.into());
    server.insert("args".to_owned(), words.into());
    if !env.is_empty() {
        server.insert("env".to_owned(), Value::Object(env));
    }
    let description = shown_line(&description, 500);
    server.insert("description".to_owned(), description.into());
    let notes = match folder {
        "" => vec![format!(
            "the code is not unpacked: `--unpack DIR` writes it, or set {} to its folder",
            context.folder_variable()
        )],
        folder => vec![format!(
            "the code is in {folder}: read it before a lock starts it"
        )],
    };
    Ok(Foreign {
        servers: json!({ "mcpServers": { name: server } }),
        notes,
    })
}

/// The values to which `${…}` in the texts of a manifest can refer.
struct Context<'m> {
    name: &'m str,
    folder: &'m str,
    settings: Option<&'m Value>,
}

impl Context<'_> {
    fn folder_variable(&self) -> String {
        variable_for(&format!("{}_dir", self.name), true)
    }

    /// A text with the values of its references. One that is not of a manifest is refused: it would be a variable of this
    /// machine.
    fn filled(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let (reference, behind) = after.split_once('}').ok_or("a `${` has no end")?;
            out.push_str(&self.value(reference)?);
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&self, reference: &str) -> Result<String, String> {
        if let Some(key) = reference.strip_prefix("user_config.") {
            return Ok(self.setting(key));
        }
        Ok(match reference {
            "__dirname" if self.folder.is_empty() => format!("${{{}}}", self.folder_variable()),
            "__dirname" => self.folder.to_owned(),
            "HOME" => "${HOME}".to_owned(),
            "DESKTOP" => "${HOME}/Desktop".to_owned(),
            "DOCUMENTS" => "${HOME}/Documents".to_owned(),
            "DOWNLOADS" => "${HOME}/Downloads".to_owned(),
            "/" | "pathSeparator" => "/".to_owned(),
            other => {
                return Err(format!(
                    "its manifest names `${{{}}}`, which would be a variable of this machine",
                    shown_line(other, 80)
                ));
            }
        })
    }

    /// A setting that the client would ask its user for.
    fn setting(&self, key: &str) -> String {
        let name = variable_for(&format!("{}_{key}", self.name), true);
        let setting = self.settings.and_then(|settings| settings.get(key));
        let is_secret = setting.is_some_and(|setting| setting["sensitive"] == true);
        let default = setting.map(|setting| match &setting["default"] {
            Value::String(text) => text.clone(),
            value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
            _ => String::new(),
        });
        let is_plain = |text: &String| !text.is_empty() && !text.contains(['$', '{', '}']);
        match default.filter(is_plain).filter(|_| !is_secret) {
            Some(default) => format!("${{{name}:-{default}}}"),
            None => format!("${{{name}}}"),
        }
    }
}
