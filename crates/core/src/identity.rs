//! The caller of a request, as a surface authenticated it. Every operation takes it as a parameter.

/// A caller: who it is, which groups it belongs to, and which rules of admission apply to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    subject: Subject,
    groups: Vec<String>,
    class: AdmissionClass,
}

/// The way in which a caller was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The caller sent no secret, and the broker has none.
    Anonymous,
    /// The caller sent the broker's secret.
    Secret,
    /// The program that started the broker and uses its standard input and output, or that contains it.
    Local,
}

/// The rules of admission that apply to a caller, one bit for each. Callers of one class see and may
/// call the same entries, so caches are kept for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdmissionClass(u64);

impl AdmissionClass {
    /// The class that every entry of the catalog allows.
    pub const ALL: Self = Self(u64::MAX);

    /// The class to which these rules apply.
    pub const fn new(rules: u64) -> Self {
        Self(rules)
    }

    /// Whether an entry with these allowed rules exists for this class.
    pub(crate) const fn is_allowed(self, allow: u64) -> bool {
        self.0 & allow != 0
    }
}

impl Identity {
    /// An identity with its groups and the class that follows from them.
    pub const fn new(subject: Subject, groups: Vec<String>, class: AdmissionClass) -> Self {
        Self {
            subject,
            groups,
            class,
        }
    }

    /// A caller that sent no secret to a broker without one.
    pub const fn anonymous() -> Self {
        Self::unrestricted(Subject::Anonymous)
    }

    /// A caller that sent the broker's secret.
    pub const fn secret() -> Self {
        Self::unrestricted(Subject::Secret)
    }

    /// The program that started or contains the broker.
    pub const fn local() -> Self {
        Self::unrestricted(Subject::Local)
    }

    const fn unrestricted(subject: Subject) -> Self {
        Self::new(subject, Vec::new(), AdmissionClass::ALL)
    }

    /// The way in which the caller was authenticated.
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The groups that the caller belongs to.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The class that decides what the caller sees and may call.
    pub const fn class(&self) -> AdmissionClass {
        self.class
    }
}
