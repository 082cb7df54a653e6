//! The endpoint of a source: a process that the broker starts, or a URL.

use std::collections::BTreeMap;
use std::fmt;

use super::{CommandLine, Template};

/// How the broker reaches the server of a source.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A process, over its standard streams.
    Process(ProcessEndpoint),
    /// A URL, over HTTP.
    Http(HttpEndpoint),
}

/// A process that the broker starts. `Debug` shows no value of `env` and no word of the command.
#[derive(Clone)]
pub struct ProcessEndpoint {
    /// The command to run.
    pub command: CommandLine,
    /// The JSON pointer of each word of the command below the source's pointer, the program first. A
    /// shell command has one pointer.
    pub places: Vec<String>,
    /// Variables for the process, by name.
    pub env: BTreeMap<String, Template>,
    /// Globs of variable names that the process inherits from the broker.
    pub inherit_env: Vec<String>,
    /// Working directory; relative to the config file's folder.
    pub cwd: Option<Template>,
}

/// A server over HTTP. `Debug` omits the values of headers, and `auth`.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// The URL as written.
    pub url: Template,
    /// Headers of every request, by name as written; names differ in more than case.
    pub headers: BTreeMap<String, Template>,
    /// The origin of the access token, if there is one.
    pub auth: Option<Auth>,
    /// A file with certificates that are trusted in addition to the certificates of the system, relative to the config
    /// file's folder.
    pub ca_file: Option<Template>,
    /// The certificate that the source presents.
    pub client_certificate: Option<Box<ClientCertificate>>,
    /// Whether a secret may be sent over `http` to another machine.
    pub allow_plain_http: bool,
}

/// Files in PEM form, relative to the config file's folder: a certificate with its chain, and its key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// `client_cert`
    pub certificate: Template,
    /// `client_key`
    pub key: Template,
}

/// The origin of an access token. The token is sent as `Authorization: Bearer`.
#[derive(Clone, Debug)]
pub enum Auth {
    /// The content of a file, relative to the config file's folder.
    TokenFile(Template),
    /// The output of a command.
    TokenCommand(ProcessEndpoint),
    /// A grant of a token endpoint (RFC 6749, section 4.4).
    ClientCredentials(ClientCredentials),
}

/// The parameters of the grant `client_credentials`. `Debug` does not show them.
#[derive(Clone)]
pub struct ClientCredentials {
    /// The URL of the token endpoint.
    pub token_url: Template,
    /// The name of the client.
    pub client_id: Template,
    /// Its secret.
    pub client_secret: Template,
    /// The scopes that it asks for, separated by blanks.
    pub scope: Option<Template>,
    /// The requested resource (RFC 8707).
    pub resource: Option<Template>,
}

impl Endpoint {
    /// The process, if it is one.
    pub const fn process(&self) -> Option<&ProcessEndpoint> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http(_) => None,
        }
    }

    /// The server over HTTP, if it is one.
    pub const fn http(&self) -> Option<&HttpEndpoint> {
        match self {
            Self::Process(_) => None,
            Self::Http(http) => Some(http),
        }
    }

    /// Every process that the source needs: its server, or the command that prints its token.
    pub const fn any_process(&self) -> Option<&ProcessEndpoint> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http(HttpEndpoint {
                auth: Some(Auth::TokenCommand(process)),
                ..
            }) => Some(process),
            Self::Http(_) => None,
        }
    }
}

impl ProcessEndpoint {
    /// A process without a program, variables and folder.
    pub(super) fn blank() -> Self {
        Self {
            command: CommandLine::Direct {
                program: Template::literal(""),
                args: Vec::new(),
                script: None,
            },
            places: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            cwd: None,
        }
    }

    /// Whether a shell runs it.
    pub const fn is_shell(&self) -> bool {
        matches!(self.command, CommandLine::Shell { .. })
    }

    /// Every string that is expanded before the process starts.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let command: Vec<&Template> = match &self.command {
            CommandLine::Direct { program, args, .. } => {
                std::iter::once(program).chain(args).collect()
            }
            CommandLine::Shell { variables, .. } => variables.values().collect(),
        };
        command
            .into_iter()
            .chain(self.env.values())
            .chain(&self.cwd)
    }
}

impl HttpEndpoint {
    /// Every string that is expanded before the first request.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let auth: Vec<&Template> = match &self.auth {
            None => Vec::new(),
            Some(Auth::TokenFile(file)) => vec![file],
            Some(Auth::TokenCommand(process)) => process.templates().collect(),
            Some(Auth::ClientCredentials(grant)) => {
                [&grant.token_url, &grant.client_id, &grant.client_secret]
                    .into_iter()
                    .chain(&grant.scope)
                    .chain(&grant.resource)
                    .collect()
            }
        };
        let certificate = self.client_certificate.as_ref();
        let certificate = certificate.map(|files| [&files.certificate, &files.key]);
        std::iter::once(&self.url)
            .chain(self.headers.values())
            .chain(&self.ca_file)
            .chain(certificate.into_iter().flatten())
            .chain(auth)
    }
}

impl Auth {
    /// Its key in the config.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::TokenFile(_) => "token_file",
            Self::TokenCommand(_) => "token_command",
            Self::ClientCredentials(_) => "client_credentials",
        }
    }
}

impl fmt::Debug for ProcessEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEndpoint")
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEndpoint")
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials").finish_non_exhaustive()
    }
}
