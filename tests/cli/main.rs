//! `broker-gen` as a program: its verbs, its build script, the crates that it makes, the tutorial.

mod build_script;
mod command_line_page;
mod commands;
mod full_disk;
mod interrupt;
mod lint_page;
mod live;
mod merge;
mod offline;
mod recipes;
mod scaffold;
mod tutorial;
