//! The registry of codes, four closed lists: errors of calls, causes of sources that are not ready, reasons why a part
//! of a source is left out, diagnostics of config and lock. A test checks `docs/errors.md` against it.

/// The hint to callers on a source that only the operator can correct.
const OPERATOR_HINT: &str =
    "Only the operator can correct the source: use other tools, and report this error.";
/// The hint to callers on a source that starts again by itself.
const RESTART_HINT: &str = "The broker starts the source again: call again in a few seconds.";

/// The hint to callers on a source that failed and that the broker starts again.
const RETRY_HINT: &str = "The broker starts the source again: call again later. If that fails too, use other tools, and report this error.";
/// The hint to callers on a source that has not listed its tools yet.
const STARTING_HINT: &str = "The source is still starting: call again in a few seconds.";

/// Declares one closed list: the enum, and for each code its wire name, its cause, its remedy, and the
/// remedy for callers if it differs.
macro_rules! closed_list {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $cause:literal, $remedy:literal $(, $hint:expr)?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $cause] $variant,)*
        }

        impl $name {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name on the wire: lower snake_case, stable.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// The cause, in one sentence.
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => $cause),* }
            }

            /// The remedy, for the reader of the message.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),* }
            }

            /// The remedy for callers, who have neither the config nor the log nor these pages.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => [$($hint,)? $remedy][0]),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

