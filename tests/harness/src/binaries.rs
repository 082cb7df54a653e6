//! The binaries of the workspace: a test that runs one gets it built if it is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::program::Run;

/// The outcome of each build of this process: a build is not repeated, and a failed one fails every test that needs it.
static BUILDS: Mutex<BTreeMap<PathBuf, Result<(), String>>> = Mutex::new(BTreeMap::new());

/// A binary of this workspace, beside the running test, or an example, `examples/NAME`. One that is missing is built,
/// since `cargo test` with one package builds only its binaries. One that exists is used as it is.
pub fn binary(name: &str) -> PathBuf {
    // The harness is in `tests/harness` of the workspace, in whose folder cargo runs.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().and_then(Path::parent);
    let root = root.expect("the harness lies in `tests`");
    binary_in(&binary_folder(), root, name).unwrap_or_else(|error| panic!("{error}"))
}

/// The folder of the binaries.
pub(crate) fn binary_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().and_then(Path::parent);
    folder.expect("tests lie in target/PROFILE/deps").to_owned()
}

/// A binary of the workspace at `root` in a folder of binaries, which is built if it is missing.
fn binary_in(folder: &Path, root: &Path, name: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    if path.exists() {
        return Ok(path);
    }
    // Tests of this process wait here for a build, those of other processes for cargo's lock of the target folder.
    let mut builds = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let built = builds
        .entry(path.clone())
        .or_insert_with(|| build(folder, root, name));
    built.clone()?;
    match path.exists() {
        true => Ok(path),
        false => Err(format!("cargo built no {}", path.display())),
    }
}

/// Builds a binary into the folder.
fn build(folder: &Path, root: &Path, name: &str) -> Result<(), String> {
    let (kind, short) = match name.strip_prefix("examples/") {
        Some(example) => ("example", example),
        None => ("bin", name),
    };
    let package = package_of(root, kind, short)?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    // Cargo marks the root of a target folder. With a target triple, the folders of the profiles are one level deeper.
    let above = folder.parent().expect("profiles lie in the target folder");
    let (target, triple) = match (above.parent(), above.file_name()) {
        (Some(root), Some(triple)) if root.join("CACHEDIR.TAG").exists() => (root, Some(triple)),
        _ => (above, None),
    };
    let option = format!("--{kind}");
    let mut run = cargo(root)
        .args(["build", "--locked", "-p", &package, &option, short])
        .args(["--profile", profile, "--target-dir"])
        .args([target]);
    if let Some(triple) = triple {
        run = run.args(["--target".as_ref(), triple]);
    }
    let output = run.output();
    match output.code {
        Some(0) => Ok(()),
        _ => Err(format!(
            "{name} is missing, and `cargo build --locked -p {package} {option} {short}` failed:\n{}{}",
            output.stdout, output.stderr
        )),
    }
}

/// The package of the workspace that has the binary or example.
fn package_of(root: &Path, kind: &str, name: &str) -> Result<String, String> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .output();
    let metadata: Value = serde_json::from_str(&output.stdout)
        .map_err(|_| format!("`cargo metadata` failed:\n{}", output.stderr))?;
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let has_it = |package: &Value| {
        items(&package["targets"])
            .iter()
            .any(|target| target["name"] == name && items(&target["kind"]).contains(&kind.into()))
    };
    let package = items(&metadata["packages"]).into_iter().find(has_it);
    let package = package.and_then(|package| package["name"].as_str().map(str::to_owned));
    package.ok_or_else(|| format!("{name} is missing, and the workspace has no {kind} {name}"))
}

/// Prepares cargo in the folder of the workspace. The variables that `cargo test` sets for the package of the test are
/// removed: some build scripts run again if they change.
fn cargo(root: &Path) -> Run {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_package = |name: &String| {
        let prefixes = ["CARGO_MANIFEST_", "CARGO_PKG_"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    ours.filter(of_package)
        .fold(Run::new(Path::new(&cargo)), |run, name| run.without(&name))
        .folder(root)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    const MANIFEST: &str =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";

    /// A workspace with the binary `tiny` and the example `shown`.
    fn workspace(program: &str) -> TempDir {
        let root = TempDir::new().expect("a folder");
        for (file, text) in [
            ("Cargo.toml", MANIFEST),
            (
                "Cargo.lock",
                "version = 4\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n",
            ),
            ("src/bin/tiny.rs", program),
            ("examples/shown.rs", "fn main() {}"),
        ] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
            fs::write(file, text).expect("it is written");
        }
        root
    }

    #[test]
    fn missing_binary_is_built_for_all_that_ask_at_once() {
        let root = workspace("fn main() {}");
        for profile in ["debug", "release"] {
            let folder = root.path().join("target").join(profile);
            let ask = |name| binary_in(&folder, root.path(), name);
            let found = thread::scope(|scope| {
                let asking = [(); 3].map(|()| scope.spawn(|| ask("tiny")));
                asking.map(|asking| asking.join().expect("it ends"))
            });
            assert_eq!(found, [(); 3].map(|()| Ok(folder.join("tiny"))));
            let example = ask("examples/shown").expect("it is built");
            assert_eq!(Run::new(&example).output().code, Some(0));
        }
    }

    #[test]
    fn existing_binary_is_used_as_it_is() {
        let root = workspace("fn main() {}");
        let folder = root.path().join("target/debug");
        fs::create_dir_all(&folder).expect("it is made");
        fs::write(folder.join("tiny"), "old").expect("it is written");
        let found = binary_in(&folder, root.path(), "tiny").expect("it exists");
        assert_eq!(fs::read_to_string(found).expect("a text"), "old");
    }

    #[test]
    fn build_that_fails_is_shown_and_not_repeated() {
        let root = workspace("fn main() { absent() }");
        let folder = root.path().join("target/debug");
        let ask = || binary_in(&folder, root.path(), "tiny").expect_err("it does not compile");
        let error = ask();
        assert!(
            error.contains("cargo build --locked -p small --bin tiny"),
            "{error}"
        );
        assert!(error.contains("cannot find function `absent`"), "{error}");
        fs::write(root.path().join("src/bin/tiny.rs"), "fn main() {}").expect("it is written");
        assert_eq!(ask(), error);
    }

    #[test]
    fn binary_of_an_unknown_name_is_an_error() {
        let root = workspace("fn main() {}");
        let folder = root.path().join("target/debug");
        let error = binary_in(&folder, root.path(), "other").expect_err("it does not exist");
        assert!(error.contains("the workspace has no bin other"), "{error}");
    }
}
