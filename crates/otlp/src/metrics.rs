//! Metrics as messages: the values that a scrape of `/metrics` has, under the names of OpenTelemetry.

use std::time::SystemTime;

use broker_metrics::{FamilyKind, FamilyValues, Number, Point, PointValue, Reading};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};

use crate::attributes::{nanos, resource, scope, text};

/// The family whose labels are attributes of the resource.
const TARGET: &str = "target_info";
/// The beginning of the names of the broker's own metrics.
const OWN: &str = "mcp_broker_";

/// The time of a collection: when counting began, and now.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) start: SystemTime,
    pub(crate) now: SystemTime,
}

/// Returns the request that exports metrics.
pub(crate) fn request(
    families: Vec<FamilyValues>,
    times: Times,
    attributes: &[(String, String)],
) -> ExportMetricsServiceRequest {
    let families = families.into_iter();
    let families = families.filter(|it| !it.points.is_empty() && it.family.name != TARGET);
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource(attributes)),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: families.map(|family| metric(family, times)).collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn metric(values: FamilyValues, times: Times) -> Metric {
    let FamilyValues { family, points } = values;
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match family.kind {
        FamilyKind::Histogram => Data::Histogram(Histogram {
            data_points: points
                .into_iter()
                .filter_map(|point| histogram(point, times))
                .collect(),
            aggregation_temporality: temporality,
        }),
        FamilyKind::Counter => Data::Sum(Sum {
            data_points: numbers(points, times),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        FamilyKind::Gauge | FamilyKind::Info => Data::Gauge(Gauge {
            data_points: numbers(points, times),
        }),
    };
    let (name, unit) = name_and_unit(family.name, family.unit);
    Metric {
        name,
        description: family.help.to_owned(),
        unit,
        data: Some(data),
        ..Metric::default()
    }
}

/// Returns the name and the unit from which OpenTelemetry makes the name for Prometheus.
fn name_and_unit(name: &str, unit: &str) -> (String, String) {
    let base = name.strip_suffix("_total").unwrap_or(name);
    let (base, unit) = match unit {
        "seconds" => (base.strip_suffix("_seconds").unwrap_or(base), "s"),
        "bytes" => (base.strip_suffix("_bytes").unwrap_or(base), "By"),
        // A number without a unit would get the suffix `ratio`.
        "1" | "1 or 0" => (base, ""),
        counted => return (dotted(base), format!("{{{counted}}}")),
    };
    (dotted(base), unit.to_owned())
}

fn dotted(name: &str) -> String {
    match name.strip_prefix(OWN) {
        Some(rest) => format!("mcp_broker.{}", rest.replace('_', ".")),
        None => name.replace('_', "."),
    }
}

/// Returns the attribute of a label.
fn attribute(label: &str) -> &str {
    match label {
        "mcp_method_name" => "mcp.method.name",
        "gen_ai_tool_name" => "gen_ai.tool.name",
        "gen_ai_prompt_name" => "gen_ai.prompt.name",
        "network_transport" => "network.transport",
        "mcp_broker_item" => "mcp_broker.item",
        "mcp_broker_source" => "mcp_broker.source",
        own => own,
    }
}

fn attributes(labels: Vec<(String, String)>) -> Vec<KeyValue> {
    let labels = labels.into_iter();
    labels
        .map(|(label, value)| text(attribute(&label), value))
        .collect()
}

fn numbers(points: Vec<Point>, times: Times) -> Vec<NumberDataPoint> {
    let number = |value| match value {
        PointValue::Number(Number::Integer(number)) => Some(Value::AsInt(number)),
        PointValue::Number(Number::Fraction(number)) => Some(Value::AsDouble(number)),
        PointValue::Histogram(_) => None,
    };
    points
        .into_iter()
        .map(|point| NumberDataPoint {
            attributes: attributes(point.labels),
            start_time_unix_nano: nanos(times.start),
            time_unix_nano: nanos(times.now),
            value: number(point.value),
            ..NumberDataPoint::default()
        })
        .collect()
}

fn histogram(point: Point, times: Times) -> Option<HistogramDataPoint> {
    let PointValue::Histogram(Reading {
        sum,
        count,
        buckets,
    }) = point.value
    else {
        return None;
    };
    let bounds = buckets.iter().map(|(bound, _)| *bound);
    Some(HistogramDataPoint {
        attributes: attributes(point.labels),
        start_time_unix_nano: nanos(times.start),
        time_unix_nano: nanos(times.now),
        count,
        sum: Some(sum),
        explicit_bounds: bounds.filter(|bound| bound.is_finite()).collect(),
        bucket_counts: buckets.iter().map(|(_, count)| *count).collect(),
        ..HistogramDataPoint::default()
    })
}

#[cfg(test)]
mod tests {
    use broker_metrics::FAMILIES;

    use super::*;

    #[test]
    fn names_lead_to_the_names_of_a_scrape() {
        for family in FAMILIES.iter().filter(|family| family.name != TARGET) {
            let (name, unit) = name_and_unit(family.name, family.unit);
            // The rules of OpenTelemetry for Prometheus.
            let mut prometheus = name.replace('.', "_");
            match unit.as_str() {
                "s" => prometheus.push_str("_seconds"),
                "By" => prometheus.push_str("_bytes"),
                _ => {}
            }
            if family.kind == FamilyKind::Counter {
                prometheus.push_str("_total");
            }
            assert_eq!(prometheus, family.name);
        }
        let (name, unit) = name_and_unit("mcp_server_operation_duration_seconds", "seconds");
        assert_eq!(
            (name.as_str(), unit.as_str()),
            ("mcp.server.operation.duration", "s")
        );
    }
}
