//! Vectors of texts from the static table: the normalised sum of the vectors of the parts of its words.

use serde::Deserialize;
use wide::{i16x8, i32x4};

use crate::wordpiece::Vocabulary;

/// The dimensions of a vector.
pub(crate) const DIMENSIONS: usize = 128;
/// The largest component of a stored vector.
const MAX_STORED: f32 = 127.0;
/// The largest component of the vector of a query; 128 products with stored components fit an `i32`.
const MAX_QUERY: f32 = 32_767.0;
/// The pairs of components that are multiplied at the same time.
const LANES: usize = 8;
/// The addition to every second stored component, so that it is not negative.
const BIAS: i32 = 128;

/// The files of a table.
#[derive(Debug)]
pub struct TableFiles {
    /// A safetensors file with `table` (rows of 128 `I8`) and `scale` (an `F32` for each row).
    pub vectors: &'static [u8],
    /// One part of a word a line, in the order of the rows.
    pub vocabulary: &'static str,
}

/// A table with a vector for each part of a word.
#[derive(Debug)]
pub struct StaticTable {
    vocabulary: Vocabulary,
    /// [`DIMENSIONS`] bytes a row.
    rows: &'static [u8],
    /// An `f32` a row, little-endian.
    scales: &'static [u8],
}

/// A file that is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table of vectors cannot be read: {0}")]
pub struct TableError(&'static str);

/// The header of a safetensors file, as far as it is read.
#[derive(Deserialize)]
struct Header {
    table: Tensor,
    scale: Tensor,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// The vector of a document, as an index stores it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredVector {
    pub(crate) components: [i8; DIMENSIONS],
    /// 1 divided by the length of the components, or 0 for a text without known words.
    pub(crate) inverse_length: f32,
}

/// The vector of a query, with its even and its odd components apart.
#[derive(Clone, Debug)]
pub(crate) struct QueryVector {
    even: [i16x8; DIMENSIONS / LANES / 2],
    odd: [i16x8; DIMENSIONS / LANES / 2],
    /// The part of a product that comes from the bias of stored components.
    bias: i32,
    inverse_length: f32,
}

impl StaticTable {
    /// Reads a table.
    pub fn new(files: &TableFiles) -> Result<Self, TableError> {
        let truncated = TableError("the file ends too early");
        let (length, rest) = files.vectors.split_first_chunk::<8>().ok_or(truncated)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| truncated)?;
        let (header, data) = rest.split_at_checked(length).ok_or(truncated)?;
        let header: Header = serde_json::from_slice(header)
            .map_err(|_| TableError("its header has no `table` and `scale`"))?;
        let vocabulary = Vocabulary::new(files.vocabulary);
        let count = vocabulary.len();
        let rows = header.table.data(data, "I8", &[count, DIMENSIONS], 1)?;
        let scales = header.scale.data(data, "F32", &[count], 4)?;
        Ok(Self {
            vocabulary,
            rows,
            scales,
        })
    }

    /// Computes the normalised sum of the rows of a text's words; `None` without known words.
    fn embed(&self, text: &str) -> Option<[f32; DIMENSIONS]> {
        let mut sum = [0f32; DIMENSIONS];
        for row in self.vocabulary.rows(text) {
            let at = row as usize;
            let scale: [u8; 4] = self.scales[at * 4..at * 4 + 4]
                .try_into()
                .expect("four bytes");
            let scale = f32::from_le_bytes(scale);
            let row = &self.rows[at * DIMENSIONS..(at + 1) * DIMENSIONS];
            for (sum, component) in sum.iter_mut().zip(row) {
                *sum += f32::from(*component as i8) * scale;
            }
        }
        normalised(sum)
    }

    /// Returns the vector of a document: of its text and, if it has hints, of their text as well.
    pub(crate) fn document(&self, text: &str, hints: Option<&str>) -> StoredVector {
        let mut sum = self.embed(text).unwrap_or([0.0; DIMENSIONS]);
        let hints = hints.and_then(|hints| self.embed(hints));
        for (sum, component) in sum.iter_mut().zip(hints.into_iter().flatten()) {
            *sum += component;
        }
        let mut components = [0i8; DIMENSIONS];
        for (component, scaled) in components.iter_mut().zip(scaled(&sum, MAX_STORED)) {
            *component = scaled as i8;
        }
        let squares: i32 = components
            .iter()
            .map(|it| i32::from(*it) * i32::from(*it))
            .sum();
        StoredVector {
            components,
            inverse_length: inverse_root(squares as f32),
        }
    }

    /// Returns the vector of a query; `None` without known words.
    pub(crate) fn query(&self, text: &str) -> Option<QueryVector> {
        let mut components = [0i16; DIMENSIONS];
        for (component, scaled) in components
            .iter_mut()
            .zip(scaled(&self.embed(text)?, MAX_QUERY))
        {
            *component = scaled as i16;
        }
        let squares: f32 = components
            .iter()
            .map(|it| f32::from(*it) * f32::from(*it))
            .sum();
        let every_second = |first: usize| {
            std::array::from_fn(|at| {
                let from = 2 * LANES * at + first;
                i16x8::new(std::array::from_fn(|lane| components[from + 2 * lane]))
            })
        };
        let even = components.iter().step_by(2);
        Some(QueryVector {
            even: every_second(0),
            odd: every_second(1),
            bias: even.map(|it| i32::from(*it) * BIAS).sum(),
            inverse_length: inverse_root(squares),
        })
    }
}

