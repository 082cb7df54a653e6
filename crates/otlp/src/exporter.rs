//! The thread that exports: one task for each kind of data, so that a receiver that does not answer for one of them does
//! not hold up the others.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use broker_audit::LineCopy;
use broker_observe::{CallSpans, Dropped, Export, ReadMetrics, SpanSink};
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoint;
use crate::lines::{self, AuditLine};
use crate::metrics::{self, Times};
use crate::settings::{OtlpSettings, Signal};
use crate::spans::{self, ServerAddress, Sources};

/// The maximum number of spans, and of lines, that wait.
const QUEUE: usize = 4096;
/// The time between two warnings of one task.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Exports to a receiver. Cheap to clone.
#[derive(Clone)]
pub struct Exporter {
    shared: Arc<Shared>,
}

struct Shared {
    spans: Option<mpsc::Sender<CallSpans>>,
    lines: Option<mpsc::Sender<AuditLine>>,
    dropped: Arc<Dropped>,
    metrics: Arc<OnceLock<ReadMetrics>>,
    closing: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why an exporter was not opened.
#[derive(Debug)]
pub struct ExporterError(String);

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExporterError {}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

/// What the tasks of the thread have in common.
#[derive(Clone)]
struct Task {
    settings: Arc<OtlpSettings>,
    closing: CancellationToken,
}

impl Exporter {
    /// Starts the thread. `sources` says where the servers are, by the paths of their sources.
    ///
    /// # Errors
    ///
    /// A receiver that cannot be used, or no thread.
    pub fn start(
        settings: OtlpSettings,
        sources: impl IntoIterator<Item = (String, ServerAddress)>,
    ) -> Result<Self, ExporterError> {
        let open = |signal: &Option<Signal>| {
            let opened = signal.clone().map(Endpoint::open).transpose();
            opened.map_err(|reason| ExporterError(format!("the OTLP receiver: {reason}")))
        };
        let traces = open(&settings.traces)?;
        let logs = open(&settings.logs)?;
        let to_metrics = open(&settings.metrics)?;
        let sources: Sources = sources.into_iter().collect();
        let (dropped, read) = (Arc::<Dropped>::default(), Arc::<OnceLock<_>>::default());
        let task = Task {
            settings: Arc::new(settings),
            closing: CancellationToken::new(),
        };
        let (spans, spans_received) = queue(traces.is_some());
        let (lines, lines_received) = queue(logs.is_some());
        let closing = task.closing.clone();
        let (of_thread, of_metrics) = (dropped.clone(), Arc::clone(&read));
        let run = async move {
            let start = SystemTime::now();
            let spans = async {
                if let Some((endpoint, received)) = traces.zip(spans_received) {
                    let encode = |calls: &[CallSpans], settings: &OtlpSettings| {
                        spans::request(calls, &sources, &settings.resource).encode_to_vec()
                    };
                    let (delay, batch) = (task.settings.span_delay, task.settings.span_batch);
                    let out = Out::new(endpoint, "spans", &of_thread.spans);
                    task.batches(out, received, (delay, batch), encode).await;
                }
            };
            let lines = async {
                if let Some((endpoint, received)) = logs.zip(lines_received) {
                    let encode = |lines: &[AuditLine], settings: &OtlpSettings| {
                        lines::request(lines, &settings.resource).encode_to_vec()
                    };
                    let (delay, batch) = (task.settings.line_delay, task.settings.line_batch);
                    let out = Out::new(endpoint, "audit lines", &of_thread.lines);
                    task.batches(out, received, (delay, batch), encode).await;
                }
            };
            let metrics = async {
                if let Some(endpoint) = to_metrics {
                    let lost = AtomicU64::new(0);
                    let out = Out::new(endpoint, "metrics", &lost);
                    task.metrics(out, &of_metrics, start).await;
                }
            };
            tokio::join!(spans, lines, metrics);
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let thread = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || runtime.block_on(run))
            .map_err(no_thread)?;
        Ok(Self {
            shared: Arc::new(Shared {
                spans,
                lines,
                dropped,
                metrics: read,
                closing,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Whether spans are exported.
    pub fn takes_spans(&self) -> bool {
        self.shared.spans.is_some()
    }

    /// Whether lines of the audit log are exported.
    pub fn takes_lines(&self) -> bool {
        self.shared.lines.is_some()
    }
}

impl Export for Exporter {
    fn read_metrics(&self, read: ReadMetrics) {
        // The first one stays.
        self.shared.metrics.set(read).unwrap_or_default();
    }

    fn dropped(&self) -> Arc<Dropped> {
        Arc::clone(&self.shared.dropped)
    }

    fn close(&self) {
        self.shared.closing.cancel();
        let thread = &self.shared.thread;
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread of the OTLP exporter has panicked");
        }
    }
}

/// Ends the thread of an exporter that was not closed.
impl Drop for Shared {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

fn no_thread(error: io::Error) -> ExporterError {
    ExporterError(format!("the OTLP exporter has no thread: {error}"))
}

/// Returns a queue, if its data is exported.
fn queue<T>(is_used: bool) -> (Option<mpsc::Sender<T>>, Option<mpsc::Receiver<T>>) {
    is_used.then(|| mpsc::channel(QUEUE)).unzip()
}

impl SpanSink for Exporter {
    fn take(&self, spans: CallSpans) {
        if let Some(queue) = &self.shared.spans
            && queue.try_send(spans).is_err()
        {
            count_dropped(&self.shared.dropped.spans, "spans");
        }
    }
}

impl LineCopy for Exporter {
    fn take(&self, line: &[u8], at: SystemTime) {
        if let Some(queue) = &self.shared.lines {
            let text = String::from_utf8_lossy(line).into_owned().into();
            if queue.try_send(AuditLine { text, at }).is_err() {
                count_dropped(&self.shared.dropped.lines, "audit lines");
            }
        }
    }
}

/// Counts a record that found no place. The first one is named in the log; the metric has all.
fn count_dropped(dropped: &AtomicU64, what: &str) {
    if dropped.fetch_add(1, Relaxed) == 0 {
        tracing::warn!(
            "the OTLP receiver is too slow or does not answer: {what} are dropped and counted"
        );
    }
}

/// A receiver of one kind of data, and what it did not take.
struct Out<'a> {
    endpoint: Endpoint,
    what: &'static str,
    lost: &'a AtomicU64,
    warned: Option<Instant>,
}

impl<'a> Out<'a> {
    const fn new(endpoint: Endpoint, what: &'static str, lost: &'a AtomicU64) -> Self {
        Self {
            endpoint,
            what,
            lost,
            warned: None,
        }
    }

    /// Sends a message with `count` records.
    async fn send(&mut self, message: Vec<u8>, count: u64, closing: &CancellationToken) {
        let Err(reason) = self.endpoint.send(Bytes::from(message), closing).await else {
            return;
        };
        self.lost.fetch_add(count, Relaxed);
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            self.warned = Some(Instant::now());
            tracing::warn!(reason, "the OTLP receiver did not take {}", self.what);
        }
    }
}

impl Task {
    /// Exports records in batches until the exporter is closed.
    async fn batches<T>(
        &self,
        mut out: Out<'_>,
        mut received: mpsc::Receiver<T>,
        (delay, size): (Duration, usize),
        encode: impl Fn(&[T], &OtlpSettings) -> Vec<u8>,
    ) {
        let mut batch = Vec::with_capacity(size);
        let mut ticks = interval(delay);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let room = size - batch.len();
            let is_closing = tokio::select! {
                biased;
                () = self.closing.cancelled() => true,
                _ = ticks.tick() => false,
                read = received.recv_many(&mut batch, room) => {
                    if read > 0 && batch.len() < size {
                        continue;
                    }
                    read == 0
                }
            };
            while is_closing && batch.len() < QUEUE + size {
                match received.try_recv() {
                    Ok(record) => batch.push(record),
                    Err(_) => break,
                }
            }
            for part in batch.chunks(size) {
                let message = encode(part, &self.settings);
                out.send(message, part.len() as u64, &self.closing).await;
            }
            batch.clear();
            if is_closing {
                return;
            }
        }
    }

    /// Exports metrics again and again, and once more when the exporter is closed.
    async fn metrics(&self, mut out: Out<'_>, read: &OnceLock<ReadMetrics>, start: SystemTime) {
        let every = self.settings.metric_interval;
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_closing = tokio::select! {
                biased;
                () = self.closing.cancelled() => true,
                _ = ticks.tick() => false,
            };
            if let Some(read) = read.get() {
                let times = Times {
                    start,
                    now: SystemTime::now(),
                };
                let message = metrics::request(read(), times, &self.settings.resource);
                out.send(message.encode_to_vec(), 1, &self.closing).await;
            }
            if is_closing {
                return;
            }
        }
    }
}
