//! The environment of a child, and the search for its program.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use broker_config::{
    CommandLine, Endpoint, Limits, ProcessEndpoint, SchemaPolicy, Source, Template,
};
use broker_mcp::{ConcurrencyLimits, Environment, Session, SourceSpec, resolve};
use broker_model::trust::Exposure;
use broker_model::{Diagnostic, DiagnosticCode, NodePath, SourceCause};

use super::common::{ServerFixture, process, process_mut};

fn template(text: &str) -> Template {
    Template::parse(text).expect("it is a template")
}

fn source(program: &str, args: &[&str]) -> Source {
    Source {
        path: NodePath::parse("/acme").expect("it is a path"),
        endpoint: Endpoint::Process(ProcessEndpoint {
            command: CommandLine::Direct {
                program: template(program),
                args: args.iter().map(|arg| template(arg)).collect(),
                script: None,
            },
            places: std::iter::once("/command".to_owned())
                .chain((0..args.len()).map(|at| format!("/args/{at}")))
                .collect(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            cwd: None,
        }),
        exposure: Exposure::expose_all(),
        trust: None,
        aliases: BTreeMap::new(),
        item_aliases: Default::default(),
        overrides: BTreeMap::new(),
        of_every_tool: Default::default(),
        max_output_chars: None,
        coerce: None,
        extensions: Default::default(),
        stderr_to_callers: false,
        required: true,
        schema: SchemaPolicy::default(),
        startup_timeout: Duration::from_secs(20),
        relist_interval: None,
        on_text_drift: None,
        on_unreachable: None,
        on_drift: None,
        start_wait: None,
        timeout: Duration::from_secs(20),
        max_timeout: None,
        instances: 1,
        retry_idempotent: false,
        max_in_flight: 32,
        types: true,
        volatile: Default::default(),
        pointer: "/tree/0/source".to_owned(),
    }
}

/// The endpoint of a source that is a process.
fn own(source: &mut Source) -> &mut ProcessEndpoint {
    match &mut source.endpoint {
        Endpoint::Process(process) => process,
        Endpoint::Http(_) => panic!("the source is a process"),
    }
}

fn environment(vars: &[(&str, &str)]) -> Environment {
    let vars = vars
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment::new(vars.collect(), None)
}

fn resolved(source: &Source, vars: &[(&str, &str)]) -> Result<SourceSpec, Vec<Diagnostic>> {
    resolve(
        source,
        &Limits::default(),
        &environment(vars),
        Path::new("/base"),
        &ConcurrencyLimits::new(),
    )
}

const WORLD: [(&str, &str); 9] = [
    ("PATH", "/bin:/usr/bin"),
    ("HOME", "/home/me"),
    ("LC_ALL", "C.UTF-8"),
    ("XDG_CACHE_HOME", "/c"),
    ("SSL_CERT_FILE", "/ca.pem"),
    ("GH_TOKEN", "canary-token"),
    ("ACME_REGION", "north"),
    ("APP_ONE", "1"),
    ("LD_PRELOAD", "/evil.so"),
];

#[test]
fn child_environment_has_only_allowed_variables() {
    let mut source = source("acme-server", &[]);
    own(&mut source).inherit_env = vec!["APP_*".to_owned()];
    own(&mut source)
        .env
        .insert("PYTHONUTF8".to_owned(), template("0"));
    own(&mut source)
        .env
        .insert("OWN".to_owned(), template("${HOME}/x"));
    let launch = resolved(&source, &WORLD).unwrap();
    let names: Vec<_> = process(&launch).env.keys().map(String::as_str).collect();
    let expected = [
        "APP_ONE",
        "HOME",
        "LC_ALL",
        "OWN",
        "PATH",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
        "SSL_CERT_FILE",
        "XDG_CACHE_HOME",
    ];
    assert_eq!(names, expected);
    assert_eq!(process(&launch).env["OWN"], "/home/me/x");
    assert_eq!(process(&launch).env["PYTHONUTF8"], "0");
    assert_eq!(launch.withheld, ["ACME_REGION", "GH_TOKEN"]);
}

#[test]
fn child_environment_never_has_a_variable_of_the_broker() {
    let world = [
        ("MCP_BROKER_SECRET", "canary"),
        ("MCP_BROKER_NEW", "1"),
        ("OPENAI_API_KEY", "canary"),
        ("APP_ONE", "1"),
    ];
    for patterns in [
        &["*"][..],
        &["MCP_*"],
        &["*SECRET", "MCP_BROKER_NEW", "OPENAI_API_KEY", "APP_*"],
    ] {
        let mut source = source("acme-server", &[]);
        own(&mut source).inherit_env = patterns.iter().map(ToString::to_string).collect();
        let launch = resolved(&source, &world).unwrap();
        for own in ["MCP_BROKER_SECRET", "MCP_BROKER_NEW", "OPENAI_API_KEY"] {
            let env = &process(&launch).env;
            assert!(!env.contains_key(own), "{own}: {patterns:?}");
        }
        let is_given = process(&launch).env.contains_key("APP_ONE");
        assert_eq!(is_given, patterns != ["MCP_*"], "{patterns:?}");
    }
}

#[test]
fn launch_with_missing_variables_lists_each_with_its_place() {
    let mut source = source("${NO_A}", &["${NO_B} ${NO_C}", "${NO_D:-fine}"]);
    own(&mut source)
        .env
        .insert("X/Y".to_owned(), template("${NO_E}"));
    own(&mut source).cwd = Some(template("${NO_F}"));
    let problems = resolved(&source, &WORLD).unwrap_err();
    assert!(
        problems
            .iter()
            .all(|problem| problem.code == DiagnosticCode::EnvMissing)
    );
    let places: Vec<_> = problems
        .iter()
        .map(|problem| {
            (
                problem.pointer.as_deref().unwrap(),
                problem.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            ("/tree/0/source/command", "`NO_A` is not set"),
            ("/tree/0/source/args/0", "`NO_B`, `NO_C` are not set"),
            ("/tree/0/source/env/X~1Y", "`NO_E` is not set"),
            ("/tree/0/source/cwd", "`NO_F` is not set"),
        ]
    );
}

#[test]
fn launch_problem_of_a_split_command_is_reported_once() {
    let mut source = source("${NO_A}", &["${NO_B}", "${NO_A}", "${V}", "${V}"]);
    own(&mut source).places = vec!["/command".to_owned(); 5];
    let problems = resolved(&source, &[("V", "a\nb")]).unwrap_err();
    let said: Vec<_> = problems
        .iter()
        .map(|problem| {
            (
                problem.pointer.as_deref().unwrap(),
                problem.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            (
                "/tree/0/source/command",
                "the value of `V` holds a newline or a NUL"
            ),
            ("/tree/0/source/command", "`NO_A`, `NO_B` are not set"),
        ]
    );
}

#[test]
fn launch_value_stays_one_argument_and_newlines_are_refused() {
    let source = source("p", &["${V}", "literal\nnewline"]);
    let launch = resolved(&source, &[("V", "a b\";$(x) '${W}")]).unwrap();
    assert_eq!(
        process(&launch).args,
        ["a b\";$(x) '${W}", "literal\nnewline"]
    );
    for value in ["canary\nx", "canary\0x"] {
        let problems = resolved(&source, &[("V", value)]).unwrap_err();
        assert_eq!(problems[0].code, DiagnosticCode::EnvValue);
        assert!(!problems[0].to_string().contains("canary"));
    }
}

#[test]
fn launch_shell_variables_are_private_and_secrets_redacted() {
    let mut source = source("", &[]);
    own(&mut source).command = CommandLine::Shell {
        script: "run \"${P}\" | cat".to_owned(),
        variables: [("P".to_owned(), template("x${GH_TOKEN}"))].into(),
        written: "run x${GH_TOKEN} | cat".to_owned(),
    };
    own(&mut source)
        .env
        .insert("API_KEY".to_owned(), template("literal-canary"));
    let launch = resolved(&source, &WORLD).unwrap();
    assert_eq!(
        (process(&launch).program.as_str(), process(&launch).shell),
        ("/bin/sh", true)
    );
    assert_eq!(process(&launch).args, ["-c", "run \"${P}\" | cat"]);
    assert_eq!(process(&launch).env["P"], "xcanary-token");
    let shown = launch
        .redactor
        .redact("canary-token literal-canary /home/me");
    assert_eq!(shown, "•••• •••• /home/me");
    assert!(!format!("{launch:?} {:?}", environment(&WORLD)).contains("canary"));
}

#[test]
fn launch_masks_literal_arguments_of_secret_options() {
    let source = source(
        "server",
        &[
            "--token=canary-1",
            "--api-key",
            "canary-2",
            "--port",
            "canary-3",
        ],
    );
    let launch = resolved(&source, &WORLD).unwrap();
    let shown = launch.redactor.redact("canary-1 canary-2 canary-3");
    assert_eq!(shown, "•••• •••• canary-3");
}

#[test]
fn launch_resolves_relative_paths_against_the_config_folder() {
    let mut source = source("./bin/server", &[]);
    let launch = resolved(&source, &WORLD).unwrap();
    assert_eq!(
        Path::new(&process(&launch).program),
        Path::new("/base/bin/server")
    );
    assert_eq!(process(&launch).cwd.as_deref(), Some(Path::new("/base")));
    own(&mut source).cwd = Some(template("data"));
    let launch = resolved(&source, &WORLD).unwrap();
    assert_eq!(
        process(&launch).cwd.as_deref(),
        Some(Path::new("/base/data"))
    );
}

#[test]
fn launch_searches_a_bare_name_next_to_the_executable_first() {
    let mut source = source("server", &[]);
    own(&mut source)
        .env
        .insert("PATH".to_owned(), template("/own"));
    let check = |exe_dir: &str, expected: &[&str]| {
        let vars = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let environment = Environment::new(vars, Some(exe_dir.into()));
        let launch = resolve(
            &source,
            &Limits::default(),
            &environment,
            Path::new("/base"),
            &ConcurrencyLimits::new(),
        )
        .unwrap();
        let expected: Vec<_> = expected.iter().map(Path::new).collect();
        assert_eq!(process(&launch).search, expected);
    };
    check("/t/debug", &["/t/debug", "/own"]);
    check("/t/debug/deps", &["/t/debug/deps", "/t/debug", "/own"]);
    check(
        "/t/debug/examples",
        &["/t/debug/examples", "/t/debug", "/own"],
    );
}

#[tokio::test]
async fn launch_of_a_file_that_is_not_a_program_names_the_reason() {
    let fixture = ServerFixture::new();
    let check = async |name: &str, content: &[u8], mode: u32, cause: SourceCause| {
        let file = fixture.file(name);
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut launch = fixture.launch("");
        process_mut(&mut launch).program = file.to_str().unwrap().to_owned();
        let failure = Session::open(&launch, None).await.unwrap_err();
        assert_eq!(failure.cause, cause, "{failure}");
        let is_refused = cause != SourceCause::ExitBeforeReady;
        assert_eq!(failure.message.contains(name), is_refused, "{failure}");
    };
    check(
        "not-executable",
        b"#!/bin/sh\n",
        0o644,
        SourceCause::SpawnDenied,
    )
    .await;
    check("no-shebang", b"echo hi\n", 0o755, SourceCause::SpawnFormat).await;
    check("empty", b"", 0o755, SourceCause::SpawnFormat).await;
    #[cfg(target_os = "linux")]
    if !Path::new("/proc/sys/fs/binfmt_misc/register").exists() {
        // An executable for an unknown machine.
        let mut foreign = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        foreign[18..20].copy_from_slice(&[0xfe, 0xfe]);
        check("foreign", &foreign, 0o755, SourceCause::SpawnFormat).await;
    }
    check(
        "no-interpreter",
        b"#!/no/such/thing\n",
        0o755,
        SourceCause::SpawnNotFound,
    )
    .await;
    check(
        "runs-and-ends",
        b"#!/bin/sh\nexit 5\n",
        0o755,
        SourceCause::ExitBeforeReady,
    )
    .await;
    let mut launch = fixture.launch("");
    process_mut(&mut launch).cwd = Some(fixture.file("nowhere"));
    let failure = Session::open(&launch, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::SpawnFailed);
}
