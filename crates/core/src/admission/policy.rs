//! The access rules in force: the catalog's rules, or the rules of a config that narrows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use broker_config::Config;
use broker_model::access::{
    Access, Decision, Denied, Effect, GroupSet, Hint, Hints, Matrix, Narrowing, Row, RowRef,
    ToolFacts,
};
use broker_model::item::readable_path;
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::Value;

use super::class::{AdmissionClass, ClaimValues};
use super::narrowed::{NarrowRule, NarrowedArgs};
use super::nodes::{NodeSet, NodeSetKey, NodeSets};
use super::search_scopes::SearchScopes;
use crate::catalog::{AccessTable, Catalog};
use crate::identity::{Identity, Subject};
use crate::view::View;

/// The number of the next policy.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The maximum number of tools that a problem names.
const MAX_NAMED: usize = 5;

/// Who may see and call what.
#[derive(Debug)]
pub(crate) struct Policy {
    number: u64,
    /// `None` without rules: every entry exists for every caller.
    rules: Option<Rules>,
    all_nodes: Arc<NodeSet>,
    node_sets: NodeSets,
    search_scopes: SearchScopes,
    /// The digest of the rules; empty without rules.
    digest: Arc<str>,
    /// The rules as they were read, with the groups of the catalog.
    access: Option<Access>,
    /// By the catalog's tools, once a call of the tool is recorded.
    reviewed: Box<[OnceLock<ReviewedTool>]>,
}

/// What a record of calls says of a tool.
#[derive(Debug)]
struct ReviewedTool {
    is_read_only: bool,
    /// The indices of the rules that match the tool.
    rules: Box<[usize]>,
}

#[derive(Debug)]
struct Rules {
    groups: Vec<String>,
    local: GroupSet,
    secret: GroupSet,
    anonymous: GroupSet,
    operators: Option<GroupSet>,
    denied: Denied,
    /// By the catalog's tools.
    rows: Rows,
    narrowings: Box<[NarrowRule]>,
    /// The names of the claims that the narrowings read.
    claims: Vec<String>,
}

