//! Feeds a target with its committed seeds and with mutations of them, for `FUZZ_SECONDS` (default 1).
//! An input with a new behaviour is mutated further; a failing one is written to a file.

mod dice;
mod mutate;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dice::Dice;
use mutate::Mutator;

/// The maximum number of inputs that are mutated.
const MAX_INPUTS: usize = 4096;
/// The maximum time of an input; generous, since machines are shared.
const SLOW: Duration = Duration::from_secs(10);
/// The maximum bytes of an input.
const MAX_BYTES: usize = 1 << 16;

/// The result of a target for an input: a number for its behaviour, or the violated condition.
pub type Seen = Result<u64, String>;

/// Runs a target over `seeds/NAME` and their mutations, with words of its inputs.
///
/// Panics with the name of a file if an input fails.
pub fn run(name: &str, words: &[&str], target: impl Fn(&[u8]) -> Seen) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(name);
    let mut inputs = seeds(&folder);
    assert!(
        !inputs.is_empty(),
        "there are no seeds in {}",
        folder.display()
    );
    let mut behaviours = BTreeSet::new();
    for seed in &inputs {
        behaviours.insert(try_one(name, seed, &target));
    }
    let number = |variable: &str, default: u64| {
        let given = std::env::var(variable).ok();
        given.map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("`{variable}` is not a number"))
        })
    };
    let time = Duration::from_secs(number("FUZZ_SECONDS", 1));
    let mut mutator = Mutator::new(Dice::new(number("FUZZ_SEED", 1)), words);
    let (begun, mut runs) = (now(), 0u64);
    while begun.elapsed() < time {
        let mut input = mutator.next(&inputs);
        input.truncate(MAX_BYTES);
        let behaviour = try_one(name, &input, &target);
        runs += 1;
        if behaviours.insert(behaviour) && inputs.len() < MAX_INPUTS {
            inputs.push(input);
        }
    }
    let line = format!(
        "{name}: {runs} inputs, {} behaviours, nothing found\n",
        behaviours.len()
    );
    // The figures are for a person who reads the output; the test is the same without them.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The number of a behaviour, from its description.
pub fn behaviour(parts: impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

fn seeds(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder of seeds is there");
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |file: &PathBuf| fs::read(file).expect("a seed can be read");
    files.iter().map(read).collect()
}

fn try_one(name: &str, input: &[u8], target: &impl Fn(&[u8]) -> Seen) -> u64 {
    let begun = now();
    let found = match catch_unwind(AssertUnwindSafe(|| target(input))) {
        Ok(Ok(behaviour)) if begun.elapsed() < SLOW => return behaviour,
        Ok(Ok(_)) => format!("it took {:?}", begun.elapsed()),
        Ok(Err(problem)) => problem,
        Err(_) => "it panicked".to_owned(),
    };
    let file = std::env::temp_dir().join(format!("fuzz-{name}-{:016x}", behaviour(input)));
    fs::write(&file, input).expect("the input can be kept");
    panic!(
        "{name}: {found}; the input is {}, which belongs into tests/fuzz/seeds/{name}/ once this is fixed",
        file.display()
    );
}

#[expect(clippy::disallowed_methods, reason = "the time of a run is real time")]
fn now() -> Instant {
    Instant::now()
}
