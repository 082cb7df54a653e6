//! The exact value of a JSON number, from its text: comparison, and ECMAScript's written form.

use std::cmp::Ordering;

/// Maximum number of digits of a number, before and after its point.
pub const MAX_NUMBER_DIGITS: usize = 1_000;
/// Maximum magnitude of a number's exponent, as it is written.
pub const MAX_NUMBER_EXPONENT: i32 = 10_000;

/// An exact decimal number: `0.DIGITS × 10^point`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// ASCII digits without a zero at either end; empty for zero.
    digits: Vec<u8>,
    point: i32,
}

impl Decimal {
    /// Reads a JSON number; `None` if the text has another form or is over a limit.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_extra_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || has_extra_zero || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        if whole.len() + fraction.len() > MAX_NUMBER_DIGITS {
            return None;
        }
        let leading = whole.len() - whole.trim_start_matches('0').len();
        let mut zeros = leading;
        let mut digits = Vec::with_capacity(whole.len() + fraction.len());
        digits.extend_from_slice(&whole.as_bytes()[leading..]);
        if digits.is_empty() {
            let rest = fraction.trim_start_matches('0');
            zeros += fraction.len() - rest.len();
            digits.extend_from_slice(rest.as_bytes());
        } else {
            digits.extend_from_slice(fraction.as_bytes());
        }
        let kept = digits.iter().rposition(|digit| *digit != b'0');
        let Some(last) = kept else {
            return Some(Self::zero());
        };
        digits.truncate(last + 1);
        let point = i32::try_from(whole.len()).ok()? - i32::try_from(zeros).ok()? + exponent;
        Some(Self {
            negative,
            digits,
            point,
        })
    }

    /// Reads a number of `serde_json`. A double has the value of its shortest written form.
    pub fn from_number(number: &serde_json::Number) -> Self {
        Self::parse(&number.to_string()).unwrap_or_else(Self::zero)
    }

    const fn zero() -> Self {
        Self {
            negative: false,
            digits: Vec::new(),
            point: 0,
        }
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the number is below zero.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the number has no fraction.
    pub fn is_integer(&self) -> bool {
        i32::try_from(self.digits.len()).is_ok_and(|length| self.is_zero() || length <= self.point)
    }

    /// The significant digits, in ASCII.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// Returns the power of ten that multiplies the integer of [`Self::digits`].
    pub fn exponent(&self) -> i32 {
        self.point - i32::try_from(self.digits.len()).unwrap_or(i32::MAX)
    }

    /// The value as `i128`, if it is an integer of at most 20 digits.
    pub fn small_integer(&self) -> Option<i128> {
        if !self.is_integer() || self.point > 20 {
            return None;
        }
        let zeros = usize::try_from(self.exponent()).unwrap_or(0);
        let digits = self.digits.iter().copied();
        let digits = digits.chain(std::iter::repeat_n(b'0', zeros));
        let whole = digits.fold(0i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        Some(if self.negative { -whole } else { whole })
    }

    /// Whether a 64-bit integer has this value.
    pub fn is_64_bit(&self) -> bool {
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        self.small_integer()
            .is_some_and(|value| range.contains(&value))
    }

    /// Appends the number in the layout of ECMAScript's `Number::toString`, with all its digits. For a value
    /// that a double has in its shortest form, this is ECMAScript's text of that double.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.is_zero() {
            out.push(b'0');
            return;
        }
        if self.negative {
            out.push(b'-');
        }
        let length = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        let zeros = |count: i32| std::iter::repeat_n(b'0', usize::try_from(count).unwrap_or(0));
        match self.point {
            point @ ..=21 if length <= point => {
                out.extend_from_slice(&self.digits);
                out.extend(zeros(point - length));
            }
            point @ 1..=21 => {
                let (whole, fraction) = self.digits.split_at(usize::try_from(point).unwrap_or(0));
                out.extend_from_slice(whole);
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
            point @ -5..=0 => {
                out.extend_from_slice(b"0.");
                out.extend(zeros(-point));
                out.extend_from_slice(&self.digits);
            }
            point => {
                out.push(self.digits[0]);
                if length > 1 {
                    out.push(b'.');
                    out.extend_from_slice(&self.digits[1..]);
                }
                let sign = if point > 0 { '+' } else { '-' };
                let magnitude = (i64::from(point) - 1).abs();
                out.extend_from_slice(format!("e{sign}{magnitude}").as_bytes());
            }
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let signs = sign(self).cmp(&sign(other));
        if signs != Ordering::Equal || self.is_zero() {
            return signs;
        }
        let magnitude = self.point.cmp(&other.point);
        let magnitude = magnitude.then_with(|| self.digits.cmp(&other.digits));
        if self.negative {
            magnitude.reverse()
        } else {
            magnitude
        }
    }
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.len() > 5 || digits.len() > MAX_NUMBER_DIGITS {
        return None;
    }
    let magnitude: i32 = match significant {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    (magnitude <= MAX_NUMBER_EXPONENT).then(|| match text.starts_with('-') {
        true => -magnitude,
        false => magnitude,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        Decimal::parse(text).unwrap().write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimal_of_a_double_is_written_as_ecmascript_writes_it() {
        let mut bits = 1u64;
        for _ in 0..20_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let float = f64::from_bits(bits);
            if !float.is_finite() {
                continue;
            }
            let ecmascript = ryu_js::Buffer::new().format_finite(float).to_owned();
            assert_eq!(written(&ecmascript), ecmascript);
            // The writer of `serde_json` chooses the same digits.
            let written_by_serde = serde_json::Number::from_f64(float).unwrap().to_string();
            assert_eq!(written(&written_by_serde), ecmascript);
        }
    }

    #[test]
    fn decimal_has_one_written_form_for_each_value() {
        for (forms, expected) in [
            (&["1e400", "10e399", "0.1E+401"][..], "1e+400"),
            (&["-1e-400", "-0.01e-398"], "-1e-400"),
            (&["0", "-0", "0.000", "0e5", "-0e-10000"], "0"),
            (&["18446744073709551616"], "18446744073709551616"),
            (
                &["1000000000000000000001", "1.000000000000000000001e21"],
                "1.000000000000000000001e+21",
            ),
            (&["100.10", "1.001e2"], "100.1"),
            (&["0.000001", "1e-6"], "0.000001"),
            (&["0.0000001"], "1e-7"),
        ] {
            for form in forms {
                assert_eq!(written(form), expected, "{form}");
            }
        }
    }

    #[test]
    fn decimals_are_ordered_by_their_values() {
        let order = [
            "-1e401",
            "-1e400",
            "-2",
            "-1.5",
            "-1e-400",
            "0",
            "1e-401",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "9",
            "10",
            "1e400",
            "1.00001e400",
            "1e401",
        ];
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                let compared = Decimal::parse(one)
                    .unwrap()
                    .cmp(&Decimal::parse(other).unwrap());
                assert_eq!(compared, at.cmp(&other_at), "{one} {other}");
            }
        }
    }

    #[test]
    fn number_over_a_limit_or_of_another_form_is_not_read() {
        let digits = |count| "1".repeat(count);
        assert!(Decimal::parse(&digits(1000)).is_some());
        assert!(Decimal::parse(&digits(1001)).is_none());
        assert!(Decimal::parse("1e10000").is_some() && Decimal::parse("1e-10000").is_some());
        assert!(Decimal::parse("1e10001").is_none() && Decimal::parse("1e-10001").is_none());
        for text in [
            "",
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "1x",
            "NaN",
            "--1",
            "1e99999999999",
        ] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }
}
