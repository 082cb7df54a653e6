//! The right to read a URI, which can belong to several entries: every one of them decides.

use std::collections::BTreeMap;

use harness::faults::scaled;
use percent_encoding::percent_decode_str;
use regex::Regex;
use serde_json::{Value, json};

use super::{Items, session};

/// The entries: leaf, and the URI or template.
const RESOURCES: [(&str, &str); 3] = [
    ("r_salaries", "docs://files/salaries"),
    ("r_plan", "docs://files/plan"),
    ("r_note", "docs://notes/a"),
];
const TEMPLATES: [(&str, &str); 3] = [
    ("t_files", "docs://files/{name}"),
    ("t_notes", "docs://notes/{name}"),
    ("t_any", "docs://{area}/{name}"),
];
const URIS: [&str; 18] = [
    "docs://files/salaries",
    "docs://files/plan",
    "docs://files/other",
    "docs://notes/a",
    "docs://notes/b",
    "docs://else/a",
    "docs://files/salarie%73",
    "docs://files/salarie%2573",
    "docs://files/SALARIES",
    "docs://files/salaries?q",
    "docs://files/salaries#f",
    "docs://files/plan%00.txt",
    "docs://files/plan.",
    "docs://FILES/plan",
    "docs://notes/%61",
    "docs://notes%2Fa/x",
    "docs:///files/plan",
    "other://files/plan",
];

/// A right to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    None,
    Narrowed,
    Whole,
}

fn lists() -> Value {
    let resources = RESOURCES.map(|(name, uri)| json!({"uri": uri, "name": name}));
    let templates =
        TEMPLATES.map(|(name, template)| json!({"uriTemplate": template, "name": name}));
    json!({"resources": resources, "templates": templates})
}

/// A server whose resources are locked, with these members of its source and of the config.
fn items(source: &Value, config: Value) -> Items {
    let items = Items::new(&lists(), source);
    let mut written: Value = serde_json::from_str(&items.0.read("c.json")).expect("JSON");
    for (name, value) in config.as_object().expect("members") {
        written[name] = value.clone();
    }
    items.0.write("c.json", &written.to_string());
    items
}

fn rules(rights: &BTreeMap<&str, Right>) -> Value {
    let rules = rights.iter().filter_map(|(leaf, right)| {
        let mut rule = json!({"to": ["some"], "allow": [format!("/a/{leaf}")]});
        match right {
            Right::None => return None,
            Right::Narrowed => rule["args"] = json!({"maxProperties": 9}),
            Right::Whole => {}
        }
        Some(rule)
    });
    let rules: Vec<_> = rules.collect();
    json!({"groups": ["some"], "anonymous": ["some"], "rules": rules})
}

/// The texts as which a server may read a URI.
fn readings(uri: &str) -> Vec<String> {
    let mut readings = Vec::new();
    let mut text = uri.to_owned();
    for _ in 0..4 {
        let lower = text.to_lowercase();
        let end = lower.find(['?', '#', '\0']).unwrap_or(lower.len());
        let base = lower[..end].trim_end_matches(['/', '.', ' ']);
        readings.extend([lower.clone(), lower[..end].to_owned(), base.to_owned()]);
        text = percent_decode_str(&text).decode_utf8_lossy().into_owned();
    }
    let single = Regex::new("/+").expect("a pattern");
    let plain = readings
        .iter()
        .map(|text| single.replace_all(text, "/").into_owned());
    plain.collect()
}

/// A template as a pattern for URIs with single slashes, or as they are written.
fn pattern(template: &str, is_plain: bool) -> Regex {
    let text = match is_plain {
        true => template.replace("//", "/"),
        false => template.to_owned(),
    };
    let parts: Vec<_> = text
        .split(['{', '}'])
        .enumerate()
        .map(|(at, part)| match at % 2 {
            0 => regex::escape(part),
            _ => "[^/?#]*".to_owned(),
        })
        .collect();
    Regex::new(&format!("^{}$", parts.concat())).expect("a pattern")
}

/// Whether the authority contains an encoded slash, so that parsers find different ones: then it may be any.
fn has_slash_in_authority(uri: &str) -> bool {
    let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.contains("%2F")
}

