//! Tests of the merge of locks, source by source, without files.

use std::collections::BTreeMap;

use broker_build::describe;
use broker_config::Config;
use broker_model::lock::{LOCK_VERSION, LeftOutSource, Lock, MIN_LOCK_VERSION};
use broker_model::{LeftOutCode, NodePath, Snapshot};
use serde_json::{Value, json};

use super::settle::settle;
use super::three_way::{Clash, MergedSources, Side, Sides, merge};

/// The config of these sources; the second of each pair is its command.
fn config(sources: &[(&str, &str)]) -> Config {
    let nodes = sources.iter().map(|(name, command)| {
        json!({"path": format!("/{name}"), "type": "node", "source": {"command": [command]}})
    });
    let text = json!({"tree": nodes.collect::<Vec<Value>>()}).to_string();
    let parsed = Config::parse("c.json", text.as_bytes());
    parsed.expect("the config is valid").config
}

/// A lock of these sources; each is its name, its command and the name of its tool.
fn lock(sources: &[(&str, &str, &str)]) -> Lock {
    let pairs: Vec<_> = sources
        .iter()
        .map(|(name, command, _)| (*name, *command))
        .collect();
    let config = config(&pairs);
    let mut lock = Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "test".to_owned(),
        sources: Vec::new(),
        left_out: Vec::new(),
    };
    for (source, (_, _, tool)) in config.sources().zip(sources) {
        let tool = json!({"name": tool, "inputSchema": {"type": "object"}});
        let snapshot = Snapshot {
            tools: vec![tool.as_object().expect("an object").clone().into()],
            ..Snapshot::empty()
        };
        lock.sources.push(source.to_locked(&snapshot));
    }
    lock.sources.sort_by(|a, b| a.path.cmp(&b.path));
    describe::describe(&mut lock, &config);
    lock
}

fn merged(base: Option<&Lock>, ours: &Lock, theirs: &Lock) -> MergedSources {
    merge(&Sides { base, ours, theirs }, &BTreeMap::new())
}

/// The tools of the merged sources, and the conflicts.
fn shown(merged: &MergedSources) -> (Vec<String>, Vec<(String, Clash)>) {
    let sources = merged.sources.iter();
    let tools =
        sources.map(|source| format!("{} {}", source.path, source.exposed[0].upstream_name));
    let conflicts = merged.conflicts.iter();
    let conflicts = conflicts.map(|one| (one.path.to_string(), one.clash));
    (tools.collect(), conflicts.collect())
}

#[test]
fn sources_that_one_side_changed_added_or_removed_are_those_of_the_side() {
    let base = lock(&[("a", "x", "a1"), ("b", "x", "b1"), ("c", "x", "c1")]);
    let ours = lock(&[
        ("a", "x", "a2"),
        ("b", "x", "b1"),
        ("c", "x", "c1"),
        ("d", "x", "d1"),
    ]);
    let theirs = lock(&[("a", "x", "a1"), ("b", "x", "b2"), ("e", "x", "e1")]);
    let expected = ["/a a2", "/b b2", "/d d1", "/e e1"];
    for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
        let (tools, conflicts) = shown(&merged(Some(&base), ours, theirs));
        assert_eq!(
            (tools, conflicts.len()),
            (expected.map(str::to_owned).to_vec(), 0)
        );
    }
    // Without a base a removal cannot be seen.
    let (tools, conflicts) = shown(&merged(None, &base, &lock(&[("a", "x", "a1")])));
    assert_eq!(
        (tools, conflicts),
        (
            vec!["/a a1".to_owned(), "/b b1".to_owned(), "/c c1".to_owned()],
            vec![]
        )
    );
}

#[test]
fn sources_that_both_sides_changed_are_conflicts_by_name() {
    let base = lock(&[("a", "x", "a1"), ("b", "x", "b1")]);
    let ours = lock(&[("a", "x", "a2"), ("c", "x", "c1")]);
    let theirs = lock(&[("a", "x", "a3"), ("b", "x", "b2"), ("c", "x", "c2")]);
    let found = merged(Some(&base), &ours, &theirs);
    let expected = [
        ("/a".to_owned(), Clash::BothChanged),
        ("/b".to_owned(), Clash::Removed(Side::Ours)),
        ("/c".to_owned(), Clash::BothAdded),
    ];
    assert_eq!(shown(&found).1, expected);
    let turned = merged(Some(&base), &theirs, &ours);
    assert_eq!(shown(&turned).1[1].1, Clash::Removed(Side::Theirs));
    assert_eq!(
        shown(&merged(None, &ours, &theirs)).1[0].1,
        Clash::BothAdded
    );
    // Both made the same change.
    assert_eq!(shown(&merged(Some(&base), &ours, &ours)).1, []);
    let chosen = [("/a", Side::Theirs), ("/b", Side::Ours), ("/c", Side::Ours)];
    let chosen = chosen.map(|(path, side)| (NodePath::parse(path).expect("a path"), side));
    let sides = Sides {
        base: Some(&base),
        ours: &ours,
        theirs: &theirs,
    };
    let (tools, conflicts) = shown(&merge(&sides, &chosen.into()));
    assert_eq!(
        (tools, conflicts),
        (vec!["/a a3".to_owned(), "/c c1".to_owned()], vec![])
    );
}