closed_list! {
    /// The error of a call. Its HTTP status is decided by the surface.
    CallCode {
        JsonInvalid = "json_invalid", "The body is not JSON, is nested too deep, or has a key twice.", "Send one JSON object; the message gives the place.";
        PathInvalid = "path_invalid", "The path is missing, not a string, or outside the grammar.", "Use a path as `meta_tree` prints it.";
        PathIsTool = "path_is_tool", "`meta_tree` was asked for a tool.", "Describe it with `meta_desc` or call it with `meta_call`.";
        PathIsNode = "path_is_node", "`meta_call` was asked for a node.", "List it with `meta_tree` and call one of its tools.";
        FieldUnknown = "field_unknown", "The body has a member that the call does not know.", "Remove or rename it; `did_you_mean` names the nearest.", "Remove or rename it.";
        FieldInvalid = "field_invalid", "A member has the wrong type or range, or members exclude each other.", "See the message and `docs/api.md`.", "Correct the member that the message names.";
        HeaderInvalid = "header_invalid", "`Host` is missing, doubled or malformed, the request has two credentials that differ, or the query contains a secret.", "Send one `Host`, and one credential as a header.";
        Unauthorized = "unauthorized", "The secret, key or token is missing or not valid, or its rights ended during the call.", "Send `Authorization: Bearer SECRET` or `X-API-Key: SECRET`, with a key or a token in place of the secret where the broker has them.";
        IdentityUnavailable = "identity_unavailable", "The keys of the issuer of the token are not available, so that no token can be verified.", "Find out why the issuer's key set cannot be fetched; the log has the reason.", "Call again in a few seconds; if that fails too, tell the operator.";
        AuditUnavailable = "audit_unavailable", "The audit log cannot be written, so that no call is sent.", "See `/readyz` and the log: free space on the disk of `audit.file`, or correct its rights.", "Call again later; if that fails too, tell the operator.";
        Forbidden = "forbidden", "The caller may not use this entry, or not with these arguments.", "Ask the operator; for arguments, see `details.errors`.";
        HostForbidden = "host_forbidden", "The `Host` header names a host that is not allowed.", "Use a loopback name or address, add the host to `allowed_hosts`, or start with `--allow-host`; the log names the host that was sent.", "Use a loopback name or address, or ask the operator to allow this host.";
        OriginForbidden = "origin_forbidden", "The `Origin` header names a web page that is not allowed.", "List it in `allowed_origins`.", "Ask the operator to allow this origin.";
        PathNotFound = "path_not_found", "No entry has this path.", "`did_you_mean` has the nearest; list with `meta_tree`.", "List the entries with `meta_tree`, and use a path as it prints it.";
        RouteNotFound = "route_not_found", "There is no such route.", "Use `/meta_tree`, `/meta_desc` or `/meta_call`.";
        MethodNotAllowed = "method_not_allowed", "The route does not take this method.", "See the `Allow` header.";
        ToolWithdrawn = "tool_withdrawn", "The server's tool no longer matches the lock.", "Review the drift: `broker-gen check`, then `broker-gen lock` and a new build.", "Do not repeat the call: the operator must review the change. Use another tool.";
        BodyTooLarge = "body_too_large", "The body is larger than `limits.body_bytes`, or the request takes more than a quarter of `limits.memory_bytes`.", "Send less, or raise the limit.", "Send less in one request.";
        ContentType = "content_type", "The body is not `application/json`, or is encoded.", "Send `Content-Type: application/json` and no `Content-Encoding`.";
        ArgsInvalid = "args_invalid", "The arguments do not match the tool's schema.", "Correct them; see `details.errors` and `details.args_schema`.";
        Overloaded = "overloaded", "The source's queue is full, the broker has too many connections or long requests, its memory (`limits.memory_bytes`) is in use, or too many wrong credentials came from the caller's address.", "Wait for `Retry-After` seconds; raise `max_in_flight` if the server can take more.", "Wait for `Retry-After` seconds, then call again.";
        Internal = "internal", "The broker failed; the log has the request id.", "Report it with the log line.", "Report `request_id` to the operator.";
        SourceError = "source_error", "The server answered with a JSON-RPC error, which is `details.rpc`: the server's own text, known secrets masked, message and data cut to 16 KiB together.", "See `details.rpc`.";
        SourceExited = "source_exited", "The server's process, or the connection to the server, ended during the call.", "See `details`; the broker starts it again by itself. It may have executed the call if `maybe_executed`.";
        UpstreamHttp = "upstream_http", "The server answered the call with an HTTP error.", "See `details.status`; the server or a proxy in front of it refused the request.", "See `details.status`.";
        SourceProtocol = "source_protocol", "The server's answer breaks the protocol.", "Report it to the server's maintainers.";
        OutputTooLarge = "output_too_large", "The server's answer is longer than `limits.line_bytes`, or larger than the free part of `limits.memory_bytes`; or the message for the client is longer than `limits.stdio_line_bytes` over stdio, or than `limits.event_bytes` as an event or over WebSocket, and `details` has limit and size.", "Ask for less, set `max_output_chars` for the tool, call without `progressToken` where an event was too long, or raise the limit if the client reads more.", "Ask for less in one call.";
        SourceUnavailable = "source_unavailable", "The source is not ready; `details.cause` says why.", "Fix the cause, which `GET /readyz` shows; or wait for `Retry-After` seconds.", "Wait for `Retry-After` seconds, then call again; `details.cause` says why.";
        Starting = "starting", "The source of the call, or where drift refuses the start a required source, has not yet been compared with the lock.", "Wait for `Retry-After` seconds, which are `details.retry_after_s` as well; `details.waited_s` is the time for which the call has waited.", "Wait for `Retry-After` seconds, then call again.";
        StartRefused = "start_refused", "The start was refused: a source differs from the lock or could not be compared with it, and `details` has the source and the class; or, over stdio, config, lock or environment are not valid, and `details` has the problems.", "Read the report in the broker's log; correct what it names, or review the differences with `broker-gen check`, or fix the source, then start the broker again.", OPERATOR_HINT;
        LockStale = "lock_stale", "The config of the source has changed since it was locked, or the source is not in the lock; the other sources are served.", "Run `broker-gen lock`, review the lock, and start the broker again.", OPERATOR_HINT;
        ShuttingDown = "shutting_down", "The broker is shutting down.", "Call again when it has restarted.";
        CallTimeout = "call_timeout", "The call's time limit passed before its arguments were checked or the server answered.", "Raise `timeout`. The server may have executed the call: check before you repeat it.", "Ask for less in one call. If `maybe_executed` is true, check what the call did before you repeat it.";
        NotDurable = "not_durable", "The call has an idempotency key, and the jobs of the broker do not survive a restart, or the caller has no credential.", "Set `jobs.store`, and send a credential; or send no key.", "Call without the key.";
        IdempotencyMismatch = "idempotency_mismatch", "An earlier call of the same path has the same idempotency key and other arguments; `details.job_id` is its job.", "Send another key for other arguments.";
        JobNotFound = "job_not_found", "The caller has no job with this id, or it has expired.", "Jobs are deleted after their `expires_at`; `GET /jobs` lists those that are kept.", "Jobs are deleted some time after their end: call the tool again if you still need the result.";
        JobNotFinished = "job_not_finished", "The job has no result yet.", "Wait for its end: `GET /jobs/ID/events`, or `mcp-broker jobs wait ID`.", "Wait for its end.";
        JobFinished = "job_finished", "The job has ended, so that it cannot be cancelled, or it ended without a result.", "`details.state` is its state; `GET /jobs/ID` has its error.", "See `details.state`.";
        JobLost = "job_lost", "The broker ended after the call of the job was sent, so that its outcome is not known.", "Check what the call did before you repeat it.";
        StoreUnavailable = "store_unavailable", "The store of jobs cannot be used, so that no job can be made or read; other calls and listings answer.", "`mcp-broker status` and the log have the reason; correct it, then start the broker again.", "Call without asking for a job, or call again later; if that fails too, tell the operator.";
    }
}

