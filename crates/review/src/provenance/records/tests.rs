//! Files as package managers write them.

use proptest::prelude::*;

use super::npm;
use super::python::*;

#[test]
fn npx_folder_is_the_one_that_npm_makes() {
    // Read off npm 11.
    for (spec, folder) in [
        (
            "@modelcontextprotocol/server-memory@2025.4.25",
            "f415f6feddfd580c",
        ),
        (
            "@modelcontextprotocol/server-memory@latest",
            "1c3f0e186a7095e1",
        ),
        (
            "@modelcontextprotocol/server-everything",
            "5b2dd62b9d0bddd4",
        ),
    ] {
        assert_eq!(npm::npx_folder(&[spec.to_owned()]), folder);
    }
}

#[test]
fn npm_hidden_lock_gives_version_and_integrity() {
    let lock = r#"{"packages": {
        "node_modules/a": {"version": "1.0.0", "integrity": "sha512-x=="},
        "node_modules/b": {"version": "1.0.0"},
        "node_modules/bad": {"version": "1.0.0\u001b[31m"},
        "node_modules/linked": {"resolved": "../x", "link": true}}}"#;
    let read = |key: &str| npm::installed(lock, &format!("node_modules/{key}"));
    assert_eq!(
        read("a"),
        Some(("1.0.0".to_owned(), Some("sha512-x==".to_owned())))
    );
    assert_eq!(read("b"), Some(("1.0.0".to_owned(), None)));
    assert_eq!((read("bad"), read("linked"), read("c")), (None, None, None));
    assert_eq!(npm::installed("{", "node_modules/a"), None);
}

#[test]
fn python_versions_and_names_have_one_spelling() {
    for (a, b, same) in [
        ("2025.08.4", "2025.8.4", true),
        ("6.0", "6.0.0", true),
        ("v1", "1", true),
        ("1.0rc1", "1.0RC1", true),
        ("1.0", "1.1", false),
        ("1.0", "10", false),
        ("1.0+a", "1.0", false),
    ] {
        assert_eq!(same_version(a, b), same, "{a} {b}");
    }
    let info = dist_info("mcp_server_time-2025.8.4.dist-info");
    assert_eq!(
        info,
        Some(("mcp-server-time".to_owned(), "2025.8.4".to_owned()))
    );
    assert_eq!(dist_info("mcp_server_time"), None);
}

/// One wheel as uv and as pip installed it.
#[test]
fn python_record_is_equal_for_different_installers() {
    let uv = "../../../bin/p,sha256=AAA,360\np-1.dist-info/INSTALLER,sha256=5hh,2\np-1.dist-info/METADATA,sha256=gMK,7962\np-1.dist-info/RECORD,,\np-1.dist-info/REQUESTED,sha256=47D,0\np/__init__.py,sha256=VKn,500\n";
    let pip = "../../../bin/p,sha256=BBB,210\r\np/__init__.py,sha256=VKn,500\r\np/__pycache__/__init__.cpython-311.pyc,,\r\np-1.dist-info/INSTALLER,sha256=zuu,4\r\np-1.dist-info/METADATA,sha256=gMK,7962\r\np-1.dist-info/RECORD,,\r\np-1.dist-info/direct_url.json,sha256=q,1\r\n";
    let one = record_integrity(uv).unwrap();
    assert!(
        one.starts_with("record-sha256:") && one.len() == 78,
        "{one}"
    );
    assert_eq!(record_integrity(pip).as_deref(), Some(&*one));
    assert_ne!(record_integrity(&uv.replace("VKn", "VKm")), Some(one));
    assert_eq!(record_integrity("p/__init__.py,,\n"), None);
}

#[test]
fn python_archives_and_direct_urls_are_read() {
    let digits = "8c7bf9ce770fc0df9268cb1ed29d1a6f0ba8e96dac68ee505d1533e58db3ae74";
    let mut pointer = b"\x95\xb0kRn2i-0fv5TTRSdd\x91\x81\xa6Sha256\xd9\x40".to_vec();
    pointer.extend_from_slice(digits.as_bytes());
    pointer.extend_from_slice(b"\xd9\x29mcp_server_time");
    assert_eq!(cached_archive(&pointer), Some(format!("sha256:{digits}")));
    assert_eq!(cached_archive(&pointer[..60]), None);
    assert_eq!(cached_archive(b""), None);

    let read = |text: &str| direct_url(text);
    let commit = "0123456789012345678901234567890123456789";
    assert_eq!(
        read(&format!(
            r#"{{"url": "x", "vcs_info": {{"vcs": "git", "commit_id": "{commit}"}}}}"#
        )),
        Some(format!("git:{commit}"))
    );
    assert_eq!(
        read(r#"{"archive_info": {"hash": "sha256=ab"}}"#),
        Some("sha256:ab".to_owned())
    );
    assert_eq!(
        read(r#"{"archive_info": {"hashes": {"sha256": "cd"}}}"#),
        Some("sha256:cd".to_owned())
    );
    assert_eq!(read(r#"{"dir_info": {"editable": true}}"#), None);
    let points = "[other]\nx = a:b\n[console_scripts]\nrun = a:b\n";
    assert_eq!(
        (has_script(points, "run"), has_script(points, "x")),
        (true, false)
    );
}

proptest! {
    #[test]
    fn record_of_any_text_is_read_or_refused(text: String, other: String, bytes: Vec<u8>) {
        cached_archive(&bytes);
        record_integrity(&text);
        dist_info(&text);
        same_version(&text, &other);
    }
}
