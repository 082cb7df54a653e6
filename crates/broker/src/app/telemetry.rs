//! Traces, and the export over OTLP.

use std::sync::Arc;

use broker_audit::LineCopy;
use broker_config::Config;
use broker_core::Services;
use broker_mcp::Environment;
use broker_metrics::ScrapedState;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_observe::{Export, Observers, Tracer};

/// What traces and exports; nothing without `telemetry.otlp`.
#[derive(Debug, Default)]
pub(super) struct Telemetry {
    pub(super) tracer: Option<Arc<Tracer>>,
    pub(super) export: Option<Arc<dyn Export>>,
    pub(super) copy: Option<Arc<dyn LineCopy>>,
}

/// Opens what a config asks for.
///
/// # Errors
///
/// The variables of OpenTelemetry that cannot be used, or that the broker was built without the feature.
pub(super) fn open(
    config: &Config,
    environment: &Environment,
) -> Result<Telemetry, Vec<Diagnostic>> {
    if !config.telemetry.otlp {
        return Ok(Telemetry::default());
    }
    exporting::open(config, environment).map_err(|messages| refusal(config, messages))
}

/// Returns the problems of a config that asks for an exporter that cannot be opened.
fn refusal(config: &Config, messages: Vec<String>) -> Vec<Diagnostic> {
    let problems = messages.into_iter().map(|message| {
        let problem = Diagnostic::error(DiagnosticCode::TelemetryUnusable, message);
        config.place(problem.at("/telemetry/otlp"))
    });
    problems.collect()
}

/// Exports the metrics of a broker, if they are counted and exported. `of_surface` returns the state of a surface that
/// has one.
pub(super) fn export_metrics(
    observers: &Observers,
    services: &Services,
    of_surface: impl Fn() -> Option<ScrapedState> + Send + Sync + 'static,
) {
    let (Some(export), Some(meter)) = (&observers.export, &observers.meter) else {
        return;
    };
    let (meter, services, dropped) = (meter.clone(), services.clone(), export.dropped());
    // Without the exporter, which will hold them.
    let others = Observers {
        export: None,
        ..observers.clone()
    };
    let state = move || {
        of_surface().unwrap_or_else(|| ScrapedState {
            dropped: Some(dropped.state()),
            ..others.scraped_state(&services)
        })
    };
    export.read_metrics(Box::new(move || meter.values(state())));
}

#[cfg(not(feature = "otlp"))]
use without_feature as exporting;

/// A broker without the feature. Tests compile it in every build.
#[cfg(any(test, not(feature = "otlp")))]
mod without_feature {
    use super::{Config, Environment, Telemetry};

    pub(super) fn open(_: &Config, _: &Environment) -> Result<Telemetry, Vec<String>> {
        let message = "`telemetry.otlp` is true, and the broker was built without the feature `otlp`: build it with `cargo build --release --locked --features otlp`";
        Err(vec![message.to_owned()])
    }
}

#[cfg(feature = "otlp")]
mod exporting {
    use std::sync::Arc;

    use broker_config::{Endpoint, HttpEndpoint, TraceParent as ConfigParent};
    use broker_model::url::HttpUrl;
    use broker_observe::{Propagators, Sampling, TraceParent, Tracer};
    use broker_otlp::{Exporter, OtlpSettings, ServerAddress};

    use super::{Config, Environment, Telemetry};

    pub(super) fn open(
        config: &Config,
        environment: &Environment,
    ) -> Result<Telemetry, Vec<String>> {
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        let settings = OtlpSettings::read(env!("CARGO_PKG_VERSION"), &variable);
        let problems = settings.as_ref().err().into_iter().flatten();
        let mut problems: Vec<String> = problems.map(|problem| problem.0.clone()).collect();
        let sampling = Sampling::read(
            environment.get("OTEL_TRACES_SAMPLER"),
            environment.get("OTEL_TRACES_SAMPLER_ARG"),
        );
        problems.extend(sampling.as_ref().err().cloned());
        let (Ok(settings), Ok(sampling)) = (settings, sampling) else {
            return Err(problems);
        };
        let Some(settings) = settings else {
            tracing::info!("OTEL_SDK_DISABLED is true: nothing is exported over OTLP");
            return Ok(Telemetry::default());
        };
        let (propagators, unknown) = Propagators::read(environment.get("OTEL_PROPAGATORS"));
        for name in unknown {
            let name = broker_model::text::shown_line(&name, 80);
            tracing::warn!(
                "OTEL_PROPAGATORS names `{name}`: the broker has `tracecontext`, `baggage` and `none`"
            );
        }
        let sources = config.sources().filter_map(|source| {
            let address = match &source.endpoint {
                Endpoint::Process(_) => ServerAddress::Process,
                Endpoint::Http(http) => address(http, environment)?,
            };
            Some((source.path.as_str().to_owned(), address))
        });
        let exporter =
            Exporter::start(settings, sources).map_err(|error| vec![error.to_string()])?;
        let parent = config.telemetry.parent.map(|parent| match parent {
            ConfigParent::Meta => TraceParent::Meta,
            ConfigParent::Http => TraceParent::Http,
            ConfigParent::Own => TraceParent::Own,
        });
        let is_traced = exporter.takes_spans() && !sampling.is_off();
        let tracer =
            is_traced.then(|| Tracer::new(parent, propagators, sampling, exporter.clone()));
        let copy = exporter
            .takes_lines()
            .then(|| Arc::new(exporter.clone()) as _);
        Ok(Telemetry {
            tracer: tracer.map(Arc::new),
            export: Some(Arc::new(exporter)),
            copy,
        })
    }

    /// Returns where a server over HTTP is; `None` if a variable of its URL is not set, which another problem says.
    fn address(http: &HttpEndpoint, environment: &Environment) -> Option<ServerAddress> {
        let expanded = http
            .url
            .expand(&|name| environment.get(name).map(str::to_owned));
        let url = HttpUrl::parse(&expanded.ok()?).ok()?;
        Some(ServerAddress::Network {
            host: url.origin().host().to_owned(),
            port: url.origin().port(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broker_without_the_feature_refuses_the_key_by_name() {
        let text = br#"{"telemetry": {"otlp": true}, "tree": []}"#;
        let config = Config::parse("c.json", text).expect("a config").config;
        let opened = without_feature::open(&config, &Environment::new(Default::default(), None));
        let problems = refusal(&config, opened.expect_err("it has no exporter"));
        let [problem] = &problems[..] else {
            panic!("one problem: {problems:?}");
        };
        assert_eq!(problem.code, DiagnosticCode::TelemetryUnusable);
        let text = problem.to_string();
        for part in [
            "telemetry.otlp",
            "feature `otlp`",
            "--features otlp",
            "c.json:1:",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
