//! Phrases in the output of runtimes and servers, and the problems that they indicate.

use super::finding::Code;

/// The message and the remedy for a server that needs a terminal.
pub(crate) const WANTS_TERMINAL: (&str, &str) = (
    "it needs a terminal, and the broker gives a server none",
    "Remove options for terminals, such as `-t` of `docker run -it`, and answer its questions by arguments or variables.",
);

/// Phrases of runtimes, lowercase, and what they indicate; the first match counts.
pub(crate) const PHRASES: [(&[&str], Code, &str, &str); 8] = [
    (
        &[
            "cannot connect to the docker daemon",
            "docker daemon is not running",
        ],
        Code::RuntimeMissing,
        "Docker is installed, but its daemon cannot be reached",
        "Start the Docker daemon, and let this user reach its socket.",
    ),
    (
        &[
            "cannot find module",
            "err_module_not_found",
            "modulenotfounderror",
            "no module named",
            "cannot find package",
        ],
        Code::PackageMissing,
        "a package that it needs is not installed",
        "Install the server's dependencies; if it runs from a package, check its name and version.",
    ),
    (
        &[
            "e404",
            "could not find a version that satisfies",
            "no matching distribution found",
            "was not found in the package registry",
        ],
        Code::PackageMissing,
        "the package registry does not have the package, or not in this version",
        "Check the name and the version of the package in the command; a private package needs its registry.",
    ),
    (
        &[
            "self-signed certificate",
            "self signed certificate",
            "certificate_verify_failed",
            "certificate verify failed",
            "invalid peer certificate",
            "unable to get local issuer certificate",
            "unable to verify the first certificate",
        ],
        Code::CertificateUntrusted,
        "it does not trust the certificate of a host, as behind a proxy that inspects TLS",
        "Set `SSL_CERT_FILE`, for Node.js `NODE_EXTRA_CA_CERTS`, to the file of that authority in the source's `env`; a program that starts the broker may not pass on the variables of your shell.",
    ),
    (
        &[
            // Not `FileNotFoundError` of Python.
            " enotfound",
            "'enotfound",
            "\"enotfound",
            "eai_again",
            "econnrefused",
            "temporary failure in name resolution",
            "network is unreachable",
            "could not resolve host",
            "dns error",
        ],
        Code::NetworkDown,
        "it could not reach a host over the network",
        "Check the network and the address; behind a proxy, name `HTTPS_PROXY` in `inherit_env`; without a network, install the server beforehand.",
    ),
    (
        &["eaddrinuse", "address already in use"],
        Code::PortTaken,
        "it tries to listen on a port that is in use",
        "Give the option that makes it speak over stdio, often `stdio` or `--stdio`.",
    ),
    (
        &[
            "not a tty",
            "not a terminal",
            "inappropriate ioctl",
            "/dev/tty",
        ],
        Code::TerminalWanted,
        WANTS_TERMINAL.0,
        WANTS_TERMINAL.1,
    ),
    (
        &["press any key", "press enter", "ok to proceed?"],
        Code::TerminalWanted,
        "it waits for input",
        "Answer beforehand, as `npx -y` does, by an argument or a variable.",
    ),
];
