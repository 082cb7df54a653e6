//! What observes the calls of a broker.

use std::fmt;
use std::sync::Arc;

use broker_core::{Change, ChangeObserver, JobEnding, JobObserver, JobState, JobStep};
use broker_metrics::OutcomeClass;

use crate::audit::Audit;
use crate::export::Export;
use crate::meter::Meter;
use crate::recorded_call::RecordSink;
use crate::trace::Tracer;

/// The observers of calls: sinks of records, the metrics, and the audit log. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    /// The sinks of records.
    pub sinks: Sinks,
    /// The metrics, unless they are off.
    pub meter: Option<Arc<Meter>>,
    /// What traces calls, unless traces are off.
    pub tracer: Option<Arc<Tracer>>,
    /// The exporter, if there is one.
    pub export: Option<Arc<dyn Export>>,
    /// The audit log, if there is one.
    pub audit: Option<Arc<Audit>>,
}

impl Observers {
    /// Whether one of them wants the record of a call that begins now.
    #[inline]
    pub(crate) fn want_record(&self) -> bool {
        let mut sinks = self.sinks.0.iter();
        self.meter.is_some()
            || self.audit.is_some()
            || self.tracer.is_some()
            || sinks.any(|sink| sink.is_enabled())
    }

    /// Returns the observers with one more sink.
    #[must_use]
    pub fn with(mut self, sink: impl RecordSink) -> Self {
        self.sinks = self.sinks.with(sink);
        self
    }
}

/// Changes are counted and have lines.
impl ChangeObserver for Observers {
    fn observe(&self, change: &Change<'_>) {
        if let Some(meter) = &self.meter {
            meter.observe(change);
        }
        if let Some(audit) = &self.audit {
            audit.observe(change);
        }
    }
}

/// Steps of jobs have lines. The request to a server whose caller was answered before is counted at its end.
impl JobObserver for Observers {
    fn claimed(&self, job: JobStep<'_>) {
        if let Some(audit) = &self.audit {
            audit.claimed(job);
        }
    }

    fn ended(&self, job: JobStep<'_>, ending: JobEnding<'_>) {
        if let Some((meter, record)) = self.meter.as_ref().zip(ending.record) {
            let outcome = match (ending.state, ending.code) {
                (JobState::Succeeded, _) => OutcomeClass::Ok,
                (_, Some(code)) => OutcomeClass::from_code(code),
                (_, None) => OutcomeClass::Abandoned,
            };
            meter.record_late(record, outcome);
        }
        if let Some(audit) = &self.audit {
            audit.ended(job, ending);
        }
    }
}

impl From<Sinks> for Observers {
    fn from(sinks: Sinks) -> Self {
        Self {
            sinks,
            ..Self::default()
        }
    }
}

/// The sinks of records. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sinks(pub(crate) Arc<[Arc<dyn RecordSink>]>);

impl Sinks {
    /// Returns the sinks with one more.
    #[must_use]
    pub fn with(&self, sink: impl RecordSink) -> Self {
        let one: Arc<dyn RecordSink> = Arc::new(sink);
        Self(self.0.iter().cloned().chain([one]).collect())
    }
}

impl fmt::Debug for Sinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.0.len())
    }
}
