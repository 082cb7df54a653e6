//! Compiles this package's config and lock, and for its tests the types of every tool and a table of them.

use std::io::{self, Write as _};
use std::path::Path;
use std::{env, fs};

use broker_build::plan::Entry;
use broker_build::types::TypedTool;
use broker_build::{plan, types};
use broker_config::Config;
use broker_model::lock::Lock;

/// The types of one of so many tools are compiled and tested, since those of all take minutes. `CORPUS_TYPES=1`
/// compiles all.
const ONE_OF: usize = 6;

fn main() {
    broker_build::build_config("config.json");
    // The broker does not use them: types cost compile time, and only the tests need them.
    let config = fs::read_to_string("config.json").expect("the config is readable");
    let config = config.replacen("\"types\": false", "\"types\": true", 1);
    let config = Config::parse("config.json", config.as_bytes())
        .expect("the config is valid")
        .config;
    let lock = fs::read_to_string("config.lock.json").expect("the lock is readable");
    let lock = Lock::parse("config.lock.json", &lock).expect("the lock is valid");
    let mut plan = plan::plan(&config, &lock.sources).expect("config and lock fit");
    tell_cargo("cargo::rerun-if-env-changed=CORPUS_TYPES");
    let one_of = env::var("CORPUS_TYPES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ONE_OF);
    let mut tools = 0;
    plan.entries.retain(|_, entry| {
        tools += usize::from(matches!(entry, Entry::Tool(_)));
        tools % one_of == 0
    });
    let types = types::types(&plan);
    let rows: Vec<String> = types.tools.iter().map(row).collect();
    let table = format!("static TOOLS: &[Typed] = &[{}];", rows.concat());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(
        Path::new(&out).join("types.rs"),
        format!("{}\n{table}", types.tokens),
    )
    .expect("the output folder is writable");
}

/// The path of a tool, and a function that uses its types.
fn row(tool: &TypedTool) -> String {
    let module = &tool.module;
    let output = if tool.has_output {
        format!("Some(round::<{module}::Output>)")
    } else {
        "None".to_owned()
    };
    format!("Typed {{ path: {module}::PATH, args: round::<{module}::Args>, output: {output} }},")
}

fn tell_cargo(line: &str) {
    // Cargo reads a build script's standard output.
    writeln!(io::stdout(), "{line}").expect("cargo listens");
}
