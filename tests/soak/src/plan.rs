//! The plan of each call of a run: its kind, size, source and the behaviour of its caller. A pure
//! function of the seed and the call's number, so that a run can be repeated.

/// Sources of the catalog, `/s1` to `/s8`.
pub(crate) const SOURCES: u64 = 8;
/// The number of sources that are killed; the others are never killed.
pub(crate) const VICTIMS: u64 = 4;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its nonce.
    pub(crate) number: u64,
    /// The source, counted from 1.
    pub(crate) source: u64,
    pub(crate) kind: CallKind,
    pub(crate) leaves: Option<Leaves>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// Returns a text of this many bytes.
    Echo(usize),
    /// Is never answered by the server.
    Hang,
    /// Is answered with a line over the limit.
    Oversize,
}

/// The way in which a caller disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// After half of the request: the call must never be executed.
    HalfWay,
    /// This many milliseconds after the complete request.
    After(u64),
}

impl Call {
    /// The call of this number.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Dice(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = match dice.below(1000) {
            0..10 => CallKind::Hang,
            10..20 => CallKind::Oversize,
            20..22 => CallKind::Echo(1 << 20),
            // The same number of calls of each order of magnitude from 1 byte to 64 KiB.
            _ => CallKind::Echo(
                (1 << dice.below(17)) + usize::try_from(dice.below(100)).unwrap_or(0),
            ),
        };
        let leaves = (dice.below(100) < 5).then(|| match dice.below(4) {
            0 => Leaves::HalfWay,
            _ => Leaves::After(dice.below(4)),
        });
        Self {
            number,
            source: 1 + dice.below(SOURCES),
            kind,
            leaves,
        }
    }

    /// Whether its source is never killed.
    pub(crate) fn is_untouched(&self) -> bool {
        self.source > VICTIMS
    }

    /// The path that it calls.
    pub(crate) fn path(&self) -> String {
        let tool = match self.kind {
            CallKind::Echo(_) => "echo",
            CallKind::Hang => "hang",
            CallKind::Oversize => "oversize",
        };
        format!("/s{}/{tool}", self.source)
    }

    /// The text of the answer: unique to the call.
    pub(crate) fn text(&self) -> String {
        let CallKind::Echo(size) = self.kind else {
            return String::new();
        };
        let mut text = format!("{:010}é\"", self.number).repeat(size / 13 + 1);
        let cut = (0..=size).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(cut.unwrap_or(0));
        text
    }

    /// The request's body.
    pub(crate) fn body(&self) -> String {
        let nonce = self.number.to_string();
        let args = match self.kind {
            CallKind::Echo(_) => serde_json::json!({"nonce": nonce, "text": self.text()}),
            CallKind::Hang | CallKind::Oversize => serde_json::json!({"nonce": nonce}),
        };
        serde_json::json!({"path": self.path(), "args": args}).to_string()
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_has_the_stated_mix_of_calls() {
        let calls: Vec<_> = (0..100_000).map(|number| Call::new(1, number)).collect();
        let share = |wanted: fn(&Call) -> bool| calls.iter().filter(|call| wanted(call)).count();
        let about = |count: usize, percent: usize| count.abs_diff(percent * 1000) < 300;
        assert!(about(share(|call| call.kind == CallKind::Hang), 1));
        assert!(about(share(|call| call.kind == CallKind::Oversize), 1));
        assert!(about(share(|call| call.leaves.is_some()), 5));
        assert!(share(|call| call.kind == CallKind::Echo(1 << 20)) > 100);
        assert_eq!(calls[7], Call::new(1, 7));
        assert!(
            calls
                .iter()
                .all(|call| (1..=SOURCES).contains(&call.source))
        );
        let small = calls.iter().find(|call| call.kind == CallKind::Echo(1));
        assert!(small.is_none_or(|call| call.text().len() == 1));
    }
}
