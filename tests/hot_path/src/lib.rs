//! The parts of a count around the broker: the paths of a call, a server and callers that allocate nothing
//! per call, and the stored bounds.

pub mod bounds;
pub mod http;
pub mod path;
pub mod server;
pub mod stdio;

pub use path::{Path, Surface};
