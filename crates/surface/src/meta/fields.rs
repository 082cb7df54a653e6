//! The bodies of `meta_tree`, `meta_desc` and `retrieve_tools`. Core checks whether a path is well-formed and exists.

use serde_json::{Map, Value, json};

use super::members::{field_invalid, integer, object, path_type, remove_absent, utf8};
use broker_core::{CoreError, DEFAULT_HITS, MAX_DEPTH, MAX_DESCRIBED, MAX_HITS};

/// A checked `meta_tree` body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeBody {
    /// `None` for the top of what the caller sees.
    pub(super) path: Option<String>,
    pub(super) what: TreeRequest,
    /// What was not used of the body.
    pub(super) warnings: Vec<&'static str>,
}

/// What `meta_tree` answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TreeRequest {
    /// The entries below the path, so many levels deep.
    List { depth: u8 },
    /// The tools below the path that fit a query.
    Search { query: String, limit: usize },
}

/// A checked `meta_desc` body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DescBody {
    /// `{"path":…}`
    One(String),
    /// `{"paths":[…]}`
    Many(Vec<String>),
}

/// A checked `meta_desc` body with its flag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DescRequest {
    pub(super) what: DescBody,
    /// Whether all members are wanted where the form knows fewer.
    pub(super) is_full: bool,
    /// What is unusual in the body.
    pub(super) warnings: Vec<&'static str>,
}

/// A tree request with a query and the depth of a listing.
const QUERY_WINS: &str = "`depth` was not used: `query` searches, and `depth` is for a listing";
/// A tree request with the number of hits, and no query.
const LIMIT_NEEDS_QUERY: &str = "`limit` was not used: it needs a `query`";
/// A description with both members that name paths.
const BOTH_DESCRIBED: &str = "`path` and `paths` were both given: both are described";

/// The form of a body. It differs between surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// The form of the meta API.
    Http,
    /// Over MCP `meta_desc` takes `full`, and the path of a node may end with `/`, as texts show it.
    Mcp,
}

impl BodyForm {
    /// The path that a caller means.
    pub(super) fn path(self, text: &str) -> &str {
        match (self, text.strip_suffix('/')) {
            (Self::Mcp, Some(node)) if !node.is_empty() => node,
            _ => text,
        }
    }

    /// [`Self::path`] without a copy.
    fn owned(self, mut text: String) -> String {
        text.truncate(self.path(&text).len());
        text
    }

    const fn desc_members(self) -> &'static [&'static str] {
        match self {
            Self::Http => &["path", "paths"],
            Self::Mcp => &["path", "paths", "full"],
        }
    }
}

/// A checked body of `retrieve_tools`.
#[derive(Debug, PartialEq, Eq)]
pub struct RetrieveBody {
    pub query: String,
    pub limit: Option<usize>,
}

impl RetrieveBody {
    pub fn parse(body: &[u8]) -> Result<Self, Box<CoreError>> {
        let mut members = object(utf8(body)?, &["query", "limit"])?;
        remove_absent(&mut members, &["limit"]);
        let limit = integer(&members, "limit", MAX_HITS as u64)?;
        match members.remove("query") {
            Some(Value::String(query)) => Ok(Self {
                query,
                limit: limit.map(|limit| limit as usize),
            }),
            None | Some(Value::Null) => Err(field_invalid("`query` is missing")),
            Some(_) => Err(field_invalid("`query` must be a string")),
        }
    }
}

impl TreeBody {
    pub(super) fn parse(text: &str) -> Result<Self, Box<CoreError>> {
        const MEMBERS: [&str; 4] = ["path", "depth", "query", "limit"];
        let mut members = object(text, &MEMBERS)?;
        remove_absent(&mut members, &MEMBERS);
        let path = match members.remove("path") {
            None => None,
            Some(Value::String(path)) => Some(path),
            Some(_) => return Err(path_type()),
        };
        let depth = integer(&members, "depth", u64::from(MAX_DEPTH))?;
        let limit = integer(&members, "limit", MAX_HITS as u64)?;
        let (what, unused) = match members.remove("query") {
            None => {
                let depth = depth.unwrap_or(1) as u8;
                let unused = limit.map(|_| LIMIT_NEEDS_QUERY);
                (TreeRequest::List { depth }, unused)
            }
            Some(Value::String(query)) => {
                let limit = limit.map_or(DEFAULT_HITS, |limit| limit as usize);
                (
                    TreeRequest::Search { query, limit },
                    depth.map(|_| QUERY_WINS),
                )
            }
            Some(_) => return Err(field_invalid("`query` must be a string")),
        };
        Ok(Self {
            path,
            what,
            warnings: unused.into_iter().collect(),
        })
    }
}