/// The entries that a server may mean by a URI.
fn entries_of(uri: &str) -> Vec<&'static str> {
    if has_slash_in_authority(uri) {
        let all = RESOURCES.iter().chain(&TEMPLATES);
        return all.map(|(leaf, _)| *leaf).collect();
    }
    let readings = readings(uri);
    let is_resource = |own: &str| readings.contains(&own.replace("//", "/"));
    let is_of = |template: &str| {
        let plain = pattern(template, true);
        pattern(template, false).is_match(uri) || readings.iter().any(|text| plain.is_match(text))
    };
    let resources = RESOURCES.iter().filter(|(_, own)| is_resource(own));
    let templates = TEMPLATES.iter().filter(|(_, template)| is_of(template));
    resources.chain(templates).map(|(leaf, _)| *leaf).collect()
}

/// Whether the broker knows a URI as it is written.
fn is_known(uri: &str) -> bool {
    RESOURCES.iter().any(|(_, own)| *own == uri)
        || TEMPLATES
            .iter()
            .any(|(_, template)| pattern(template, false).is_match(uri))
}

#[test]
fn uri_is_read_only_by_callers_of_every_entry_that_it_may_belong_to() {
    let mut seed = 7_usize;
    let mut below = |end: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..scaled("MCP_BROKER_URI_RULES", 8) {
        let leaves = RESOURCES.iter().chain(&TEMPLATES).map(|(leaf, _)| *leaf);
        // Most entries are callable, so that both outcomes are frequent.
        let rights: BTreeMap<_, _> = leaves
            .map(|leaf| {
                let right = match below(8) {
                    0 => Right::None,
                    1 => Right::Narrowed,
                    _ => Right::Whole,
                };
                (leaf, right)
            })
            .collect();
        let items = items(
            &json!({"resources": "locked", "resource_filter": ["docs://*"]}),
            json!({"access": rules(&rights)}),
        );
        let broker = items.serve();
        let session = session(&broker);
        for uri in URIS {
            let may_read = is_known(uri)
                && entries_of(uri)
                    .iter()
                    .all(|leaf| rights[leaf] == Right::Whole);
            let before = items.requests().len();
            let answer = session
                .ask(&json!(1), "resources/read", &json!({"uri": uri}))
                .json();
            assert_eq!(
                answer["error"].is_null(),
                may_read,
                "{uri} {rights:?}: {answer}"
            );
            if !may_read {
                assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
            }
            assert_eq!(
                items.requests().len() - before,
                usize::from(may_read),
                "{uri}"
            );
            *if may_read { &mut read } else { &mut refused } += 1;
        }
        // By a template, whose own rule about arguments accepts them.
        for (name, uri) in [
            ("salaries", "docs://files/salaries"),
            ("salarie%73", "docs://files/salarie%2573"),
            ("plan", "docs://files/plan"),
            ("other", "docs://files/other"),
        ] {
            let others = entries_of(uri)
                .into_iter()
                .filter(|leaf| *leaf != "t_files");
            let may_call = rights["t_files"] != Right::None
                && others.into_iter().all(|leaf| rights[leaf] == Right::Whole);
            let reply = broker.call("/a/t_files", json!({"name": name}));
            assert_eq!(
                reply.status == 200,
                may_call,
                "{name} {rights:?}: {}",
                reply.text()
            );
        }
    }
    assert!(read > 10 && refused > 10, "{read} {refused}");
}

#[test]
fn denied_resource_is_as_unknown_as_an_excluded_one() {
    let all = RESOURCES.iter().chain(&TEMPLATES).map(|(leaf, _)| {
        let right = if *leaf == "r_salaries" {
            Right::None
        } else {
            Right::Whole
        };
        (*leaf, right)
    });
    let denied = items(
        &json!({"resources": "locked", "resource_filter": ["docs://*"]}),
        json!({"access": rules(&all.collect())}),
    );
    let excluded = items(
        &json!({"resources": "locked", "resource_filter": ["docs://*", "!docs://files/salaries"]}),
        json!({}),
    );
    let (denied, excluded) = (denied.serve(), excluded.serve());
    let sessions = [session(&denied), session(&excluded)];
    for uri in URIS {
        let [one, other] = sessions.each_ref().map(|session| {
            let answer = session.ask(&json!(1), "resources/read", &json!({"uri": uri}));
            answer.json()["error"].clone()
        });
        assert_eq!(one, other, "{uri}");
    }
}
