//! Verifies files of a log.
