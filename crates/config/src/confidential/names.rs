//! Names that usually have a secret.

use broker_model::redact::is_secret_name;
use broker_model::sensitive_words::words;

/// Last words of names of passwords.
const PASSWORDS: [&str; 5] = ["otp", "pass", "passcode", "pw", "pwd"];

/// Whether a variable, header or option of this name usually contains a secret, also if capitals separate its
/// words.
pub fn is_secret_key(name: &str) -> bool {
    let words = words(name);
    let is_password = words
        .last()
        .is_some_and(|last| PASSWORDS.contains(&last.as_str()));
    is_password || is_secret_name(name) || is_secret_name(&words.join("_"))
}
