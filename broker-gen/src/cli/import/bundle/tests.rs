//! Bundles as packers make them, and those that a stranger made to do harm.

use std::os::unix::fs::PermissionsExt as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::*;

/// A file of an archive that a test makes.
struct Packed {
    name: String,
    content: Vec<u8>,
    mode: u32,
    /// The length that the archive says, if it does not say the truth.
    length: Option<u32>,
    is_deflated: bool,
    flags: u16,
}

fn file(name: &str, content: impl Into<Vec<u8>>) -> Packed {
    Packed {
        name: name.to_owned(),
        content: content.into(),
        mode: 0o100_644,
        length: None,
        is_deflated: true,
        flags: 0,
    }
}

/// Makes an archive.
fn archive(files: &[Packed]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for file in files {
        let at = out.len() as u32;
        let mut checksum = flate2::Crc::new();
        checksum.update(&file.content);
        let packed = match file.is_deflated {
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(&file.content).unwrap();
                encoder.finish().unwrap()
            }
            false => file.content.clone(),
        };
        let method: u16 = if file.is_deflated { 8 } else { 0 };
        let length = file.length.unwrap_or(file.content.len() as u32);
        // From the flags to the length of the name, both records have the same fields.
        let mut shared = Vec::new();
        for number in [file.flags, method, 0, 0] {
            shared.extend(number.to_le_bytes());
        }
        for number in [checksum.sum(), packed.len() as u32, length] {
            shared.extend(number.to_le_bytes());
        }
        shared.extend((file.name.len() as u16).to_le_bytes());
        out.extend(b"PK\x03\x04\x14\x00");
        out.extend(&shared);
        out.extend([0, 0]);
        out.extend(file.name.as_bytes());
        out.extend(&packed);
        central.extend(b"PK\x01\x02\x14\x03\x14\x00");
        central.extend(&shared);
        central.extend([0; 8]);
        central.extend((file.mode << 16).to_le_bytes());
        central.extend(at.to_le_bytes());
        central.extend(file.name.as_bytes());
    }
    let (at, count) = (out.len() as u32, files.len() as u16);
    out.extend(&central);
    out.extend(b"PK\x05\x06\x00\x00\x00\x00");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((central.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn manifest() -> Value {
    json!({
        "manifest_version": "0.3", "name": "tools", "version": "1.0.0", "description": "Tools.",
        "server": {"type": "node", "entry_point": "server/index.js", "mcp_config": {
            "command": "node",
            "args": ["${__dirname}/server/index.js", "--dir=${user_config.folder}", "${DOCUMENTS}${/}x"],
            "env": {"API_KEY": "${user_config.api_key}"},
        }},
        "user_config": {
            "folder": {"type": "directory", "default": "/data"},
            "api_key": {"type": "string", "sensitive": true, "default": "none"},
        },
    })
}

fn bundle(more: Vec<Packed>) -> Vec<u8> {
    let mut files = vec![file(MANIFEST, manifest().to_string())];
    files.extend(more);
    archive(&files)
}

fn refusal(bytes: &[u8], folder: Option<&Path>) -> String {
    let problems = convert("a.mcpb", bytes, folder).expect_err("it is refused");
    problems[0].message.clone()
}

#[test]
fn manifest_becomes_a_server_with_variables_for_its_settings() {
    let bytes = bundle(vec![file("server/index.js", "code")]);
    let foreign = convert("a.mcpb", &bytes, None).unwrap();
    let server = &foreign.servers["mcpServers"]["tools"];
    assert_eq!(server["command"], "node");
    assert_eq!(
        server["args"],
        json!([
            "${TOOLS_DIR}/server/index.js",
            "--dir=${TOOLS_FOLDER:-/data}",
            "${HOME}/Documents/x"
        ])
    );
    assert_eq!(server["env"], json!({"API_KEY": "${TOOLS_API_KEY}"}));
    let digest = HEXLOWER.encode(&Sha256::digest(&bytes));
    assert_eq!(
        server["description"],
        format!("Tools. (bundle 1.0.0, sha256:{digest})")
    );
    assert!(foreign.notes[0].contains("TOOLS_DIR"), "{foreign:?}");
}

#[test]
fn code_is_unpacked_only_to_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("code");
    let mut program = file("server/run", "#!");
    program.mode = 0o100_755;
    program.is_deflated = false;
    let mut sub = file("server/", "");
    sub.mode = 0o040_755;
    sub.is_deflated = false;
    let bytes = bundle(vec![sub, file("server/index.js", "code"), program]);
    convert("a.mcpb", &bytes, None).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let foreign = convert("a.mcpb", &bytes, Some(&place)).unwrap();
    let args = &foreign.servers["mcpServers"]["tools"]["args"];
    assert_eq!(args[0], format!("{}/server/index.js", place.display()));
    assert_eq!(
        fs::read_to_string(place.join("server/index.js")).unwrap(),
        "code"
    );
    let mode = |name: &str| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("server/run"), mode("server/index.js")),
        (0o700, 0o600)
    );
    assert!(refusal(&bytes, Some(&place)).contains("cannot be made"));
}

