//! Edits the search hints of a config, and keeps its comments, order and layout.

use std::path::Path;

use broker_build::build_script::read_config;
use broker_config::{Config, SearchHint, Source};
use broker_model::{Diagnostic, DiagnosticCode};
use broker_review::whole_file::{turn_if_unchanged, write_whole};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

/// A config that is edited.
pub(in crate::cli) struct ConfigText {
    file: String,
    /// The bytes that were read.
    before: Vec<u8>,
    root: CstRootNode,
}

impl ConfigText {
    /// Reads the file.
    pub(in crate::cli) fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
        let file = config.to_string_lossy().into_owned();
        let bytes = read_config(config, &file)?;
        let text = String::from_utf8_lossy(&bytes);
        let root = CstRootNode::parse(&text, &ParseOptions::default()).map_err(|error| {
            let message = format!("the config cannot be edited: {error}");
            vec![Diagnostic::error(DiagnosticCode::ConfigSyntax, message).in_file(file.as_str())]
        })?;
        Ok(Self {
            file,
            root,
            before: bytes,
        })
    }

    /// Adds hints to a tool.
    pub(in crate::cli) fn add(&self, source: &Source, tool: &str, hints: &[SearchHint]) {
        let Some(object) = self.object_at(&source.pointer) else {
            return;
        };
        let overrides = object.object_value_or_set("tool_overrides");
        let list = overrides
            .object_value_or_set(tool)
            .array_value_or_set("hints");
        for hint in hints {
            list.append(written(hint));
        }
    }

    /// Removes the mark `generated` of every hint of a tool that is written for a digest.
    pub(in crate::cli) fn accept(&self, source: &Source, tool: &str, digest: &str) {
        let object = self.object_at(&source.pointer);
        let hints = object
            .and_then(|object| object.object_value("tool_overrides"))
            .and_then(|all| all.object_value(tool))
            .and_then(|own| own.array_value("hints"));
        for hint in hints.iter().flat_map(|hints| hints.elements()) {
            let Some(hint) = hint.as_object() else {
                continue;
            };
            let made_for = hint.get("for").and_then(|member| member.value());
            let made_for = made_for.and_then(|value| value.as_string_lit()?.decoded_value().ok());
            if made_for.is_none_or(|made_for| made_for == digest)
                && let Some(mark) = hint.get("generated")
            {
                mark.remove();
            }
        }
    }

    /// Writes the file, if the text is a config and the file is as it was read.
    pub(in crate::cli) fn write(self, path: &Path) -> Result<(), Vec<Diagnostic>> {
        let text = self.root.to_string();
        Config::parse(&self.file, text.as_bytes())?;
        // A symbolic link is kept.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let _turn = turn_if_unchanged(&target, Some(&self.before), broker_config::MAX_BYTES)?;
        write_whole(&target, text.as_bytes()).map_err(|error| {
            let message = format!("`{}` cannot be written: {error}", self.file);
            vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
        })
    }

    /// The object at a JSON pointer.
    fn object_at(&self, pointer: &str) -> Option<CstObject> {
        let mut node = self.root.value()?;
        for token in pointer.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            node = below(&node, &name)?;
        }
        node.as_object()
    }
}

/// The member or the element of a node.
fn below(node: &CstNode, name: &str) -> Option<CstNode> {
    if let Some(object) = node.as_object() {
        return object.get(name)?.value();
    }
    let index: usize = name.parse().ok()?;
    node.as_array()?.elements().into_iter().nth(index)
}

/// A hint as a config has it.
fn written(hint: &SearchHint) -> CstInputValue {
    // `$${` is how a config writes `${`.
    let text = CstInputValue::String(hint.text.replace("${", "$${"));
    let mut members = vec![("text".to_owned(), text)];
    if hint.generated {
        members.push(("generated".to_owned(), CstInputValue::Bool(true)));
    }
    if let Some(digest) = &hint.made_for {
        members.push(("for".to_owned(), CstInputValue::String(digest.clone())));
    }
    CstInputValue::Object(members)
}
