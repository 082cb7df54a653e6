//! Two branches and git: what merges without a conflict, what conflicts by name, and the way out.

use broker_model::lock::Lock;
use harness::{Output, contains};

use super::repository::{AUDITS, CONFIG, Clone, LOCK, all_gits};

const SOURCES: [&str; 3] = ["a", "b", "d"];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A repository with a lock of three sources on `main`; `ours` changed `/a` and `theirs` changed `/d`, in server, config
/// and audits. `ours` is checked out.
fn two_branches() -> Clone {
    let clone = Clone::new();
    clone.configure(SOURCES.map(|name| (name, "*")));
    for name in SOURCES {
        clone.tools(
            name,
            &names(&[&format!("read_{name}"), &format!("list_{name}")]),
        );
    }
    clone.bench.write(".gitignore", "*.log\n");
    clone.verb_fine(&["lock", "--once"]);
    clone.verb_fine(&["accept", "--who", "A", "--source", "/b", "--tool", "read_b"]);
    clone.commit("base");
    for (branch, source) in [("theirs", "d"), ("ours", "a")] {
        clone.git_fine(&["checkout", "-q", "-b", branch, "main"]);
        clone.tools(
            source,
            &names(&[&format!("read_{source}"), &format!("new_{source}")]),
        );
        clone.configure(SOURCES.map(|name| (name, if name == source { "*_*" } else { "*" })));
        clone.verb_fine(&["lock", "--once", "--source", &format!("/{source}")]);
        let tool = format!("new_{source}");
        let path = format!("/{source}");
        clone.verb_fine(&[
            "accept", "--who", branch, "--source", &path, "--tool", &tool,
        ]);
        clone.commit(branch);
    }
    clone
}

/// Removes the servers and their journals: nothing can be launched from now on.
fn without_servers(clone: &Clone) {
    for name in SOURCES {
        for ending in ["json", "log"] {
            drop(std::fs::remove_file(
                clone.bench.path(&format!("below/{name}.{ending}")),
            ));
        }
    }
}

/// Asserts that both changes are in lock and audits, and that no source ran.
fn has_both(clone: &Clone, what: &str) {
    for name in SOURCES {
        assert!(
            !clone.bench.path(&format!("below/{name}.log")).exists(),
            "{what}: {name} ran"
        );
    }
    let lock = clone.bench.read(LOCK);
    contains(&lock, &["\"new_a\"", "\"new_d\"", "\"read_b\""]);
    let audits = clone.bench.read(AUDITS);
    contains(&audits, &["\"new_a\"", "\"new_d\"", "\"read_b\""]);
    assert_eq!(audits.matches("[[audits]]").count(), 3, "{audits}");
    clone.verb_fine(&["verify", "--offline"]);
    assert_eq!(
        clone.git_fine(&["diff", "--name-only", "--diff-filter=U"]),
        "",
        "{what}"
    );
}

#[test]
fn branches_that_changed_different_sources_merge_without_a_conflict() {
    let gits = all_gits();
    let runs = gits
        .into_iter()
        .flat_map(|git| [(git.clone(), None), (git, Some(("CI", "true")))]);
    for (git, variable) in runs {
        let mut clone = two_branches();
        clone.git = git;
        for name in SOURCES {
            drop(std::fs::remove_file(
                clone.bench.path(&format!("below/{name}.log")),
            ));
        }
        let merged = clone.git_with(&["merge", "-q", "theirs"], variable.as_slice());
        assert_eq!(merged.code, Some(0), "{}{}", merged.stdout, merged.stderr);
        has_both(&clone, "merge");
        clone.is_fresh("merge");
    }
}

