//! The client against scripted servers, as others use it: by its public interface alone.

mod common;
#[cfg(target_os = "linux")]
mod crashes;
mod launch;
mod life;
mod session;
mod shell;
mod source;
