//! Decisions over closed lists of cases have an arm for each case: a new case does not compile before each of them
//! decides it. This includes the code that declares a list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rust_text::{arms, closing, code_of, holds, masked, pattern_of_let, split_at_depth_0};
use super::tidy::{is_test, sources};

/// The lists: drift classes, causes of sources, kinds of items, and codes.
const LISTS: [&str; 6] = [
    "Class",
    "SourceCause",
    "ItemKind",
    "CallCode",
    "LeftOutCode",
    "DiagnosticCode",
];
/// The files whose `Self` is one of them.
const DECLARED: [&str; 3] = [
    "crates/drift/src/class.rs",
    "crates/model/src/codes.rs",
    "crates/model/src/item.rs",
];
/// A package that does not know drift classes, and has another type of this name.
const OTHER_CLASS: &str = "crates/schema";

#[test]
fn decisions_over_closed_lists_have_an_arm_for_each_case() {
    let (mut problems, mut decisions) = (Vec::new(), 0);
    for (path, text) in sources() {
        let is_own_test = path
            .file_stem()
            .is_some_and(|stem| stem.to_string_lossy().ends_with("_tests"));
        if is_test(&path) || is_own_test {
            continue;
        }
        let is_other = path.starts_with(OTHER_CLASS);
        let mut names: Vec<&str> = LISTS.to_vec();
        names.retain(|name| !is_other || *name != "Class");
        if DECLARED.iter().any(|file| path == Path::new(file)) {
            names.push("Self");
        }
        let found = Scan::of(&text, &names);
        decisions += found.decisions;
        for (line, what) in found.problems {
            problems.push(format!("{}:{line}: {what}", path.display()));
        }
    }
    problems.sort();
    assert!(
        problems.is_empty(),
        "decide each case of the list, in a `match` without a catch-all, or compare with `==`: {problems:#?}"
    );
    assert!(decisions > 30, "the scan finds {decisions} decisions");
}

/// The decisions of a file over closed lists.
#[derive(Default)]
struct Scan {
    /// The number of `match`es with an arm of a list.
    decisions: usize,
    /// Lines, and what is not exhaustive there.
    problems: Vec<(usize, String)>,
}

impl Scan {
    fn of(text: &str, lists: &[&str]) -> Self {
        let code = masked(code_of(text));
        let mut names: BTreeSet<String> = lists.iter().map(|name| (*name).to_owned()).collect();
        let words: Vec<&str> = code.split_whitespace().collect();
        for window in words.windows(3) {
            let last = window[0].rsplit([':', '{', ',']).next().unwrap_or_default();
            if window[1] == "as" && lists.contains(&last) {
                let alias = window[2].trim_end_matches([',', ';', '}']);
                names.insert(alias.to_owned());
            }
        }
        let names_case = |text: &str| {
            let is_case = |name: &String| holds(text, &format!("{name}::"), |c| c.is_uppercase());
            names.iter().any(is_case)
        };
        let mut found = Self::default();
        let line = |at: usize| code[..at].matches('\n').count() + 1;
        for (at, _) in code.match_indices("matches!(") {
            let open = at + "matches!".len();
            if names_case(&code[open..closing(&code, open)]) {
                found.problems.push((line(at), "`matches!`".to_owned()));
            }
        }
        for (at, _) in code.match_indices("match ") {
            if is_word_end(&code[..at]) {
                continue;
            }
            let Some(body) = body_of(&code, at) else {
                continue;
            };
            let arms = arms(body);
            if arms.iter().any(|(pattern, _)| names_case(pattern)) {
                found.decisions += 1;
                if let Some(catch) = catch_all(&arms, &names_case) {
                    found
                        .problems
                        .push((line(at), format!("the arm `{catch}`")));
                }
            }
        }
        for (at, _) in code.match_indices("let ") {
            if !is_word_end(&code[..at]) && names_case(pattern_of_let(&code[at + 4..])) {
                found.problems.push((line(at), "`let`".to_owned()));
            }
        }
        for (at, _) in code.match_indices("use ") {
            let rest = &code[at..];
            let import = &rest[..rest.find(';').unwrap_or(rest.len())];
            let hides = |name: &String| {
                holds(import, &format!("{name}::"), |c| {
                    c.is_uppercase() || c == '{' || c == '*'
                })
            };
            if !is_word_end(&code[..at]) && names.iter().any(hides) {
                found.problems.push((line(at), "`use` of cases".to_owned()));
            }
        }
        found
    }
}