/// The rows of the tools.
#[derive(Debug)]
enum Rows {
    Compiled(&'static Catalog),
    Given(Box<[Row]>),
}

impl Policy {
    /// Makes the policy of a config. It may only narrow the catalog's policy; every violation is reported.
    pub(crate) fn new(
        catalog: &'static Catalog,
        config: &Config,
    ) -> Result<Arc<Self>, Vec<Diagnostic>> {
        let rules = match (&catalog.access, &config.access) {
            (None, None) => None,
            (Some(_), None) => {
                let message = "the config has no `access`, and the compiled-in one has";
                return Err(vec![config.place(widens("", message.to_owned()))]);
            }
            (Some(table), Some(_))
                if config
                    .access_digest()
                    .is_some_and(|one| one.as_str() == table.digest) =>
            {
                Some(Rules::compiled(catalog, table))
            }
            (compiled, Some(given)) => Some(
                Rules::given(catalog, compiled.as_ref(), given).map_err(|problems| {
                    let problems = problems.into_iter();
                    problems
                        .map(|problem| config.place(problem))
                        .collect::<Vec<_>>()
                })?,
            ),
        };
        let access = match (&catalog.access, &config.access) {
            (Some(table), Some(given)) => Some(in_groups_of(given, table)?),
            (_, given) => given.clone(),
        };
        Ok(Arc::new(Self {
            digest: (config.access_digest()).map_or_else(|| "".into(), |one| one.as_str().into()),
            access,
            reviewed: catalog.items.iter().map(|_| OnceLock::new()).collect(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            rules,
            all_nodes: Arc::new(NodeSet::All),
            node_sets: NodeSets::default(),
            search_scopes: SearchScopes::default(),
        }))
    }

    /// Returns its number; a reload brings another one.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the digest of the rules; empty without rules.
    pub(crate) const fn digest(&self) -> &Arc<str> {
        &self.digest
    }

    /// Whether the reviewed hints of a tool say that it changes nothing.
    pub(crate) fn is_read_only(&self, catalog: &'static Catalog, tool: u32) -> bool {
        self.reviewed(catalog, tool).is_read_only
    }

    /// Returns the index of the rule that decides about a tool for a class: the first rule that denies it, else the first
    /// rule that allows it. `None` without such a rule: then a tool is denied if there are rules.
    pub(super) fn deciding_rule(
        &self,
        catalog: &'static Catalog,
        class: &AdmissionClass,
        tool: u32,
    ) -> Option<usize> {
        let (access, groups) = (self.access.as_ref()?, class.groups());
        let reviewed = self.reviewed(catalog, tool);
        let find = |effect| {
            let mut rules = reviewed.rules.iter().copied();
            rules.find(|at| {
                let rule = &access.rules[*at];
                let applies = rule.to.intersects(groups) && !rule.except.intersects(groups);
                rule.effect == effect && applies
            })
        };
        find(Effect::Deny).or_else(|| find(Effect::Allow))
    }

    fn reviewed(&self, catalog: &'static Catalog, tool: u32) -> &ReviewedTool {
        self.reviewed[tool as usize].get_or_init(|| {
            let facts = facts(catalog, catalog.item(tool));
            let rules = self.access.iter().flat_map(|access| access.rules.iter());
            let matching = rules.enumerate().filter(|(_, rule)| rule.matches(&facts));
            ReviewedTool {
                is_read_only: facts.hints.get(Hint::ReadOnly),
                rules: matching.map(|(at, _)| at).collect(),
            }
        })
    }

    /// Whether there are rules.
    pub(crate) const fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Returns the answer for an entry that the caller may not use.
    pub(super) fn denied(&self) -> Denied {
        let rules = self.rules.as_ref();
        rules.map(|rules| rules.denied).unwrap_or_default()
    }

    /// Returns the class of a caller.
    pub(super) fn class_of(&self, identity: &Identity) -> AdmissionClass {
        let (groups, claims) = match &self.rules {
            None => (GroupSet::ALL, None),
            Some(rules) => (rules.groups_of(identity), rules.claims_of(identity)),
        };
        AdmissionClass::new(self.number, groups, claims)
    }

    /// Whether the caller sees the state of the sources. `is_open` says that every caller sees every tool.
    pub(crate) fn is_operator(&self, identity: &Identity, is_open: bool) -> bool {
        let rules = self.rules.as_ref();
        match rules.and_then(|rules| Some(rules.operators?.intersects(rules.groups_of(identity)))) {
            Some(is_operator) => is_operator,
            None => is_open || matches!(identity.subject(), Subject::Secret | Subject::Local),
        }
    }

    /// Whether callers without a credential belong to a group; `None` without rules.
    pub(crate) fn anonymous_has_groups(&self) -> Option<bool> {
        let rules = self.rules.as_ref();
        rules.map(|rules| !rules.anonymous.is_empty())
    }

    /// Returns the decision on a tool.
    pub(super) fn decide(&self, class: &AdmissionClass, tool: u32) -> Decision {
        if class.excludes(tool) {
            return Decision::Absent;
        }
        let Some(rules) = &self.rules else {
            return Decision::Callable;
        };
        let applies = |at: u32| rules.narrowings[at as usize].applies(class.claims());
        rules.rows.get(tool).decide(class.groups(), applies)
    }

    /// Returns the names of the groups; none without rules.
    pub(super) fn group_names(&self) -> &[String] {
        self.rules.as_ref().map_or(&[], |rules| &rules.groups)
    }

    /// Returns the decision on a tool for callers in one group that have every claim.
    pub(super) fn decide_for_group(&self, group: usize, tool: u32) -> Decision {
        self.rules.as_ref().map_or(Decision::Callable, |rules| {
            let row = rules.rows.get(tool);
            row.decide(GroupSet::one(group), |_| true)
        })
    }

    /// Returns the nodes that exist for a class in a view.
    pub(super) fn nodes(
        &self,
        catalog: &Catalog,
        view: &View,
        class: &AdmissionClass,
    ) -> Arc<NodeSet> {
        if self.rules.is_none() && !class.has_excluded_tools() {
            return Arc::clone(&self.all_nodes);
        }
        let key = NodeSetKey {
            class: class.clone(),
            hidden: Arc::clone(view.hidden()),
        };
        self.node_sets.get(key, || {
            NodeSet::above(catalog, |tool| {
                !view.is_hidden(tool) && self.decide(class, tool) != Decision::Absent
            })
        })
    }

    pub(super) const fn search_scopes(&self) -> &SearchScopes {
        &self.search_scopes
    }

    /// Returns the schemas that narrow the arguments of a tool for a class.
    pub(super) fn narrowed(&self, class: &AdmissionClass, tool: u32) -> Option<NarrowedArgs> {
        if self.decide(class, tool) != Decision::Narrowed {
            return None;
        }
        let rules = self.rules.as_ref()?;
        let narrowings = rules.rows.get(tool).narrowings(class.groups());
        let filled =
            narrowings.filter_map(|at| rules.narrowings[at as usize].filled(class.claims()));
        Some(NarrowedArgs::new(filled.collect()))
    }
}

impl Rules {
    fn compiled(catalog: &'static Catalog, table: &AccessTable) -> Self {
        let narrowings = table.narrowings.iter().map(|text| read(text));
        Self {
            groups: table.groups.iter().map(|name| (*name).to_owned()).collect(),
            local: GroupSet::new(table.local),
            secret: GroupSet::new(table.secret),
            anonymous: GroupSet::new(table.anonymous),
            operators: table.operators.map(GroupSet::new),
            denied: match table.is_forbidden_shown {
                true => Denied::Forbidden,
                false => Denied::Hidden,
            },
            rows: Rows::Compiled(catalog),
            claims: Vec::new(),
            narrowings: narrowings.map(NarrowRule::new).collect(),
        }
        .with_claims()
    }

