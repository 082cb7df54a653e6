//! Inserts an entry into JSON with comments and trailing commas. Every byte outside the entry stays, except
//! for a comma behind the member before it.

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::edit::{
    Edit, Removal, indent_before, line_indent, whole_lines, with_pieces, without_ranges,
};
use super::error::Refusal;
use super::value::{EntryValue, Layout, json_string};

/// Comments and trailing commas are read, no other extension of JSON. The parser bounds the depth.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Commas and comments are collected in their order, for the place of a new member.
const COLLECTED: CollectOptions = CollectOptions {
    comments: CommentCollectionStrategy::AsTokens,
    tokens: true,
};

/// A complete document with one entry.
pub(super) fn document(
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
    layout: &Layout,
) -> String {
    let Layout { newline, unit } = layout;
    let member = servers_member(servers, name, entry, layout, unit);
    format!("{{{newline}{unit}{member}{newline}}}{newline}")
}

/// Inserts `entry` as `name` into the object `servers`, or replaces the one that differs.
pub(super) fn insert(
    text: &str,
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
) -> Result<Edit, Refusal> {
    let parsed = parse_to_ast(text, &COLLECTED, &SYNTAX).map_err(|error| {
        Refusal::at(
            error.range().start,
            format!("not valid JSON: {}; correct it first", error.kind()),
        )
    })?;
    let tokens = parsed.tokens.unwrap_or_default();
    let root = match parsed.value {
        None => {
            let layout = Layout::default_for(text);
            let line_end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                layout.newline
            };
            let made = document(servers, name, entry, &layout);
            return Ok(Edit::Added(format!("{text}{line_end}{made}")));
        }
        Some(Value::Object(root)) => root,
        Some(other) => {
            return Err(Refusal::at(
                other.start(),
                "the file is not a JSON object; correct it first",
            ));
        }
    };
    let layout = Layout {
        unit: unit_of(text, &root),
        ..Layout::default_for(text)
    };
    let Some(found) = only_member(&root, servers)? else {
        let indented = |indent: &str| servers_member(servers, name, entry, &layout, indent);
        let inline = format!(
            "{}: {{{}: {}}}",
            json_string(servers),
            json_string(name),
            entry.json_line()
        );
        return Ok(Edit::Added(add(
            text, &tokens, &root, &layout, &inline, indented,
        )));
    };
    let Value::Object(list) = &found.value else {
        return Err(Refusal::at(
            found.value.start(),
            format!("`{servers}` is not an object; correct it first"),
        ));
    };
    let Some(old) = only_member(list, name)? else {
        let key = json_string(name);
        let indented = |indent: &str| format!("{key}: {}", entry.json(&layout, indent));
        let inline = format!("{key}: {}", entry.json_line());
        return Ok(Edit::Added(add(
            text, &tokens, list, &layout, &inline, indented,
        )));
    };
    if is_same(&old.value, entry) {
        return Ok(Edit::Same);
    }
    let value = match indent_before(text, old.range.start) {
        Some(indent) => entry.json(&layout, indent),
        None => entry.json_line(),
    };
    Ok(Edit::Replaced(format!(
        "{}{value}{}",
        &text[..old.value.start()],
        &text[old.value.end()..]
    )))
}

/// Removes the entries of the object `servers` that `is_moved` names. Comments stay.
pub(super) fn without(
    text: &str,
    servers: &'static str,
    is_moved: &dyn Fn(&str) -> bool,
) -> Result<Removal, Refusal> {
    let parsed = parse_to_ast(text, &COLLECTED, &SYNTAX).map_err(|error| {
        Refusal::at(
            error.range().start,
            format!("not valid JSON: {}", error.kind()),
        )
    })?;
    let tokens = parsed.tokens.unwrap_or_default();
    let Some(Value::Object(root)) = parsed.value else {
        return Ok(Removal::none(text));
    };
    let Some(Value::Object(list)) = only_member(&root, servers)?.map(|found| &found.value) else {
        return Ok(Removal::none(text));
    };
    let members = &list.properties;
    let comma_after = |index: usize| {
        let from = members[index].range.end;
        let to = members
            .get(index + 1)
            .map_or(list.range.end, |next| next.range.start);
        let mut behind = tokens.iter().skip_while(|token| token.start() < from);
        behind
            .find(|token| token.token == Token::Comma)
            .filter(|token| token.start() < to)
            .map(|token| token.start()..token.end())
    };
    let is_gone: Vec<bool> = members
        .iter()
        .map(|member| is_moved(member.name.as_str()))
        .collect();
    let mut ranges = Vec::new();
    // Without a trailing comma before, there is none after it either.
    let has_trailing = members
        .len()
        .checked_sub(1)
        .is_some_and(|last| comma_after(last).is_some());
    let last_kept = is_gone.iter().rposition(|is_gone| !is_gone);
    if let Some(kept) = last_kept
        && kept + 1 < members.len()
        && !has_trailing
    {
        ranges.extend(comma_after(kept));
    }
    let mut names = Vec::new();
    for (index, member) in members
        .iter()
        .enumerate()
        .filter(|(index, _)| is_gone[*index])
    {
        names.push(member.name.as_str().to_owned());
        ranges.push(whole_lines(text, member.range.start..member.range.end));
        if let Some(comma) = comma_after(index) {
            ranges.push(comma);
        }
    }
    Ok(Removal {
        text: without_ranges(text, ranges),
        names,
    })
}

