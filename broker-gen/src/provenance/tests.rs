//! Commands as people write them, and files as package managers write them.

use proptest::prelude::*;

use super::python::*;
use super::*;
use crate::provenance::command::read;

/// The package that a command asks for: `kind name version`, with `?` before a version that may change.
fn asked(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let version = |version: &Version| match version {
        Version::Exactly(version) => version.clone(),
        Version::Moving(text) => format!("?{text}"),
    };
    let Some(Request { word, what }) = read(&words) else {
        return "nothing".to_owned();
    };
    assert_eq!(what.is_pinned(), what.moving().is_none(), "{command}");
    match what {
        Requested::Npm {
            name, version: v, ..
        } => format!("npm {name} {}", version(&v)),
        Requested::Pypi {
            name,
            version: v,
            runner,
        } => format!("{runner:?} {name} {}", version(&v)),
        Requested::Image { name, tag, digest } => format!(
            "image {name} {} {}",
            tag.as_deref().unwrap_or("-"),
            digest.as_deref().map_or("-", |digest| &digest[..9])
        ),
        Requested::Elsewhere { spec, pinned } => format!("elsewhere {spec} {pinned}"),
        Requested::Script => format!("script {}", words[word]),
        Requested::Module(name) => format!("module {name}"),
        Requested::Program => format!("program {}", words[word]),
    }
}

#[test]
fn npm_command_is_read_as_its_package() {
    for (command, expected) in [
        ("npx -y some-server@1.2.3", "npm some-server 1.2.3"),
        ("npx some-server", "npm some-server ?"),
        ("npx -y @scope/name", "npm @scope/name ?"),
        (
            "npx --yes @scope/name@0.6.2-rc.1 /data --flag",
            "npm @scope/name 0.6.2-rc.1",
        ),
        ("npx -y pkg@latest", "npm pkg ?latest"),
        ("npx -y pkg@^1.2.3", "npm pkg ?^1.2.3"),
        ("npx -y pkg@1.2", "npm pkg ?1.2"),
        ("npx -y pkg@v1.2.3", "npm pkg 1.2.3"),
        ("npx --package=pkg@1.2.3 run-it", "npm pkg 1.2.3"),
        ("npx -y -p pkg@1.2.3 -p other@1 run-it", "npm pkg 1.2.3"),
        (
            "npx --registry https://x.example -y pkg@1.2.3",
            "npm pkg 1.2.3",
        ),
        ("/usr/bin/npx -q pkg@1.2.3", "npm pkg 1.2.3"),
        ("env NODE_ENV=x npx -y pkg", "npm pkg ?"),
        ("npm exec -y -- pkg@1.2.3 --flag", "npm pkg 1.2.3"),
        ("npm x --package=@a/b@1.0.0 -- run", "npm @a/b 1.0.0"),
        ("npm run start", "nothing"),
        ("bunx pkg@1.2.3", "npm pkg 1.2.3"),
        ("bun x pkg", "npm pkg ?"),
        ("pnpm dlx pkg@1.2.3", "npm pkg 1.2.3"),
        (
            "npx -y github:user/repo",
            "elsewhere github:user/repo false",
        ),
        ("npx -y user/repo", "elsewhere user/repo false"),
        (
            "npx -y user/repo#0123456789012345678901234567890123456789",
            "elsewhere user/repo#0123456789012345678901234567890123456789 true",
        ),
        (
            "npx -y https://x.example/p.tgz",
            "elsewhere https://x.example/p.tgz false",
        ),
        ("npx -y ./folder", "elsewhere ./folder false"),
        ("npx -y a@npm:b@1.0.0", "elsewhere a@npm:b@1.0.0 false"),
        (
            "npx -y pkg@${VERSION:-1.2.3}",
            "elsewhere pkg@${VERSION:-1.2.3} false",
        ),
        ("npx", "nothing"),
    ] {
        assert_eq!(asked(command), expected, "{command}");
    }
}

#[test]
fn npm_cache_is_searched_only_for_what_npx_installs() {
    let specs = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        match read(&words).map(|request| request.what) {
            Some(Requested::Npm {
                specs, is_command, ..
            }) => (specs.join(" "), is_command),
            other => panic!("{command}: {other:?}"),
        }
    };
    let expected = |specs: &str, is_command| (specs.to_owned(), is_command);
    assert_eq!(specs("npx -y a@1.0.0"), expected("a@1.0.0", true));
    assert_eq!(
        specs("npx -p a@1.0.0 -p b run"),
        expected("a@1.0.0 b", false)
    );
    assert_eq!(specs("npx --cache /x a@1.0.0"), expected("", true));
    assert_eq!(specs("bunx a@1.0.0"), expected("", true));
}