    /// Returns the rules of a config that is not the compiled-in one.
    fn given(
        catalog: &'static Catalog,
        compiled: Option<&AccessTable>,
        given: &Access,
    ) -> Result<Self, Vec<Diagnostic>> {
        let given = match compiled {
            None => given.clone(),
            Some(table) => in_groups_of(given, table)?,
        };
        let facts: Vec<_> = catalog
            .items
            .iter()
            .map(|tool| facts(catalog, tool))
            .collect();
        let matrix = Matrix::new(&given, &facts);
        if let Some(table) = compiled {
            check_narrower(catalog, table, &given, &matrix)?;
        }
        let narrowings = matrix.narrowings.into_iter().map(|one| one.schema);
        let rules = Self {
            groups: given.groups,
            local: given.local,
            secret: given.secret,
            anonymous: given.anonymous,
            operators: given.operators,
            denied: given.denied,
            rows: Rows::Given(matrix.rows.into_boxed_slice()),
            claims: Vec::new(),
            narrowings: narrowings.map(NarrowRule::new).collect(),
        };
        Ok(rules.with_claims())
    }

    fn with_claims(mut self) -> Self {
        let names = self.narrowings.iter().flat_map(NarrowRule::claims);
        let mut claims: Vec<String> = names.map(str::to_owned).collect();
        claims.sort();
        claims.dedup();
        self.claims = claims;
        self
    }

    fn groups_of(&self, identity: &Identity) -> GroupSet {
        match identity.subject() {
            Subject::Anonymous => self.anonymous,
            Subject::Secret => self.secret,
            Subject::Local => self.local,
            Subject::Key { .. } | Subject::Token { .. } => {
                let own = identity.groups().iter().filter_map(|name| {
                    let at = self.groups.iter().position(|group| group == name)?;
                    Some(GroupSet::one(at))
                });
                own.fold(GroupSet::NONE, GroupSet::union)
            }
        }
    }

