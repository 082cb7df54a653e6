//! `doctor`: what is wrong with the sources of a config, and with their commands.

mod commands;
mod sources;
