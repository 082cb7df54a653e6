//! Parses the options of a command line up to its first argument, and has the options of programs that start servers.

/// The options of one program.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether an option takes the next word if it has no `=`.
    pub takes: fn(&str) -> bool,
}

/// The options before the first argument, and its index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read<'a> {
    /// Options with a value: name, value, and the index of its word.
    pub values: Vec<(&'a str, &'a str, usize)>,
    /// The first word that is not an option.
    pub argument: Option<usize>,
}

impl Options {
    /// Reads the words from `start` on.
    pub fn read<'a>(self, words: &[&'a str], start: usize) -> Read<'a> {
        let mut read = Read::default();
        let mut at = start;
        while let Some(word) = words.get(at).copied() {
            if word == "--" {
                read.argument = (at + 1 < words.len()).then_some(at + 1);
                return read;
            }
            if !word.starts_with('-') || word == "-" {
                read.argument = Some(at);
                return read;
            }
            match word.split_once('=') {
                Some((name, value)) => read.values.push((name, value, at)),
                None if (self.takes)(word) => {
                    at += 1;
                    if let Some(value) = words.get(at).copied() {
                        read.values.push((word, value, at));
                    }
                }
                None => {}
            }
            at += 1;
        }
        read
    }
}

impl<'a> Read<'a> {
    /// Every value of an option, by any of its names.
    pub fn all(&self, names: &[&str]) -> impl Iterator<Item = (&'a str, usize)> {
        let named = |value: &&(&str, &str, usize)| names.contains(&value.0);
        let found: Vec<_> = self.values.iter().filter(named).collect();
        found
            .into_iter()
            .map(|(_, value, at)| (*value, *at))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The first value of an option.
    pub fn first(&self, names: &[&str]) -> Option<(&'a str, usize)> {
        self.all(names).next()
    }
}

/// `npx`, `npm exec` and programs like them.
pub const NPX: Options = Options {
    takes: |name| {
        matches!(
            name,
            "-p" | "--package"
                | "-c"
                | "--call"
                | "--registry"
                | "--cache"
                | "--userconfig"
                | "--globalconfig"
                | "-w"
                | "--workspace"
                | "--prefix"
                | "-C"
                | "--loglevel"
                | "--shell"
                | "--script-shell"
                | "-n"
                | "--node-options"
                | "--node-arg"
                | "--npm"
                | "--before"
                | "--tag"
        )
    },
};

/// `uvx` and `uv tool run`.
pub const UVX: Options = Options {
    takes: |name| {
        matches!(
            name,
            "--from"
                | "--with"
                | "-w"
                | "--with-editable"
                | "--with-requirements"
                | "--python"
                | "-p"
                | "--index-url"
                | "-i"
                | "--index"
                | "--default-index"
                | "--extra-index-url"
                | "--find-links"
                | "-f"
                | "--refresh-package"
                | "--cache-dir"
                | "--directory"
                | "--project"
                | "--config-file"
                | "--env-file"
                | "--constraints"
                | "--constraint"
                | "-c"
                | "--overrides"
                | "--override"
                | "--excludes"
                | "--build-constraints"
                | "--build-constraint"
                | "-b"
                | "--upgrade-package"
                | "-P"
                | "--reinstall-package"
                | "--link-mode"
                | "--resolution"
                | "--prerelease"
                | "--exclude-newer"
                | "--exclude-newer-package"
                | "--color"
                | "--keyring-provider"
                | "--index-strategy"
                | "--config-setting"
                | "-C"
                | "--config-settings-package"
                | "--no-build-package"
                | "--no-binary-package"
                | "--no-build-isolation-package"
                | "--no-sources-package"
                | "--allow-insecure-host"
                | "--python-platform"
                | "--torch-backend"
                | "--fork-strategy"
                | "--preview-features"
                | "--upgrade-group"
        )
    },
};

/// `pipx`.
pub const PIPX: Options = Options {
    takes: |name| {
        matches!(
            name,
            "--spec"
                | "--python"
                | "--pip-args"
                | "--index-url"
                | "-i"
                | "--with"
                | "--backend"
                | "--fetch-python"
        )
    },
};

/// Most options of a container take a value; these do not.
pub const CONTAINER: Options = Options {
    takes: |name| {
        if name.starts_with("--") {
            return !matches!(
                name,
                "--interactive"
                    | "--tty"
                    | "--detach"
                    | "--rm"
                    | "--init"
                    | "--privileged"
                    | "--publish-all"
                    | "--read-only"
                    | "--sig-proxy"
                    | "--no-healthcheck"
                    | "--oom-kill-disable"
                    | "--quiet"
                    | "--disable-content-trust"
                    | "--help"
                    | "--use-api-socket"
                    | "--replace"
                    | "--rmi"
                    | "--tls-verify"
                    | "--no-hosts"
                    | "--no-hostname"
                    | "--env-host"
                    | "--http-proxy"
                    | "--debug"
                    | "--tls"
                    | "--tlsverify"
                    | "--remote"
                    | "--passwd"
                    | "--read-only-tmpfs"
                    | "--rootfs"
                    | "--unsetenv-all"
            );
        }
        // Letters can be combined; the rest after one with a value is that value.
        let first = name.find(|c: char| !"-itdPqD".contains(c));
        first.is_some_and(|at| at + 1 == name.len())
    },
};

/// `ssh`: its letters with a value.
pub const SSH: Options = Options {
    takes: |name| ends_with_one_of(name, "BbcDEeFIiJLlmOoPpQRSWw"),
};

/// `kubectl` and `oc`, before a verb.
pub const KUBECTL: Options = Options {
    takes: |name| {
        matches!(
            name,
            "-n" | "--namespace"
                | "--context"
                | "--kubeconfig"
                | "--cluster"
                | "--user"
                | "-s"
                | "--server"
                | "--token"
                | "--as"
                | "--as-group"
                | "--request-timeout"
                | "-v"
        )
    },
};

/// `lxc` and `incus`, before a verb.
pub const LXC: Options = Options {
    takes: |name| matches!(name, "--project" | "-v"),
};

/// `sudo`.
pub const SUDO: Options = Options {
    takes: |name| {
        ends_with_one_of(name, "ughpCrtTUDR")
            || matches!(
                name,
                "--user"
                    | "--group"
                    | "--host"
                    | "--prompt"
                    | "--close-from"
                    | "--chdir"
                    | "--chroot"
            )
    },
};

/// Whether the only letter of an option that takes a value is its last one. The rest after such a letter is its value.
fn ends_with_one_of(name: &str, letters: &str) -> bool {
    let Some(name) = name.strip_prefix('-').filter(|name| !name.starts_with('-')) else {
        return false;
    };
    let first = name.find(|letter| letters.contains(letter));
    first.is_some_and(|at| at + 1 == name.len())
}

/// Interpreters of JavaScript and some others.
pub const NODE: Options = Options {
    takes: |name| {
        matches!(
            name,
            "-r" | "--require"
                | "--import"
                | "--loader"
                | "--experimental-loader"
                | "-C"
                | "--conditions"
                | "-e"
                | "--eval"
                | "-p"
                | "--print"
                | "--tsconfig"
                | "--config"
                | "-c"
        )
    },
};

/// Python.
pub const PYTHON: Options = Options {
    takes: |name| matches!(name, "-m" | "-c" | "-W" | "-X"),
};

/// Shells.
pub const SHELL: Options = Options {
    takes: |name| name == "-o" || name == "-c" || (!name.starts_with("--") && name.ends_with('c')),
};
