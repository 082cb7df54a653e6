//! Two clones that merge, rebase, cherry-pick and stash random pairs of changes through the driver: the result is the
//! lock of the merged config, or the conflict is named.

use std::collections::BTreeMap;
use std::env;

use broker_model::lock::Lock;
use harness::Output;

use super::repository::{AUDITS, CONFIG, Clone, LOCK};

/// The names of sources that a side may add.
const NAMES: [&str; 7] = ["a", "b", "d", "e", "f", "g", "h"];
/// The source that no side changes, so that the config is never empty.
const LAST: &str = "z";

/// Numbers by a linear congruence, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

/// The sources of one side: the filter and the tools of each.
type State = BTreeMap<&'static str, (String, Vec<String>)>;

/// Writes config and scripts.
fn write(clone: &Clone, state: &State) {
    clone.configure(
        state
            .iter()
            .map(|(name, (filter, _))| (*name, filter.as_str())),
    );
    for (name, (_, tools)) in state {
        clone.tools(name, tools);
    }
}

/// One to three random changes; `side` makes most of them differ from those of the other side.
fn change(numbers: &mut Numbers, state: &mut State, side: &str) {
    for _ in 0..=numbers.below(3) {
        let name = NAMES[numbers.below(NAMES.len())];
        // A third of the changes may be the same on both sides.
        let mark = if numbers.below(3) == 0 { "both" } else { side };
        match (state.get_mut(name), numbers.below(4)) {
            (Some((_, tools)), 0 | 1) => tools.push(format!("{mark}_{name}_{}", tools.len())),
            (Some((filter, _)), 2) => filter.push('*'),
            (Some(_), _) => drop(state.remove(name)),
            (None, _) => {
                let tools = vec![format!("{mark}_{name}")];
                state.insert(name, ("*".to_owned(), tools));
            }
        }
    }
}

/// Commits a random change with its lock and an audit.
fn commit_change(clone: &Clone, numbers: &mut Numbers, state: &State, side: &str) {
    let mut state = state.clone();
    change(numbers, &mut state, side);
    write(clone, &state);
    clone.verb_fine(&["lock", "--once"]);
    // The first run only removes sources that are gone, if there are some.
    clone.verb_fine(&["lock", "--once"]);
    let (source, (_, tools)) = state.first_key_value().expect("the last source");
    let path = format!("/{source}");
    let tool = tools.last().expect("a tool");
    clone.verb_fine(&["accept", "--who", side, "--source", &path, "--tool", tool]);
    clone.commit(side);
}

/// The files with conflicts.
fn unmerged(clone: &Clone) -> Vec<String> {
    let names = clone.git_fine(&["diff", "--name-only", "--diff-filter=U"]);
    names.lines().map(str::to_owned).collect()
}

