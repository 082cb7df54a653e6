//! JSON pointers (RFC 6901), and pointer patterns, where `*` matches any one token.

use serde_json::Value;

/// One member name or index as a pointer token.
pub fn escape_token(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// `pointer` with one more token.
pub fn child_pointer(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", escape_token(token))
}

/// Whether `pattern` matches `pointer`, token by token.
pub fn matches(pattern: &str, pointer: &str) -> bool {
    let (mut want, mut have) = (pattern.split('/'), pointer.split('/'));
    loop {
        match (want.next(), have.next()) {
            (None, None) => return true,
            (Some(want), Some(have)) if want == "*" || want == have => {}
            _ => return false,
        }
    }
}

/// Removes every member that `pattern` (with a leading `/`) names from `value`. Array items become `null`,
/// so that no index moves.
pub fn remove(value: &mut Value, pattern: &str) {
    let Some(rest) = pattern.strip_prefix('/') else {
        return;
    };
    let (token, deeper) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    let name = token.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(members) => match deeper {
            None if token == "*" => members.clear(),
            None => {
                members.remove(&name);
            }
            Some(deeper) => members
                .iter_mut()
                .filter(|(key, _)| token == "*" || **key == name)
                .for_each(|(_, child)| remove(child, deeper)),
        },
        Value::Array(items) => {
            for (_, item) in items
                .iter_mut()
                .enumerate()
                .filter(|(i, _)| token == "*" || name == i.to_string())
            {
                match deeper {
                    None => *item = Value::Null,
                    Some(deeper) => remove(item, deeper),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointer_pattern_with_a_wildcard_matches_one_token() {
        assert!(matches("/tools/*/_meta", "/tools/x/_meta"));
        assert!(!matches("/tools/*/_meta", "/tools/x/_meta/y"));
        let mut value = json!({"a": {"x": {"k": 1, "l": 2}, "y": {"k": 3}}, "b/c": [1, {"k": 2}]});
        remove(&mut value, "/a/*/k");
        remove(&mut value, "/b~1c/*/k");
        remove(&mut value, "/b~1c/0");
        assert_eq!(
            value,
            json!({"a": {"x": {"l": 2}, "y": {}}, "b/c": [null, {}]})
        );
    }
}
