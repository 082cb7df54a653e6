//! Lock: written by broker-gen, read by the build.