closed_list! {
    /// Why a source is not ready.
    SourceCause {
        SpawnNotFound = "spawn_not_found", "The command was not found.", "Install it, or correct `command`; the log and `mcp-broker doctor` list the folders that were searched.", OPERATOR_HINT;
        SpawnDenied = "spawn_denied", "The command may not be executed.", "Make it executable.", OPERATOR_HINT;
        SpawnFormat = "spawn_format", "The file is not a program that this machine can run.", "Check its first line and its architecture.", OPERATOR_HINT;
        SpawnFailed = "spawn_failed", "The operating system refused to start the command.", "See the log or `mcp-broker doctor`.", OPERATOR_HINT;
        ExitBeforeReady = "exit_before_ready", "The process ended before it answered.", "Read the end of its stderr in the log or with `mcp-broker doctor`; a server that exits with 0 is not a stdio MCP server.", OPERATOR_HINT;
        StartupTimeout = "startup_timeout", "The server did not list its tools in time.", "Read the end of its stderr in the log or with `mcp-broker doctor`. If it still installs, run the command once by hand as the user of the broker, or raise `startup_timeout`; for a URL, check that the server answers.", STARTING_HINT;
        HandshakeFailed = "handshake_failed", "The server refused the handshake or speaks no known revision.", "Read the server's message in the log or with `mcp-broker doctor`; it may be too old or too new.", OPERATOR_HINT;
        ListFailed = "list_failed", "The server could not list its tools.", "Read the server's message in the log or with `mcp-broker doctor`.", OPERATOR_HINT;
        ListInvalid = "list_invalid", "The server's tool list breaks the protocol.", "Report it to the server's maintainers.", OPERATOR_HINT;
        Unreachable = "unreachable", "The server cannot be reached over HTTP, or it answers requests with an HTTP error.", "Read the reason in the log or with `mcp-broker doctor`; check the URL, the network and the server.", RESTART_HINT;
        TlsFailed = "tls_failed", "The TLS connection to the server failed, or its certificate is not trusted.", "Name the certificate of its authority in `ca_file`, or correct the URL.", OPERATOR_HINT;
        ProxyInvalid = "proxy_invalid", "A variable of the environment names the proxy for the server, and its value cannot be used.", "Correct the variable that the log or `mcp-broker doctor` names, or add the host to `NO_PROXY`, and start the broker again. Forms that work: `http://HOST:PORT`, `https://HOST:PORT`, `socks5://HOST:PORT` and `socks5h://HOST:PORT`.", OPERATOR_HINT;
        SessionEnded = "session_ended", "The server ended the session.", "None: the broker opens a new one.", RESTART_HINT;
        NeedsAuth = "needs_auth", "The server refused the credentials, or there is no token for it.", "Read the reason in the log or with `mcp-broker doctor`. Correct `headers` or `auth` and reload. Another token in the file or from the command is used as soon as it is there; after a correction of the server, a call causes another attempt, at most one in 60 seconds.", OPERATOR_HINT;
        EnvMissing = "env_missing", "A variable that the config names is not set.", "Set it, or give it a default: `${NAME:-default}`.", OPERATOR_HINT;
        Exited = "exited", "The process ended while it was in use.", "Read its exit status and the end of its stderr in the log or with `mcp-broker doctor`; the broker starts it again.", RESTART_HINT;
        Protocol = "protocol", "The server broke the protocol, and the connection was closed.", "Report it to the server's maintainers.", RESTART_HINT;
        StdinStalled = "stdin_stalled", "The server sends requests and does not read the answers: 32 MiB of answers are unread.", "Report it to the server's maintainers; the broker starts it again.", RESTART_HINT;
        Hung = "hung", "Calls timed out one after the other, and the server sent no byte and no answer to `ping` or `server/discover` since.", "None: the broker starts it again. If that happens often, report it to the server's maintainers.", RESTART_HINT;
        RecheckPending = "recheck_pending", "The server announced that its tools changed and has not listed them since.", "Wait for `Retry-After` seconds: the source is ready again when its listing has arrived and matches. If it does not arrive, find out why the server does not answer `tools/list`.", "Call again in a few seconds: the source is ready when its new tool list has arrived and matches.";
        DriftSource = "drift_source", "The source itself no longer matches the lock.", "Review the drift: `broker-gen check`.", OPERATOR_HINT;
        LockStale = "lock_stale", "The config of the source has changed since it was locked, or the source is not in the lock.", "Run `broker-gen lock`, review the lock, and start the broker again.", OPERATOR_HINT;
        Stopped = "stopped", "The broker is stopping the source.", "None: the source is stopping.";
    }
}

