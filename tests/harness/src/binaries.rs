//! The binaries of the workspace: a test that runs one gets it built if it is missing, a broker with the servers that its
//! config names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::program::Run;

/// The outcome of each build of this process: a build is not repeated, and a failed one fails every test that needs it.
static BUILDS: Mutex<BTreeMap<PathBuf, Result<(), BuildError>>> = Mutex::new(BTreeMap::new());

/// The reason why a missing binary was not built.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BuildError {
    /// The workspace has no such binary.
    Unknown(String),
    /// Cargo failed.
    Failed(String),
}

impl BuildError {
    fn text(self) -> String {
        match self {
            Self::Unknown(text) | Self::Failed(text) => text,
        }
    }
}

/// A binary of this workspace, beside the running test, or an example, `examples/NAME`. One that is missing is built,
/// since `cargo test` with one package builds only its binaries. One that exists is used as it is.
pub fn binary(name: &str) -> PathBuf {
    let path = binary_in(&binary_folder(), workspace(), name);
    let path = path.unwrap_or_else(|error| panic!("{}", error.text()));
    build_servers(&path);
    path
}

/// Builds what is missing of the servers of a broker: a program beside the running test whose name is that of a broker.
/// Cargo builds a broker for a test of its package without them, and the broker searches its folder for them.
pub(crate) fn build_servers(program: &Path) {
    let name = program.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| name.ends_with("-broker")) else {
        return;
    };
    let folder = binary_folder();
    if program.parent() == Some(&folder)
        && let Ok(config) = fs::read_to_string(config_of(name))
    {
        build_commands(&folder, workspace(), &config).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The config of a fixture, `tests/FIXTURE/config.json`, for `broker-gen serve`. Missing servers of it are built.
pub fn fixture_config(fixture: &str) -> PathBuf {
    let path = config_of(fixture);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {path:?}"));
    build_commands(&binary_folder(), workspace(), &text).unwrap_or_else(|error| panic!("{error}"));
    path
}

/// The config that a broker of this workspace has compiled in, or that of a fixture.
pub(crate) fn config_of(broker: &str) -> PathBuf {
    let tests = workspace().join("tests");
    match broker {
        "mcp-broker" => workspace().join("smoke_config.json"),
        "soak-broker" => tests.join("soak/config.json"),
        other => tests.join(other).join("config.json"),
    }
}

/// Builds the commands of a config that are binaries of the workspace and missing.
fn build_commands(folder: &Path, root: &Path, config: &str) -> Result<(), String> {
    let config: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
    let mut open = vec![&config];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
        let command = &value["command"];
        let words = command.as_str().or_else(|| command[0].as_str());
        let program = words.and_then(|words| words.split_whitespace().next());
        let bare = program.filter(|program| !program.contains(['/', '$']));
        match bare.map(|name| binary_in(folder, root, name)) {
            Some(Err(BuildError::Failed(error))) => return Err(error),
            // A program of another project.
            Some(Err(BuildError::Unknown(_)) | Ok(_)) | None => {}
        }
    }
    Ok(())
}

/// The root of the workspace.
fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().and_then(Path::parent);
    root.expect("the harness lies in `tests`")
}

/// The folder of the binaries.
pub(crate) fn binary_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().and_then(Path::parent);
    folder.expect("tests lie in target/PROFILE/deps").to_owned()
}

/// A binary of the workspace at `root` in a folder of binaries, which is built if it is missing.
fn binary_in(folder: &Path, root: &Path, name: &str) -> Result<PathBuf, BuildError> {
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
        false => {
            let error = format!("cargo built no {}", path.display());
            Err(BuildError::Failed(error))
        }
    }
}

/// Builds a binary into the folder.
fn build(folder: &Path, root: &Path, name: &str) -> Result<(), BuildError> {
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
        _ => Err(BuildError::Failed(format!(
            "{name} is missing, and `cargo build --locked -p {package} {option} {short}` failed:\n{}{}",
            output.stdout, output.stderr
        ))),
    }
}

/// The package of the workspace that has the binary or example.
fn package_of(root: &Path, kind: &str, name: &str) -> Result<String, BuildError> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .output();
    let metadata: Value = serde_json::from_str(&output.stdout)
        .map_err(|_| BuildError::Failed(format!("`cargo metadata` failed:\n{}", output.stderr)))?;
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let has_it = |package: &Value| {
        items(&package["targets"])
            .iter()
            .any(|target| target["name"] == name && items(&target["kind"]).contains(&kind.into()))
    };
    let package = items(&metadata["packages"]).into_iter().find(has_it);
    let package = package.and_then(|package| package["name"].as_str().map(str::to_owned));
    package.ok_or_else(|| {
        BuildError::Unknown(format!(
            "{name} is missing, and the workspace has no {kind} {name}"
        ))
    })
}

/// Prepares cargo in a folder. The variables that `cargo test` sets for the package of the test are
/// removed: build scripts run again if they change, such as that of `ring`, which all tests would compile again.
pub fn cargo(folder: &Path) -> Run {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_package = |name: &String| {
        let prefixes = ["CARGO_MANIFEST_", "CARGO_PKG_", "OUT_DIR"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    ours.filter(of_package)
        .fold(Run::new(Path::new(&cargo)), |run, name| run.without(&name))
        .folder(folder)
}

#[cfg(test)]
mod tests {
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
        let ask = || {
            binary_in(&folder, root.path(), "tiny")
                .expect_err("it does not compile")
                .text()
        };
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
    fn servers_of_a_config_are_built_if_they_are_of_the_workspace() {
        let root = workspace("fn main() {}");
        let folder = root.path().join("target/debug");
        let build = |command: Value| {
            let source = serde_json::json!({"command": command});
            let config = serde_json::json!({"tree": [{"path": "/a", "source": source}]});
            build_commands(&folder, root.path(), &config.to_string())
        };
        for other in ["npx server", "/tiny", "${TINY} x"] {
            assert_eq!(build(other.into()), Ok(()), "{other}");
            assert!(!folder.join("tiny").exists(), "{other}");
        }
        for command in [
            Value::from("tiny --option"),
            vec!["tiny", "--option"].into(),
        ] {
            assert_eq!(build(command), Ok(()));
            fs::remove_file(folder.join("tiny")).expect("it was built");
            // The next command is built again in place of the one that was removed.
            BUILDS
                .lock()
                .expect("no test panics with it")
                .remove(&folder.join("tiny"));
        }
    }

    #[test]
    fn binary_of_an_unknown_name_is_an_error() {
        let root = workspace("fn main() {}");
        let folder = root.path().join("target/debug");
        let error = binary_in(&folder, root.path(), "other")
            .expect_err("it does not exist")
            .text();
        assert!(error.contains("the workspace has no bin other"), "{error}");
    }
}