#[test]
fn python_command_is_read_as_its_package() {
    for (command, expected) in [
        ("uvx mcp-server-time", "Uv mcp-server-time ?"),
        (
            "uvx mcp-server-time@latest --x",
            "Uv mcp-server-time ?latest",
        ),
        (
            "uvx Mcp_Server.Time@2025.8.4",
            "Uv mcp-server-time 2025.8.4",
        ),
        (
            "uvx mcp-server-time==2025.8.4",
            "Uv mcp-server-time 2025.8.4",
        ),
        ("uvx --from pkg[cli]==1.0 run --from y", "Uv pkg 1.0"),
        ("uvx --from=pkg==1.0 run", "Uv pkg 1.0"),
        ("uvx --python 3.12 --with a==1 -q pkg>=1", "Uv pkg ?>=1"),
        ("uvx --no-cache pkg==1.0", "Apart pkg 1.0"),
        ("uvx --cache-dir=/x pkg@1.0", "Apart pkg 1.0"),
        ("uvx pkg==1.*", "Uv pkg ?==1.*"),
        ("uvx pkg~=1.2", "Uv pkg ?~=1.2"),
        ("uvx pkg==1.0,<2", "Uv pkg ?==1.0,<2"),
        ("uv tool run --from pkg==1.0 run", "Uv pkg 1.0"),
        ("uv --quiet tool run pkg", "Uv pkg ?"),
        ("uv --directory /x run server.py", "nothing"),
        ("pipx run pkg==1.0 --flag", "Pipx pkg 1.0"),
        ("pipx run --spec pkg==1.0 run", "Pipx pkg 1.0"),
        ("pipx list", "nothing"),
        (
            "uvx --from git+https://x.example/r pkg",
            "elsewhere git+https://x.example/r false",
        ),
        (
            "uvx --from git+https://x.example/r@0123456789012345678901234567890123456789#subdirectory=a pkg",
            "elsewhere git+https://x.example/r@0123456789012345678901234567890123456789#subdirectory=a true",
        ),
        ("uvx --from ./folder pkg", "elsewhere ./folder false"),
        ("uvx pkg@${V}", "elsewhere pkg@${V} false"),
    ] {
        assert_eq!(asked(command), expected, "{command}");
    }
}

#[test]
fn container_command_is_read_as_its_image() {
    let digest = "a".repeat(64);
    for (command, expected) in [
        (
            "docker run -i --rm mcp/time",
            "image mcp/time - -".to_owned(),
        ),
        (
            "docker run --rm -it -e KEY mcp/time:1.2 x",
            "image mcp/time 1.2 -".to_owned(),
        ),
        (
            "docker run -eKEY=1 --name n --network=host mcp/time",
            "image mcp/time - -".to_owned(),
        ),
        (
            "docker --context c run -i host:5000/a/b",
            "image host:5000/a/b - -".to_owned(),
        ),
        (
            "podman container run -i host:5000/a/b:1",
            "image host:5000/a/b 1 -".to_owned(),
        ),
        (
            &format!("docker run -i a/b:1@sha256:{digest}"),
            "image a/b 1 sha256:aa".to_owned(),
        ),
        (
            &format!("docker run -i a/b@sha256:{digest} arg"),
            "image a/b - sha256:aa".to_owned(),
        ),
        ("docker run -i a/b@sha256:12", "image a/b - -".to_owned()),
        ("docker ps", "nothing".to_owned()),
        (
            "docker run -i img:${TAG}",
            "elsewhere img:${TAG} false".to_owned(),
        ),
    ] {
        assert_eq!(asked(command), expected, "{command}");
    }
}

#[test]
fn program_or_script_command_is_read_as_its_file() {
    for (command, expected) in [
        ("toolbox-mcp", "program toolbox-mcp"),
        ("./server --port 1", "program ./server"),
        ("node dist/index.js --flag", "script dist/index.js"),
        (
            "node --no-warnings -r ./x.js dist/index.js",
            "script dist/index.js",
        ),
        ("node -e code arg", "nothing"),
        ("/usr/bin/python3.11 -u server.py", "script server.py"),
        ("python -m my_server.main --x", "module my_server"),
        ("python3 -c code", "nothing"),
        ("bash -lc code", "nothing"),
        ("sh run.sh", "script run.sh"),
        ("deno run -A main.ts", "script main.ts"),
        ("env A=1 ./server", "program ./server"),
    ] {
        assert_eq!(asked(command), expected, "{command}");
    }
}

#[test]
fn shell_script_counts_only_its_package_commands() {
    for (script, expected) in [
        ("cd /x && exec npx -y pkg@1.2.3 2>/dev/null", Some(true)),
        ("A=1 uvx 'pkg' | tee log", Some(false)),
        ("test -f x || (docker run -i a/b)", Some(false)),
        ("npx -y pkg@${P1}", Some(false)),
        ("echo npx pkg; node x.js", None),
        ("", None),
    ] {
        let found = command::in_script(script).map(|request| request.what.is_pinned());
        assert_eq!(found, expected, "{script}");
    }
}

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
    /// Any text in a command or in a file is read or refused.
    #[test]
    fn provenance_readers_of_any_text_do_not_panic(words in prop::collection::vec(word(), 0..8), bytes: Vec<u8>) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = words.join(" ");
        for request in [read(&words), command::in_script(&text)].into_iter().flatten() {
            prop_assert!(request.word < words.len());
            prop_assert_eq!(request.what.is_pinned(), request.what.moving().is_none());
        }
        without_user(&text);
        cached_archive(&bytes);
        record_integrity(&text);
        dist_info(&text);
        same_version(&text, words.first().copied().unwrap_or_default());
    }
}

/// Words of real commands, put together in any order, and others.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "npx",
        "npm",
        "exec",
        "uvx",
        "uv",
        "tool",
        "run",
        "pipx",
        "docker",
        "env",
        "A=1",
        "python",
        "node",
        "sh",
        "-y",
        "-p",
        "--",
        "-",
        "--from",
        "--spec",
        "-m",
        "-c",
        "-itv",
        "@",
        "a@",
        "@a/b@1.0.0",
        "a==",
        "a[",
        "a@sha256:",
        ":",
        "://@/",
        "${X}",
        "&&",
        "",
    ];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        any::<String>()
    ]
}
