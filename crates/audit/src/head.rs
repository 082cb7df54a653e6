//! The head of the chain outside the file: a statement of in-toto in an envelope of DSSE, for any transparency log.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::key::{AuditKey, PublicKey};

/// The type of the payload of an envelope.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The type of a statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate.
const PREDICATE_TYPE: &str = "urn:mcp-broker:audit-head:v1";

/// The head of a chain: the last line at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The id of the stream. Empty if it was not given.
    #[serde(default)]
    pub stream: String,
    /// The number of the line.
    pub seq: u64,
    /// The hash of the line.
    pub hash: String,
}

impl Head {
    /// Reads `SEQ:HASH`.
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, hash) = text.split_once(':')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hash.then_some(())?;
        Some(Self {
            stream: String::new(),
            seq: seq.parse().ok()?,
            hash: hash.to_ascii_lowercase(),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    keyid: String,
    sig: String,
}

#[derive(Serialize, Deserialize)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: Sha256,
}

#[derive(Serialize, Deserialize)]
struct Sha256 {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Predicate {
    #[serde(flatten)]
    head: Head,
    at: String,
}

/// Returns the envelope of a head.
pub(crate) fn envelope(head: &Head, at: &str, key: &AuditKey) -> String {
    let statement = Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: vec![Subject {
            name: format!("{}/{}", head.stream, head.seq),
            digest: Sha256 {
                sha256: head.hash.clone(),
            },
        }],
        predicate_type: PREDICATE_TYPE.to_owned(),
        predicate: Predicate {
            head: head.clone(),
            at: at.to_owned(),
        },
    };
    let payload = serde_json::to_string(&statement).unwrap_or_default();
    let envelope = Envelope {
        payload_type: PAYLOAD_TYPE.to_owned(),
        signatures: vec![Signature {
            keyid: key.public().id(),
            sig: key.sign(&pre_authentication(payload.as_bytes())),
        }],
        payload: BASE64.encode(payload.as_bytes()),
    };
    let mut text = serde_json::to_string(&envelope).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the head of an envelope, if one of its signatures is of this key.
pub fn head_of_envelope(text: &str, key: PublicKey) -> Option<Head> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    let payload = BASE64.decode(envelope.payload.as_bytes()).ok()?;
    let message = pre_authentication(&payload);
    let mut signatures = envelope.signatures.iter();
    let is_signed = signatures.any(|signature| key.verifies(&message, &signature.sig));
    (is_signed && envelope.payload_type == PAYLOAD_TYPE).then_some(())?;
    let statement: Statement = serde_json::from_slice(&payload).ok()?;
    (statement.predicate_type == PREDICATE_TYPE).then_some(statement.predicate.head)
}

/// Returns the bytes that a signature of DSSE is over.
fn pre_authentication(payload: &[u8]) -> Vec<u8> {
    let kind = PAYLOAD_TYPE;
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyPair;

    #[test]
    fn head_of_an_envelope_is_returned_for_its_key_only() {
        let pair = || KeyPair::generate().unwrap().private_pem;
        let (key, other) = (pair(), pair());
        let key = AuditKey::parse(key.as_bytes()).unwrap();
        let other = AuditKey::parse(other.as_bytes()).unwrap();
        let head = Head {
            stream: "s".to_owned(),
            seq: 7,
            hash: "ab".repeat(32),
        };
        let text = envelope(&head, "2026-01-01T00:00:00.000Z", &key);
        assert_eq!(head_of_envelope(&text, key.public()), Some(head.clone()));
        assert_eq!(head_of_envelope(&text, other.public()), None);
        let parsed = Head::parse(&format!("7:{}", head.hash)).unwrap();
        assert_eq!((parsed.seq, &parsed.hash), (7, &head.hash));
        assert!(Head::parse("7").is_none() && Head::parse("7:ab").is_none());
    }
}
