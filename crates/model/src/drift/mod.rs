//! Drift.
