//! Settings of a config: their defaults, the settings of a source before those of the top level, and the
//! settings that the digest leaves out.

use super::*;
use std::time::Duration;

use crate::{Mcp, McpMode, Routing, StartDefaults, StartDrift, StartRule, TextDrift, Unreachable};

#[test]
fn config_audits_required_is_not_in_the_digest() {
    let of = |member: &str| parse(&format!(r#"{{"tree":[]{member}}}"#)).config;
    let without = of("");
    for (value, people) in [("false", 0), ("true", 1), ("1", 1), ("2", 2), ("10", 10)] {
        let with = of(&format!(r#","audits_required":{value}"#));
        assert_eq!(with.audits_required, people, "{value}");
        assert_eq!(without.digest(), with.digest());
    }
    for (value, code) in [
        ("0", Code::ConfigRange),
        ("11", Code::ConfigRange),
        ("1.5", Code::ConfigRange),
        ("-1", Code::ConfigRange),
        ("\"2\"", Code::ConfigType),
        ("null", Code::ConfigType),
    ] {
        let found = only(&format!(r#"{{"tree":[],"audits_required":{value}}}"#));
        assert_eq!(found.code, code, "{value}");
    }
}

#[test]
fn config_relist_interval_of_zero_means_never() {
    let of = |member: &str| {
        let config = parse(&with_source(member)).config;
        let source = config.sources().next().unwrap().clone();
        source.relist_interval.map(|time| time.as_secs_f64())
    };
    assert_eq!(of(r#""required":true"#), Some(300.0));
    assert_eq!(of(r#""relist_interval":0"#), None);
    assert_eq!(of(r#""relist_interval":1"#), Some(1.0));
    assert_eq!(of(r#""relist_interval":86400"#), Some(86_400.0));
    for refused in ["0.5", "-1", "86401"] {
        let found = only(&with_source(&format!(r#""relist_interval":{refused}"#)));
        assert_eq!(found.code, Code::ConfigRange, "{refused}");
    }
    let found = only(&with_source(r#""relist_interval":true"#));
    assert_eq!(found.code, Code::ConfigType);
}

#[test]
fn config_max_timeout_is_at_least_the_timeout_and_ten_times_it_by_default() {
    let max_of = |members: &str| {
        let config = parse(&with_source(members)).config;
        let source = config.sources().next().unwrap();
        let own = source.overrides.get("t");
        source.max_timeout_of(own).as_secs_f64()
    };
    let own = |members: &str| format!(r#""tool_overrides":{{"t":{{{members}}}}}"#);
    assert_eq!(max_of(r#""required":true"#), 600.0);
    assert_eq!(max_of(r#""timeout":2,"max_timeout":2"#), 2.0);
    assert_eq!(max_of(&own(r#""timeout":3"#)), 30.0);
    assert_eq!(max_of(&own(r#""max_timeout":90"#)), 90.0);
    for (members, place) in [
        (
            r#""max_timeout":59"#.to_owned(),
            "/tree/0/source/max_timeout",
        ),
        (
            own(r#""timeout":3,"max_timeout":2"#),
            "/tree/0/source/tool_overrides/t/max_timeout",
        ),
        (
            own(r#""max_timeout":59"#),
            "/tree/0/source/tool_overrides/t/max_timeout",
        ),
    ] {
        let found = only(&with_source(&members));
        let at = found.pointer.as_deref();
        assert_eq!((found.code, at), (Code::ConfigRange, Some(place)));
    }
}

#[test]
fn config_text_drift_of_a_source_precedes_the_top_level() {
    let of = |top: &str, source: &str| {
        let text =
            format!(r#"{{"tree":[{{"path":"/a","source":{{"command":"x"{source}}}}}]{top}}}"#);
        let config = parse(&text).config;
        let policy = config.text_drift(config.sources().next().unwrap());
        (policy, config.digest())
    };
    let (withdraw, serve) = (
        r#","on_text_drift":"withdraw""#,
        r#","on_text_drift":"serve""#,
    );
    let audits = r#","audits_required":true"#;
    let both = format!("{audits}{serve}");
    let (_, digest) = of("", "");
    for (top, source, policy) in [
        ("", "", TextDrift::Serve),
        (withdraw, "", TextDrift::Withdraw),
        ("", withdraw, TextDrift::Withdraw),
        (withdraw, serve, TextDrift::Serve),
        (audits, "", TextDrift::Withdraw),
        (audits, serve, TextDrift::Serve),
        (&both, "", TextDrift::Serve),
        (&both, withdraw, TextDrift::Withdraw),
    ] {
        assert_eq!(of(top, source), (policy, digest.clone()), "{top} {source}");
    }
    let found = only(r#"{"tree":[],"on_text_drift":"refuse"}"#);
    assert_eq!(found.code, Code::ConfigRange);
    let found = only(r#"{"tree":[],"on_text_drift":true}"#);
    assert_eq!(found.code, Code::ConfigType);
}

#[test]
fn config_start_rule_of_a_source_precedes_the_top_level_and_the_default() {
    use StartRule::{Match, MatchIfReached, Optional};
    let of = |top: &str, source: &str| {
        let text =
            format!(r#"{{"tree":[{{"path":"/a","source":{{"command":"x"{source}}}}}]{top}}}"#);
        let config = parse(&text).config;
        let rule = |unreachable| {
            let defaults = StartDefaults {
                unreachable,
                ..StartDefaults::default()
            };
            config.start_rule(config.sources().next().unwrap(), defaults)
        };
        let rules = (rule(Unreachable::Refuse), rule(Unreachable::Serve));
        (rules, config.digest())
    };
    let (refuse, serve) = (
        r#","on_unreachable":"refuse""#,
        r#","on_unreachable":"serve""#,
    );
    let optional = r#","required":false"#;
    let both = format!("{optional}{serve}");
    let (_, digest) = of("", "");
    for (top, source, rules) in [
        ("", "", (Match, MatchIfReached)),
        (refuse, "", (Match, Match)),
        (serve, "", (MatchIfReached, MatchIfReached)),
        (refuse, serve, (MatchIfReached, MatchIfReached)),
        (serve, refuse, (Match, Match)),
        (refuse, optional, (Optional, Optional)),
        ("", optional, (Optional, Optional)),
        ("", &both, (Optional, Optional)),
    ] {
        assert_eq!(of(top, source), (rules, digest.clone()), "{top} {source}");
    }
    let found = only(r#"{"tree":[],"on_unreachable":"withdraw"}"#);
    assert_eq!(found.code, Code::ConfigRange);
    let found = only(&with_source(r#""on_unreachable":true"#));
    assert_eq!(found.code, Code::ConfigType);
    let contradiction = r#""on_unreachable":"refuse","required":false"#;
    let found = only(&with_source(contradiction));
    assert_eq!(found.code, Code::ConfigRange);
    assert_eq!(
        found.pointer.as_deref(),
        Some("/tree/0/source/on_unreachable")
    );
}

#[test]
fn config_on_drift_and_start_wait_of_a_source_precede_the_top_level() {
    use StartRule::{Match, MatchIfReached, Optional, Reach, Withdraw};
    let of = |top: &str, source: &str| {
        let text =
            format!(r#"{{"tree":[{{"path":"/a","source":{{"command":"x"{source}}}}}]{top}}}"#);
        let config = parse(&text).config;
        let source = config.sources().next().unwrap().clone();
        let rule = |drift, unreachable| {
            let defaults = StartDefaults {
                drift,
                unreachable,
                ..StartDefaults::default()
            };
            config.start_rule(&source, defaults)
        };
        let rules = (
            rule(StartDrift::Refuse, Unreachable::Refuse),
            rule(StartDrift::Withdraw, Unreachable::Serve),
        );
        let wait = config.start_wait(&source, Duration::from_secs(45));
        (rules, wait.as_secs(), config.digest())
    };
    let (refuse, withdraw) = (r#","on_drift":"refuse""#, r#","on_drift":"withdraw""#);
    let unreachable = r#","on_unreachable":"refuse""#;
    let optional = r#","required":false"#;
    let (_, _, digest) = of("", "");
    for (top, source, rules) in [
        ("", "", (Match, Withdraw)),
        (refuse, "", (Match, MatchIfReached)),
        (withdraw, "", (Reach, Withdraw)),
        (refuse, withdraw, (Reach, Withdraw)),
        (withdraw, refuse, (Match, MatchIfReached)),
        (withdraw, unreachable, (Reach, Reach)),
        (withdraw, optional, (Optional, Optional)),
    ] {
        let found = of(top, source);
        assert_eq!(found, (rules, 45, digest.clone()), "{top} {source}");
    }
    for (top, source, seconds) in [
        (r#","start_wait":7"#, "", 7),
        (r#","start_wait":7"#, r#","start_wait":0"#, 0),
        ("", r#","start_wait":3600"#, 3600),
    ] {
        let (_, wait, of_it) = of(top, source);
        assert_eq!((wait, of_it), (seconds, digest.clone()), "{top} {source}");
    }
    for (wrong, code) in [
        (r#""on_drift":"serve""#, Code::ConfigRange),
        (r#""on_drift":true"#, Code::ConfigType),
        (r#""start_wait":-1"#, Code::ConfigRange),
        (r#""start_wait":3601"#, Code::ConfigRange),
        (r#""start_wait":"7""#, Code::ConfigRange),
        (r#""on_drift":"refuse","required":false"#, Code::ConfigRange),
    ] {
        assert_eq!(only(&with_source(wrong)).code, code, "{wrong}");
    }
}

#[test]
fn config_mcp_has_defaults_ranges_and_no_part_of_the_digest() {
    let of = |mcp: &str| parse(&format!(r#"{{"tree":[],"mcp":{mcp}}}"#)).config;
    let default = parse(r#"{"tree":[]}"#).config;
    let shown = |mcp: &Mcp| (mcp.mode, mcp.max_name, mcp.session_idle.as_secs_f64());
    assert_eq!(shown(&default.mcp), (McpMode::Meta, 46, 1800.0));
    assert_eq!(shown(&of("{}").mcp), shown(&Mcp::default()));
    let direct = of(r#"{"mode":"direct","max_name":24,"session_idle":86400}"#);
    assert_eq!(shown(&direct.mcp), (McpMode::Direct, 24, 86_400.0));
    let search = of(
        r#"{"mode":"search","routing":"DYNAMIC","split_calls":true,"list_changed_exec":"notify ${NAME}"}"#,
    );
    let mcp = &search.mcp;
    let shown_search = (mcp.mode, mcp.routing, mcp.split_calls);
    assert_eq!(shown_search, (McpMode::Search, Routing::Dynamic, true));
    assert_eq!(
        search.mcp.list_changed_exec.map(|exec| exec.is_shell()),
        Some(false)
    );
    let shell = of(r#"{"list_changed_exec":"a | b"}"#).mcp.list_changed_exec;
    assert_eq!(shell.map(|exec| exec.is_shell()), Some(true));
    assert_eq!(direct.digest(), default.digest());
    assert!(direct.compiled_text().contains(r#""max_name":24"#));
    for (refused, code) in [
        ("true", Code::ConfigType),
        (r#"{"mode":1}"#, Code::ConfigType),
        (r#"{"mode":"flat"}"#, Code::ConfigRange),
        (r#"{"routing":"dynamic"}"#, Code::ConfigRange),
        (r#"{"split_calls":1}"#, Code::ConfigType),
        (r#"{"list_changed_exec":""}"#, Code::ConfigSourceKind),
        (
            r#"{"list_changed_exec":"notify --token abcdefgh12345678"}"#,
            Code::ConfigRange,
        ),
        (r#"{"name":""}"#, Code::ConfigRange),
        (r#"{"name":"a  b"}"#, Code::ConfigRange),
        (r#"{"name":"a\nb"}"#, Code::ConfigRange),
        (r#"{"name":"a\u202eb"}"#, Code::ConfigRange),
        (r#"{"name":7}"#, Code::ConfigType),
        (r#"{"max_name":23}"#, Code::ConfigRange),
        (r#"{"max_name":129}"#, Code::ConfigRange),
        (r#"{"max_name":46.5}"#, Code::ConfigRange),
        (r#"{"session_idle":0}"#, Code::ConfigRange),
        (r#"{"session_idle":86401}"#, Code::ConfigRange),
        (r#"{"max_names":46}"#, Code::ConfigUnknownKey),
    ] {
        let found = only(&format!(r#"{{"tree":[],"mcp":{refused}}}"#));
        assert_eq!(found.code, code, "{refused}");
    }
    let found = only(r#"{"tree":[],"mcp":{"max_names":46}}"#);
    assert!(found.remedy().contains("`max_name`"), "{found}");
}

#[test]
fn drain_time_is_the_longest_timeout_within_bounds_unless_it_is_set() {
    let seconds = |text: &str| parse(text).config.drain_time().as_secs_f64();
    let source = |member: &str| with_source(member);
    assert_eq!(seconds(r#"{"tree":[]}"#), 30.0);
    for (member, expected) in [
        (r#""required":true"#, 60.0),
        (r#""timeout":5"#, 30.0),
        (r#""timeout":5,"tool_overrides":{"t":{"timeout":90}}"#, 90.0),
        (r#""timeout":5,"max_timeout":90"#, 30.0),
        (r#""timeout":3600"#, 600.0),
    ] {
        assert_eq!(seconds(&source(member)), expected, "{member}");
    }
    assert_eq!(seconds(r#"{"tree":[],"drain_timeout":0.5}"#), 0.5);
    assert_eq!(seconds(r#"{"tree":[],"drain_timeout":3600}"#), 3600.0);
}
