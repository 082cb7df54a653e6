//! Commands as people write them.

use proptest::prelude::*;

use super::*;
use crate::requested::command::read;

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

proptest! {
    #[test]
    fn command_of_any_words_is_read_or_refused(words in prop::collection::vec(word(), 0..8)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = words.join(" ");
        for request in [read(&words), command::in_script(&text)].into_iter().flatten() {
            prop_assert!(request.word < words.len());
            prop_assert_eq!(request.what.is_pinned(), request.what.moving().is_none());
        }
        without_user(&text);
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