impl SourceCause {
    /// The remedy for callers while the broker starts the source again by itself.
    pub const fn restart_hint(self) -> &'static str {
        match self {
            Self::StartupTimeout => STARTING_HINT,
            Self::Unreachable
            | Self::SessionEnded
            | Self::Exited
            | Self::Protocol
            | Self::StdinStalled
            | Self::Hung
            | Self::RecheckPending
            | Self::Stopped => self.hint(),
            Self::SpawnNotFound
            | Self::SpawnDenied
            | Self::SpawnFormat
            | Self::SpawnFailed
            | Self::ExitBeforeReady
            | Self::HandshakeFailed
            | Self::ListFailed
            | Self::ListInvalid
            | Self::TlsFailed
            | Self::ProxyInvalid
            | Self::NeedsAuth
            | Self::EnvMissing
            | Self::LockStale
            | Self::DriftSource => RETRY_HINT,
        }
    }

    /// Whether a variable that is set and empty may explain it.
    pub const fn may_lack_value(self) -> bool {
        match self {
            Self::NeedsAuth | Self::ExitBeforeReady => true,
            Self::SpawnNotFound
            | Self::SpawnDenied
            | Self::SpawnFormat
            | Self::SpawnFailed
            | Self::StartupTimeout
            | Self::HandshakeFailed
            | Self::ListFailed
            | Self::ListInvalid
            | Self::Unreachable
            | Self::TlsFailed
            | Self::ProxyInvalid
            | Self::SessionEnded
            | Self::EnvMissing
            | Self::Exited
            | Self::Protocol
            | Self::StdinStalled
            | Self::Hung
            | Self::RecheckPending
            | Self::DriftSource
            | Self::LockStale
            | Self::Stopped => false,
        }
    }
}

closed_list! {
    /// Why a tool, prompt, template or resource of a source is left out, or a whole source.
    LeftOutCode {
        JsonInvalid = "json_invalid", "The object is not JSON that the broker reads: it has a key twice, is nested too deep, or has a number that is too long.", "Report it to the server's maintainers.";
        NotAnObject = "not_an_object", "The element of the list is not an object.", "Report it to the server's maintainers.";
        NameInvalid = "name_invalid", "The name is missing, empty, not a string, or has the form of the key of a prompt or resource.", "Report it to the server's maintainers.";
        NameUnsafe = "name_unsafe", "The name mixes scripts, has hidden characters, or looks like another name.", "Give it an alias in `path_aliases`.";
        MemberInvalid = "member_invalid", "A member has another type than the specification of MCP gives it.", "Report it to the server's maintainers.";
        TooLarge = "too_large", "The object exceeds a limit on one tool.", "Report it to the server's maintainers.";
        DefinedTwice = "defined_twice", "The server defines the name a second time with other bytes.", "Report it to the server's maintainers.";
        ListCut = "list_cut", "The rest of a list is not used: a page cannot be read, or a limit on the whole list is reached.", "Report it to the server's maintainers, or raise the limit that the reason names.";
        HeaderParam = "header_param", "Its `x-mcp-header` breaks the rules of the protocol.", "Report it to the server's maintainers.";
        SchemaRefused = "schema_refused", "A schema does not compile, or is too costly.", "Hide the tool with `tool_filter`, or serve it unvalidated: `\"schema\": \"as_is\"` in `tool_overrides`.";
        Unvalidated = "unvalidated", "The tool is served although one of its schemas is not valid: the config says `\"schema\": \"as_is\"`.", "Hide the tool with `tool_filter`, or accept it.";
        PathClash = "path_clash", "Another entry has the same path or the same name for clients.", "Give one of them an alias in `path_aliases`.";
        LintRefused = "lint_refused", "A text contains something that a reviewer cannot see.", "Hide the tool with `tool_filter`, or suppress the finding in the audits file.";
        SecretListed = "secret_listed", "The listing contains a secret.", "Configure the server so that it does not list the secret.";
        Unstable = "unstable", "Two launches gave different values.", "Name the members in `volatile`.";
        PackageChanged = "package_changed", "The source runs another package than the lock names, or another content of the same version.", "Find out why; then lock the source alone.";
        NotStarted = "not_started", "The source could not be started or listed.", "Find the cause with `broker-gen doctor`, then lock it; or write `\"disabled\": true` into it.";
        NotLocked = "not_locked", "The source was not asked for when the lock was begun with `--source`.", "Lock it with `broker-gen lock --source`, or write `\"disabled\": true` into it.";
        Violation = "violation", "An entry `[[violations]]` of the audits file refuses it.", "Read its reason in the audits file; nothing accepts it.";
        More = "more", "More than 1 000 parts of the source are left out, and these are only counted.", "Hide them with `tool_filter`.";
    }
}

