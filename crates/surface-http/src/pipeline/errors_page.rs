//! Checks `docs/errors.md` against the registry of codes and the status of each. To update the page:
//! `UPDATE_EXPECT=1 cargo test --locked -p broker-surface-http errors_page`.

use std::fmt::Write as _;
use std::path::Path;

use broker_model::exit::Exit;
use broker_model::{CallCode, DiagnosticCode, LeftOutCode, SourceCause};

use super::respond::status_of;

const HEAD: &str = "\
# Errors

For client users, operators and agents. Reference: every code of an error, its cause and its remedy.

<!-- Generated from the registry of codes; a test holds it. Do not edit. -->

Four closed lists. A code is stable; its message is for people and may change. `docs/errors.md#CODE` is the
place of the code of a call: `details.help` of an error over HTTP. Errors over MCP do not have it, since a model would pay for it.

## Calls

A call that the broker cannot complete answers `{\"error\": {\"code\", \"message\", \"hint\"?, \"path\"?,
\"did_you_mean\"?, \"details\"?, \"retryable\", \"maybe_executed\"?, \"request_id\"}}`. `retryable` says
whether the same call may be sent again as it is; `maybe_executed` whether the server may have
executed it. A tool's own failure (`isError: true`) is a result with status 200. 429 and 503 carry
`Retry-After`, in seconds. The remedies below are for operators too; `hint` has the remedy for the caller.

";

fn page() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("| status | code | cause | remedy |\n|---|---|---|---|\n");
    for code in CallCode::ALL {
        let status = status_of(*code).as_u16();
        row(
            &mut out,
            &[
                &status.to_string(),
                &anchored("", code.as_str()),
                code.cause(),
                code.remedy(),
            ],
        );
    }
    out.push_str("\n## Sources\n\nThe reason why a source is not ready: `cause` in `GET /readyz`, `details.cause` of `source_unavailable`, and the\nreport of a refused start.\n\n| cause | meaning | remedy |\n|---|---|---|\n");
    for cause in SourceCause::ALL {
        row(
            &mut out,
            &[
                &anchored("source-", cause.as_str()),
                cause.cause(),
                cause.remedy(),
            ],
        );
    }
    out.push_str("\n## Parts of a source that are left out\n\nThe reason why `lock`, `check`, `status`, `GET /sources` and `doctor` name a tool, prompt, template or resource, or a\nsource, that is not used. The rest goes on without it.\n\n| reason | meaning | remedy |\n|---|---|---|\n");
    for code in LeftOutCode::ALL {
        row(
            &mut out,
            &[
                &anchored("left-out-", code.as_str()),
                code.cause(),
                code.remedy(),
            ],
        );
    }
    out.push_str("\n## Config and lock\n\nDiagnostics of `broker-gen`, the build and the start on a config or a lock, with file, line and JSON\npointer if there is one. Warnings refuse nothing.\n\n| code | cause | remedy |\n|---|---|---|\n");
    for code in DiagnosticCode::ALL {
        row(
            &mut out,
            &[
                &anchored("config-", code.as_str()),
                code.cause(),
                code.remedy(),
            ],
        );
    }
    out.push_str(
        "\n## Exit codes\n\nOf both programs. If several apply, the first of 2, 5, 4, 6, 3 and 8 is used.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    for exit in Exit::ALL {
        row(&mut out, &[&exit.code().to_string(), exit.meaning()]);
    }
    out
}

/// Returns the cell of a code, to which a link can lead: two lists can have a code of the same name, so each list but the
/// first has a prefix.
fn anchored(prefix: &str, code: &str) -> String {
    format!("<a id=\"{prefix}{code}\"></a>`{code}`")
}

fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(out, "| {} |", cells.join(" | ")).expect("writing to a string cannot fail");
}

#[test]
fn errors_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    harness::assert_expected(&file, &page());
}

#[test]
fn each_code_has_one_place_on_the_page() {
    let page = page();
    let mut places: Vec<&str> = page
        .split("<a id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), all, "two lists have a code of the same name");
    for code in CallCode::ALL {
        assert!(places.contains(&code.as_str()), "{}", code.as_str());
    }
}