    /// Returns the claims of a caller that rules read.
    fn claims_of(&self, identity: &Identity) -> Option<Arc<ClaimValues>> {
        let own = self.claims.iter().filter_map(|name| {
            let value = identity.claims().get(name)?;
            Some((name.clone(), value.clone()))
        });
        let own: std::collections::BTreeMap<_, _> = own.collect();
        (!own.is_empty()).then(|| Arc::new(ClaimValues::new(own)))
    }
}

impl Rows {
    fn get(&self, tool: u32) -> RowRef<'_> {
        match self {
            Self::Compiled(catalog) => {
                let tool = catalog.item(tool);
                RowRef {
                    allow: tool.allow,
                    narrowed: tool.narrowed,
                    deny: tool.deny,
                }
            }
            Self::Given(rows) => rows[tool as usize].as_ref(),
        }
    }
}

/// Reads a text of the catalog. The build made it from a value.
fn read(text: &str) -> Value {
    broker_model::json::parse(text).unwrap_or_default()
}

/// Returns the path and the reviewed hints of a tool: rules select tools by them.
fn facts(catalog: &'static Catalog, tool: &crate::catalog::Item) -> ToolFacts<'static> {
    // Reviewed annotations are a member of the entry of `tools/list`.
    let head: Value = read(&format!("{{{}}}", catalog.text(tool.list_head)));
    let path = catalog.entry(tool.entry).path;
    ToolFacts {
        path,
        readable: readable_path(path, tool.key),
        hints: Hints::read(head.get("annotations")),
    }
}

fn widens(pointer: &str, message: String) -> Diagnostic {
    let help =
        "make a new lock and a new build with this config: `broker-gen lock`, then `cargo build`";
    Diagnostic::error(DiagnosticCode::LockWiden, message)
        .at(pointer)
        .help(help)
}

/// Returns the same rules with the groups of the catalog, whose bits the compiled rows have.
fn in_groups_of(given: &Access, table: &AccessTable) -> Result<Access, Vec<Diagnostic>> {
    let mut places = Vec::new();
    let mut problems = Vec::new();
    for (index, name) in given.groups.iter().enumerate() {
        match table.groups.iter().position(|known| known == name) {
            Some(at) => places.push(GroupSet::one(at)),
            None => {
                let message = format!("the group `{name}` is not compiled in");
                problems.push(widens(&format!("/access/groups/{index}"), message));
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let moved = |set: GroupSet| {
        let own = places.iter().enumerate();
        let own = own.filter(|(index, _)| set.intersects(GroupSet::one(*index)));
        own.fold(GroupSet::NONE, |all, (_, group)| all.union(*group))
    };
    let mut access = given.clone();
    access.groups = table.groups.iter().map(|name| (*name).to_owned()).collect();
    for rule in &mut access.rules {
        rule.to = moved(rule.to);
        rule.except = moved(rule.except);
    }
    access.local = moved(access.local);
    access.secret = moved(access.secret);
    access.anonymous = moved(access.anonymous);
    access.operators = access.operators.map(moved);
    Ok(access)
}

/// Refuses rules that allow a caller more than the compiled-in ones.
fn check_narrower(
    catalog: &'static Catalog,
    table: &AccessTable,
    given: &Access,
    matrix: &Matrix,
) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    for (key, given, compiled) in [
        ("local", given.local, table.local),
        ("secret", given.secret, table.secret),
        ("anonymous", given.anonymous, table.anonymous),
    ] {
        if !given.without(GroupSet::new(compiled)).is_empty() {
            let message =
                format!("`access.{key}` has a group that the compiled-in one does not have");
            problems.push(widens(&format!("/access/{key}"), message));
        }
    }
    let is_wider = match (given.operators, table.operators) {
        (Some(given), Some(compiled)) => !given.without(GroupSet::new(compiled)).is_empty(),
        (given, compiled) => given.is_some() != compiled.is_some(),
    };
    if is_wider {
        let message = "`access.operators` is not a part of the compiled-in one";
        problems.push(widens("/access/operators", message.to_owned()));
    }
    if given.denied == Denied::Forbidden && !table.is_forbidden_shown {
        let message = "`access.denied` is `forbidden`, and the compiled-in one is `hidden`";
        problems.push(widens("/access/denied", message.to_owned()));
    }
    let compiled = compiled_matrix(catalog, table);
    let widened = matrix.widened_from(&compiled);
    if !widened.is_empty() {
        let named = widened.iter().take(MAX_NAMED).map(|at| {
            let tool = catalog.item(*at as u32);
            format!("`{}`", catalog.entry(tool.entry).path)
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match widened.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message =
            format!("the rules of `access` allow more than the compiled-in ones at {named}{more}");
        problems.push(widens("/access/rules", message));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Returns the matrix that the catalog has.
fn compiled_matrix(catalog: &Catalog, table: &AccessTable) -> Matrix {
    let rows = catalog.items.iter().map(|tool| Row {
        allow: tool.allow,
        narrowed: tool.narrowed.to_vec(),
        deny: tool.deny.to_vec(),
    });
    let narrowings = table.narrowings.iter().map(|text| Narrowing {
        rule: 0,
        schema: read(text),
    });
    Matrix {
        rows: rows.collect(),
        narrowings: narrowings.collect(),
    }
}
