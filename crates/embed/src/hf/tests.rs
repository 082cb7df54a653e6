//! Models of this machine.
