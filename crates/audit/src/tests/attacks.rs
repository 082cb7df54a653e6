//! Random changes of a log: each is found, up to the anchor, and by what it must be found.

use std::path::{Path, PathBuf};

use super::fake::Fake;
use super::{OK, begin, key, log_on, wait};
use crate::chain::hash_of;
use crate::head::Head;
use crate::{AuditLog, FoundBy, Rotation, VerifyOptions, verify};

/// Lines as their bytes.
type Lines = Vec<Vec<u8>>;

/// A number from a seed (splitmix64), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}

/// The number of changes; a variable raises it for long runs.
fn changes() -> usize {
    let set = std::env::var("MCP_BROKER_AUDIT_EDITS").ok();
    set.map_or(100, |set| set.parse().expect("a number"))
}

/// Writes calls into a log.
fn calls(log: &AuditLog, count: usize) {
    for n in 0..count {
        let subject = format!("u{}", n % 3);
        if n % 4 == 0 {
            let open = wait(log.admit(super::call(&subject))).unwrap();
            log.end(open, OK);
        } else {
            let open = begin(log, &subject).unwrap();
            log.end(open, OK);
        }
    }
}

/// A log with several checkpoints, in several files if `rotation` has a bound, and an earlier copy of its last file.
fn written(rotate_bytes: u64) -> (Vec<Lines>, Lines) {
    let disk = Fake::default();
    let mut earlier = Vec::new();
    // Each broker ends with a checkpoint.
    for part in 0..4 {
        let log = log_on(&disk, |settings| {
            settings.key = Some(key());
            settings.rotate = Rotation::Size(rotate_bytes);
        });
        calls(&log, 15);
        log.close();
        if part == 2 {
            earlier = split(&disk.content("audit.jsonl"));
        }
    }
    let mut names = disk.names();
    names.retain(|name| name.ends_with(".jsonl"));
    // `audit-1.jsonl` is before `audit.jsonl`, and the verification sorts.
    let files = names.iter().map(|name| split(&disk.content(name)));
    (files.collect(), earlier)
}

fn split(bytes: &[u8]) -> Lines {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Computes the number and the hash of every line from `from` on again, as an attacker without the key does.
fn recompute(lines: &mut Lines, from: usize) {
    for at in from.max(1)..lines.len() {
        let before: serde_json::Value = serde_json::from_slice(&lines[at - 1]).unwrap();
        let hash = hash_of(&lines[at - 1]);
        let line: serde_json::Value = serde_json::from_slice(&lines[at]).unwrap();
        let text = String::from_utf8(lines[at].clone()).unwrap();
        let seq = before["seq"].as_u64().unwrap() + 1;
        let text = text.replacen(
            &format!("\"seq\":{},", line["seq"]),
            &format!("\"seq\":{seq},"),
            1,
        );
        let text = text.replacen(line["prev"].as_str().unwrap(), &hash, 1);
        let stream = before["stream"].as_str().unwrap();
        let text = text.replacen(line["stream"].as_str().unwrap(), stream, 1);
        lines[at] = text.into_bytes();
    }
}

fn save(folder: &Path, files: &[Vec<u8>]) -> Vec<PathBuf> {
    let save = |(number, file): (usize, &Vec<u8>)| {
        let path = folder.join(format!("{number}.jsonl"));
        std::fs::write(&path, file).unwrap();
        path
    };
    files.iter().enumerate().map(save).collect()
}

fn join(lines: &Lines) -> Vec<u8> {
    let mut bytes = lines.join(&b'\n');
    bytes.push(b'\n');
    bytes
}

/// The last line of a log.
fn head_of(lines: &Lines) -> Head {
    let last = lines.last().unwrap();
    let line: serde_json::Value = serde_json::from_slice(last).unwrap();
    Head {
        stream: String::new(),
        seq: line["seq"].as_u64().unwrap(),
        hash: hash_of(last),
    }
}

fn number_of_last_checkpoint(lines: &Lines) -> usize {
    lines.iter().rposition(|line| is_checkpoint(line)).unwrap()
}

fn is_checkpoint(line: &[u8]) -> bool {
    let member = b"\"kind\":\"checkpoint\"";
    line.windows(member.len()).any(|part| part == member)
}

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    Edit,
    Delete,
    Swap,
    Repeat,
    Cut,
    CutInALine,
    OlderFile,
    OtherStream,
}

/// Changes the lines, and returns the index of the first line that differs.
fn attack(attack: Attack, lines: &mut Lines, random: &mut Random, other: &(Lines, Lines)) -> usize {
    let (earlier, stranger) = other;
    let at = 1 + random.below(lines.len() - 3);
    match attack {
        Attack::Edit => {
            let text = String::from_utf8(lines[at].clone()).unwrap();
            // Every line has a time; only its milliseconds change.
            let from = text.find("\"at\":\"").unwrap() + 26;
            let digit = text.as_bytes()[from];
            let other = b'0' + (digit - b'0' + 1 + u8::try_from(random.below(9)).unwrap()) % 10;
            lines[at][from] = other;
            at
        }
        Attack::Delete => {
            let count = 1 + random.below(3).min(lines.len() - at - 2);
            lines.drain(at..at + count);
            at
        }
        Attack::Swap => {
            lines.swap(at, at + 1);
            at
        }
        Attack::Repeat => {
            let line = lines[at].clone();
            lines.insert(at + 1, line);
            at + 1
        }
        Attack::Cut | Attack::CutInALine => {
            lines.truncate(at + 1);
            at + 1
        }
        Attack::OlderFile => {
            lines.clone_from(earlier);
            lines.len()
        }
        Attack::OtherStream => {
            let from = 1 + random.below(stranger.len() - 1);
            lines.truncate(at + 1);
            lines.extend_from_slice(&stranger[from..]);
            at + 1
        }
    }
}

