//! Tool lists within the limits of a model vendor: names, the number of tools, and schemas of arguments.

use std::borrow::Cow;

use broker_model::json::each_member;
use broker_model::model_vendor::ModelVendor;
use broker_schema::{VendorForm, vendor_form};

use super::scope::Scope;

/// The parts of a list entry that a vendor may require to be different.
pub(crate) struct EntryParts {
    /// The name.
    pub(crate) name: Cow<'static, str>,
    /// The members besides name and schemas, without braces.
    pub(crate) head: Cow<'static, str>,
    /// The schema of the arguments.
    pub(crate) input: Cow<'static, str>,
}

fn tools(scope: Scope<'_>) -> std::ops::Range<u32> {
    0..scope.catalog.items.len() as u32
}

/// Returns the index after the last tool that a list for the vendor may have.
pub(crate) fn list_end(scope: Scope<'_>, vendor: Option<ModelVendor>) -> u32 {
    let all = tools(scope);
    let end = all.end;
    let Some(max) = vendor.and_then(ModelVendor::max_tools) else {
        return end;
    };
    all.filter(|at| scope.lists(*at)).nth(max).unwrap_or(end)
}

/// Finds the index of the tool that has this name in lists for the vendor, if it exists for the caller.
pub(crate) fn find(scope: Scope<'_>, vendor: ModelVendor, name: &str) -> Option<u32> {
    tools(scope).find(|at| {
        let tool = scope.catalog.item(*at);
        // Unchanged names are found without a vendor.
        matches!(vendor.tool_name(tool.flat_name), Cow::Owned(changed) if changed == name)
            && scope.admits(tool.entry)
    })
}

/// Returns the parts of an entry for a vendor; `None` if the vendor refuses the name of an argument.
pub(crate) fn adapted(vendor: ModelVendor, parts: EntryParts) -> Option<EntryParts> {
    let name = match parts.name {
        Cow::Borrowed(flat) => vendor.tool_name(flat),
        owned => owned,
    };
    let Some(VendorForm { schema, left_out }) = vendor_form(&parts.input, vendor).ok()? else {
        return Some(EntryParts { name, ..parts });
    };
    let head = match left_out {
        None => parts.head,
        Some(left_out) => {
            let note = format!("The arguments must also match this JSON Schema: {left_out}");
            Cow::Owned(with_note(&parts.head, &note))
        }
    };
    Some(EntryParts {
        name,
        head,
        input: Cow::Owned(schema),
    })
}

/// Adds a note to the description of an entry's members.
fn with_note(head: &str, note: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (mut out, mut has_description) = (String::with_capacity(head.len() + note.len()), false);
    let mut push = |name: &str, value: &str| {
        let comma = if out.is_empty() { "" } else { "," };
        out.push_str(&format!("{comma}{}:{value}", quoted(name)));
    };
    let members = format!("{{{head}}}");
    // The build wrote the members, so that they are JSON.
    let walked = each_member(members.as_bytes(), |name, value| {
        let value = value.get();
        match value.strip_suffix('"') {
            Some(begin) if name == "description" => {
                has_description = true;
                let note = quoted(&format!("\n\n{note}"));
                push(&name, &format!("{begin}{}", &note[1..]));
            }
            _ => push(&name, value),
        }
    });
    debug_assert!(walked.is_ok(), "{members}");
    if !has_description {
        push("description", &quoted(note));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_follows_the_description_or_becomes_it() {
        let read = |text: String| serde_json::from_str(&format!("{{{text}}}")).unwrap();
        let with: serde_json::Value = read(with_note(
            r#""title":"T","description":"a\"","annotations":{}"#,
            "n\"",
        ));
        let expected =
            serde_json::json!({"title": "T", "description": "a\"\n\nn\"", "annotations": {}});
        assert_eq!(with, expected);
        let without: serde_json::Value = read(with_note("", "n"));
        assert_eq!(without, serde_json::json!({"description": "n"}));
    }
}
