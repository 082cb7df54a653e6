//! The caller of a request, as a surface authenticated it. Every operation takes it as a parameter.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_model::model_vendor::ModelVendor;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::clock::Clock;

/// A caller: its subject, its groups, and the part of the tree that it sees.
#[derive(Clone, Debug)]
pub struct Identity {
    subject: Subject,
    /// `None` without groups: then an identity costs no allocation.
    groups: Option<Arc<[String]>>,
    claims: Option<Arc<Claims>>,
    subtree: Option<Subtree>,
    revocation: Option<Revocation>,
    /// The expiry time of the credential.
    expires: Option<SystemTime>,
    /// The vendor of its model.
    vendor: Option<ModelVendor>,
    origin: Origin,
}

/// Where a caller's requests come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The surface.
    pub via: Via,
    /// The address of the client; a trusted proxy may have named it. `None` without a network.
    pub peer: Option<IpAddr>,
}

/// The surface that took a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// A program that contains the broker.
    #[default]
    Program,
    /// The standard input of the broker, with MCP.
    Stdio,
    /// The meta API over HTTP.
    Http,
    /// MCP over HTTP.
    McpHttp,
    /// MCP over WebSocket.
    WebSocket,
}

impl Via {
    /// Returns its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::McpHttp => "mcp_http",
            Self::WebSocket => "websocket",
        }
    }
}

/// The end of a caller's right to call.
#[derive(Clone, Debug)]
pub struct Revocation {
    /// Cancelled when the right is withdrawn. Calls that were not sent are refused then.
    pub revoked: CancellationToken,
    /// Whether calls that were sent are cancelled too. Otherwise they run to their end, and their results are discarded.
    pub cancels_calls: bool,
    /// Kept for as long as the identity: its owner withdraws rights only of credentials that are in use.
    pub keeps: Option<Arc<dyn Any + Send + Sync>>,
}

/// The claims of a token that access rules may read, by name.
pub type Claims = BTreeMap<String, Value>;

/// The index of an entry that does not exist.
const NO_ENTRY: u32 = u32::MAX;

/// A part of the tree: an entry and everything below it, as indices of a catalog's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subtree {
    /// The path of the entry.
    pub(crate) path: &'static str,
    /// The digest of the catalog.
    catalog: &'static str,
    /// The entry itself; [`NO_ENTRY`] if the path has no entry in the catalog.
    pub(crate) root: u32,
    /// The first entry below it,
    first: u32,
    /// and the one after the last.
    end: u32,
}

/// Who a caller is. Requests of one subject are requests of one caller: its sessions belong to it, whichever token it
/// sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The caller sent no credential.
    Anonymous,
    /// The caller sent the broker's secret.
    Secret,
    /// The program that started the broker and uses its standard input and output, or that contains it.
    Local,
    /// The caller sent an API key.
    Key {
        /// The name of the key.
        name: Arc<str>,
    },
    /// The caller sent a token.
    Token {
        /// Its issuer.
        issuer: Arc<str>,
        /// Whom the issuer means.
        subject: Arc<str>,
    },
}

impl Subtree {
    /// Returns the entry with this index, and everything below it.
    pub(crate) fn new(catalog: &Catalog, root: u32) -> Self {
        let own_path = catalog.entry(root).path;
        let path = own_path.trim_end_matches('/').as_bytes();
        // In the order of bytes the paths below an entry follow each other, though not always the entry
        // itself: `/a`, `/a-b`, `/a/c`.
        let is_before = |known: &str, separator: u8| {
            let known = known.as_bytes();
            match known.get(..path.len()).unwrap_or(known).cmp(path) {
                Ordering::Equal => known.get(path.len()).is_none_or(|at| *at < separator),
                order => order == Ordering::Less,
            }
        };
        let before = |separator| {
            let entries = catalog.entries;
            entries.partition_point(|entry| is_before(entry.path, separator)) as u32
        };
        Self {
            path: own_path,
            catalog: catalog.catalog_digest,
            root,
            first: before(b'/'),
            end: before(b'/' + 1),
        }
    }

