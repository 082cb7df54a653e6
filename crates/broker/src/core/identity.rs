//! Who calls. Decided at a surface, passed explicitly ever after.

/// The caller, as a surface found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Nobody in particular.
    #[default]
    Anonymous,
    /// A caller that knows the broker's secret.
    Secret,
    /// The program that started the broker and talks to it over its standard input and output.
    Local,
}
