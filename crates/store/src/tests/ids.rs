//! Ids of jobs.

use std::collections::HashSet;

use crate::JobId;

#[test]
fn random_ids_have_one_form_and_are_different() {
    let mut seen = HashSet::new();
    for _ in 0..1_000 {
        let id = JobId::random().unwrap();
        let text = id.as_str().to_owned();
        assert_eq!(text.len(), 28, "{text}");
        assert!(text.starts_with("j_"), "{text}");
        assert!(
            text[2..]
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte)),
            "{text}"
        );
        assert_eq!(JobId::parse(&text), Some(id.clone()));
        assert!(seen.insert(id));
    }
}

#[test]
fn texts_that_cannot_be_ids_are_refused() {
    let longest = format!("j_{}", "a".repeat(60));
    for text in ["j_a", "j_0123456789", longest.as_str()] {
        assert_eq!(JobId::parse(text).expect("it is one").as_str(), text);
    }
    let too_long = format!("{longest}a");
    for text in [
        "", "j_", "j", "a", "J_a", "j_A", "j_a-", "j_a ", "j_ä", " j_a", "j_a\0", &too_long,
    ] {
        assert_eq!(JobId::parse(text), None, "{text}");
    }
}

#[test]
fn ids_are_equal_only_as_a_whole() {
    let id = |text| JobId::parse(text).expect("it is one");
    assert_eq!(id("j_abc"), id("j_abc"));
    for other in ["j_abd", "j_ab", "j_abca", "j_bbc"] {
        assert_ne!(id("j_abc"), id(other));
    }
}
