//! Rust types for the tools of a plan: one module per tool, in modules that follow the tree.
//!
//! A schema is simplified into a copy whose types keep every value, typify generates code from the copy, and the code
//! is refined and inspected. A part that cannot be typed becomes a JSON value or map, with the reason.

use std::fmt;

use broker_model::NodePath;
use broker_model::text::shown_line;
use proc_macro2::TokenStream;

use crate::plan::{Entry, Plan};
use generate::{Generated, Size};

mod generate;
mod inspect;
mod names;
mod outline;
mod refine;
mod simplify;
#[cfg(test)]
mod tests;
mod tree;

/// Maximum reasons in one line; the rest are counted.
const SHOWN_REASONS: usize = 3;

/// Maximum bytes of code for the tools of one lock.
const MAX_LOCK_BYTES: usize = 64 << 20;

/// The types of a plan.
#[derive(Clone, Debug)]
pub struct Types {
    /// `pub mod tools { … }`.
    pub tokens: TokenStream,
    /// The schemas whose types are wider, by path, arguments before output.
    pub fallbacks: Vec<Fallback>,
    /// Every typed tool, by path.
    pub tools: Vec<TypedTool>,
}

/// A tool that has a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTool {
    /// The tool.
    pub path: NodePath,
    /// Its module, `tools::repo::read::get_file`.
    pub module: String,
    /// Whether it has an `Output`.
    pub has_output: bool,
}

/// A schema whose type is wider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The tool.
    pub path: NodePath,
    /// The schema.
    pub schema: SchemaOf,
    /// The level of its type.
    pub level: Level,
    /// The reasons, by place; never empty.
    pub reasons: Vec<Reason>,
}

/// One of a tool's two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaOf {
    /// The arguments, `inputSchema`.
    Args,
    /// The result, `outputSchema`.
    Output,
}

/// The precision of a type. Bounds, patterns and formats are never typed and do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Precisely.
    Whole,
    /// Some places are a JSON value, or wider than the schema.
    Widened,
    /// Without named values and alternatives, because the code with them failed.
    Plain,
    /// A JSON map.
    Map,
}

/// The reason why a place is wider than its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The place, as a JSON pointer into the schema.
    pub pointer: String,
    /// The reason: a lowercase fragment without text of a server.
    pub text: String,
}

/// Generates the types of every tool whose source has types enabled. Equal plans give equal tokens.
pub fn types(plan: &Plan<'_>) -> Types {
    types_within(plan, MAX_LOCK_BYTES)
}

/// The types, with a maximum number of bytes of code besides maps.
fn types_within(plan: &Plan<'_>, bytes: usize) -> Types {
    let mut tree = tree::Tree::default();
    let mut fallbacks = Vec::new();
    let mut room = CodeBudget(bytes);
    for (path, entry) in &plan.entries {
        let Entry::Tool(tool) = entry else { continue };
        if !plan.sources[tool.source].0.types || tool.is_for_pages_only() {
            continue;
        }
        let raw = &tool.tool.raw;
        let generated = |of, schema| match tool.tool.unvalidated {
            true => generate::unvalidated(of),
            false => generate::generate(of, schema),
        };
        let mut args = generated(SchemaOf::Args, raw.get("inputSchema"));
        let mut output = raw
            .get("outputSchema")
            .filter(|schema| !schema.is_null())
            .map(|schema| generated(SchemaOf::Output, Some(schema)));
        room.take(&mut args, output.as_mut());
        for (schema, made) in [
            (SchemaOf::Args, Some(&args)),
            (SchemaOf::Output, output.as_ref()),
        ] {
            let Some(made) = made else { continue };
            if made.level != Level::Whole {
                fallbacks.push(Fallback {
                    path: path.clone(),
                    schema,
                    level: made.level,
                    reasons: made.reasons.clone(),
                });
            }
        }
        tree.add(path, args, output);
    }
    Types {
        tokens: tree.render(),
        fallbacks,
        tools: tree.tools(),
    }
}

/// Bytes of code that the remaining tools of a lock may take.
struct CodeBudget(usize);

impl CodeBudget {
    /// Counts the code of one tool. If it is too large, constructors are left out; if that is not enough, a map
    /// replaces the type.
    fn take(&mut self, args: &mut Generated, mut output: Option<&mut Generated>) {
        let together = |args: &Generated, output: &Option<&mut Generated>| {
            args.size.and(
                output
                    .as_ref()
                    .map_or(Size::default(), |output| output.size),
            )
        };
        if !together(args, &output).fits()
            && let Some(output) = &mut output
        {
            output.shorten();
        }
        if !together(args, &output).fits()
            && let Some(output) = &mut output
        {
            let reason = "together with the code of the arguments it would be larger than 256 KiB or 2000 items";
            **output = generate::too_large(SchemaOf::Output, reason);
        }
        if together(args, &output).bytes > self.0 {
            args.shorten();
            output.iter_mut().for_each(|output| output.shorten());
        }
        if together(args, &output).bytes > self.0 {
            let reason = "the code of the lock would be larger than 64 MiB";
            *args = generate::too_large(SchemaOf::Args, reason);
            if let Some(output) = &mut output {
                **output = generate::too_large(SchemaOf::Output, reason);
            }
        }
        self.0 = self.0.saturating_sub(together(args, &output).bytes);
    }
}

impl Types {
    /// The code as formatted source.
    pub fn to_text(&self) -> String {
        let file = syn::parse2(self.tokens.clone()).expect("the generator writes a valid file");
        prettyplease::unparse(&file)
    }
}

impl SchemaOf {
    /// The name of its root type.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Args => "Args",
            Self::Output => "Output",
        }
    }
}

impl Level {
    /// Its name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Widened => "widened",
            Self::Plain => "plain",
            Self::Map => "map",
        }
    }
}

impl Level {
    fn as_words(self) -> &'static str {
        match self {
            Self::Whole => "typed whole",
            Self::Widened => "typed wider than the schema",
            Self::Plain => "typed without named values and alternatives",
            Self::Map => "a JSON map",
        }
    }
}
impl Fallback {
    /// Returns its level and its reasons without their places: many schemas may share them.
    pub fn kind(&self) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for reason in &self.reasons {
            if !reasons.contains(&reason.text.as_str()) {
                reasons.push(&reason.text);
            }
            if reasons.len() == SHOWN_REASONS {
                break;
            }
        }
        format!("{}: {}", self.level.as_words(), reasons.join("; "))
    }
}

impl Fallback {
    /// The tool and its type.
    pub fn subject(&self) -> String {
        format!("{} {}", self.path, self.schema.type_name())
    }
}

/// The tool and its type, the level, and the first reasons with their places.
impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.level.as_words())?;
        for (index, reason) in self.reasons.iter().take(SHOWN_REASONS).enumerate() {
            let lead = if index == 0 { ": " } else { "; " };
            write!(f, "{lead}{}", reason.text)?;
            if !reason.pointer.is_empty() {
                write!(f, " at `{}`", shown_line(&reason.pointer, 120))?;
            }
        }
        match self.reasons.len().saturating_sub(SHOWN_REASONS) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
