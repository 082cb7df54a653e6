//! Writes families and samples in both formats, by the encoder of prometheus-client, or collects them as values. The
//! encoder writes OpenMetrics; the text format of Prometheus differs in the names of counters, and has no type `info` and
//! no units.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabel as _, EncodeLabelSet,
    GaugeValueEncoder, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Format;
use crate::families::{Family, FamilyKind};
use crate::histogram::Reading;

/// The page of one scrape.
pub(super) enum Page<'a> {
    Text {
        encoder: DescriptorEncoder<'a>,
        format: Format,
    },
    Values(&'a mut Vec<FamilyValues>),
}

/// The values of a family at one moment.
#[derive(Debug, PartialEq)]
pub struct FamilyValues {
    /// The family.
    pub family: &'static Family,
    /// Its series.
    pub points: Vec<Point>,
}

/// The value of a series at one moment.
#[derive(Debug, PartialEq)]
pub struct Point {
    /// The labels that have a value.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: PointValue,
}

/// A value.
#[derive(Debug, PartialEq)]
pub enum PointValue {
    /// A counter, a gauge, or 1 for information.
    Number(Number),
    /// A histogram.
    Histogram(Reading),
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one.
    Integer(i64),
    /// A fraction.
    Fraction(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Fraction(number)
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => EncodeGaugeValue::encode(number, encoder),
            Self::Fraction(number) => EncodeGaugeValue::encode(number, encoder),
        }
    }
}

impl<'a> Page<'a> {
    pub(super) const fn new(encoder: DescriptorEncoder<'a>, format: Format) -> Self {
        Self::Text { encoder, format }
    }

    /// Writes the head of a family, and its samples.
    pub(super) fn family(
        &mut self,
        family: &'static Family,
        write: impl FnOnce(&mut Samples<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let (encoder, format) = match self {
            Self::Text { encoder, format } => (encoder, *format),
            Self::Values(families) => {
                let mut points = Vec::new();
                write(&mut Samples::Values(&mut points))?;
                families.push(FamilyValues { family, points });
                return Ok(());
            }
        };
        let (name, unit) = match format {
            Format::Prometheus => (family.name, None),
            Format::OpenMetrics => open_metrics_name(family),
        };
        let kind = match (family.kind, format) {
            (FamilyKind::Counter, _) => MetricType::Counter,
            (FamilyKind::Histogram, _) => MetricType::Histogram,
            (FamilyKind::Info, Format::OpenMetrics) => MetricType::Info,
            (FamilyKind::Info, Format::Prometheus) | (FamilyKind::Gauge, _) => MetricType::Gauge,
        };
        let encoder = encoder.encode_descriptor(name, family.help, unit.as_ref(), kind)?;
        write(&mut Samples::Text { encoder, format })
    }

    /// Writes a gauge without labels; without a value only its head.
    pub(super) fn single(
        &mut self,
        family: &'static Family,
        value: Option<impl Into<Number>>,
    ) -> fmt::Result {
        self.family(family, |samples| match value {
            Some(value) => samples.unlabelled(value.into()),
            None => Ok(()),
        })
    }
}

/// Returns the name of a family in OpenMetrics, without the suffix of its samples, and its unit if the name ends with it.
fn open_metrics_name(family: &Family) -> (&'static str, Option<Unit>) {
    let suffix = match family.kind {
        FamilyKind::Counter => "_total",
        FamilyKind::Info => "_info",
        FamilyKind::Gauge | FamilyKind::Histogram => "",
    };
    let name = family.name.strip_suffix(suffix).unwrap_or(family.name);
    let base = name.strip_suffix(family.unit);
    match (base.and_then(|base| base.strip_suffix('_')), family.unit) {
        (Some(base), "seconds") => (base, Some(Unit::Seconds)),
        (Some(base), "bytes") => (base, Some(Unit::Bytes)),
        _ => (name, None),
    }
}

/// The samples of a family.
pub(super) enum Samples<'a> {
    Text {
        encoder: MetricEncoder<'a>,
        format: Format,
    },
    Values(&'a mut Vec<Point>),
}

impl Samples<'_> {
    /// Writes a counter.
    pub(super) fn counter<V: EncodeCounterValue + EncodeGaugeValue + Into<Number>>(
        &mut self,
        labels: &[(&str, &str)],
        value: V,
    ) -> fmt::Result {
        match self {
            Self::Text { encoder, format } => {
                let labels = Labels(labels);
                let mut encoder = encoder.encode_family(&labels)?;
                match format {
                    // The name has the suffix already.
                    Format::Prometheus => encoder.encode_gauge(&value),
                    Format::OpenMetrics => {
                        encoder.encode_counter::<NoLabelSet, V, u64>(&value, None)
                    }
                }
            }
            Self::Values(points) => {
                points.push(point(labels, PointValue::Number(value.into())));
                Ok(())
            }
        }
    }

    /// Writes a gauge.
    pub(super) fn gauge(
        &mut self,
        labels: &[(&str, &str)],
        value: impl Into<Number>,
    ) -> fmt::Result {
        match self {
            Self::Text { encoder, .. } => encoder
                .encode_family(&Labels(labels))?
                .encode_gauge(&value.into()),
            Self::Values(points) => {
                points.push(point(labels, PointValue::Number(value.into())));
                Ok(())
            }
        }
    }

    /// Writes a gauge that has no labels.
    fn unlabelled(&mut self, value: Number) -> fmt::Result {
        match self {
            Self::Text { encoder, .. } => encoder.encode_gauge(&value),
            Self::Values(_) => self.gauge(&[], value),
        }
    }

    /// Writes a histogram, if it has an observation.
    pub(super) fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        reading: Option<Reading>,
    ) -> fmt::Result {
        let Some(reading) = reading else {
            return Ok(());
        };
        match self {
            Self::Text { encoder, .. } => encoder
                .encode_family(&Labels(labels))?
                .encode_histogram::<NoLabelSet>(reading.sum, reading.count, &reading.buckets, None),
            Self::Values(points) => {
                points.push(point(labels, PointValue::Histogram(reading)));
                Ok(())
            }
        }
    }

    /// Writes information in labels.
    pub(super) fn info(&mut self, labels: &[(&str, &str)]) -> fmt::Result {
        match self {
            Self::Text {
                encoder,
                format: Format::OpenMetrics,
            } => encoder.encode_info(&Labels(labels)),
            _ => self.gauge(labels, 1_u64),
        }
    }
}

/// Returns a series with its labels.
fn point(labels: &[(&str, &str)], value: PointValue) -> Point {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Point {
        labels: labels.collect(),
        value,
    }
}

/// Labels; those without a value are left out.
#[derive(Debug)]
struct Labels<'a>(&'a [(&'a str, &'a str)]);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let labels = self.0.iter().filter(|(_, value)| !value.is_empty());
        for label in labels {
            label.encode(encoder.encode_label())?;
        }
        Ok(())
    }
}