#[test]
fn source_that_a_side_only_kept_is_that_of_the_other_side() {
    let base = lock(&[("a", "x", "a1")]);
    let mut ours = base.clone();
    ours.sources[0].kept = Some(LeftOutCode::NotStarted);
    let theirs = lock(&[("a", "x", "a2")]);
    for (one, other) in [(&ours, &theirs), (&theirs, &ours)] {
        let (tools, conflicts) = shown(&merged(Some(&base), one, other));
        assert_eq!((tools, conflicts), (vec!["/a a2".to_owned()], vec![]));
    }
    // The mark itself is a change.
    for (one, other) in [(&ours, &base), (&base, &ours)] {
        let marked = merged(Some(&base), one, other);
        assert_eq!(marked.sources[0].kept, Some(LeftOutCode::NotStarted));
    }
    // A kept state of another content is a change.
    let mut other = lock(&[("a", "x", "a3")]);
    other.sources[0].kept = Some(LeftOutCode::NotStarted);
    assert_eq!(shown(&merged(Some(&base), &other, &theirs)).1.len(), 1);
}

#[test]
fn source_that_a_side_has_not_locked_is_that_of_the_other_side() {
    let theirs = lock(&[("a", "x", "a1")]);
    let source = &theirs.sources[0];
    let mut ours = theirs.clone();
    ours.left_out = vec![LeftOutSource {
        path: source.path.clone(),
        code: LeftOutCode::NotLocked,
        place: String::new(),
        reason: LeftOutCode::NotLocked.cause().to_owned(),
        config_digest: source.config_digest.clone(),
        digest: None,
    }];
    ours.sources.clear();
    for (one, other) in [(&ours, &theirs), (&theirs, &ours)] {
        let found = merged(None, one, other);
        assert_eq!(shown(&found), (vec!["/a a1".to_owned()], vec![]));
        assert_eq!(found.left_out, []);
    }
}

#[test]
fn source_of_a_lock_of_version_1_is_the_same_as_that_of_version_2() {
    let base = Lock::parse("base", &{
        let mut old = lock(&[("a", "x", "a1"), ("b", "x", "b1")]);
        old.version = MIN_LOCK_VERSION;
        old.to_text()
    })
    .expect("a lock");
    assert_eq!(base.version, MIN_LOCK_VERSION);
    let ours = lock(&[("a", "x", "a2"), ("b", "x", "b1")]);
    let theirs = lock(&[("a", "x", "a1"), ("b", "x", "b2")]);
    let found = merged(Some(&base), &ours, &theirs);
    assert_eq!(
        shown(&found),
        (vec!["/a a2".to_owned(), "/b b2".to_owned()], vec![])
    );
    assert!(found.sources.iter().all(|source| source.settings.is_some()));
    let found = merged(Some(&base), &base, &ours);
    assert!(found.sources.iter().all(|source| source.settings.is_some()));
}

#[test]
fn merged_lock_is_that_of_its_config_or_names_the_source() {
    let base = lock(&[("a", "x", "a1"), ("b", "x", "b1")]);
    let ours = lock(&[("a", "x", "a2"), ("b", "x", "b1")]);
    let theirs = lock(&[("a", "x", "a1"), ("b", "y", "b2"), ("c", "x", "c1")]);
    let sides = Sides {
        base: Some(&base),
        ours: &ours,
        theirs: &theirs,
    };
    let settled = |sources: &[(&str, &str)]| {
        let config = config(sources);
        settle(
            &config,
            "c.json".as_ref(),
            &sides,
            merge(&sides, &BTreeMap::new()),
        )
    };
    let expected = lock(&[("a", "x", "a2"), ("b", "y", "b2"), ("c", "x", "c1")]);
    let found = settled(&[("a", "x"), ("b", "y"), ("c", "x")]).expect("no conflict");
    assert_eq!(found.lock.root_digest(), expected.root_digest());
    assert_eq!(found.gone, []);
    // The config no longer has one of them.
    let found = settled(&[("a", "x"), ("b", "y")]).expect("no conflict");
    let expected = lock(&[("a", "x", "a2"), ("b", "y", "b2")]);
    assert_eq!(found.lock.root_digest(), expected.root_digest());
    assert_eq!(found.gone, [NodePath::parse("/c").expect("a path")]);
    // The config has another one, and one that neither lock has.
    for sources in [
        &[("a", "z"), ("b", "y")][..],
        &[("a", "x"), ("b", "y"), ("d", "x")],
    ] {
        let found = settled(sources).expect_err("it is stale");
        let path = if sources.len() == 2 { "/a" } else { "/d" };
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains(path), "{found:?}");
        let help = format!("broker-gen lock --merge --source {path}");
        assert!(found[0].remedy().contains(&help), "{found:?}");
    }
}
