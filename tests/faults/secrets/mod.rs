//! Values of secrets reach only the processes that the config gives them to: no output, log or lock shows one.

mod generator;
mod names;
mod output;