/// The member `servers` with one entry, on a line with this indentation.
fn servers_member(
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
    layout: &Layout,
    indent: &str,
) -> String {
    let Layout { newline, unit } = layout;
    let inner = format!("{indent}{unit}");
    let entry = entry.json(layout, &inner);
    format!(
        "{}: {{{newline}{inner}{}: {entry}{newline}{indent}}}",
        json_string(servers),
        json_string(name)
    )
}

/// The text with a member added at the end of an object: `inline` if the object is written in one line,
/// else the result of `indented` for its indentation.
fn add(
    text: &str,
    tokens: &[TokenAndRange<'_>],
    object: &Object<'_>,
    layout: &Layout,
    inline: &str,
    indented: impl Fn(&str) -> String,
) -> String {
    let newline = layout.newline;
    let Some(last) = object.properties.last() else {
        let (open, close) = (object.range.start + 1, object.range.end - 1);
        let outer = line_indent(text, object.range.start);
        let is_in_first_line = !text[..object.range.start].contains('\n');
        if is_in_first_line && indent_before(text, object.range.start).is_none() {
            // The document begins as one line.
            return with_pieces(text, &[(open, inline)]);
        }
        let indent = format!("{outer}{}", layout.unit);
        let end = if text[open..close].contains('\n') {
            String::new()
        } else {
            format!("{newline}{outer}")
        };
        let member = format!("{newline}{indent}{}{end}", indented(&indent));
        return with_pieces(text, &[(open, &member)]);
    };
    let after = After::read(text, tokens, last.range.end, object.range.end - 1);
    let own_line = indent_before(text, last.range.start);
    let member = match own_line {
        Some(indent) => format!("{newline}{indent}{}", indented(indent)),
        // A comment up to the end of the line would hide the entry.
        None if after.has_line_comment => format!("{newline}{inline}"),
        None => format!(" {inline}"),
    };
    if after.has_comma {
        with_pieces(text, &[(after.place, &format!("{member},"))])
    } else {
        with_pieces(text, &[(last.range.end, ","), (after.place, &member)])
    }
}

/// The text behind the last member of an object.
struct After {
    has_comma: bool,
    /// Behind the trailing comma, and behind comments on its line.
    place: usize,
    /// Whether one of these comments goes to the end of the line.
    has_line_comment: bool,
}

impl After {
    /// Reads the comments and the comma between `from` and `close`.
    fn read(text: &str, tokens: &[TokenAndRange<'_>], from: usize, close: usize) -> Self {
        let none = |has_comma, place| Self {
            has_comma,
            place,
            has_line_comment: false,
        };
        let (mut out, mut line) = (none(false, from), from);
        let behind = tokens.iter().skip_while(|token| token.start() < from);
        for token in behind.take_while(|token| token.start() < close) {
            if token.token == Token::Comma {
                // Comments between the member and its comma stay before the entry.
                (out, line) = (none(true, token.end()), token.end());
            } else if !text[line..token.start()].contains('\n') {
                out.place = token.end();
                out.has_line_comment |= matches!(token.token, Token::CommentLine(_));
            }
        }
        out
    }
}

/// The only member of this name.
fn only_member<'o, 't>(
    object: &'o Object<'t>,
    name: &str,
) -> Result<Option<&'o ObjectProp<'t>>, Refusal> {
    let mut found = object
        .properties
        .iter()
        .filter(|member| member.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some(second) => Err(Refusal::at(
            second.range.start,
            format!("`{name}` is there twice; remove one first"),
        )),
        None => Ok(first),
    }
}

/// The indentation of the first member that is on its own line, relative to its object.
fn unit_of(text: &str, root: &Object<'_>) -> String {
    let unit = |object: &Object<'_>| {
        let first = object.properties.first()?;
        let inner = indent_before(text, first.range.start)?;
        let outer = line_indent(text, object.range.start);
        let unit = inner.strip_prefix(outer)?;
        (!unit.is_empty()).then(|| unit.to_owned())
    };
    let below = |member: &ObjectProp<'_>| member.value.as_object().and_then(unit);
    unit(root)
        .or_else(|| root.properties.iter().find_map(below))
        .unwrap_or_else(|| "  ".to_owned())
}

/// Whether a value of the file is the entry; the order of members does not matter.
fn is_same(found: &Value<'_>, entry: &EntryValue) -> bool {
    match (found, entry) {
        (Value::StringLit(found), EntryValue::Text(text)) => found.value == text.as_str(),
        (Value::BooleanLit(found), EntryValue::Flag(flag)) => found.value == *flag,
        (Value::Array(found), EntryValue::List(items)) => {
            found.elements.len() == items.len()
                && found.elements.iter().zip(items).all(|(found, item)| {
                    matches!(found, Value::StringLit(found) if found.value == item.as_str())
                })
        }
        (Value::Object(found), EntryValue::Members(members)) => {
            let has = |(name, value): &(&str, EntryValue)| {
                found
                    .get(name)
                    .is_some_and(|found| is_same(&found.value, value))
            };
            found.properties.len() == members.len() && members.iter().all(has)
        }
        (Value::Object(found), EntryValue::Texts(texts)) => {
            let has = |(name, text): &(String, String)| {
                let found = found.get(name).map(|found| &found.value);
                matches!(found, Some(Value::StringLit(found)) if found.value == text.as_str())
            };
            found.properties.len() == texts.len() && texts.iter().all(has)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
