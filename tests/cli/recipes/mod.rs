//! `docs/ci.md`: every workflow, script and hook of the page is run step by step, and `new` writes the same files.

mod expression;
mod page;
mod runner;
mod yaml;

mod github;
mod gitlab;
mod hook;
mod renovate;