impl DescRequest {
    pub(super) fn parse(text: &str, form: BodyForm) -> Result<Self, Box<CoreError>> {
        let known = form.desc_members();
        let mut members = object(text, known)?;
        // A program that describes a list may have an empty one.
        let is_empty_list = !members.contains_key("path")
            && members
                .get("paths")
                .and_then(Value::as_array)
                .is_some_and(Vec::is_empty);
        remove_absent(&mut members, known);
        if is_empty_list {
            members.insert("paths".to_owned(), json!([]));
        }
        let is_full = match members.remove("full") {
            None => false,
            Some(Value::Bool(is_full)) => is_full,
            Some(Value::String(word)) if word == "true" || word == "false" => word == "true",
            Some(_) => return Err(field_invalid("`full` must be true or false")),
        };
        let has_both = members.contains_key("path") && members.contains_key("paths");
        Ok(Self {
            what: DescBody::parse(members, form)?,
            is_full,
            warnings: has_both.then_some(BOTH_DESCRIBED).into_iter().collect(),
        })
    }
}

impl DescBody {
    fn parse(mut members: Map<String, Value>, form: BodyForm) -> Result<Self, Box<CoreError>> {
        let one = match members.remove("path") {
            None => None,
            Some(Value::String(path)) => Some(form.owned(path)),
            Some(_) => return Err(path_type()),
        };
        let paths = match members.remove("paths") {
            None => {
                return one
                    .map(Self::One)
                    .ok_or_else(|| field_invalid("give `path` or `paths`"));
            }
            Some(Value::Array(paths)) => paths,
            Some(_) => return Err(paths_type()),
        };
        let mut all: Vec<String> = one.iter().cloned().collect();
        for path in paths {
            match path {
                Value::String(path) => all.push(form.owned(path)),
                _ => return Err(paths_type()),
            }
            // The one of `path` is not described twice.
            if one.is_some() && all.last() == one.as_ref() {
                all.pop();
            }
        }
        match all.len() <= MAX_DESCRIBED {
            true => Ok(Self::Many(all)),
            false => Err(paths_type()),
        }
    }
}

