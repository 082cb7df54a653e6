//! The settings of the exporter, from the standard environment variables of OpenTelemetry.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

/// The receiver if no variable names one.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// The time for one request.
const DEFAULT_TIMEOUT: u64 = 10_000;
/// The time between exports of metrics.
const DEFAULT_INTERVAL: u64 = 60_000;
/// The time for which spans are collected.
const DEFAULT_SPAN_DELAY: u64 = 5_000;
/// The time for which lines are collected.
const DEFAULT_LINE_DELAY: u64 = 1_000;
/// The maximum spans, or lines, of one request.
const DEFAULT_BATCH: u64 = 512;
/// The name of the service.
const SERVICE: &str = "mcp-broker";

/// The settings of the exporter.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// Where spans go; `None` if they are not exported.
    pub traces: Option<Signal>,
    /// Where metrics go.
    pub metrics: Option<Signal>,
    /// Where lines of the audit log go.
    pub logs: Option<Signal>,
    /// The attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// The time for which spans are collected.
    pub(crate) span_delay: Duration,
    /// The time for which lines are collected.
    pub(crate) line_delay: Duration,
    /// The time between exports of metrics.
    pub(crate) metric_interval: Duration,
    pub(crate) span_batch: usize,
    pub(crate) line_batch: usize,
}

/// Where one kind of data goes.
#[derive(Clone, Debug)]
pub struct Signal {
    /// The URL.
    pub url: Url,
    /// Headers of each request. Their values are secrets.
    pub headers: HeaderMap,
    /// The time for one request.
    pub timeout: Duration,
    /// A file with further certificates to trust.
    pub certificate: Option<PathBuf>,
}

/// A variable that cannot be used. The message names it, never its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(pub String);

/// Reads variables; an empty one counts as not set.
struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<Problem>,
}

impl OtlpSettings {
    /// Reads the variables. `None` if `OTEL_SDK_DISABLED` is `true`.
    ///
    /// # Errors
    ///
    /// All variables that cannot be used.
    pub fn read(
        version: &str,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Vec<Problem>> {
        let mut from = Variables {
            get,
            problems: Vec::new(),
        };
        if from
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Ok(None);
        }
        let batch = |from: &mut Variables<'_>, name| {
            let size = from.whole(name, DEFAULT_BATCH).clamp(1, 4096);
            usize::try_from(size).unwrap_or(1)
        };
        let settings = Self {
            traces: from.signal("TRACES", "v1/traces"),
            metrics: from.signal("METRICS", "v1/metrics"),
            logs: from.signal("LOGS", "v1/logs"),
            resource: from.resource(version),
            span_delay: from.millis("OTEL_BSP_SCHEDULE_DELAY", DEFAULT_SPAN_DELAY),
            line_delay: from.millis("OTEL_BLRP_SCHEDULE_DELAY", DEFAULT_LINE_DELAY),
            metric_interval: from.millis("OTEL_METRIC_EXPORT_INTERVAL", DEFAULT_INTERVAL),
            span_batch: batch(&mut from, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
            line_batch: batch(&mut from, "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE"),
        };
        match from.problems.is_empty() {
            true => Ok(Some(settings)),
            false => Err(from.problems),
        }
    }
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let value = (self.get)(name).map(|value| value.trim().to_owned());
        value.filter(|value| !value.is_empty())
    }

    fn problem(&mut self, message: impl Into<String>) {
        let problem = Problem(message.into());
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Returns the variable of a signal, else the one of all signals, with its name.
    fn signal_value(&self, signal: &str, suffix: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{suffix}");
        let all = format!("OTEL_EXPORTER_OTLP_{suffix}");
        [own, all]
            .into_iter()
            .find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn whole(&mut self, name: &str, default: u64) -> u64 {
        let Some(value) = self.get(name) else {
            return default;
        };
        value.parse().unwrap_or_else(|_| {
            self.problem(format!("`{name}` must be a whole number"));
            default
        })
    }

    fn millis(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.whole(name, default).max(1))
    }

    fn signal(&mut self, signal: &str, path: &str) -> Option<Signal> {
        let exporter = format!("OTEL_{signal}_EXPORTER");
        match self.get(&exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return None,
            Some(_) => self.problem(format!("`{exporter}` must be `otlp` or `none`")),
        }
        if let Some((name, protocol)) = self.signal_value(signal, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            self.problem(format!(
                "`{name}` must be `http/protobuf`: the broker has no other protocol of OTLP"
            ));
        }
        if let Some((name, compression)) = self.signal_value(signal, "COMPRESSION")
            && compression != "none"
        {
            self.problem(format!(
                "`{name}` must be `none`: the broker does not compress what it sends"
            ));
        }
        for suffix in ["CLIENT_KEY", "CLIENT_CERTIFICATE"] {
            if let Some((name, _)) = self.signal_value(signal, suffix) {
                self.problem(format!("`{name}` is not supported"));
            }
        }
        let timeout = match self.signal_value(signal, "TIMEOUT") {
            Some((name, _)) => self.millis(&name, DEFAULT_TIMEOUT),
            None => Duration::from_millis(DEFAULT_TIMEOUT),
        };
        Some(Signal {
            url: self.url(signal, path)?,
            headers: self.headers(signal),
            timeout,
            certificate: self
                .signal_value(signal, "CERTIFICATE")
                .map(|(_, file)| file.into()),
        })
    }

    fn url(&mut self, signal: &str, path: &str) -> Option<Url> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
        let (name, text) = match self.get(&own) {
            Some(text) => (own, text),
            None => {
                let base = self.get(&all);
                let base = base.as_deref().unwrap_or(DEFAULT_ENDPOINT);
                (all, format!("{}/{path}", base.trim_end_matches('/')))
            }
        };
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if url.is_none() {
            self.problem(format!("`{name}` must be an HTTP URL"));
        }
        url
    }

    fn headers(&mut self, signal: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((name, text)) = self.signal_value(signal, "HEADERS") else {
            return headers;
        };
        for (key, value) in pairs(&text) {
            let key = HeaderName::try_from(key);
            match (key, HeaderValue::try_from(value)) {
                (Ok(key), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(key, value);
                }
                _ => self.problem(format!(
                    "`{name}` must be a list such as `key=value,key=value`"
                )),
            }
        }
        headers
    }

    fn resource(&mut self, version: &str) -> Vec<(String, String)> {
        let given = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut attributes: Vec<(String, String)> = pairs(&given).collect();
        if let Some(service) = self.get("OTEL_SERVICE_NAME") {
            attributes.retain(|(key, _)| key != "service.name");
            attributes.push(("service.name".to_owned(), service));
        }
        for (key, value) in [("service.name", SERVICE), ("service.version", version)] {
            if attributes.iter().all(|(known, _)| known != key) {
                attributes.push((key.to_owned(), value.to_owned()));
            }
        }
        attributes
    }
}

