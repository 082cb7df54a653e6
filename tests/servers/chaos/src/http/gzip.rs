//! Bodies in gzip without a library: stored blocks, and runs of one byte that grow a thousandfold.

/// Maximum length of a stored block.
const MAX_STORED: usize = 0xffff;
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The byte of a run.
const RUN: u8 = b'x';
/// Bytes of one match in a run.
const MATCH: u64 = 258;

/// The bytes in gzip, without compression.
pub(crate) fn stored(bytes: &[u8]) -> Vec<u8> {
    bomb(bytes, 0, b"")
}

/// `before`, `run` times the letter x, and `after`, in gzip: about a thousandth of the run.
pub(crate) fn bomb(before: &[u8], run: u64, after: &[u8]) -> Vec<u8> {
    let mut bits = Bits {
        bytes: HEADER.to_vec(),
        partial: 0,
        used: 0,
    };
    bits.stored_blocks(before);
    if run > 0 {
        bits.run(run);
    }
    bits.stored_blocks(after);
    bits.last_block();
    let length = before.len() as u64 + run + after.len() as u64;
    let mut crc = Crc::new();
    before.iter().for_each(|byte| crc.add(*byte));
    (0..run).for_each(|_| crc.add(RUN));
    after.iter().for_each(|byte| crc.add(*byte));
    let mut bytes = bits.bytes;
    bytes.extend((!crc.value).to_le_bytes());
    // The length modulo 2^32, as the format says.
    bytes.extend_from_slice(&length.to_le_bytes()[..4]);
    bytes
}

/// A stream of bits, the lowest bit of each byte first.
struct Bits {
    bytes: Vec<u8>,
    partial: u8,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for at in 0..count {
            if value >> at & 1 == 1 {
                self.partial |= 1 << self.used;
            }
            self.used += 1;
            if self.used == 8 {
                self.align();
            }
        }
    }

    fn align(&mut self) {
        if self.used > 0 {
            self.bytes.push(self.partial);
            self.partial = 0;
            self.used = 0;
        }
    }

    fn stored_blocks(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(MAX_STORED) {
            self.stored_block(part, false);
        }
    }

    fn last_block(&mut self) {
        self.stored_block(b"", true);
    }

    fn stored_block(&mut self, bytes: &[u8], last: bool) {
        self.push(u32::from(last), 1);
        self.push(0, 2);
        self.align();
        let length = u16::try_from(bytes.len()).unwrap_or_default();
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend((!length).to_le_bytes());
        self.bytes.extend(bytes);
    }

    /// A block with Huffman codes for three symbols: a match of 258 bytes (285) in one bit, the byte of the run
    /// and the end of the block (256) in two bits. The only distance, 1, has one bit.
    fn run(&mut self, count: u64) {
        self.push(0, 1);
        self.push(2, 2);
        // 286 codes of literals and lengths, 1 of distances, 18 of code lengths.
        self.push(286 - 257, 5);
        self.push(0, 5);
        self.push(18 - 4, 4);
        // Lengths of the code length codes in the order 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1: 18 (a run of
        // zeros) has one bit, 1 and 2 have two.
        for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1] {
            let length = match symbol {
                18 => 1,
                1 | 2 => 2,
                _ => 0,
            };
            self.push(length, 3);
        }
        // Codes by length, then by symbol: 18 is 0, 1 is 10, 2 is 11; written from their highest bit.
        let (one, two) = (0b01, 0b11);
        let run = usize::from(RUN);
        self.zeros(run);
        self.push(two, 2);
        self.zeros(256 - run - 1);
        self.push(two, 2);
        self.zeros(285 - 256 - 1);
        self.push(one, 2);
        self.push(one, 2);
        // Codes: 285 is 0, the byte of the run is 10, the end of the block is 11; the distance is 0.
        let matches = (count - 1) / MATCH;
        let single = (count - 1) % MATCH + 1;
        for _ in 0..single {
            self.push(0b01, 2);
        }
        for _ in 0..matches {
            self.push(0, 2);
        }
        self.push(0b11, 2);
    }

    /// Code lengths of zero, by symbol 18, which stands for 11 to 138 of them.
    fn zeros(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            // No rest below 11 may remain.
            let step = match left {
                0..=138 => left,
                139..=148 => left - 11,
                _ => 138,
            };
            self.push(0, 1);
            self.push(u32::try_from(step - 11).unwrap_or_default(), 7);
            left -= step;
        }
    }
}

/// CRC-32 as in gzip; the value is not yet inverted.
struct Crc {
    value: u32,
    table: [u32; 256],
}

impl Crc {
    fn new() -> Self {
        let mut table = [0; 256];
        for (entry, byte) in table.iter_mut().zip(0_u32..) {
            *entry = (0..8).fold(byte, |crc, _| {
                let shifted = crc >> 1;
                if crc & 1 == 1 {
                    shifted ^ 0xedb8_8320
                } else {
                    shifted
                }
            });
        }
        Self {
            value: u32::MAX,
            table,
        }
    }

    fn add(&mut self, byte: u8) {
        let at = usize::from(self.value.to_le_bytes()[0] ^ byte);
        self.value = self.table[at] ^ (self.value >> 8);
    }
}

#[cfg(test)]
mod tests {
    use super::{Crc, bomb};

    #[test]
    fn checksum_of_the_check_value_is_known() {
        let mut crc = Crc::new();
        b"123456789".iter().for_each(|byte| crc.add(*byte));
        assert_eq!(!crc.value, 0xcbf4_3926);
    }

    #[test]
    fn bomb_of_a_thousand_letters_is_known() {
        let bomb: String = bomb(b"a", 1000, b"b")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let letters = "aa".repeat(56);
        // Unpacked with another program to `a`, a thousand `x`, and `b`.
        let expected = format!(
            "1f8b08000000000000ff000100feff61ecc081000000008020edf117a9{letters}\
             02060100feff62010000ffffb8d56903ea030000"
        );
        assert_eq!(bomb, expected);
    }

    #[test]
    fn bomb_is_a_thousandth_of_its_run() {
        assert!(bomb(b"", 1 << 20, b"").len() < 1 << 11);
    }
}