fn paths_type() -> Box<CoreError> {
    field_invalid(format!(
        "`paths` must be a list of at most {MAX_DESCRIBED} strings"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::CallCode;

    #[test]
    fn tree_body_is_parsed_or_refused() {
        let tree = |path: Option<&str>, depth| TreeBody {
            path: path.map(str::to_owned),
            what: TreeRequest::List { depth },
            warnings: Vec::new(),
        };
        let search = |query: &str, limit| TreeBody {
            path: None,
            what: TreeRequest::Search {
                query: query.to_owned(),
                limit,
            },
            warnings: Vec::new(),
        };
        assert_eq!(TreeBody::parse(r#"{"query":"x"}"#).unwrap(), search("x", 5));
        assert_eq!(
            TreeBody::parse(r#"{"query":"x","limit":"50"}"#).unwrap(),
            search("x", 50)
        );
        for absent in ["null", r#""""#, "[]"] {
            let text = format!(
                r#"{{"path":{absent},"depth":{absent},"query":{absent},"limit":{absent}}}"#
            );
            assert_eq!(TreeBody::parse(&text).unwrap(), tree(None, 1), "{text}");
            let text = format!(r#"{{"query":"x","depth":{absent},"limit":{absent}}}"#);
            assert_eq!(TreeBody::parse(&text).unwrap(), search("x", 5), "{text}");
        }
        let both = TreeBody::parse(r#"{"query":"x","depth":1}"#).unwrap();
        assert_eq!(
            (both.what, both.warnings),
            (search("x", 5).what, vec![QUERY_WINS])
        );
        let unused = TreeBody::parse(r#"{"limit":5,"depth":"2"}"#).unwrap();
        assert_eq!(
            (unused.what, unused.warnings),
            (TreeRequest::List { depth: 2 }, vec![LIMIT_NEEDS_QUERY])
        );
        assert_eq!(TreeBody::parse("{}").unwrap(), tree(None, 1));
        assert_eq!(
            TreeBody::parse(r#"{"path":"/a","depth":16}"#).unwrap(),
            tree(Some("/a"), 16)
        );
        for (text, code) in [
            (r#"{"path":1}"#, CallCode::PathInvalid),
            (r#"{"path":[1]}"#, CallCode::PathInvalid),
            (r#"{"depth":" 1"}"#, CallCode::FieldInvalid),
            (r#"{"depth":"+1"}"#, CallCode::FieldInvalid),
            (r#"{"depth":"1.0"}"#, CallCode::FieldInvalid),
            (
                r#"{"depth":"99999999999999999999"}"#,
                CallCode::FieldInvalid,
            ),
            (r#"{"depth":0}"#, CallCode::FieldInvalid),
            (r#"{"depth":17}"#, CallCode::FieldInvalid),
            (r#"{"depth":-1}"#, CallCode::FieldInvalid),
            (r#"{"depth":1.5}"#, CallCode::FieldInvalid),
            (r#"{"deph":1}"#, CallCode::FieldUnknown),
            (r#"{"query":1}"#, CallCode::FieldInvalid),
            (r#"{"query":"x","limit":0}"#, CallCode::FieldInvalid),
            (r#"{"query":"x","limit":51}"#, CallCode::FieldInvalid),
            (r#"{"depth":1,"depth":1}"#, CallCode::JsonInvalid),
            ("[]", CallCode::JsonInvalid),
            ("", CallCode::JsonInvalid),
        ] {
            assert_eq!(TreeBody::parse(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn desc_body_is_parsed_or_refused() {
        let desc =
            |text: &str| DescRequest::parse(text, BodyForm::Http).map(|request| request.what);
        assert_eq!(
            desc(r#"{"path":"/a"}"#).unwrap(),
            DescBody::One("/a".to_owned())
        );
        assert_eq!(
            desc(r#"{"paths":["/b","/a"]}"#).unwrap(),
            DescBody::Many(vec!["/b".to_owned(), "/a".to_owned()])
        );
        assert_eq!(
            desc(r#"{"path":"/a","paths":[]}"#).unwrap(),
            DescBody::One("/a".to_owned())
        );
        assert_eq!(desc(r#"{"paths":[]}"#).unwrap(), DescBody::Many(Vec::new()));
        let both = r#"{"path":"/a","paths":["/b","/a"]}"#;
        let both = DescRequest::parse(both, BodyForm::Http).unwrap();
        let all = DescBody::Many(vec!["/a".to_owned(), "/b".to_owned()]);
        assert_eq!((both.what, both.warnings), (all, vec![BOTH_DESCRIBED]));
        let many = |count: usize| json!({ "paths": vec!["/a"; count] }).to_string();
        assert!(desc(&many(50)).is_ok());
        for (text, code) in [
            (many(51).as_str(), CallCode::FieldInvalid),
            ("{}", CallCode::FieldInvalid),
            (r#"{"path":"","paths":[]}"#, CallCode::FieldInvalid),
            (r#"{"path":null}"#, CallCode::FieldInvalid),
            (r#"{"path":[1]}"#, CallCode::PathInvalid),
            (r#"{"paths":"/a"}"#, CallCode::FieldInvalid),
            (r#"{"paths":["/a",1]}"#, CallCode::FieldInvalid),
            (r#"{"pats":[]}"#, CallCode::FieldUnknown),
            (r#"{"path":"/a","full":true}"#, CallCode::FieldUnknown),
        ] {
            assert_eq!(desc(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn body_over_mcp_may_ask_for_all_members_and_end_a_path_with_a_slash() {
        let parse = |text: &str| DescRequest::parse(text, BodyForm::Mcp);
        let one = |path: &str, is_full| DescRequest {
            what: DescBody::One(path.to_owned()),
            is_full,
            warnings: Vec::new(),
        };
        assert_eq!(
            parse(r#"{"path":"/a","full":"true"}"#).unwrap(),
            one("/a", true)
        );
        assert_eq!(parse(r#"{"path":"/a/"}"#).unwrap(), one("/a", false));
        let full = parse(r#"{"path":"/a","full":true}"#).unwrap();
        assert_eq!(full, one("/a", true));
        let many = parse(r#"{"paths":["/a/","/"]}"#).unwrap().what;
        assert_eq!(many, DescBody::Many(vec!["/a".to_owned(), "/".to_owned()]));
        let error = parse(r#"{"path":"/a","full":1}"#).unwrap_err();
        assert_eq!(error.code, CallCode::FieldInvalid);
        assert_eq!(BodyForm::Http.path("/a/"), "/a/");
    }
}
