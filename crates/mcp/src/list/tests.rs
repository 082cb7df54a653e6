//! Pages that follow the protocol, and pages that do not.

use broker_model::left_out::LeftOut;
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::trust::Exposure;
use broker_model::{LeftOutCode, SourceCause};

use super::element::MAX_TOOL_BYTES;
use super::listing::{Listing, MAX_CURSOR_BYTES, MAX_REPEATED_PAGES, MAX_TOOLS};
use super::{List, PROMPTS, RESOURCES, TEMPLATES, TOOLS};

/// The outcome of some pages.
struct Added {
    names: Vec<String>,
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
    /// The cursor after the last page.
    cursor: Option<String>,
}

fn add_to(list: List, exposure: Exposure, pages: &[&str]) -> Result<Added, String> {
    let mut listing = Listing::new(4 << 20, exposure, Redactor::default());
    listing.begin(list);
    let mut cursor = None;
    for page in pages {
        cursor = listing.add_page(page.as_bytes()).map_err(|failure| {
            assert_eq!(failure.cause, SourceCause::ListInvalid);
            failure.message
        })?;
        if cursor.is_none() {
            break;
        }
    }
    let (tools, left_out, warnings) = listing.finish();
    Ok(Added {
        names: tools.iter().map(|tool| tool.name().to_owned()).collect(),
        left_out,
        warnings,
        cursor,
    })
}

fn add(pages: &[&str]) -> Added {
    add_to(TOOLS, Exposure::expose_all(), pages).expect("a list")
}