#[test]
fn branches_that_changed_different_sources_rebase_pick_and_stash_without_a_conflict() {
    let mut clone = two_branches();
    let runs: [(&str, &[&[&str]]); 3] = [
        ("rebase", &[&["rebase", "-q", "theirs"]]),
        ("cherry-pick", &[&["cherry-pick", "theirs"]]),
        (
            "stash",
            &[
                &["checkout", "-q", "theirs"],
                &["reset", "-q", "--soft", "main"],
                &["stash", "-q"],
                &["checkout", "-q", "ours"],
                &["stash", "pop"],
            ],
        ),
    ];
    let [ours, theirs] = ["ours", "theirs"].map(|name| clone.git_fine(&["rev-parse", name]));
    let gits = all_gits();
    let runs = gits.iter().flat_map(|git| runs.map(|run| (git, run)));
    for (git, (what, commands)) in runs {
        clone.git.clone_from(git);
        clone.git_fine(&["checkout", "-q", "-B", "ours", ours.trim()]);
        clone.git_fine(&["branch", "-q", "-f", "theirs", theirs.trim()]);
        for name in SOURCES {
            drop(std::fs::remove_file(
                clone.bench.path(&format!("below/{name}.log")),
            ));
        }
        for args in commands {
            clone.git_fine(args);
        }
        has_both(&clone, what);
        clone.is_fresh(what);
        clone.git_fine(&["reset", "-q", "--hard"]);
    }
}

#[test]
fn driver_merges_where_no_server_can_start() {
    let clone = two_branches();
    without_servers(&clone);
    clone.commit("no servers");
    let merged = clone.git(&["merge", "-q", "-X", "ours", "theirs"]);
    // Git keeps the script that theirs changed and ours removed.
    assert_eq!(merged.code, Some(1), "{}", merged.stderr);
    contains(&merged.stdout, &["below/d.json deleted in HEAD"]);
    clone.git_fine(&["rm", "-q", "-f", "below/d.json"]);
    has_both(&clone, "merge");
}

#[test]
fn clone_without_the_driver_merges_lock_and_audits_by_one_command() {
    let clone = two_branches();
    clone.git_fine(&["config", "--remove-section", "merge.broker-gen"]);
    without_servers(&clone);
    let merged = clone.git(&["merge", "-q", "theirs"]);
    assert_eq!(merged.code, Some(1), "{}{}", merged.stdout, merged.stderr);
    for (file, code) in [(LOCK, "lock_corrupt"), (AUDITS, "audits_syntax")] {
        contains(&clone.bench.read(file), &["<<<<<<<"]);
        let refused = match file {
            LOCK => clone.verb(&["verify", "--offline"]),
            _ => clone.verb(&["lock", "--once"]),
        };
        contains(&refused.stderr, &[code, "`broker-gen lock --merge`"]);
    }
    without_servers(&clone);
    clone.verb_fine(&["lock", "--merge"]);
    clone.git_fine(&["add", "-A"]);
    has_both(&clone, "lock --merge");
}

