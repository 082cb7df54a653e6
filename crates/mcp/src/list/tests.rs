//! Pages that follow the protocol, and pages that do not.

use broker_model::SourceCause;
use broker_model::redact::Redactor;

use super::listing::{Listing, MAX_CURSOR_BYTES, MAX_TOOL_BYTES};

fn add(pages: &[&str]) -> Result<(usize, Option<String>), String> {
    let mut listing = Listing::new(4 << 20, Redactor::default());
    let mut cursor = None;
    for page in pages {
        cursor = listing.add_page(page.as_bytes()).map_err(|failure| {
            assert_eq!(failure.cause, SourceCause::ListInvalid);
            failure.message
        })?;
    }
    Ok((listing.tools.len(), cursor))
}

#[test]
fn list_cursor_that_is_empty_continues_and_null_ends() {
    let page = r#"{"tools":[{"name":"a"}],"nextCursor":""}"#;
    assert_eq!(add(&[page]), Ok((1, Some(String::new()))));
    assert_eq!(
        add(&[page, r#"{"tools":[{"name":"b"}],"nextCursor":null}"#]),
        Ok((2, None))
    );
    assert_eq!(add(&[r#"{"tools":[]}"#]), Ok((0, None)));
}

#[test]
fn list_that_violates_the_protocol_is_refused_by_name() {
    let check = |pages: &[&str], part: &str| {
        let message = add(pages).unwrap_err();
        assert!(message.contains(part), "{message}");
    };
    check(
        &[
            r#"{"tools":[],"nextCursor":"x"}"#,
            r#"{"tools":[],"nextCursor":"x"}"#,
        ],
        "repeats a cursor",
    );
    check(&[r#"{"tools":[],"nextCursor":7}"#], "`nextCursor`");
    check(
        &[r#"{"tools":[{"name":"a"},{"name":"a"}]}"#],
        "tool `a`: it is listed twice",
    );
    check(&[r#"{"tools":[{"name":""}]}"#], "its name is empty");
    check(&[r#"{"tools":[{"name":"a"},{}]}"#], "tool number 2: `name`");
    check(&[r#"{"tools":[7]}"#], "not an object");
    check(
        &[r#"{"tools":[{"name":"a","description":7}]}"#],
        "tool `a`: `description`",
    );
    check(
        &[r#"{"tools":[{"name":"a","x":{"y":1,"y":2}}]}"#],
        "tool `a`: duplicate key `y`",
    );
    check(
        &[r#"{"tools":[{"name":"a","x":18446744073709551616}]}"#],
        "tool `a`: the number",
    );
    check(&[r#"{"nextCursor":"x"}"#], "cannot be read");
    check(
        &[r#"{"tools":[],"resultType":"input_required"}"#],
        "asks for input",
    );
}

#[test]
fn list_over_a_byte_limit_is_refused_with_both_figures() {
    let check = |pages: &[&str], part: &str| {
        let message = add(pages).unwrap_err();
        assert!(message.contains(part), "{message}");
    };
    let tool = |name: &str, schema: &str| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#);
    let page =
        |tools: &str, cursor: &str| format!(r#"{{"tools":[{tools}],"nextCursor":{cursor}}}"#);

    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let most = tool("a", &text(MAX_TOOL_BYTES - 30));
    assert!(most.len() <= MAX_TOOL_BYTES);
    assert!(add(&[&page(&most, "null")]).is_ok());
    let over = tool("a", &text(MAX_TOOL_BYTES));
    check(&[&page(&over, "null")], "tool `a`: it has 1048605 bytes");

    let objects = |count: usize| format!("[{}1]", r#"{"":0},"#.repeat(count));
    assert!(add(&[&page(&tool("a", &objects(20_000)), "null")]).is_ok());
    check(
        &[&page(&tool("a", &objects(40_000)), "null")],
        "once parsed, at most 16777216 are allowed",
    );

    let cursor = |bytes: usize| format!("\"{}\"", "c".repeat(bytes));
    assert!(add(&[&page("", &cursor(MAX_CURSOR_BYTES))]).is_ok());
    check(
        &[&page("", &cursor(MAX_CURSOR_BYTES + 1))],
        "`nextCursor` has 4097 bytes",
    );

    let pages: Vec<_> = (0..5)
        .map(|at| {
            page(
                &tool(&at.to_string(), &text(1 << 20 >> 1)),
                &format!("\"{at}\""),
            )
        })
        .collect();
    let pages: Vec<_> = pages.iter().map(String::as_str).collect();
    assert!(add(&pages).is_ok());
    let twice = [&pages[..], &pages[..]].concat();
    assert!(add(&twice).unwrap_err().contains("listed twice"));
    let many: Vec<_> = (0..9)
        .map(|at| {
            page(
                &tool(&at.to_string(), &text(1 << 20 >> 1)),
                &format!("\"{at}\""),
            )
        })
        .collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    check(&many, "more than 4194304 bytes (`limits.listing_bytes`)");
}