#[test]
fn archive_that_could_do_harm_is_refused_and_nothing_is_written() {
    let with = |name: &str, change: &dyn Fn(&mut Packed)| {
        let mut one = file(name, "x");
        change(&mut one);
        bundle(vec![one])
    };
    let zeros = vec![0; MAX_MANIFEST_BYTES + 1];
    let many = (0..10_000)
        .map(|index| file(&format!("f{index}"), ""))
        .collect();
    let bomb = |length| {
        let mut one = file("bomb", vec![0; 1 << 20]);
        one.length = Some(length);
        bundle(vec![one])
    };
    let mut truncated = bundle(Vec::new());
    truncated.truncate(truncated.len() - 30);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("code");
    for (bytes, part) in [
        (with("../x", &|_| {}), "not a path within"),
        (with("a/../../x", &|_| {}), "not a path within"),
        (with("/etc/x", &|_| {}), "not a path within"),
        (with("a\\..\\x", &|_| {}), "not a path within"),
        (with("C:x", &|_| {}), "not a path within"),
        (with("a\u{1b}[2J", &|_| {}), "not a path within"),
        (with("", &|_| {}), "not a path within"),
        (with("link", &|one| one.mode = 0o120_777), "link"),
        (with("pipe", &|one| one.mode = 0o010_644), "special"),
        (with("folder", &|one| one.mode = 0o040_755), "special"),
        (with("secret", &|one| one.flags = 1), "encrypted"),
        (with(MANIFEST, &|_| {}), "there twice"),
        (bundle(many), "10001 entries"),
        (archive(&[file(MANIFEST, zeros)]), "more than 1048576 bytes"),
        (archive(&[file("other", "x")]), "no `manifest.json`"),
        (archive(&[file(MANIFEST, "{")]), "not JSON"),
        (archive(&[file(MANIFEST, "{}")]), "no `name`"),
        (truncated, "not a zip"),
        // The archive says less than there is, and more than is written.
        (bomb(10), "another length"),
        (bomb(u32::MAX - 1), "at most 268435456"),
        (bomb(2 << 20), "another length"),
    ] {
        let refused = refusal(&bytes, Some(&place));
        assert!(refused.contains(part), "{part}: {refused}");
        assert!(!refused.contains('\u{1b}'), "{refused:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{part}");
    }
}

#[test]
fn manifest_that_names_a_variable_of_this_machine_is_refused() {
    for (pointer, text) in [
        (
            "/server/mcp_config/args",
            json!(["${AWS_SECRET_ACCESS_KEY}"]),
        ),
        ("/server/mcp_config/env", json!({"A": "x${GITHUB_TOKEN}"})),
        ("/server/mcp_config/command", json!("${SHELL}")),
        ("/description", json!("${HOME}")),
        ("/server/mcp_config/command", json!("${__dirname")),
    ] {
        let mut changed = manifest();
        *changed.pointer_mut(pointer).unwrap() = text;
        let bytes = archive(&[file(MANIFEST, changed.to_string())]);
        let refused = refusal(&bytes, None);
        assert!(refused.contains("${"), "{refused}");
    }
}
