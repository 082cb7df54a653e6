//! `status`: the program, and its report on sources.

mod program;
mod sources;