    /// Returns the same part of another catalog; an empty part if the path has no entry there.
    fn within(self, catalog: &Catalog) -> Self {
        if self.catalog == catalog.catalog_digest {
            return self;
        }
        let nothing = Self {
            root: NO_ENTRY,
            first: 0,
            end: 0,
            ..self
        };
        let found = catalog.find(self.path);
        found.map_or(nothing, |at| Self::new(catalog, at))
    }

    /// Whether an entry is in it.
    pub(crate) fn contains(self, at: u32) -> bool {
        at == self.root || self.below().contains(&at)
    }

    /// Returns the entries below its own.
    pub(crate) const fn below(self) -> Range<u32> {
        self.first..self.end
    }
}

impl Identity {
    const fn new(subject: Subject) -> Self {
        Self {
            subject,
            groups: None,
            claims: None,
            subtree: None,
            revocation: None,
            expires: None,
            vendor: None,
            origin: Origin {
                via: Via::Program,
                peer: None,
            },
        }
    }

    /// Makes a caller that sent no credential.
    #[inline]
    pub const fn anonymous() -> Self {
        Self::new(Subject::Anonymous)
    }

    /// Makes a caller that sent the broker's secret.
    #[inline]
    pub const fn secret() -> Self {
        Self::new(Subject::Secret)
    }

    /// Returns the program that started or contains the broker.
    pub const fn local() -> Self {
        Self::new(Subject::Local)
    }

    /// Makes a caller with an API key. A group that the config does not have gives no right.
    pub fn key(name: &str, groups: impl Into<Arc<[String]>>) -> Self {
        Self {
            groups: Some(groups.into()),
            ..Self::new(Subject::Key { name: name.into() })
        }
    }

    /// Makes a caller with a token, with the groups and the claims that the config reads from it.
    pub fn token(
        issuer: &str,
        subject: &str,
        groups: impl Into<Arc<[String]>>,
        claims: impl Into<Arc<Claims>>,
    ) -> Self {
        let subject = Subject::Token {
            issuer: issuer.into(),
            subject: subject.into(),
        };
        Self {
            groups: Some(groups.into()),
            claims: Some(claims.into()),
            ..Self::new(subject)
        }
    }

    /// Returns the same caller, whose right to call can be withdrawn.
    #[must_use]
    pub fn revoked_by(self, revocation: Revocation) -> Self {
        Self {
            revocation: Some(revocation),
            ..self
        }
    }

    /// Returns the same caller, with a credential that expires. Streams that were opened with it end then.
    #[must_use]
    pub fn expiring(self, expires: SystemTime) -> Self {
        Self {
            expires: Some(expires),
            ..self
        }
    }

    /// Returns the same caller, whose model is of this vendor.
    #[must_use]
    pub fn with_vendor(self, vendor: Option<ModelVendor>) -> Self {
        Self { vendor, ..self }
    }

    /// Sets where the caller's requests come from.
    #[inline]
    pub const fn set_origin(&mut self, via: Via, peer: Option<IpAddr>) {
        self.origin = Origin { via, peer };
    }

    /// Returns where the caller's requests come from.
    #[inline]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the vendor of the caller's model, if the config names it.
    pub const fn vendor(&self) -> Option<ModelVendor> {
        self.vendor
    }

    /// Whether the broker knows more of the caller than its address.
    pub const fn is_authenticated(&self) -> bool {
        !matches!(self.subject, Subject::Anonymous)
    }

    /// Returns the subject of the caller.
    #[inline]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the groups of a caller with a key or a token. The config contains the groups of other callers.
    #[inline]
    pub fn groups(&self) -> &[String] {
        self.groups.as_deref().unwrap_or_default()
    }

    /// Returns the claims that access rules may read.
    pub fn claims(&self) -> &Claims {
        static NONE: Claims = BTreeMap::new();
        self.claims.as_deref().unwrap_or(&NONE)
    }

