//! Each kind of package, installed into an empty place.

use super::*;

#[test]
fn archive_has_programs_pages_and_completions_and_works_where_it_is_unpacked() {
    let folder = TempDir::new().expect("a folder");
    let archive = make_one("tar", folder.path());
    let bytes = fs::read(&archive).expect("it was made");
    assert!(
        fs::read(make_one("tar", folder.path())).expect("it was made") == bytes,
        "two archives of the same programs differ"
    );
    unpack("tar", &["-xzf"], &archive, folder.path());
    let name = archive.file_name().and_then(|name| name.to_str());
    let name = name
        .and_then(|name| name.strip_suffix(".tar.gz"))
        .expect("a name");
    let root = folder.path().join(name);
    for file in [
        "man/man1/broker-gen-pack.1",
        "man/man1/mcp-broker.1",
        "completions/bash/broker-gen",
        "completions/zsh/_mcp-broker",
        "completions/fish/broker-gen.fish",
        "systemd/mcp-broker.service",
        "LICENSE",
    ] {
        assert!(
            fs::metadata(root.join(file)).is_ok_and(|file| file.len() > 0),
            "{file}"
        );
    }
    first_hour(&root.join("bin/broker-gen"));
}

#[test]
fn wheel_is_installed_by_pip_and_works() {
    let folder = TempDir::new().expect("a folder");
    let wheel = make_one("wheel", folder.path());
    let venv = folder.path().join("venv");
    fine(Run::new(Path::new("python3")).args([Path::new("-m"), Path::new("venv"), &venv]));
    let pip = [
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ];
    fine(Run::new(&venv.join("bin/pip")).args(pip).args([&wheel]));
    first_hour(&venv.join("bin/broker-gen"));
}

#[test]
fn wheel_is_run_by_uvx_and_installed_by_uv() {
    let uv = Path::new(ROOT).join("tests/packages/venv/bin/uv");
    assert!(
        uv.exists(),
        "uv is not installed; run tests/packages/install"
    );
    let folder = TempDir::new().expect("a folder");
    let wheel = make_one("wheel", folder.path());
    let uv = |args: &[&Path]| {
        let cache = folder.path().join("cache");
        let run = installed(&uv, folder.path())
            .env("UV_CACHE_DIR", cache)
            .env("UV_OFFLINE", "1")
            .env("UV_TOOL_DIR", folder.path().join("tools"))
            .env("UV_TOOL_BIN_DIR", folder.path().join("bin"));
        fine(run.args(args))
    };
    let word = Path::new;
    let from = [word("tool"), word("run"), word("--from"), &wheel];
    let version = uv(&[&from[..], &[word("broker-gen"), word("--version")]].concat());
    contains(&version.stdout, &["broker-gen 0."]);
    uv(&[word("tool"), word("install"), &wheel]);
    first_hour(&folder.path().join("bin/broker-gen"));
}

#[test]
fn npm_packages_are_installed_from_their_archives_without_scripts_and_work() {
    let folder = TempDir::new().expect("a folder");
    let made = make("npm", folder.path());
    assert_eq!(made.len(), 2, "{made:?}");
    let project = folder.path().join("project");
    fs::create_dir(&project).expect("a folder");
    fs::write(project.join("package.json"), "{}").expect("writable");
    let npm = [
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    fine(
        installed(Path::new("npm"), folder.path())
            .folder(&project)
            .args(npm)
            .args(&made),
    );
    for name in ["mcp-broker", "@mcp-broker/linux-x64-gnu"] {
        let manifest =
            fs::read_to_string(project.join("node_modules").join(name).join("package.json"));
        let manifest: Value =
            serde_json::from_str(&manifest.expect("it is installed")).expect("JSON");
        assert!(manifest.get("scripts").is_none(), "{manifest}");
    }
    let programs = project.join("node_modules/.bin");
    first_hour(&programs.join("broker-gen"));
    // The launcher ends as the program ends.
    let wrong = installed(&programs.join("mcp-broker"), folder.path())
        .args(["--wrong"])
        .output();
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    let none = installed(&programs.join("mcp-broker"), folder.path()).output();
    assert_eq!(none.code, Some(5), "{}", none.stderr);
}

#[test]
fn debian_package_is_unpacked_into_a_root_and_works() {
    let folder = TempDir::new().expect("a folder");
    let package = make_one("deb", folder.path());
    let root = folder.path().join("root");
    unpack("dpkg-deb", &["--extract"], &package, &root);
    let control = fine(Run::new(Path::new("dpkg-deb")).args([Path::new("--field"), &package]));
    contains(
        &control.stdout,
        &[
            "Package: mcp-broker\n",
            "Architecture: amd64\n",
            "Depends: libc6 (>= 2.",
        ],
    );
    let files = fine(Run::new(Path::new("dpkg-deb")).args([Path::new("--contents"), &package]));
    contains(
        &files.stdout,
        &[
            "./usr/share/man/man1/mcp-broker.1.gz",
            "./usr/share/bash-completion/completions/broker-gen",
            "./usr/share/doc/mcp-broker/copyright",
        ],
    );
    // No script runs as root, and no unit starts by itself.
    let scripts = folder.path().join("control");
    unpack("dpkg-deb", &["--control"], &package, &scripts);
    assert_eq!(fs::read_dir(scripts).expect("a folder").count(), 1);
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/mcp-broker.service"));
    contains(
        &unit.expect("it is there"),
        &[
            "DynamicUser=yes",
            "ProtectSystem=strict",
            "NoNewPrivileges=yes",
            "KillMode=mixed",
        ],
    );
    let program = root.join("usr/bin/broker-gen");
    let mode = fs::metadata(&program)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    first_hour(&program);
}
