//! Events are valid by the published schema of their class.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::fake::Fake;
use super::lines::write_all;
use crate::settings::{Format, OcsfVersion};

/// Returns the schema of the class API Activity, with the profile `security_control`.
fn class() -> Value {
    serde_json::from_str(include_str!("api_activity-1.8.0.json")).unwrap()
}

/// Returns the class with the profile `record_integrity` of the version in development.
fn class_in_development() -> Value {
    let profile = include_str!("record_integrity-1.9-dev.json");
    let profile: Value = serde_json::from_str(profile).unwrap();
    let mut class = class();
    for part in ["properties", "$defs"] {
        let members = profile[part].as_object().unwrap().clone();
        class[part].as_object_mut().unwrap().extend(members);
    }
    class
}

fn errors(validator: &Validator, event: &Value) -> Vec<String> {
    let errors = validator.iter_errors(event);
    errors.map(|error| error.to_string()).collect()
}

#[test]
fn events_satisfy_the_published_schema_of_their_class() {
    for (version, schema) in [
        (OcsfVersion::V1_8, class()),
        (OcsfVersion::V1_9Dev, class_in_development()),
    ] {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let disk = Fake::default();
        let events = write_all(&disk, Format::Ocsf(version));
        assert!(events.len() > 10);
        for event in &events {
            let errors = errors(&validator, event);
            assert!(errors.is_empty(), "{errors:#?}\n{event:#}");
            // A profile has these members, and the event names the profile.
            let is_denied = event["unmapped"]["outcome"] == "denied";
            assert_eq!(event.get("action_id").is_some(), is_denied);
            let is_in_development = version == OcsfVersion::V1_9Dev;
            let attested = event.get("attestation_list").is_some();
            assert_eq!(attested, is_in_development);
            let mut expected = Vec::new();
            expected.extend(is_denied.then_some("security_control"));
            expected.extend(is_in_development.then_some("record_integrity"));
            let expected = (!expected.is_empty()).then(|| json!(expected));
            assert_eq!(event["metadata"].get("profiles"), expected.as_ref());
        }
        let mut other = events[0].clone();
        other["hash"] = json!("a member that the class does not have");
        assert!(!validator.is_valid(&other));
    }
}

#[test]
fn attestation_without_a_fingerprint_or_with_other_members_is_not_valid() {
    let disk = Fake::default();
    let events = write_all(&disk, Format::Ocsf(OcsfVersion::V1_9Dev));
    let validator = jsonschema::validator_for(&class_in_development()).unwrap();
    let event = events.last().unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut event = event.clone();
        change(&mut event["attestation_list"][0]);
        validator.is_valid(&event)
    };
    assert!(changed(&|_| {}));
    let without = |name: &'static str| {
        move |it: &mut Value| {
            it.as_object_mut().unwrap().remove(name);
        }
    };
    assert!(!changed(&without("fingerprint")));
    assert!(!changed(&|it| it["serialization"] = json!("RFC 8785")));
    assert!(!changed(&|it| it["prev_event"]["uid"] = json!(null)));
    assert!(!changed(&|it| it["fingerprint"]["algorithm_id"] = json!(77)));
    // The class of 1.8.0 has no attestations.
    let released = jsonschema::validator_for(&class()).unwrap();
    assert!(!released.is_valid(event));
}
