//! Runtimes of servers, and how to install them.

/// A runtime: its name for people, and how to install it.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) name: &'static str,
    pub(crate) remedy: &'static str,
}

const NODE: Runtime = Runtime {
    name: "Node.js",
    remedy: "Install Node.js, which brings `node`, `npm` and `npx` (https://nodejs.org)",
};
const BUN: Runtime = Runtime {
    name: "Bun",
    remedy: "Install Bun (https://bun.sh)",
};
const DENO: Runtime = Runtime {
    name: "Deno",
    remedy: "Install Deno (https://deno.com)",
};
const PYTHON: Runtime = Runtime {
    name: "Python",
    remedy: "Install Python 3; if only `python3` exists, write that in `command`",
};
const UV: Runtime = Runtime {
    name: "uv",
    remedy: "Install uv, which brings `uv` and `uvx` (https://docs.astral.sh/uv)",
};
const PIPX: Runtime = Runtime {
    name: "pipx",
    remedy: "Install pipx (https://pipx.pypa.io)",
};
const DOCKER: Runtime = Runtime {
    name: "Docker",
    remedy: "Install Docker (https://docs.docker.com/engine/install)",
};
const PODMAN: Runtime = Runtime {
    name: "Podman",
    remedy: "Install Podman (https://podman.io)",
};
const JAVA: Runtime = Runtime {
    name: "Java",
    remedy: "Install a Java runtime",
};
const DOTNET: Runtime = Runtime {
    name: ".NET",
    remedy: "Install the .NET runtime (https://dotnet.microsoft.com)",
};
const GO: Runtime = Runtime {
    name: "Go",
    remedy: "Install Go (https://go.dev)",
};
const RUBY: Runtime = Runtime {
    name: "Ruby",
    remedy: "Install Ruby",
};
const PHP: Runtime = Runtime {
    name: "PHP",
    remedy: "Install PHP",
};

/// Returns the runtime that a program of this name is part of.
pub(crate) fn find_by_program(program: &str) -> Option<&'static Runtime> {
    let name = program.rsplit('/').next().unwrap_or(program);
    // `python3.13`, `node22`: the version is ignored.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match bare {
        "node" | "nodejs" | "npm" | "npx" | "pnpm" | "pnpx" | "yarn" | "corepack" | "tsx"
        | "ts-node" => &NODE,
        "bun" | "bunx" => &BUN,
        "deno" => &DENO,
        "python" | "pip" => &PYTHON,
        "uv" | "uvx" => &UV,
        "pipx" => &PIPX,
        "docker" | "docker-compose" => &DOCKER,
        "podman" => &PODMAN,
        "java" => &JAVA,
        "dotnet" | "dnx" => &DOTNET,
        "go" => &GO,
        "ruby" | "bundle" => &RUBY,
        "php" => &PHP,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_is_known_for_any_version_and_folder() {
        for (program, name) in [
            ("npx", Some("Node.js")),
            ("/usr/bin/python3.13", Some("Python")),
            ("uvx", Some("uv")),
            ("docker", Some("Docker")),
            ("github-mcp-server", None),
            ("", None),
        ] {
            assert_eq!(find_by_program(program).map(|runtime| runtime.name), name);
        }
    }
}
