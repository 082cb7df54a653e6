//! The client against scripted servers, as others use it: by its public interface alone.

pub(crate) mod common;
#[cfg(target_os = "linux")]
mod cookie;
#[cfg(target_os = "linux")]
mod crashes;
mod instance;
mod launch;
mod life;
pub(crate) mod session;
mod shell;