#[test]
fn audits_that_a_person_settled_are_left_by_the_merge_of_the_lock() {
    let clone = two_branches();
    clone.git_fine(&["config", "--remove-section", "merge.broker-gen"]);
    assert_eq!(clone.git(&["merge", "-q", "theirs"]).code, Some(1));
    clone.git_fine(&["checkout", "--ours", AUDITS]);
    let settled = clone.bench.read(AUDITS);
    without_servers(&clone);
    let merged = clone.verb(&["lock", "--merge"]);
    contains(
        &merged.stderr,
        &["c.audits.toml: settled already; `git add` it", "wrote "],
    );
    assert_eq!(clone.bench.read(AUDITS), settled);
    let unknown = clone.verb(&["lock", "--merge", "--theirs", "/typo"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    contains(
        &unknown.stderr,
        &["`--theirs /typo`: neither side has this source"],
    );
}

#[test]
fn file_whose_name_begins_with_a_hyphen_is_merged_or_marked() {
    let clone = two_branches();
    for file in ["ours", "theirs", "base"] {
        clone.bench.write(file, "{}");
    }
    let run = clone.verb(&[
        "lock",
        "--merge-driver",
        "base",
        "ours",
        "theirs",
        "-x.lock.json",
    ]);
    assert_ne!(run.code, Some(0));
    contains(&run.stderr, &["-x.lock.json"]);
    contains(&clone.bench.read("ours"), &["<<<<<<< ours"]);
}

/// Both branches changed `/b` as well, and the merge has stopped.
fn conflict() -> (Clone, Output) {
    let clone = two_branches();
    for branch in ["theirs", "ours"] {
        clone.git_fine(&["checkout", "-q", branch]);
        clone.tools("b", &names(&["read_b", branch]));
        clone.verb_fine(&["lock", "--once", "--source", "/b"]);
        clone.commit("b too");
    }
    let merged = clone.git(&["merge", "-q", "theirs"]);
    assert_eq!(merged.code, Some(1), "{}", merged.stderr);
    (clone, merged)
}

#[test]
fn source_that_both_branches_changed_is_a_conflict_by_name() {
    let (clone, merged) = conflict();
    let said = format!("{}{}", merged.stdout, merged.stderr);
    let parts = [
        "merge_conflict",
        "both sides changed the source `/b`",
        "settle the config first, then run `broker-gen lock --merge`",
        "CONFLICT (content): Merge conflict in below/c.lock.json",
    ];
    contains(&said, &parts);
    let text = clone.bench.read(LOCK);
    contains(&text, &["<<<<<<< ours", ">>>>>>> theirs"]);
    Lock::parse("c.lock.json", &text).expect_err("it is not a lock");
    let refused = clone.verb(&["verify", "--offline"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["lock_corrupt", "`broker-gen lock --merge`"],
    );

    // Without a decision nothing is written.
    let again = clone.verb(&["lock", "--merge"]);
    assert_eq!(again.code, Some(5), "{}", again.stderr);
    contains(
        &again.stderr,
        &["`/b`", "--theirs /b", "the merge was not written"],
    );
    assert_eq!(clone.bench.read(LOCK), text);

    for (args, tool) in [
        (&["lock", "--merge", "--theirs", "/b"][..], "theirs"),
        (&["lock", "--merge", "--ours", "/b"], "ours"),
        (&["lock", "--merge", "--once", "--source", "/b"], "launched"),
    ] {
        clone.tools("b", &names(&["read_b", tool]));
        let settled = clone.verb_fine(args);
        assert_eq!(
            settled.stderr.contains("no source was launched"),
            tool != "launched"
        );
        contains(
            &clone.bench.read(LOCK),
            &["\"new_a\"", "\"new_d\"", &format!("\"{tool}\"")],
        );
        clone.is_fresh(tool);
    }
}

#[test]
fn tool_of_theirs_that_a_violation_of_ours_names_is_a_conflict() {
    let clone = two_branches();
    let audits = clone.bench.read(AUDITS);
    let entry = "\n[[violations]]\nsource = \"/d\"\ntool = \"new_d\"\nreason = \"r\"\nwho = \"B\"\ndate = 2026-03-01\n";
    clone.bench.write(AUDITS, &format!("{audits}{entry}"));
    clone.commit("a violation");
    let said = "error[violation]: `new_d` of `/d` is refused by the violation of B";
    let merged = clone.git(&["merge", "-q", "theirs"]);
    assert_eq!(merged.code, Some(1), "{}{}", merged.stdout, merged.stderr);
    contains(&merged.stderr, &[said]);
    let unmerged = clone.git_fine(&["diff", "--name-only", "--diff-filter=U"]);
    assert_eq!(unmerged.trim(), LOCK);
    let text = clone.bench.read(LOCK);
    contains(&text, &["<<<<<<< ours"]);
    let again = clone.verb(&["lock", "--merge"]);
    assert_eq!(again.code, Some(5), "{}", again.stderr);
    contains(&again.stderr, &[said, "the merge was not written"]);
    assert_eq!(clone.bench.read(LOCK), text);
    // The way that the help names.
    clone.verb_fine(&["lock", "--merge", "--once", "--source", "/d"]);
    let lock = Lock::parse("c", &clone.bench.read(LOCK)).expect("a lock");
    let left_out = lock.left_out_parts();
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].tool.as_deref(), Some("new_d"));
    clone.verb_fine(&["verify", "--offline"]);
}

#[test]
fn config_is_settled_before_the_lock() {
    let clone = two_branches();
    for branch in ["theirs", "ours"] {
        clone.git_fine(&["checkout", "-q", branch]);
        let text = clone.bench.read(CONFIG);
        let (head, _) = text.rsplit_once("\n]}").expect("the end");
        let added = format!(
            "{head},\n{{\"path\": \"/{branch}\", \"type\": \"node\", \"source\": {{\"command\": [\"chaos-mcp\", \"--script\", \"{branch}.json\"], \"cwd\": \".\"}}}}\n]}}\n"
        );
        clone.bench.write(CONFIG, &added);
        clone.tools(branch, &names(&[branch]));
        clone.verb_fine(&["lock", "--once", "--source", &format!("/{branch}")]);
        clone.commit("a source more");
    }
    let merged = clone.git(&["merge", "-q", "theirs"]);
    assert_eq!(merged.code, Some(1), "{}", merged.stderr);
    contains(
        &merged.stderr,
        &["merge_conflict", "the configs of both sides conflict"],
    );
    for args in [
        &["lock", "--merge"][..],
        &["lock"],
        &["verify", "--offline"],
    ] {
        let refused = clone.verb(args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.stderr);
        let parts = [
            "config_syntax",
            "Settle the config first",
            "`broker-gen lock --merge`",
        ];
        contains(&refused.stderr, &parts);
    }
    // Both sources are kept.
    let text = clone.bench.read(CONFIG);
    let lines = text.lines().filter(|line| {
        !["<<<<<<<", ">>>>>>>"]
            .iter()
            .any(|mark| line.starts_with(mark))
    });
    let both = lines.map(|line| {
        if line.starts_with("=======") {
            ","
        } else {
            line
        }
    });
    clone
        .bench
        .write(CONFIG, &both.collect::<Vec<_>>().join("\n"));
    clone.verb_fine(&["lock", "--merge"]);
    contains(
        &clone.bench.read(LOCK),
        &["\"/ours\"", "\"/theirs\"", "\"new_a\"", "\"new_d\""],
    );
    clone.is_fresh("both sources");
}

#[test]
fn removal_against_change_is_a_conflict_that_the_settled_config_decides() {
    let clone = two_branches();
    clone.configure([("a", "*_*"), ("b", "*")]);
    clone.verb_fine(&["lock", "--once"]);
    clone.commit("without d");
    let merged = clone.git(&["merge", "-q", "-X", "ours", "theirs"]);
    assert_eq!(merged.code, Some(1), "{}", merged.stderr);
    contains(
        &merged.stderr,
        &["ours removed the source `/d`, and theirs changed it"],
    );
    clone.configure([("a", "*_*"), ("b", "*")]);
    let settled = clone.verb_fine(&["lock", "--merge"]);
    contains(&settled.stderr, &["/d: the config does not have it"]);
    clone.is_fresh("removed");
}

#[test]
fn tools_whose_names_clash_only_in_the_merge_are_left_out() {
    let clone = Clone::new();
    clone.bench.write(".gitignore", "*.log\n");
    clone.configure([("a", "*"), ("m", "*"), ("z", "*")]);
    for (name, tool) in [("a", "x"), ("m", "x"), ("z", "x")] {
        clone.tools(name, &names(&[tool]));
    }
    clone.verb_fine(&["lock", "--once"]);
    clone.commit("base");
    // Both tools have the flat name `a-b-c`.
    clone.git_fine(&["checkout", "-q", "-b", "theirs"]);
    clone.configure([("a-b", "*"), ("a", "*"), ("m", "*"), ("z", "*")]);
    clone.tools("a-b", &names(&["c"]));
    clone.verb_fine(&["lock", "--once"]);
    clone.commit("theirs");
    clone.git_fine(&["checkout", "-q", "-b", "ours", "main"]);
    clone.tools("a", &names(&["x", "b-c"]));
    clone.verb_fine(&["lock", "--once"]);
    clone.commit("ours");
    let merged = clone.git(&["merge", "-q", "theirs"]);
    assert_eq!(merged.code, Some(0), "{}{}", merged.stdout, merged.stderr);
    let text = clone.bench.read(LOCK);
    contains(&text, &["path_clash", "\"lock_version\": 3"]);
    let fresh = clone.verb(&["lock", "--once"]);
    assert_eq!(fresh.code, Some(8), "{}", fresh.stderr);
    assert_eq!(clone.bench.read(LOCK), text);
}

/// The driver gets a file that it refuses, as by a wrapper or a mistyped setting.
#[test]
fn merge_by_a_driver_that_refuses_a_file_is_a_conflict_in_git() {
    for (before, args, is_marked) in [
        ("true", "%O %A %A %P", true),
        ("truncate -s 500M %B", "%O %A %B %P", true),
        (
            "mv %B theirs.tmp && ln -s theirs.tmp %B",
            "%O %A %B %P",
            true,
        ),
        ("mv %A ours.tmp && ln -s ours.tmp %A", "%O %A %B %P", false),
    ] {
        let clone = two_branches();
        let driver = format!("{before} && broker-gen lock --merge-driver {args}");
        clone.git_fine(&["config", "merge.broker-gen.driver", &driver]);
        clone
            .bench
            .write(".gitattributes", "*.lock.json merge=broker-gen\n");
        clone.commit("the lock only");
        let merged = clone.git(&["merge", "-q", "theirs"]);
        let said = format!("{}{}", merged.stdout, merged.stderr);
        assert_eq!(merged.code, Some(1), "{driver}: {said}");
        contains(
            &said,
            &[
                "merge_unreadable",
                "CONFLICT (content): Merge conflict in below/c.lock.json",
            ],
        );
        let unmerged = clone.git_fine(&["diff", "--name-only", "--diff-filter=U"]);
        assert!(unmerged.lines().any(|line| line == LOCK), "{unmerged}");
        assert_ne!(clone.git(&["commit", "-q", "-m", "x"]).code, Some(0));
        assert_eq!(said.contains("unchanged, and not merged"), !is_marked);
        if is_marked {
            let text = clone.bench.read(LOCK);
            contains(&text, &["<<<<<<< ours\n", ">>>>>>> theirs\n"]);
            Lock::parse("c", &text).expect_err("it is not a lock");
        }
    }
}

#[test]
fn search_for_the_config_ends_after_a_number_of_bytes_and_says_so() {
    let clone = two_branches();
    // Newer versions in another branch, each as large as a config may be.
    clone.git_fine(&["checkout", "-q", "-b", "other", "main"]);
    for version in 0..18 {
        let text = format!("{version}{}", "x".repeat((4 << 20) - 2));
        clone.bench.write(CONFIG, &text);
        let date = ("GIT_COMMITTER_DATE", "2038-01-01T00:00:00Z");
        let output = clone.git_with(&["commit", "-q", "-a", "-m", "large"], &[date]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    clone.git_fine(&["checkout", "-q", "ours"]);
    let merged = clone.git_with(&["merge", "-q", "theirs"], &[]);
    assert_eq!(merged.code, Some(1), "{}{}", merged.stdout, merged.stderr);
    contains(
        &merged.stderr,
        &["merge_conflict", "ended after 64 MiB of versions"],
    );
    contains(&clone.bench.read(LOCK), &["<<<<<<< ours"]);
    // The config is merged now, so that the lock needs no search.
    without_servers(&clone);
    clone.verb_fine(&["lock", "--merge"]);
    clone.git_fine(&["add", "-A"]);
    clone.verb_fine(&["verify", "--offline"]);
}
