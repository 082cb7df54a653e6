//! Compiles this package's config and lock.

fn main() {
    broker_gen::build_config("config.json");
}