fn page(tools: &str, cursor: &str) -> String {
    format!(r#"{{"tools":[{tools}],"nextCursor":{cursor}}}"#)
}

#[test]
fn list_ends_at_a_null_cursor_and_continues_at_others() {
    let first = page(r#"{"name":"a"}"#, r#""""#);
    assert_eq!(add(&[&first]).cursor.as_deref(), Some(""));
    let both = add(&[&first, &page(r#"{"name":"b"}"#, "null")]);
    assert_eq!(both.names, ["a", "b"]);
    assert!(both.cursor.is_none() && both.left_out.is_empty() && both.warnings.is_empty());
    assert!(add(&[r#"{"tools":[],"resultType":null}"#]).names.is_empty());
}

#[test]
fn cursor_that_was_seen_ends_the_list_with_a_warning() {
    for cursor in [r#""""#, r#""x\u001b[31m""#] {
        let same = page(r#"{"name":"a"}"#, cursor);
        let added = add(&[&same, &same, "not read"]);
        assert_eq!(added.names, ["a"]);
        assert!(added.left_out.is_empty(), "it is complete");
        let [warning] = &added.warnings[..] else {
            panic!("{:?}", added.warnings)
        };
        assert!(
            warning.contains("a cursor that was seen before"),
            "{warning}"
        );
        assert!(!warning.contains('\u{1b}'), "{warning}");
    }
    let long = page("", &format!("\"{}\"", "c".repeat(300)));
    let warning = add(&[&long, &long]).warnings.remove(0);
    assert!(warning.contains(&"c".repeat(99)) && !warning.contains(&"c".repeat(100)));
}

#[test]
fn tenth_page_without_a_new_tool_ends_the_list() {
    let pages: Vec<String> = (0..=MAX_REPEATED_PAGES)
        .map(|at| page(r#"{"name":"a"}"#, &format!("\"{at}\"")))
        .collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let most = add(&pages[..MAX_REPEATED_PAGES]);
    assert!(most.cursor.is_some() && most.warnings.is_empty());
    let all = add(&pages);
    assert!(all.cursor.is_none() && all.left_out.is_empty());
    assert_eq!(all.names, ["a"]);
    assert!(
        all.warnings[0].contains("10 pages in a row"),
        "{:?}",
        all.warnings
    );
}

#[test]
fn tool_that_cannot_be_used_is_left_out_alone() {
    for (odd, code, place, reason) in [
        ("7", LeftOutCode::NotAnObject, "", "not an object"),
        (
            "{}",
            LeftOutCode::NameInvalid,
            "/name",
            "`name` is not a string",
        ),
        (
            r#"{"name":7}"#,
            LeftOutCode::NameInvalid,
            "/name",
            "not a string",
        ),
        (
            r#"{"name":""}"#,
            LeftOutCode::NameInvalid,
            "/name",
            "is empty",
        ),
        (
            r#"{"name":"prompt:x"}"#,
            LeftOutCode::NameInvalid,
            "/name",
            "like the key",
        ),
        (
            r#"{"name":"o","description":7}"#,
            LeftOutCode::MemberInvalid,
            "/description",
            "`description` is not a string",
        ),
        (
            r#"{"name":"o","title":[]}"#,
            LeftOutCode::MemberInvalid,
            "/title",
            "not a string",
        ),
        (
            r#"{"name":"o","inputSchema":"x"}"#,
            LeftOutCode::MemberInvalid,
            "/inputSchema",
            "not an object",
        ),
        (
            r#"{"name":"o","inputSchema":null}"#,
            LeftOutCode::MemberInvalid,
            "/inputSchema",
            "not an object",
        ),
        (
            r#"{"name":"o","x":{"y":1,"y":2}}"#,
            LeftOutCode::JsonInvalid,
            "",
            "duplicate key `y`",
        ),
        (
            r#"{"name":"o","x":1e10001}"#,
            LeftOutCode::JsonInvalid,
            "",
            "the number `1e10001`",
        ),
    ] {
        let text = page(&format!(r#"{{"name":"a"}},{odd},{{"name":"b"}}"#), "null");
        let added = add(&[&text]);
        assert_eq!(added.names, ["a", "b"], "{odd}");
        let [part] = &added.left_out[..] else {
            panic!("{odd}: {:?}", added.left_out)
        };
        assert_eq!((part.code, part.place.as_str()), (code, place), "{odd}");
        assert!(part.reason.contains(reason), "{odd}: {}", part.reason);
        assert_eq!(part.digest, LeftOut::digest_of(odd));
    }
}

#[test]
fn null_stands_for_the_lack_of_an_optional_member() {
    let text = page(
        r#"{"name":"a","title":null,"description":null,"outputSchema":null,"annotations":null,"icons":null,"_meta":null}"#,
        "null",
    );
    let added = add(&[&text]);
    assert_eq!((added.names.len(), added.left_out.len()), (1, 0));
    let text =
        r#"{"prompts":[{"name":"p","description":null,"arguments":null}],"nextCursor":null}"#;
    let added = add_to(PROMPTS, Exposure::expose_all(), &[text]).expect("a list");
    assert_eq!((added.names.len(), added.left_out.len()), (1, 0));
}

#[test]
fn tool_defined_twice_counts_once_or_is_left_out() {
    let twice = |first: &str, second: &str| {
        let text = page(&format!(r#"{first},{{"name":"b"}},{second}"#), "null");
        add(&[&text])
    };
    let same = twice(r#"{"name":"a"}"#, r#"{"name":"a"}"#);
    assert_eq!((same.names.len(), same.left_out.len()), (2, 0));
    for (first, second) in [
        (r#"{"name":"a"}"#, r#"{"name":"a","title":"A"}"#),
        (r#"{"name":"a"}"#, r#"{"name":"a","title":7}"#),
    ] {
        let other = twice(first, second);
        assert_eq!(other.names, ["b"]);
        assert_eq!(other.left_out.len(), 1);
        assert_eq!(other.left_out[0].code, LeftOutCode::DefinedTwice);
        assert_eq!(other.left_out[0].name.as_deref(), Some("a"));
    }
}

#[test]
fn hidden_tool_costs_nothing_however_odd_it_is() {
    let exposure = || {
        let filter = broker_model::filter::ToolFilter::compile(&["!odd"]).expect("a filter");
        Exposure::new(
            filter,
            broker_model::trust::TrustLevel::Trusted,
            std::sync::Arc::default(),
        )
    };
    for odd in [
        r#"{"name":"odd","description":7}"#.to_owned(),
        r#"{"name":"odd","x":{"y":1,"y":2}}"#.to_owned(),
        format!(r#"{{"name":"odd","x":"{}"}}"#, "x".repeat(MAX_TOOL_BYTES)),
        r#"{"name":"odd"},{"name":"odd","title":"A"}"#.to_owned(),
    ] {
        let text = page(&format!(r#"{{"name":"a"}},{odd}"#), "null");
        let added = add_to(TOOLS, exposure(), &[&text]).expect("a list");
        assert_eq!(added.names, ["a", "odd"]);
        assert!(added.left_out.is_empty(), "{:?}", added.left_out);
    }
}

#[test]
fn prompts_templates_and_resources_are_left_out_one_by_one() {
    for (list, odd, sound) in [
        (
            PROMPTS,
            r#"{"name":"o","description":7}"#,
            r#"{"name":"a"}"#,
        ),
        (PROMPTS, r#"{"name":7}"#, r#"{"name":"a"}"#),
        (
            TEMPLATES,
            r#"{"uriTemplate":"x://{","name":"o"}"#,
            r#"{"uriTemplate":"x://{id}","name":"a"}"#,
        ),
        (
            RESOURCES,
            r#"{"uri":"*","name":"o"}"#,
            r#"{"uri":"x://a","name":"a"}"#,
        ),
        (
            RESOURCES,
            r#"{"name":"o"}"#,
            r#"{"uri":"x://a","name":"a"}"#,
        ),
        (
            RESOURCES,
            r#"{"uri":"x://o","name":"o"},{"uri":"x://o","name":"p"}"#,
            r#"{"uri":"x://a","name":"a"}"#,
        ),
    ] {
        let text = format!(r#"{{"{}":[{odd},{sound}]}}"#, list.member);
        let added = add_to(list, Exposure::expose_all(), &[&text]).expect("a list");
        assert_eq!(added.names.len(), 1, "{odd}");
        assert_eq!(added.left_out.len(), 1, "{odd}");
        assert_eq!(added.left_out[0].kind, list.kind);
    }
    // A list of prompts that cannot be read does not cost the tools.
    let added = add_to(PROMPTS, Exposure::expose_all(), &["{}"]).expect("a list");
    assert_eq!(added.left_out[0].code, LeftOutCode::ListCut);
}

#[test]
fn page_that_cannot_be_read_ends_the_list_or_refuses_it() {
    let first = page(r#"{"name":"a"}"#, r#""x""#);
    for (broken, reason) in [
        (r#"{"nextCursor":"x"}"#, "missing field `tools`"),
        (r#"{"tools":{}}"#, "cannot be read"),
        (r#"{"tools":[],"tools":[]}"#, "duplicate field"),
        (
            r#"{"tools":[],"resultType":"input_required"}"#,
            "asks for input",
        ),
    ] {
        let message = add_to(TOOLS, Exposure::expose_all(), &[broken]).err();
        assert!(message.expect("refused").contains(reason), "{broken}");
        let added = add(&[&first, broken]);
        assert_eq!(added.names, ["a"]);
        assert_eq!(added.left_out[0].code, LeftOutCode::ListCut);
        assert!(added.left_out[0].reason.contains(reason), "{broken}");
    }
    let long = format!("\"{}\"", "c".repeat(MAX_CURSOR_BYTES + 1));
    for (cursor, reason) in [("7", "not a string"), (long.as_str(), "4097 bytes")] {
        let added = add(&[&page(r#"{"name":"a"}"#, cursor)]);
        assert_eq!(added.names, ["a"]);
        assert!(added.left_out[0].reason.contains(reason), "{cursor}");
    }
}

#[test]
fn tool_over_a_byte_limit_is_left_out_with_both_figures() {
    let tool = |name: &str, text: &str| format!(r#"{{"name":"{name}","x":{text}}}"#);
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let check = |odd: &str, part: &str| {
        let added = add(&[&page(&format!(r#"{odd},{{"name":"b"}}"#), "null")]);
        assert_eq!(added.names, ["b"]);
        assert_eq!(added.left_out[0].code, LeftOutCode::TooLarge);
        let reason = &added.left_out[0].reason;
        assert!(reason.contains(part), "{reason}");
    };
    let most = tool("a", &text(MAX_TOOL_BYTES - 19));
    assert!(most.len() <= MAX_TOOL_BYTES);
    assert_eq!(add(&[&page(&most, "null")]).names, ["a"]);
    check(
        &tool("a", &text(MAX_TOOL_BYTES)),
        "bytes, at most 1048576 are allowed",
    );
    let objects = |count: usize| format!("[{}1]", r#"{"":0},"#.repeat(count));
    assert_eq!(
        add(&[&page(&tool("a", &objects(20_000)), "null")]).names,
        ["a"]
    );
    check(
        &tool("a", &objects(40_000)),
        "once parsed, at most 16777216 are allowed",
    );
}

#[test]
fn list_over_a_limit_is_cut_there() {
    let half = "x".repeat(1 << 19);
    let pages: Vec<_> = (0..9)
        .map(|at| {
            page(
                &format!(r#"{{"name":"{at}","x":"{half}"}}"#),
                &format!("\"{at}\""),
            )
        })
        .collect();
    let pages: Vec<_> = pages.iter().map(String::as_str).collect();
    let added = add(&pages);
    assert_eq!(added.names.len(), 7);
    assert_eq!(added.left_out.len(), 1);
    let reason = &added.left_out[0].reason;
    assert!(
        reason.contains("more than 4194304 bytes (`limits.listing_bytes`)"),
        "{reason}"
    );

    let many: Vec<_> = (0..=MAX_TOOLS)
        .map(|at| format!(r#"{{"name":"{at}"}}"#))
        .collect();
    let added = add(&[&page(&many.join(","), r#""x""#), "not read"]);
    assert_eq!(added.names.len(), MAX_TOOLS);
    assert!(added.left_out[0].reason.contains("more than 10000 tools"));
}

#[test]
fn hidden_stand_in_has_the_digest_of_the_text() {
    let of =
        |text: &str| ListedTool::unread(broker_model::item::ItemKind::Tool, "a".to_owned(), text);
    assert!(of("x").is_unread());
    assert_ne!(of("x").text(), of("y").text());
    assert_eq!(of("x").read()["name"], "a");
}