fn is_word_end(before: &str) -> bool {
    before
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// The arms of a `match` as one text.
fn body_of(code: &str, at: usize) -> Option<&str> {
    let mut depth = 0usize;
    for (index, c) in code[at..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            '{' if depth == 0 => {
                let open = at + index;
                return Some(&code[open + 1..closing(code, open)]);
            }
            _ => {}
        }
    }
    None
}

/// An arm without a guard that accepts every case of a list, if there is one.
fn catch_all<'a>(arms: &[(&'a str, bool)], names_case: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    let mut named: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (pattern, _) in arms {
        for (at, part) in positions(pattern) {
            if names_case(part) {
                named.entry(at).or_default().push(part);
            }
        }
    }
    let catches_case = |pattern: &str| {
        let mut parts = positions(pattern).into_iter();
        parts.any(|(at, part)| {
            let whole = named.keys().next().is_some() && at == 0 && catches(pattern, &[]);
            whole || named.get(&at).is_some_and(|named| catches(part, named))
        })
    };
    let unguarded = arms.iter().filter(|(_, is_guarded)| !is_guarded);
    let mut patterns = unguarded.map(|(pattern, _)| *pattern);
    patterns.find(|pattern| catches_case(pattern))
}

/// The parts of the alternatives of a pattern, each with its place in a tuple.
fn positions(pattern: &str) -> Vec<(usize, &str)> {
    let alternatives = split_at_depth_0(pattern, '|');
    let parts = alternatives.into_iter().flat_map(|alternative| {
        let inner = alternative
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let parts = inner.map_or(vec![alternative], |inner| split_at_depth_0(inner, ','));
        parts.into_iter().enumerate()
    });
    parts.collect()
}

/// Whether a part of a pattern accepts each case. Beside `Some(Class::Same)`, this is also `Some(_)`.
fn catches(part: &str, named: &[&str]) -> bool {
    let part = part.trim();
    let bound = part.trim_start_matches("ref ").trim_start_matches("mut ");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_binding = bound.chars().all(is_name)
        && bound
            .chars()
            .next()
            .is_some_and(|c| c.is_lowercase() || c == '_');
    if is_binding || part == ".." {
        return !matches!(part, "true" | "false");
    }
    let Some((wrapper, inner)) = wrapped(part) else {
        return false;
    };
    let same = named
        .iter()
        .flat_map(|named| split_at_depth_0(named, '|'))
        .filter_map(wrapped);
    let inner_named: Vec<&str> = same
        .filter(|(other, _)| *other == wrapper)
        .map(|(_, inner)| inner)
        .collect();
    !inner_named.is_empty() && catches(inner, &inner_named)
}

/// The constructor and the inner pattern of `Some(…)`.
fn wrapped(part: &str) -> Option<(&str, &str)> {
    let (wrapper, rest) = part.trim().split_once('(')?;
    Some((wrapper, rest.strip_suffix(')')?))
}

