//! The extension for tasks: its name, and whether a request declares it.

use broker_wire::era::Meta;
use broker_wire::protocol::{META_CLIENT_CAPABILITIES, MISSING_CAPABILITY};
use broker_wire::{JsonMembers, RpcError};
use serde_json::{Value, json};

/// The name of the extension.
const NAME: &str = "io.modelcontextprotocol/tasks";

/// Whether a request of the modern era declares the extension.
pub(crate) fn is_declared(meta: &Meta<'_>) -> bool {
    let Ok(Some(members)) = meta.members() else {
        return false;
    };
    // Most clients declare few capabilities: the text is searched before it is read.
    let capabilities = members.get(META_CLIENT_CAPABILITIES);
    let Some(capabilities) = capabilities.filter(|text| text.contains("tasks")) else {
        return false;
    };
    let within = |text: &str, name: &str| -> Option<String> {
        let members = JsonMembers::from_valid(text)?;
        members.given(name).map(str::to_owned)
    };
    within(capabilities, "extensions")
        .and_then(|extensions| within(&extensions, NAME))
        .is_some_and(|settings| settings.starts_with('{'))
}

/// Returns the capability `extensions` of a broker with the extension.
pub(crate) fn capability() -> Value {
    json!({ NAME: {} })
}

/// Returns the error of a request that needs the extension and does not declare it.
pub(crate) fn missing(what: &str) -> RpcError {
    let message = format!("{what} needs a client that declares the extension `{NAME}`");
    let data = json!({ "requiredCapabilities": { "extensions": { NAME: {} } } });
    RpcError::new(MISSING_CAPABILITY, message).data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declares(capabilities: &Value) -> bool {
        let params = json!({ "_meta": { META_CLIENT_CAPABILITIES: capabilities } }).to_string();
        is_declared(&Meta::read(&JsonMembers::parse(&params).unwrap()))
    }

    #[test]
    fn extension_is_declared_by_an_object_under_its_name() {
        assert!(declares(&json!({"extensions": {NAME: {}}})));
        assert!(declares(
            &json!({"extensions": {"a/b": {}, NAME: {"x": 1}}, "roots": {}})
        ));
        for other in [
            json!({}),
            json!({"tasks": {}}),
            json!({"extensions": {}}),
            json!({"extensions": [NAME]}),
            json!({"extensions": {NAME: null}}),
            json!({"extensions": {NAME: true}}),
            json!({"extensions": {"a/tasks": {}}}),
            json!({"experimental": {"extensions": {NAME: {}}}}),
        ] {
            assert!(!declares(&other), "{other}");
        }
        let none = JsonMembers::parse("{}").unwrap();
        assert!(!is_declared(&Meta::read(&none)));
    }
}