#[test]
fn random_changes_are_found_up_to_the_anchor() {
    let folder = tempfile::TempDir::new().unwrap();
    let (mut files, earlier) = written(u64::MAX);
    let original = files.remove(0);
    let stranger = written(u64::MAX).0.remove(0);
    let others = (earlier, stranger);
    let mut random = Random(20_261_128);
    let mut counts = std::collections::BTreeMap::new();
    for number in 0..changes() {
        // A quarter is cut at a line end.
        let kind = match number % 8 {
            0 | 4 => Attack::Cut,
            1 => Attack::Edit,
            2 => Attack::Delete,
            3 => Attack::Swap,
            5 => Attack::Repeat,
            6 if number % 16 == 6 => Attack::OlderFile,
            6 => Attack::CutInALine,
            _ => Attack::OtherStream,
        };
        let mut lines = original.clone();
        let first = attack(kind, &mut lines, &mut random, &others);
        let is_recomputed = number % 2 == 1;
        // The attacker may also leave out the checkpoints that it cannot sign.
        let has_no_checkpoints = number % 16 == 9;
        if has_no_checkpoints {
            let mut at = 0;
            lines.retain(|line| {
                at += 1;
                at <= first || !is_checkpoint(line)
            });
        }
        if is_recomputed && kind != Attack::CutInALine {
            recompute(&mut lines, first);
        }
        let mut bytes = join(&lines);
        if kind == Attack::CutInALine {
            bytes.truncate(bytes.len() - 1 - random.below(100));
        }
        let paths = save(folder.path(), &[bytes]);
        let anchored = number_of_last_checkpoint(&original);
        let by_key = VerifyOptions {
            key: Some(key().public()),
            head: None,
        };
        let by_head = VerifyOptions {
            key: None,
            head: Some(head_of(&original)),
        };
        let found_by = |options: &VerifyOptions| {
            let report = verify(&paths, options).unwrap();
            let found: Vec<_> = report.findings.iter().map(|finding| finding.by).collect();
            (found, report)
        };
        let (with_key, key_report) = found_by(&by_key);
        let (with_head, _) = found_by(&by_head);
        let what = format!(
            "change {number}: {kind:?} at {first}, recomputed: {is_recomputed}\n{key_report}"
        );
        // The head finds every change.
        assert!(!with_head.is_empty(), "{what}");
        match kind {
            // Only a head shows that a log ends early at a line end.
            Attack::Cut | Attack::OlderFile => {
                assert_eq!(with_head, [FoundBy::Head], "{what}");
                assert!(with_key.is_empty(), "{what}");
                let limits = key_report.cannot_exclude.join("\n");
                assert!(limits.contains("was cut behind line"), "{what}");
            }
            Attack::CutInALine => assert!(with_key.contains(&FoundBy::Chain), "{what}"),
            _ if has_no_checkpoints => {
                let anchor = key_report.anchor.map_or(0, |anchor| anchor.seq);
                assert!(anchor <= first as u64, "{what}");
                assert!(with_head.contains(&FoundBy::Head), "{what}");
            }
            _ if is_recomputed => {
                assert!(first <= anchored, "{what}");
                assert!(with_key.contains(&FoundBy::Checkpoint), "{what}");
                assert!(with_head.contains(&FoundBy::Head), "{what}");
            }
            _ => assert!(with_key.contains(&FoundBy::Chain), "{what}"),
        }
        for by in with_key.iter().chain(&with_head) {
            *counts.entry(format!("{by:?}")).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.len(), 3, "{counts:?}");
}

#[test]
fn unchanged_log_of_several_files_is_verified_in_any_order() {
    let folder = tempfile::TempDir::new().unwrap();
    let (files, _) = written(20_000);
    assert!(files.len() > 2);
    let bytes: Vec<_> = files.iter().map(join).collect();
    let mut paths = save(folder.path(), &bytes);
    paths.reverse();
    let options = VerifyOptions {
        key: Some(key().public()),
        head: None,
    };
    let report = verify(&paths, &options).unwrap();
    assert!(report.is_unchanged(), "{report}");
    assert_eq!((report.unprotected_lines, report.left_open_count), (0, 0));
    // A file in the middle is missing, and the first one.
    for left_out in [paths.len() - 1, 1] {
        let mut some = paths.clone();
        some.remove(left_out);
        let report = verify(&some, &options).unwrap();
        assert_eq!(report.findings.len(), 1, "{report}");
        assert_eq!(report.findings[0].by, FoundBy::Chain);
    }
    // An older file that was put back beside the others repeats their lines.
    paths.push(folder.path().join("again.jsonl"));
    std::fs::write(paths.last().unwrap(), &bytes[0]).unwrap();
    let report = verify(&paths, &options).unwrap();
    assert!(!report.is_unchanged() && report.findings[0].by == FoundBy::Chain);
}
