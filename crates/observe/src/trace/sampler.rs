//! Which calls are traced: the samplers that `OTEL_TRACES_SAMPLER` names.

use std::sync::atomic::{AtomicU64, Ordering};

use broker_process::random_u64;

use super::context::SpanContext;

/// A sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Whether the decision of the accepted parent holds.
    pub follows_parent: bool,
    /// The share of the other traces that is recorded, from 0 to 1.
    pub ratio: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            follows_parent: true,
            ratio: 1.0,
        }
    }
}

impl Sampling {
    /// Reads the values of `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.
    ///
    /// # Errors
    ///
    /// A message that names the value that is not known.
    pub fn read(sampler: Option<&str>, argument: Option<&str>) -> Result<Self, String> {
        let Some(sampler) = sampler.filter(|name| !name.is_empty()) else {
            return Ok(Self::default());
        };
        let (follows_parent, own) = match sampler.strip_prefix("parentbased_") {
            Some(own) => (true, own),
            None => (false, sampler),
        };
        let ratio = match own {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match argument.filter(|text| !text.is_empty()) {
                None => 1.0,
                Some(text) => {
                    let ratio = text.parse().ok();
                    let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
                    ratio.ok_or_else(|| {
                        "`OTEL_TRACES_SAMPLER_ARG` must be a number from 0 to 1".to_owned()
                    })?
                }
            },
            _ => {
                return Err(
                    "`OTEL_TRACES_SAMPLER` must be always_on, always_off or traceidratio, each also with \
                     `parentbased_` before it"
                        .to_owned(),
                );
            }
        };
        Ok(Self {
            follows_parent,
            ratio,
        })
    }

    /// Whether no call can be traced.
    pub fn is_off(&self) -> bool {
        !self.follows_parent && self.ratio <= 0.0
    }

    /// Whether the trace with these last eight bytes of its id is recorded, as the ratio says.
    fn keeps(&self, low: u64) -> bool {
        // The upper half of the range is not used, as the OpenTelemetry SDK does it.
        self.ratio >= 1.0 || ((low >> 1) as f64) < self.ratio * (1_u64 << 63) as f64
    }
}

/// Makes the decisions and the ids of traces.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    /// Grows with every trace; its hash is half of the id of the trace, so that a trace that is not recorded costs no
    /// system call.
    state: AtomicU64,
}

impl Sampler {
    pub(super) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            state: AtomicU64::new(random_u64()),
        }
    }

    /// Returns the trace of a call if it is recorded: the one of its accepted parent, or a new one.
    pub(super) fn trace(&self, parent: Option<&SpanContext>) -> Option<[u8; 16]> {
        match parent {
            Some(parent) => {
                let low = u64::from_be_bytes(parent.trace_id[8..].try_into().unwrap_or_default());
                let is_kept = match self.sampling.follows_parent {
                    true => parent.is_sampled,
                    false => self.sampling.keeps(low),
                };
                is_kept.then_some(parent.trace_id)
            }
            None => {
                let low = self.next();
                self.sampling.keeps(low).then(|| trace_id(low))
            }
        }
    }

    /// Returns the id of a new trace that is recorded.
    pub(super) fn new_trace(&self) -> [u8; 16] {
        trace_id(self.next())
    }

    /// Returns a number that no earlier call returned (SplitMix64). Zero has no meaning as an id.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.state.fetch_add(STEP, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).max(1)
    }
}

/// Returns the id of a trace with these last eight bytes.
fn trace_id(low: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random_u64().to_be_bytes());
    id[8..].copy_from_slice(&low.to_be_bytes());
    id
}

/// Returns the id of a span.
pub(super) fn span_id() -> [u8; 8] {
    random_u64().max(1).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(is_sampled: bool) -> SpanContext {
        SpanContext {
            trace_id: [7; 16],
            span_id: [1; 8],
            is_sampled,
        }
    }

    #[test]
    fn samplers_are_read() {
        let read = |name, argument| Sampling::read(Some(name), argument);
        assert_eq!(Sampling::read(None, None), Ok(Sampling::default()));
        for (name, argument, follows_parent, ratio) in [
            ("always_on", None, false, 1.0),
            ("always_off", Some("0.5"), false, 0.0),
            ("traceidratio", Some("0.25"), false, 0.25),
            ("parentbased_always_on", None, true, 1.0),
            ("parentbased_always_off", None, true, 0.0),
            ("parentbased_traceidratio", Some("0.01"), true, 0.01),
            ("parentbased_traceidratio", None, true, 1.0),
        ] {
            let expected = Sampling {
                follows_parent,
                ratio,
            };
            assert_eq!(read(name, argument), Ok(expected), "{name}");
        }
        assert!(read("jaeger_remote", None).is_err());
        for wrong in ["2", "-1", "x", "NaN"] {
            assert!(read("traceidratio", Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parent_decides_if_the_sampler_follows_it() {
        for (ratio, expected) in [(0.0, false), (1.0, true)] {
            let follows = Sampler::new(Sampling {
                follows_parent: true,
                ratio,
            });
            assert_eq!(follows.trace(Some(&parent(true))), Some([7; 16]));
            assert_eq!(follows.trace(Some(&parent(false))), None);
            assert_eq!(follows.trace(None).is_some(), expected);
            let own = Sampler::new(Sampling {
                follows_parent: false,
                ratio,
            });
            assert_eq!(own.trace(Some(&parent(!expected))).is_some(), expected);
        }
    }

    #[test]
    fn ratio_is_the_share_of_new_traces() {
        let sampler = Sampler::new(Sampling {
            follows_parent: true,
            ratio: 0.1,
        });
        let ids: Vec<_> = (0..20_000).filter_map(|_| sampler.trace(None)).collect();
        assert!((1_700..2_300).contains(&ids.len()), "{}", ids.len());
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
    }
}
