//! Writes families and samples in both formats, by the encoder of prometheus-client. The encoder writes OpenMetrics; the
//! text format of Prometheus differs in the names of counters, and has no type `info` and no units.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabel as _, EncodeLabelSet,
    LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Format;
use crate::families::{Family, FamilyKind};
use crate::histogram::Reading;

/// The page of one scrape.
pub(super) struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    format: Format,
}

impl<'a> Page<'a> {
    pub(super) const fn new(encoder: DescriptorEncoder<'a>, format: Format) -> Self {
        Self { encoder, format }
    }

    /// Writes the head of a family, and its samples.
    pub(super) fn family(
        &mut self,
        family: &Family,
        write: impl FnOnce(&mut Samples<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let (name, unit) = match self.format {
            Format::Prometheus => (family.name, None),
            Format::OpenMetrics => open_metrics_name(family),
        };
        let kind = match (family.kind, self.format) {
            (FamilyKind::Counter, _) => MetricType::Counter,
            (FamilyKind::Histogram, _) => MetricType::Histogram,
            (FamilyKind::Info, Format::OpenMetrics) => MetricType::Info,
            (FamilyKind::Info, Format::Prometheus) | (FamilyKind::Gauge, _) => MetricType::Gauge,
        };
        let encoder = self
            .encoder
            .encode_descriptor(name, family.help, unit.as_ref(), kind)?;
        write(&mut Samples {
            encoder,
            format: self.format,
        })
    }

    /// Writes a gauge without labels; without a value only its head.
    pub(super) fn single(
        &mut self,
        family: &Family,
        value: Option<impl EncodeGaugeValue>,
    ) -> fmt::Result {
        self.family(family, |samples| match value {
            Some(value) => samples.encoder.encode_gauge(&value),
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
pub(super) struct Samples<'a> {
    encoder: MetricEncoder<'a>,
    format: Format,
}

impl Samples<'_> {
    /// Writes a counter.
    pub(super) fn counter<V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        labels: &[(&str, &str)],
        value: V,
    ) -> fmt::Result {
        let labels = Labels(labels);
        let mut encoder = self.encoder.encode_family(&labels)?;
        match self.format {
            // The name has the suffix already.
            Format::Prometheus => encoder.encode_gauge(&value),
            Format::OpenMetrics => encoder.encode_counter::<NoLabelSet, V, u64>(&value, None),
        }
    }

    /// Writes a gauge.
    pub(super) fn gauge(
        &mut self,
        labels: &[(&str, &str)],
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        self.encoder
            .encode_family(&Labels(labels))?
            .encode_gauge(&value)
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
        let labels = Labels(labels);
        let mut encoder = self.encoder.encode_family(&labels)?;
        encoder.encode_histogram::<NoLabelSet>(reading.sum, reading.count, &reading.buckets, None)
    }

    /// Writes information in labels.
    pub(super) fn info(&mut self, labels: &[(&str, &str)]) -> fmt::Result {
        match self.format {
            Format::Prometheus => self.gauge(labels, 1_u64),
            Format::OpenMetrics => self.encoder.encode_info(&Labels(labels)),
        }
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
