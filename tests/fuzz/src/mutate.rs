//! Makes new inputs from known ones: by bytes, by words of the target's language, and where an input
//! is JSON, by its structure.

use serde_json::{Map, Value, json};

use crate::dice::Dice;

/// Bytes and numbers at which code is often wrong.
const ODD: [&[u8]; 14] = [
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n",
    b"\\",
    b"\"",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"18446744073709551616",
    b"-0",
    b"1e999",
    b"\xe2\x80\xae",
];

pub(crate) struct Mutator<'a> {
    dice: Dice,
    words: &'a [&'a str],
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(dice: Dice, words: &'a [&'a str]) -> Self {
        Self { dice, words }
    }

    /// A mutation of one of the inputs.
    pub(crate) fn next(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.dice.pick(inputs).clone();
        for _ in 0..=self.dice.below(4) {
            let json = match self.dice.below(2) {
                0 => None,
                _ => serde_json::from_slice::<Value>(&input).ok(),
            };
            match json {
                Some(mut value) => {
                    self.edit(&mut value);
                    input = match self.dice.below(4) {
                        0 => format!("{value:#}").into_bytes(),
                        _ => value.to_string().into_bytes(),
                    };
                }
                None => self.bytes(&mut input, inputs),
            }
        }
        input
    }

    fn bytes(&mut self, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        let at = self.dice.below(input.len() + 1);
        let end = (at + self.dice.below(32)).min(input.len());
        match self.dice.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.dice.below(8),
            1 if at < input.len() => input[at] = self.dice.next().to_le_bytes()[0],
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                let times = 1 + self.dice.below(8);
                drop(input.splice(at..at, piece.repeat(times)));
            }
            4 => {
                let other = self.dice.pick(inputs);
                let from = self.dice.below(other.len() + 1);
                let tail = other[from..].to_vec();
                drop(input.splice(at.., tail));
            }
            5 => {
                let odd = *self.dice.pick(&ODD);
                drop(input.splice(at..end.min(at + 1), odd.iter().copied()));
            }
            6 => input.truncate(at),
            _ if !self.words.is_empty() => {
                let word = self.dice.pick(self.words).as_bytes();
                let end = [at, end][self.dice.below(2)];
                drop(input.splice(at..end, word.iter().copied()));
            }
            _ => input.push(b'\n'),
        }
    }

    /// Changes one place of a JSON value, which is found by walking down at random.
    fn edit(&mut self, value: &mut Value) {
        let deeper = self.dice.below(5) > 0;
        match value {
            Value::Object(members) if deeper && !members.is_empty() => {
                let at = self.dice.below(members.len());
                if let Some(member) = members.values_mut().nth(at) {
                    return self.edit(member);
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.dice.below(items.len());
                return self.edit(&mut items[at]);
            }
            _ => {}
        }
        match (self.dice.below(6), &mut *value) {
            (0 | 1, Value::Object(members)) => self.members(members),
            (0 | 1, Value::Array(items)) if !items.is_empty() => {
                let at = self.dice.below(items.len());
                if self.dice.below(2) == 0 {
                    drop(items.remove(at));
                } else {
                    let copy = items[at].clone();
                    items.insert(at, copy);
                }
            }
            (2, _) => *value = json!([value.take()]),
            (3, Value::String(text)) => *text = text.repeat(1 + self.dice.below(40)),
            (4, Value::String(text)) => text.push_str(&self.word()),
            _ => *value = self.scalar(),
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>) {
        let at = self.dice.below(members.len());
        let name = members.keys().nth(at).cloned().unwrap_or_default();
        match self.dice.below(3) {
            0 => drop(members.remove(&name)),
            1 => {
                let moved = members.remove(&name).unwrap_or(Value::Null);
                members.insert(self.word(), moved);
            }
            _ => {
                let added = self.scalar();
                members.insert(self.word(), added);
            }
        }
    }

    fn word(&mut self) -> String {
        match self.dice.below(4) {
            0 | 1 if !self.words.is_empty() => (*self.dice.pick(self.words)).to_owned(),
            2 => "ab é\u{202e}/~1\"\\".repeat(1 + self.dice.below(3)),
            _ => String::new(),
        }
    }

    fn scalar(&mut self) -> Value {
        match self.dice.below(9) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(self.dice.next()),
            3 => json!(-1),
            4 => json!(0.5),
            5 => json!([]),
            6 => json!({}),
            _ => json!(self.word()),
        }
    }
}
