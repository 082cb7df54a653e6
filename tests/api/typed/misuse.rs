//! Misuse of generated types does not compile, with an understandable error: the compiler's output equals the
//! file beside each misuse. `UPDATE_EXPECT=1` writes these files.
//!
//! The compiler is called directly, with the libraries that this test is linked with: Cargo would compile
//! every dependency again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use harness::{Output, Run, assert_expected};

const FOLDER: &str = "tests/api/typed";

/// The libraries of these crates that one compilation can use.
struct Libraries([(&'static str, PathBuf); 3]);

/// Compiled forms of a crate, the newest first: Cargo keeps one for each set of features.
fn forms(name: &str) -> Vec<PathBuf> {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().expect("tests are in target/PROFILE/deps");
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)
        .expect("the folder is readable")
        .flatten()
        .filter(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            file.starts_with(&format!("lib{name}-")) && file.ends_with(".rlib")
        })
        .map(|entry| {
            let time = entry.metadata().and_then(|metadata| metadata.modified());
            (time.expect("files have times"), entry.path())
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// The hashes in the names of the libraries that a library was compiled with: each follows a `-`.
fn dependencies(library: &Path) -> BTreeSet<String> {
    let bytes = fs::read(library).expect("the library is readable");
    let hashes = bytes
        .windows(17)
        .filter(|window| window[0] == b'-' && window[1..].iter().all(u8::is_ascii_hexdigit));
    hashes
        .map(|window| String::from_utf8_lossy(&window[1..]).into_owned())
        .collect()
}

impl Libraries {
    /// The newest ones with which correct use of the types compiles.
    fn find() -> Self {
        let mut said = String::new();
        for broker in forms("mcp_broker") {
            let used = dependencies(&broker);
            let form = |name: &str| {
                let mut all = forms(name).into_iter();
                all.find(|path| {
                    let file = path.file_stem().unwrap_or_default().to_string_lossy();
                    file.rsplit_once('-')
                        .is_some_and(|(_, hash)| used.contains(hash))
                })
            };
            let (Some(serde), Some(json)) = (form("serde"), form("serde_json")) else {
                continue;
            };
            let libraries = Self([
                ("mcp_broker", broker),
                ("serde", serde),
                ("serde_json", json),
            ]);
            let output = libraries.compile("use.rs");
            if output.code == Some(0) {
                return libraries;
            }
            said = output.stderr;
        }
        panic!("correct use of the types does not compile: {said}");
    }

    /// Compiles a file of `FOLDER` as far as its metadata.
    fn compile(&self, file: &str) -> Output {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut args = vec![
            format!("{FOLDER}/{file}"),
            "--crate-type=bin".to_owned(),
            "--crate-name=misuse".to_owned(),
            "--edition=2024".to_owned(),
            "--emit=metadata".to_owned(),
            "--cap-lints=allow".to_owned(),
            format!("--out-dir={}", out.path().display()),
        ];
        for (name, path) in &self.0 {
            args.push(format!("--extern={name}={}", path.display()));
            let folder = path.parent().expect("it is in a folder");
            args.push(format!("-Ldependency={}", folder.display()));
        }
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        Run::new(Path::new(&rustc))
            .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
            .args(args)
            .output()
    }
}

/// The errors without the compiler's closing lines.
fn errors(stderr: &str) -> String {
    let end = stderr.find("\nerror: aborting due to");
    let errors = end.map_or(stderr, |end| &stderr[..end]);
    format!("{}\n", errors.trim_end())
}

#[test]
fn typed_misuse_does_not_compile() {
    let libraries = Libraries::find();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(FOLDER)
        .join("misuse");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder exists").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        count += 1;
        let name = entry.file_name().to_string_lossy().into_owned();
        let output = libraries.compile(&format!("misuse/{name}"));
        assert_eq!(output.code, Some(1), "{name} compiles");
        assert_expected(&path.with_extension("stderr"), &errors(&output.stderr));
    }
    assert!(count >= 5, "{count} files");
}