closed_list! {
    /// A problem of a config, a lock, an audits file, or of what `lock` would write.
    DiagnosticCode {
        JobsUnusable = "jobs_unusable", "The store of jobs cannot be opened.", "Name a file in a folder on this machine that the broker may write; each broker needs its own.";
        AuditUnusable = "audit_unusable", "The audit log or its key cannot be opened.", "Name a file in a folder that the broker may write, and a key that `mcp-broker audit key` made.";
        TelemetryUnusable = "telemetry_unusable", "The broker cannot export its telemetry: it was built without the feature `otlp`, or a variable of OpenTelemetry cannot be used.", "Build with `--features otlp`, or correct the variable that the message names.";
        ConfigUnreadable = "config_unreadable", "The config cannot be read.", "Name an existing file with `--config` or MCP_BROKER_CONFIG.";
        ConfigSyntax = "config_syntax", "The config is not JSON.", "Correct the place that the message names; JSON has no comments and no trailing commas.";
        ConfigEncoding = "config_encoding", "The config is not UTF-8.", "Save it as UTF-8.";
        ConfigShape = "config_shape", "The config has no `tree` and no `mcpServers`, or both.", "Write an object with `tree` or `mcpServers`.";
        ConfigSize = "config_size", "The config is too large or nested too deep.", "Keep it under 4 MiB, 64 levels and 100 000 values.";
        ConfigUnknownKey = "config_unknown_key", "The config has an unknown key.", "Correct the name.";
        ConfigDupKey = "config_dup_key", "An object has a key twice.", "Keep one of the two.";
        ConfigType = "config_type", "A value has the wrong type.", "Write the type that the message names.";
        ConfigRange = "config_range", "A value is out of range.", "Keep to the range that the message names.";
        ConfigSourceKind = "config_source_kind", "A source has both `command` and `url`, or neither, or not the one that its backend needs.", "Give exactly one.";
        UrlInvalid = "url_invalid", "A `url` is not an absolute `http` or `https` URL, or has user information or a fragment.", "Write `https://host[:port]/path`; send secrets in `headers` or with `auth`.";
        PlainHttp = "plain_http", "A secret would be sent over `http`, without encryption, to a server or a token endpoint on another machine.", "Use `https`, or set `\"allow_plain_http\": true`.";
        NotSupportedYet = "not_supported_yet", "This version of the broker does not support the key yet.", "Remove the key.";
        KeyIgnored = "key_ignored", "A key that other clients read has no meaning here.", "Remove it if you like.";
        CatalogsFull = "catalogs_full", "`broker-gen serve` has taken so many different locks that the memory for them is used up.", "Start `broker-gen serve` again.";
        OwnBroker = "own_broker", "A source starts the broker with the config that has the source, which would start itself again; it is left out.", "Remove the entry.";
        TimeoutUnit = "timeout_unit", "A `timeout` in a file of another client is above 3600: it is in seconds, and some clients count milliseconds.", "Write seconds.";
        ClientValue = "client_value", "A value in the file of a client is read in another way than in the client.", "Write it as the message says.";
        LiteralSecret = "literal_secret", "The config contains a secret.", "Write `${NAME}`; the compiled-in config takes the value from the environment.";
        EnvMissing = "env_missing", "Variables that the config names are not set.", "Set them, or give a default: `${NAME:-default}`.";
        EnvSyntax = "env_syntax", "A `${…}` is not `${NAME}` or `${NAME:-default}`, or names a variable of the broker itself (`MCP_BROKER_…`).", "Close it, do not nest, or name another variable.";
        EnvValue = "env_value", "A variable's value cannot be used there: it holds a newline or a NUL.", "Correct the value.";
        TextVariable = "text_variable", "A summary, a description, a path, an alias, a pattern of a filter or a text of `access` has a `${…}`, and variables are not expanded there.", "Write the text itself; write `$${` for the characters `${`.";
        ShellPlace = "shell_place", "The value of a `${NAME}` could become code: in a here-document, in backticks, in `eval`, where bash computes, in a variable that a shell obeys, in text that is piped into a shell, or in a script that cannot be rewritten.", "Pass it as an argument or in `env`.";
        PathInvalid = "path_invalid", "A path is outside the grammar.", "Write `/` or segments of letters and digits of any script, `_`, `.` and `-`, in the form NFKC.";
        PathDup = "path_dup", "Two entries have the same path.", "Rename one of them.";
        PathParent = "path_parent", "The path of a child is not below the path of its parent.", "Begin it with the parent's path.";
        PathCase = "path_case", "Two paths differ only in case.", "Rename one of them.";
        NameClash = "name_clash", "Two names of `mcpServers` would give the same path, and get paths with a hash.", "Rename one of them if you like.";
        LeafClash = "leaf_clash", "Two tools, prompts or resources have the same path.", "Give one of them an alias.";
        FlatNameClash = "flat_name_clash", "Two tools have the same flat name, or a tool has the name of a meta-tool.", "Give one of the tools an alias in `path_aliases`.";
        ItemClash = "item_clash", "Two sources have the same prompt name or resource URI, or templates that may have a common URI.", "Exclude it by `prompt_filter` or `resource_filter` of one of them.";
        AliasNeeded = "alias_needed", "The path of a tool would be longer than 512 bytes.", "Give it a shorter alias in `path_aliases`.";
        GlobSyntax = "glob_syntax", "A filter pattern is not a valid glob.", "Correct the pattern.";
        FilterEmpty = "filter_empty", "A filter matches no tool.", "Correct the pattern; the message lists the nearest names.";
        TrustEmpty = "trust_empty", "The trust level of a source hides all of its tools.", "Name the tools that callers need in `tool_filter`; the message lists those that are hidden.";
        AccessGroupUnknown = "access_group_unknown", "A name is not one of the groups in `access.groups`.", "Correct the name, or add the group.";
        AccessNoMatch = "access_no_match", "A rule of `access` matches no locked tool.", "Correct the pattern or `where`; the message has the nearest paths.";
        AccessArgsUnknownProperty = "access_args_unknown_property", "The `args` of a rule name a property that a tool of the rule does not have.", "Correct the name, or write a separate rule for the tools that have it.";
        AccessArgsNever = "access_args_never", "No arguments of a tool can match the `args` of a rule.", "Correct `args`, or write a separate rule for this tool.";
        AccessArgsInvalid = "access_args_invalid", "The `args` of a rule are not a schema that the broker can use.", "Correct the place that the message names.";
        AccessRuleDead = "access_rule_dead", "A rule of `access` changes nothing: other rules decide the same.", "Remove it if you like.";
        AccessToolUnreachable = "access_tool_unreachable", "The rules of `access` allow a tool to no group.", "Allow it, or hide it with `tool_filter`.";
        OverrideUnknown = "override_unknown", "An alias or override names a tool that is not exposed.", "Correct the name.";
        AuditPointer = "audit_pointer", "A pointer of `audit` in an override names no scalar argument of its tool.", "Name a scalar argument that the schema of the tool declares, such as `/org`.";
        ExampleInvalid = "example_invalid", "An example does not match its tool's schema.", "Correct `example_args`; models copy them.";
        BindOpen = "bind_open", "The address is reachable from other machines, and callers without a credential may call tools: there is neither a secret nor a key nor an issuer, or `access.anonymous` has groups.", "Set MCP_BROKER_SECRET, `--secret-file` or `identities`, leave `access.anonymous` empty, bind to 127.0.0.1, or pass `--allow-unauthenticated`.";
        ServeOpen = "serve_open", "`broker-gen serve` was asked to listen on an address that other machines can reach.", "Listen on 127.0.0.1, or build the broker, which other machines may use: `broker-gen new`.";
        SecretPermissions = "secret_permissions", "Other users can read the secret file.", "Run `chmod 600` on it.";
        SecretEmpty = "secret_empty", "The secret is empty.", "Give a secret, or remove the setting.";
        SecretUnexpanded = "secret_unexpanded", "The secret holds a literal `${`.", "Expand the variable before you pass the secret.";
        LockMissing = "lock_missing", "There is no lock.", "Make one with `broker-gen lock` and commit it.";
        LockCorrupt = "lock_corrupt", "The lock is incomplete, was edited by hand, or has merge-conflict markers.", "Make a new one with `broker-gen lock`; one with markers is merged by `broker-gen lock --merge`, after the config is settled.";
        LockVersion = "lock_version", "The lock has another format version.", "Use the broker-gen that wrote it, or make a new lock.";
        LockStale = "lock_stale", "The lock was made for another config.", "Make a new one with `broker-gen lock`.";
        LockOrphan = "lock_orphan", "The lock has a source or a tool that it should not have.", "Make a new one with `broker-gen lock`.";
        MergeConflict = "merge_conflict", "Two branches changed the same part of a lock or of the audits, so that they cannot be merged.", "Settle the config first; then `broker-gen lock --merge`, with the source named by `--source`, `--ours` or `--theirs`: `docs/lock.md` says how.";
        MergeUnreadable = "merge_unreadable", "A file to merge cannot be read, or is not one that can be merged.", "Name two locks or two audits files, and their base, if there is one.";
        LeftOutUnaccepted = "left_out_unaccepted", "The lock leaves a part of the config out, keeps an older state of it, or serves a tool unvalidated, and no entry of the audits accepts that.", "Settle the cause and make a new lock, or accept it with `broker-gen accept --left-out`; `docs/lock.md` says how.";
        LockMismatch = "lock_mismatch", "The config is not the compiled-in one.", "Build the broker with this config.";
        LockWiden = "lock_widen", "The config would expose more than the compiled-in one.", "Make a new lock and a new build.";
        VectorsStale = "vectors_stale", "The file of vectors is missing, was edited, or does not have exactly the texts of the tools by the models of the config.", "Make the missing vectors with `broker-gen vectors` and commit the file.";
        EmbedderMismatch = "embedder_mismatch", "The chosen embedder is not the one for which the catalog was built.", "Choose that one or `BM25`, or build the broker with a lock for the other one.";
        EmbedderUnavailable = "embedder_unavailable", "The model cannot be loaded, or the endpoint does not embed texts.", "Correct the cause that the message names; docs/search.md says what each embedder needs.";
        SchemaInvalid = "schema_invalid", "A schema does not compile.", "Hide the tool with `tool_filter`, or report it to the server's maintainers.";
        SchemaRef = "schema_ref", "A schema refers to another document, or to a place that does not exist.", "Hide the tool with `tool_filter`.";
        SchemaCycle = "schema_cycle", "A schema refers to itself and cannot be resolved.", "Hide the tool with `tool_filter`.";
        SchemaLimit = "schema_limit", "A schema is too deep, too large, or its references fan out too far.", "Hide the tool with `tool_filter`.";
        SchemaPattern = "schema_pattern", "A pattern in a schema does not compile.", "Hide the tool with `tool_filter`.";
        SchemaRead = "schema_read", "Schemas have a form that is not of their dialect and has one meaning; calls are validated by this meaning.", "Compare the places that the message counts with the server's documentation.";
        SchemaUnlisted = "schema_unlisted", "MCP clients cannot read the schema of a tool in a list, so lists contain the tool without its `outputSchema`, or only the mode `meta` has the tool.", "Nothing, where models use `meta_tree` and `meta_call`; else report it to the server's maintainers. `broker-gen tree` names each tool.";
        SchemaDialect = "schema_dialect", "A schema names an unknown dialect.", "Hide the tool with `tool_filter`.";
        SourceUnstable = "source_unstable", "Two launches of a source gave different tools.", "Name the members in `volatile`.";
        SourceSecret = "source_secret", "A server put a secret into its listing, and the lock would contain it.", "Configure the server so that it does not list the secret, or hide the tool with `tool_filter`.";
        SourceFailed = "source_failed", "A source could not be started or listed.", "Fix the cause that the message names.";
        PackageUnpinned = "package_unpinned", "A command names a package without an exact version, so a later run may use another one.", "Name the version, or the digest of an image; `docs/provenance.md` has the forms.";
        PackageChanged = "package_changed", "A source runs another package than the lock names, or another content of the same version.", "Find out why before you commit the lock; restore the old lock if the change was not intended.";
        PackageUnseen = "package_unseen", "The package that a source ran was not found on this machine, so the lock has no integrity for it.", "Run `lock` where the package manager's cache is; `docs/provenance.md` lists the folders that are searched.";
        DidNotEnd = "did_not_end", "The process of a source had to be killed when it was stopped, or a program that it started elsewhere did not end.", "Make the server end when its standard input ends; `docs/doctor.md` says what may still run.";
        ContainerInit = "container_init", "A container without `--init` did not end when its source was stopped.", "Write `--init` after `docker run`.";
        VariableWithheld = "variable_withheld", "A command asks for a variable that is set here and not passed on.", "Name the variable in `inherit_env`, or with a value in `env`.";
        MachineText = "machine_text", "A text of a tool contains a value of this machine; a lock that is made elsewhere would differ.", "Set the value with an argument of the server, or name the member in `volatile`.";
        LintRefused = "lint_refused", "Texts for the lock contain something that a reviewer cannot see, or, with `--strict`, something that needs a review.", "Hide the tools with `tool_filter`, or suppress the findings in the audits file; docs/lint.md lists every rule.";
        AuditsUnreadable = "audits_unreadable", "The audits file cannot be read, or is too large.", "See the message; the file is optional.";
        AuditsSyntax = "audits_syntax", "The audits file is not valid TOML.", "Correct the place that the message names.";
        AuditsUnknownKey = "audits_unknown_key", "The audits file has an unknown key.", "Correct the name.";
        AuditsValue = "audits_value", "A value in the audits file is missing or invalid.", "Write what the message names.";
        AuditMissing = "audit_missing", "A tool has no valid audit, and the config requires them.", "Review it with `broker-gen review`, or accept it with `broker-gen accept`.";
        HintUnreviewed = "hint_unreviewed", "Search hints that a model wrote wait for a review; they are not compiled.", "Run `broker-gen review`, or delete the mark `generated` of those that you accept.";
        HintStale = "hint_stale", "A search hint was written for another version of its tool, and is left out.", "Remove it, or delete `for` if it still fits; `broker-gen hints --export` lists tools without a current hint.";
        HintRefused = "hint_refused", "A phrase of an answer cannot be a search hint.", "Correct or remove it at the place that the message names; nothing was written.";
        HintUnaudited = "hint_unaudited", "Hints in the config claim more safety for a tool than its server does, and no entry of the audits confirms them.", "Run the command that the message names, or remove the hints from `tool_overrides`.";
        MovedRefused = "moved_refused", "The entries of the audits cannot be carried over to another path: its source is another one, or has other bytes.", "Review it with `broker-gen review`.";
        Violation = "violation", "The lock has something that an entry `[[violations]]` of the audits file refuses, whatever audits and exemptions say.", "Run `broker-gen lock`, which leaves it out.";
        ViolationUnmatched = "violation_unmatched", "An entry `[[violations]]` matches nothing in the lock and nothing that it leaves out.", "Correct its globs, unless it refuses what may come.";
        AuditByAuthor = "audit_by_author", "The people who audited a tool are authors of the commits that changed it in the lock, and `--require-other-author` is given.", "Let another person review it.";
        AuthorsUnknown = "authors_unknown", "The authors of the lock cannot be read from git: there is no repository or only a part of its history, or the lock is not as it is committed.", "Commit the lock, and fetch the whole history: for `actions/checkout`, `fetch-depth: 0`.";
        AuditStale = "audit_stale", "An audit matches no locked tool or source.", "None: it is history; you may remove it by hand.";
        WriteRefused = "write_refused", "The verb would write a file, and `CI` or `MCP_BROKER_LOCKED` is set.", "Run it on your own machine, and commit what it writes.";
        WhoMissing = "who_missing", "The audit has no author.", "Pass `--who NAME`, set MCP_BROKER_WHO, or set git's `user.name` and `user.email`.";
        TerminalNeeded = "terminal_needed", "`review` asks questions and needs a terminal.", "Run it in a terminal; without one, read `broker-gen diff` and use `broker-gen accept`.";
        BaselineUnreadable = "baseline_unreadable", "The lock to compare with cannot be read.", "Name a file, or `git:REV` with a commit that contains the lock.";
        BinaryUnchecked = "binary_unchecked", "The catalog of the named program cannot be read.", "Name a broker that runs on this machine.";
        GeneratedStale = "generated_stale", "Generated code does not match config and lock.", "Generate it again with `broker-gen generate`.";
        CatalogMissing = "catalog_missing", "The program was built without a catalog, and none was packed into it, or it cannot read its own file.", "Run `broker-gen pack --config FILE -o BROKER` and start the broker that it writes, or run `broker-gen serve`; a packed broker needs `/proc` and read access to its file.";
        CatalogDamaged = "catalog_damaged", "The bytes of a packed broker are not those that were packed.", "Copy it again from where it was packed, or pack it again with `broker-gen pack`.";
        RuntimeUnusable = "runtime_unusable", "`broker-gen pack` cannot use the program as a runtime, or `verify` finds another one in the packed broker.", "Name the `mcp-broker` of the same package as this `broker-gen` with `--runtime FILE`.";
        FileExists = "file_exists", "A file that would be written already exists.", "Choose another folder, or move the file away.";
        ImportSyntax = "import_syntax", "A file to import is neither JSON, in which comments are accepted, nor TOML nor YAML.", "Correct the place that the message names.";
        ImportServers = "import_servers", "A file to import has no server that a config can have.", "Name the file in which the client has its servers: `mcpServers`, `servers`, `context_servers`, `mcp`, `extensions` or `[mcp_servers.NAME]`.";
        FileWrite = "file_write", "A file cannot be written.", "Free disk space, or give this user write access to the file and its folder; then run the command again.";
    }
}