    /// Returns the revocation of the right to call; `None` if the right cannot be withdrawn.
    #[inline]
    pub const fn revocation(&self) -> Option<&Revocation> {
        self.revocation.as_ref()
    }

    /// Whether the right to call was withdrawn.
    #[inline]
    pub fn is_revoked(&self) -> bool {
        let revocation = self.revocation.as_ref();
        revocation.is_some_and(|it| it.revoked.is_cancelled())
    }

    /// Returns the expiry time of the credential, if it expires.
    pub const fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Returns the same identity that sees only this part of the tree.
    pub(crate) fn restricted_to(&self, subtree: Subtree) -> Self {
        Self {
            subtree: Some(subtree),
            ..self.clone()
        }
    }

    /// Returns the same caller, who sees only the part of the tree that `other` sees.
    #[must_use]
    pub fn seeing_as(&self, other: &Self) -> Self {
        Self {
            subtree: other.subtree,
            ..self.clone()
        }
    }

    /// Whether the right to call ends in the same way, so that both stand for one credential.
    pub fn has_same_right(&self, other: &Self) -> bool {
        self.groups == other.groups
            && self.claims == other.claims
            && self.expires == other.expires
            && self.revocation.is_some() == other.revocation.is_some()
    }

    /// Returns when the right to call was withdrawn, or the credential has expired. Waits forever for a caller whose
    /// right does not end.
    pub(crate) async fn right_ended(&self, clock: &dyn Clock) {
        let revoked = async {
            match &self.revocation {
                Some(revocation) => revocation.revoked.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = revoked => {}
            () = passed(self.expires, clock) => {}
        }
    }

    /// Whether both are the same caller, and see the same part of the tree. Their credentials may differ.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        self.subject == other.subject && self.subtree == other.subtree
    }

    /// Returns the only part of this catalog that the caller sees; `None` if it sees all of it.
    pub(crate) fn subtree(&self, catalog: &Catalog) -> Option<Subtree> {
        self.subtree.map(|subtree| subtree.within(catalog))
    }

    /// Returns the path of the topmost entry that the caller sees: `/` unless it is restricted.
    pub fn root(&self) -> &'static str {
        self.subtree.map_or("/", |subtree| subtree.path)
    }
}

/// Returns once the time of day is after `time`. It is read again from time to time, since it may be set.
async fn passed(time: Option<SystemTime>, clock: &dyn Clock) {
    const MAX_SLEEP: Duration = Duration::from_secs(30);
    let Some(time) = time else {
        return std::future::pending().await;
    };
    while let Ok(left) = time.duration_since(clock.now())
        && !left.is_zero()
    {
        tokio::time::sleep(left.min(MAX_SLEEP)).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn right_is_the_same_if_groups_claims_end_and_revocation_are() {
        let token = |groups: &[&str], of: &str| {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            let claims = Claims::from([("of".to_owned(), json!(of))]);
            Identity::token("issuer", "subject", groups, claims)
        };
        let revocation = || Revocation {
            revoked: CancellationToken::new(),
            cancels_calls: false,
            keeps: None,
        };
        let end = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let rights = || {
            [
                token(&["a"], "x"),
                token(&["a", "b"], "x"),
                token(&["a"], "y"),
                token(&["a"], "x").expiring(end(1)),
                token(&["a"], "x").expiring(end(2)),
                token(&["a"], "x").revoked_by(revocation()),
                token(&["a"], "x").expiring(end(1)).revoked_by(revocation()),
            ]
        };
        for (at, one) in rights().iter().enumerate() {
            for (other_at, other) in rights().iter().enumerate() {
                let is_same = at == other_at;
                assert_eq!(one.has_same_right(other), is_same, "{at} and {other_at}");
                assert!(one.is_same_caller(other));
            }
        }
        let other = Identity::token("issuer", "other", Vec::new(), Claims::new());
        assert!(!other.is_same_caller(&token(&[], "x")));
    }
}
