//! Icons: a changed icon is a text change. A new icon host can track views, so it is a security change.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::Finding;
use super::rules::rule;

/// The finding on the icons of one tool.
pub(super) fn change(old: Option<&Value>, new: Option<&Value>) -> Finding {
    let (before, after) = (hosts(old), hosts(new));
    let (id, message) = match after.difference(&before).next() {
        Some(host) if old.is_some() => (
            "icon-host-changed",
            format!("an icon comes from `{host}` now"),
        ),
        _ => ("icons-changed", "the icons changed".to_owned()),
    };
    Finding {
        pointer: "/icons".to_owned(),
        old: old.cloned(),
        new: new.cloned(),
        ..Finding::new(rule(id), message, "")
    }
}

/// Scheme and host of every address.
fn hosts(icons: Option<&Value>) -> BTreeSet<String> {
    let list = icons.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|icon| icon.get("src")?.as_str())
        .filter_map(|address| {
            let (scheme, rest) = address.split_once("://")?;
            let authority = rest.split(['/', '?', '#', '\\']).next()?;
            let host = authority.rsplit('@').next()?;
            Some(format!("{scheme}://{host}").to_lowercase())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn icon_on_another_host_is_a_security_change() {
        let icon = |src: &str| json!([{"src": src}]);
        let id = |old: Option<Value>, new: Value| change(old.as_ref(), Some(&new)).rule;
        let old = icon("https://a.example/x.png");
        assert_eq!(
            id(Some(old.clone()), icon("https://a.example/y.png")),
            "icons-changed"
        );
        assert_eq!(
            id(Some(old), icon("https://a.example@b.example/x.png")),
            "icon-host-changed"
        );
        assert_eq!(id(None, icon("https://a.example/x.png")), "icons-changed");
    }
}
