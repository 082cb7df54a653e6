//! The section `access` of the config.

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The groups of callers, and rules for what they see and call.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Access {
    /// The names of all groups.
    #[schemars(length(min = 1, max = 64))]
    groups: Vec<GroupName>,
    /// The rules; their order has no meaning. Nothing is allowed that no rule allows, and a deny always wins.
    rules: Vec<Rule>,
    /// The groups of the program that starts or contains the broker; `*` is every group. Default: `["*"]`.
    local: Option<Vec<String>>,
    /// The groups of callers with the broker's secret. Default: `["*"]`.
    secret: Option<Vec<String>>,
    /// The groups of callers without a credential. Default: none.
    anonymous: Option<Vec<String>>,
    /// The groups that see the state of the sources. Default: callers with the secret, and the local program.
    operators: Option<Vec<String>>,
    /// The answer for a tool that the caller may not use: that of a path that does not exist (`hidden`), or an error
    /// (`forbidden`). Default: `hidden`.
    denied: Option<Denied>,
}

#[derive(JsonSchema)]
struct GroupName(#[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))] String);

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Denied {
    Hidden,
    Forbidden,
}

/// A rule: it has `allow` or `deny`.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Patterns of paths of tools that the rule allows: `*` within a segment, `**` for any number of segments.
    allow: Option<Vec<String>>,
    /// Patterns of paths of tools that the rule denies.
    deny: Option<Vec<String>>,
    /// The groups to which the rule applies; `*` is every group.
    to: Vec<String>,
    /// Groups to which a rule with `deny` does not apply.
    except: Option<Vec<String>>,
    /// The values that the reviewed hints of the tool must have.
    #[serde(rename = "where")]
    hints: Option<Hints>,
    /// A JSON Schema that the arguments must match as well, only with `allow`. `{"$claim": NAME}` in `const` and
    /// `enum` is a claim of the caller's token.
    args: Option<Map<String, Value>>,
}

/// Hints of the annotations of a tool.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Hints {
    /// Whether the tool changes nothing.
    read_only_hint: Option<bool>,
    /// Whether the tool may delete or overwrite.
    destructive_hint: Option<bool>,
    /// Whether a second call has no further effect.
    idempotent_hint: Option<bool>,
    /// Whether the tool reaches systems outside its server.
    open_world_hint: Option<bool>,
}