/// Reads a list such as `key=value,key=value`; values are percent-encoded. An element without `=` has an empty key.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let elements = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    elements.map(|element| {
        let (key, value) = element.split_once('=').unwrap_or(("", element));
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (key.trim().to_owned(), value.into_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, Vec<Problem>> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        OtlpSettings::read("1.2.3", &|name| {
            variables.get(name).map(|value| (*value).to_owned())
        })
    }

    fn url(signal: Option<Signal>) -> String {
        signal.unwrap().url.to_string()
    }

    #[test]
    fn endpoint_of_a_signal_is_used_as_it_is_and_the_common_one_gets_a_path() {
        let settings = read(&[]).unwrap().unwrap();
        assert_eq!(url(settings.traces), "http://localhost:4318/v1/traces");
        let settings = read(&[
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "https://collector.example/base/",
            ),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://127.0.0.1:1/own"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ]);
        let settings = settings.unwrap().unwrap();
        assert_eq!(
            url(settings.traces),
            "https://collector.example/base/v1/traces"
        );
        assert_eq!(url(settings.logs), "http://127.0.0.1:1/own");
        assert!(settings.metrics.is_none());
    }

    #[test]
    fn headers_and_resource_are_lists_of_encoded_values() {
        let settings = read(&[
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20x, x-tenant = a%2Cb",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=other,deployment.environment=test",
            ),
            ("OTEL_SERVICE_NAME", "named"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
        ]);
        let settings = settings.unwrap().unwrap();
        let traces = settings.traces.unwrap();
        assert_eq!(traces.headers["authorization"], "Bearer x");
        assert_eq!(traces.headers["x-tenant"], "a,b");
        assert!(!format!("{:?}", traces.headers).contains("Bearer"));
        assert_eq!(traces.timeout, Duration::from_millis(250));
        let resource: HashMap<_, _> = settings.resource.into_iter().collect();
        assert_eq!(resource["service.name"], "named");
        assert_eq!(resource["service.version"], "1.2.3");
        assert_eq!(resource["deployment.environment"], "test");
    }

    #[test]
    fn variable_that_cannot_be_used_is_named_without_its_value() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "s3cret"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://s3cret/"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "s3cret-grpc"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "s3cret-gzip"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "s3cret"),
            ("OTEL_TRACES_EXPORTER", "s3cret-console"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "s3cret.pem"),
            ("OTEL_BSP_SCHEDULE_DELAY", "s3cret"),
        ] {
            let problems = read(&[(name, value)]).unwrap_err();
            assert_eq!(problems.len(), 1, "{name}: {problems:?}");
            assert!(problems[0].0.contains(name), "{problems:?}");
            assert!(!problems[0].0.contains("s3cret"), "{problems:?}");
        }
        assert!(read(&[("OTEL_SDK_DISABLED", "TRUE")]).unwrap().is_none());
    }
}
