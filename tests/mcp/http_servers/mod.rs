//! Real servers over HTTP as sources: those of the official SDKs, in both eras and over both transports.

mod bearer;
mod equality;
mod first_use;
pub(crate) mod servers;