#[test]
fn scan_finds_what_accepts_a_case_that_no_arm_names() {
    let refused = [
        "match c { Class::Same => 1, _ => 2 }",
        "match c { Class::Same => 1, other => other.x() }",
        "match c { Class::Same => { a }\n  ref other => 2, }",
        "match x.map(|y| { y }) { Some(Class::Same) => 1, Some(_) | None => 2 }",
        "match x { Some(Class::Same) => 1, Some(class) => 2, None => 3 }",
        "match (c, x) { (Class::Same, _) => 1, (_, true) => 2, (_, false) => 3 }",
        "match (c, x) { (Class::Same, true) => 1, _ => 2 }",
        "match c { Class::Same | Class::Gone => match d { A => 1, B => 2 }, _ => 3 }",
        "match d { A => match c { Class::Same => 1, _ => 2 }, B => 2 }",
        "matches!(c, Class::Same)",
        "if matches!(x, Some(Class::Same | Class::Gone) if y) {}",
        "if let Some(Class::Same) = x {}",
        "let Class::Same = x else { return };",
        "use drift::Class::{Same, Gone};",
        "use drift::Class::*;",
        "use model::DiagnosticCode as Code;\nmatch c { Code::A => 1, _ => 2 }",
    ];
    for code in refused {
        let found = Scan::of(code, &LISTS).problems;
        assert_eq!(found.len(), 1, "{code}: {found:?}");
    }
    let accepted = [
        "match c { Class::Same => 1, Class::Gone => 2 }",
        "match c { Class::Same => 1, _ if x => 2, Class::Gone => 3 }",
        "match x { Some(Class::Same) => 1, Some(Class::Gone) => 2, None => 3 }",
        "match (c, x) { (Class::Same, _) => 1, (Class::Gone, y) => y }",
        "match (c, x) { (Class::Same, true) => 1, (Class::Same | Class::Gone, false) => 2 }",
        "match x { Ok(Class::Same) => 1, Ok(Class::Gone) => 3, Err(_) => 2 }",
        "match kind { Kind::A => Class::Same, _ => Class::Gone }",
        "match x { 0 => 1, _ => { if c == Class::Same { 2 } else { 3 } } }",
        "match c == Class::Same { true => 1, false => 2 }",
        "let class = Class::Same; let x: Class = y;",
        "// match c { Class::Same => 1, _ => 2 }\nlet x = \"matches!(c, Class::Same)\";",
        "let c = '{'; match c { Class::Same => '}', Class::Gone => '\\'' }",
        "matches!(x, HirKind::Class(y)); SubClass::A",
        "use drift::Class; use Class as Other;",
        "#[cfg(test)]\nmod tests {\n matches!(c, Class::Same) }",
    ];
    for code in accepted {
        let found = Scan::of(code, &LISTS).problems;
        assert_eq!(found, [], "{code}");
    }
    let found = Scan::of("fn f() {\n match c { Class::Same => 1, _ => 2 }\n}", &LISTS);
    assert_eq!(found.problems, [(2, "the arm `_`".to_owned())]);
    assert_eq!(found.decisions, 1);
}

/// A list `ALL` of an enum that lacks a case hides it from every page and test that reads the list.
#[test]
fn lists_of_all_cases_have_each_case_once() {
    let texts: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, masked(code_of(&text))))
        .collect();
    let mut checked = Vec::new();
    for (path, code) in &texts {
        for (at, _) in code.match_indices("const ALL: [Self; ") {
            let name = type_of_impl(&code[..at]);
            let folder = path.parent().expect("a file is in a folder");
            let in_folder = texts.iter().filter(|(path, _)| path.starts_with(folder));
            let cases = in_folder
                .filter_map(|(_, code)| cases_of_enum(code, name))
                .next();
            let cases = cases.unwrap_or_else(|| panic!("{}: {name}", path.display()));
            let open = at + code[at..].find("= [").expect("a list") + 2;
            let listed = split_at_depth_0(&code[open + 1..closing(code, open)], ',');
            let listed: Vec<_> = listed
                .into_iter()
                .map(|case| case.trim_start_matches("Self::"))
                .collect();
            let once: BTreeSet<_> = listed.iter().copied().collect();
            assert_eq!(listed.len(), once.len(), "{}: {name}", path.display());
            assert_eq!(once, cases, "{}: {name}", path.display());
            checked.push(name);
        }
    }
    for name in ["Class", "Exit", "ItemKind", "TrustLevel"] {
        assert!(checked.contains(&name), "{checked:?}");
    }
}

/// The type of the last `impl`.
fn type_of_impl(before: &str) -> &str {
    let (_, rest) = before.rsplit_once("impl ").expect("the list is in an impl");
    let header = rest.split('{').next().unwrap_or_default().trim();
    header.rsplit(' ').next().unwrap_or_default()
}

/// The cases of an enum, if this code declares it.
fn cases_of_enum<'a>(code: &'a str, name: &str) -> Option<BTreeSet<&'a str>> {
    let begin = format!("enum {name} {{");
    let open = code.find(&begin)? + begin.len() - 1;
    let cases = split_at_depth_0(&code[open + 1..closing(code, open)], ',');
    let name = |case: &'a str| {
        let mut rest = case.trim();
        while let Some(attribute) = rest.strip_prefix('#') {
            rest = attribute[closing(attribute, 0) + 1..].trim_start();
        }
        let end = rest.find(|c: char| !c.is_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    };
    Some(cases.into_iter().map(name).collect())
}
