//! Compiles this package's config and lock.

fn main() {
    broker_build::build_config("config.json");
}