/// The paths of sources that a message names: `` `/a` ``.
fn named(said: &str) -> Vec<String> {
    let words = said.split('`').filter(|word| word.starts_with('/'));
    let mut paths: Vec<_> = words.map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Asserts that the outcome of git is the right lock, or that the conflict is named and the documented way leads to the
/// right lock. Returns whether git merged the lock.
fn settle(clone: &Clone, output: &Output, what: &str) -> bool {
    let said = format!("{}{}", output.stdout, output.stderr);
    let files = unmerged(clone);
    let is_merged = !files.iter().any(|file| file == LOCK);
    if !is_merged {
        let is_named = said.contains("merge_conflict") && said.contains("`/")
            || said.contains("the configs of both sides conflict")
            || said.contains("the merged config is not valid")
            || said.contains("is not the one of the merged lock")
            || said.contains("deleted in");
        assert!(is_named, "{what}: {said}");
        if let Ok(text) = std::fs::read_to_string(clone.bench.path(LOCK)) {
            Lock::parse("lock", &text).expect_err("a conflict is not a lock");
        }
    }
    // The config and the servers are settled first: as ours has them.
    for file in files.iter().filter(|file| *file != LOCK && *file != AUDITS) {
        let ours = clone.git(&["checkout", "-q", "--ours", "--", file]);
        if ours.code != Some(0) {
            clone.git_fine(&["checkout", "-q", "--theirs", "--", file]);
        }
    }
    // Git may merge texts to a config that has a node twice.
    if clone
        .verb(&["verify", "--offline"])
        .stderr
        .contains("path_dup")
    {
        assert!(!is_merged, "{what}: a lock without a config");
        clone.git_fine(&["checkout", "-q", "HEAD", "--", CONFIG]);
    }
    restore_scripts(clone);
    if !is_merged || files.iter().any(|file| file == AUDITS) {
        assert!(
            !files.iter().any(|file| file == AUDITS),
            "{what}: entries of two people: {said}"
        );
        let mut sources: Vec<String> = Vec::new();
        for round in 0.. {
            let mut args = vec!["lock", "--merge"];
            if !sources.is_empty() {
                args.push("--once");
            }
            for source in &sources {
                args.extend(["--source", source]);
            }
            let merged = clone.verb(&args);
            if merged.code == Some(0) {
                break;
            }
            let more = named(&merged.stderr);
            assert!(round < 8 && !more.is_empty(), "{what}: {}", merged.stderr);
            sources.extend(more);
            sources.sort();
            sources.dedup();
        }
    } else if files.iter().any(|file| file == CONFIG) {
        // Git could not merge the text of the config, and the driver could: the lock may be stale for the chosen text.
        if clone.verb(&["verify", "--offline"]).code != Some(0) {
            clone.verb_fine(&["lock", "--once"]);
        }
    }
    clone.is_fresh(what);
    is_merged
}

/// Writes the script of each source of the config that the merge removed or left with two versions.
fn restore_scripts(clone: &Clone) {
    let text = clone.bench.read(CONFIG);
    for name in NAMES.iter().chain(&[LAST]) {
        let path = clone.bench.path(&format!("below/{name}.json"));
        if text.contains(&format!("\"/{name}\"")) && !path.exists() {
            clone.tools(name, &[format!("restored_{name}")]);
        }
    }
}

/// Ends what git has begun, and throws its result away.
fn reset(clone: &Clone) {
    for verb in ["merge", "rebase", "cherry-pick"] {
        drop(clone.git(&[verb, "--abort"]));
    }
    clone.git_fine(&["reset", "-q", "--hard"]);
    clone.git_fine(&["clean", "-q", "-f", "-d"]);
    drop(clone.git(&["stash", "drop", "-q"]));
}

/// `MCP_BROKER_MERGES` for another number of pairs, `MCP_BROKER_MERGE_SEED` for others.
#[test]
fn random_branches_merge_to_the_lock_of_the_merged_config_or_name_the_conflict() {
    let number = |name: &str, default: u64| {
        env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let pairs = number("MCP_BROKER_MERGES", 4);
    let seed = number("MCP_BROKER_MERGE_SEED", 1);
    let (mut merged, mut conflicts) = (0, 0);
    let one = Clone::new();
    one.bench.write(".gitignore", "*.log\n");
    let mut base = State::new();
    for name in NAMES.iter().take(4).chain(&[LAST]) {
        base.insert(name, ("*".to_owned(), vec![format!("base_{name}")]));
    }
    write(&one, &base);
    one.verb_fine(&["lock", "--once"]);
    one.commit("base");
    let two = Clone::of(&one);
    for pair in 0..pairs {
        let mut numbers = Numbers(seed.wrapping_mul(1_000_003).wrapping_add(pair));
        for (clone, side) in [(&one, "one"), (&two, "two")] {
            let start = if side == "one" { "main" } else { "other/main" };
            clone.git_fine(&["checkout", "-q", "-B", side, start]);
            commit_change(clone, &mut numbers, &base, side);
        }
        one.git_fine(&["fetch", "-q", "other"]);
        two.git_fine(&["fetch", "-q", "other"]);
        let of_both: [(&str, &Clone, &[&[&str]]); 4] = [
            ("merge", &one, &[&["merge", "--no-edit", "other/two"]]),
            ("cherry-pick", &one, &[&["cherry-pick", "other/two"]]),
            ("rebase", &two, &[&["rebase", "other/one"]]),
            (
                "stash",
                &two,
                &[
                    &["reset", "-q", "--soft", "HEAD~1"],
                    &["stash", "-q"],
                    &["checkout", "-q", "other/one"],
                    &["stash", "pop"],
                ],
            ),
        ];
        for (what, clone, commands) in of_both {
            let what = format!("{what} of pair {pair} with seed {seed}");
            let side = if std::ptr::eq(clone, &one) {
                "one"
            } else {
                "two"
            };
            let tip = clone.git_fine(&["rev-parse", side]);
            clone.git_fine(&["checkout", "-q", side]);
            let (last, before) = commands.split_last().expect("a command");
            for args in before {
                clone.git_fine(args);
            }
            let output = clone.git(last);
            match settle(clone, &output, &what) {
                true => merged += 1,
                false => conflicts += 1,
            }
            reset(clone);
            clone.git_fine(&["checkout", "-q", "-B", side, tip.trim()]);
        }
    }
    println!("{merged} merged, {conflicts} conflicts");
    assert!(merged > 0, "the driver merged nothing");
}