impl StoredVector {
    /// Returns the components as an index has them.
    pub(crate) fn bytes(&self) -> [u8; DIMENSIONS] {
        std::array::from_fn(|at| match at % 2 {
            0 => (i32::from(self.components[at]) + BIAS) as u8,
            _ => self.components[at] as u8,
        })
    }
}

impl QueryVector {
    /// Returns the cosine of the angle to the bytes of a stored vector: 1 for the same direction.
    pub(crate) fn cosine(&self, bytes: &[u8; DIMENSIONS], inverse_length: f32) -> f32 {
        let (pairs, _) = bytes.as_chunks::<2>();
        let (lanes, _) = pairs.as_chunks::<LANES>();
        let mut sum = i32x4::ZERO;
        for ((even, odd), pairs) in self.even.iter().zip(&self.odd).zip(lanes) {
            // The first byte of a pair is the lower half of a lane, without a sign; the second one has the sign of the
            // lane.
            let pairs = i16x8::new(pairs.map(i16::from_le_bytes));
            sum += even.dot(pairs & i16x8::splat(0xff)) + odd.dot(pairs >> 8);
        }
        (sum.reduce_add() - self.bias) as f32 * self.inverse_length * inverse_length
    }
}

impl Tensor {
    /// Returns the bytes of a tensor of this type and shape.
    fn data(
        &self,
        data: &'static [u8],
        dtype: &str,
        shape: &[usize],
        size: usize,
    ) -> Result<&'static [u8], TableError> {
        let [begin, end] = self.data_offsets;
        let bytes = data
            .get(begin..end)
            .ok_or(TableError("a tensor lies outside the file"))?;
        let is_right = self.dtype == dtype
            && self.shape == shape
            && bytes.len() == shape.iter().product::<usize>() * size;
        match is_right {
            true => Ok(bytes),
            false => Err(TableError(
                "a tensor does not have the shape that the vocabulary needs",
            )),
        }
    }
}

/// Returns the same direction with length 1; `None` for a vector without one.
fn normalised(vector: [f32; DIMENSIONS]) -> Option<[f32; DIMENSIONS]> {
    let squares: f32 = vector.iter().map(|component| component * component).sum();
    (squares > 0.0).then(|| vector.map(|component| component * inverse_root(squares)))
}

/// Returns the same direction, the largest component being `max`, rounded.
pub(crate) fn scaled(vector: &[f32], max: f32) -> impl ExactSizeIterator<Item = f32> {
    let largest = vector
        .iter()
        .fold(0f32, |largest, it| largest.max(it.abs()));
    let factor = if largest > 0.0 { max / largest } else { 0.0 };
    vector
        .iter()
        .map(move |component| (component * factor).round())
}

/// Returns 1 divided by the root of a sum of squares; 0 for 0.
pub(crate) fn inverse_root(squares: f32) -> f32 {
    if squares > 0.0 {
        1.0 / squares.sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::table;

    fn cosine(table: &StaticTable, a: &str, b: &str) -> f32 {
        let stored = table.document(b, None);
        let query = table.query(a).expect("its words are known");
        query.cosine(&stored.bytes(), stored.inverse_length)
    }

    #[test]
    fn similar_texts_have_a_larger_cosine() {
        let table = table();
        let similar = cosine(table, "remove a file", "delete the document");
        let other = cosine(table, "remove a file", "weather forecast");
        assert!(similar > other + 0.2, "{similar} {other}");
        let same = cosine(table, "remove a file", "remove a file");
        assert!((same - 1.0).abs() < 0.01, "{same}");
    }

    #[test]
    fn hints_move_the_vector_towards_them() {
        let table = table();
        let query = table.query("book a flight").expect("its words are known");
        let cosine = |hints: Option<&str>| {
            let stored = table.document("run code", hints);
            query.cosine(&stored.bytes(), stored.inverse_length)
        };
        assert!(cosine(Some("reserve a plane ticket")) > cosine(None) + 0.2);
    }

    #[test]
    fn cosine_is_that_of_the_components() {
        let table = table();
        for (a, b) in [
            ("read a file", "write files"),
            ("send mail", "stop a server"),
        ] {
            let stored = table.document(b, None);
            let embedded = table.embed(a).expect("known");
            let query: Vec<f32> = scaled(&embedded, MAX_QUERY).collect();
            let pairs = query.iter().zip(&stored.components);
            let product: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let length = query
                .iter()
                .map(|it| f64::from(it * it))
                .sum::<f64>()
                .sqrt();
            let expected = product / length * f64::from(stored.inverse_length);
            assert!((f64::from(cosine(table, a, b)) - expected).abs() < 1e-5);
        }
    }

    #[test]
    fn texts_without_known_words_have_no_direction() {
        let table = table();
        assert!(table.query("\u{10FFFF}").is_none());
        assert_eq!(table.document("", None).inverse_length, 0.0);
    }

    #[test]
    fn damaged_files_are_refused() {
        for file in [&b""[..], &[255; 8], &[2, 0, 0, 0, 0, 0, 0, 0, b'{', b'}']] {
            let files = TableFiles {
                vectors: file,
                vocabulary: "a",
            };
            assert!(StaticTable::new(&files).is_err());
        }
    }
}
