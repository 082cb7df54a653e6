//! Vectors of tools that an embedding model made, and their cosines to the vector of a query.
//!
//! ```text
//! header      MAGIC, tools, dimensions: u32 each
//! vectors     a byte a component, signed
//! lengths     f32 a tool: 1 / length, 0 for a tool without a direction
//! ```
//! All numbers are little-endian.

use crate::vectors::{inverse_root, scaled};

const MAGIC: u32 = u32::from_le_bytes(*b"MBSV");
const HEADER_BYTES: usize = 12;
/// The most dimensions of a model.
pub const MAX_DIMENSIONS: usize = 8192;
/// The largest component of a stored vector.
const MAX_STORED: f32 = 127.0;
/// The components whose products are added before the next ones: fewer than would fit an `i32`.
const CHUNK: usize = 64;
/// The largest component of the vector of a query.
const MAX_QUERY: f32 = 32_767.0;

/// Bytes that are not vectors of these tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the vectors of a model cannot be read: {0}")]
pub struct VectorsError(&'static str);

/// The direction of a text, as a model gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Box<[f32]>);

/// The stored vectors of the tools of an index, in its order, by one model.
#[derive(Clone, Copy, Debug)]
pub struct ModelVectors<'a> {
    dimensions: usize,
    components: &'a [u8],
    inverse_lengths: &'a [u8],
}

impl Embedding {
    /// Makes a vector with length 1. `None` for one that has no direction, too many dimensions, or components that are
    /// not finite.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let largest = vector.iter().fold(0f32, |most, it| most.max(it.abs()));
        let is_usable = (1..=MAX_DIMENSIONS).contains(&vector.len())
            && vector.iter().all(|it| it.is_finite())
            && largest > 0.0;
        // Divided first, so that no square overflows.
        let relative = || vector.iter().map(|it| it / largest);
        let squares: f32 = relative().map(|it| it * it).sum();
        is_usable.then(|| Self(relative().map(|it| it * inverse_root(squares)).collect()))
    }

    /// Returns the direction between two vectors of the same model.
    pub fn between(&self, other: &Self) -> Self {
        let sum: Vec<f32> = self.0.iter().zip(&other.0).map(|(a, b)| a + b).collect();
        Self::new(&sum).unwrap_or_else(|| self.clone())
    }

    /// Returns the components.
    pub fn components(&self) -> &[f32] {
        &self.0
    }

    /// Returns the number of components.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// Returns the components as a file stores them: a signed byte each, the largest one being 127.
    pub fn stored(&self) -> Vec<i8> {
        let stored = scaled(&self.0, MAX_STORED);
        stored.map(|component| component as i8).collect()
    }
}

/// Returns the bytes of [`ModelVectors`]: a vector for each tool, `None` for a tool without one.
pub fn vector_bytes(dimensions: usize, vectors: &[Option<Embedding>]) -> Vec<u8> {
    let header = [MAGIC, vectors.len() as u32, dimensions as u32];
    let mut out: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    let stored = vectors.iter().map(|vector| match vector {
        Some(vector) => vector.stored(),
        None => vec![0; dimensions],
    });
    let stored: Vec<_> = stored.collect();
    for components in &stored {
        out.extend(components.iter().map(|component| *component as u8));
    }
    for components in &stored {
        let squares = components.iter().map(|it| i32::from(*it) * i32::from(*it));
        let squares: i32 = squares.sum();
        out.extend(inverse_root(squares as f32).to_le_bytes());
    }
    out
}

impl<'a> ModelVectors<'a> {
    /// Reads the bytes of [`vector_bytes`].
    ///
    /// # Errors
    ///
    /// If they are not complete, or belong to another number of tools.
    pub fn new(bytes: &'a [u8], tools: u32) -> Result<Self, VectorsError> {
        let (header, rest) = bytes
            .split_at_checked(HEADER_BYTES)
            .ok_or(VectorsError("they end too early"))?;
        let (numbers, _) = header.as_chunks::<4>();
        let [magic, count, dimensions] = [0, 1, 2].map(|at| u32::from_le_bytes(numbers[at]));
        let (count, dimensions) = (count as usize, dimensions as usize);
        if magic != MAGIC || count != tools as usize {
            return Err(VectorsError("they are not those of this catalog"));
        }
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(VectorsError("they have too many dimensions"));
        }
        match rest.split_at_checked(count * dimensions) {
            Some((components, inverse_lengths)) if inverse_lengths.len() == count * 4 => Ok(Self {
                dimensions,
                components,
                inverse_lengths,
            }),
            _ => Err(VectorsError("they do not have the length of their header")),
        }
    }

    /// Returns the number of components of each vector.
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the cosine of the angle between the vectors of a query and of each tool. Both have the same dimensions.
    pub(crate) fn cosines(&self, query: &Embedding) -> Vec<f32> {
        let query: Vec<i16> = scaled(query.components(), MAX_QUERY)
            .map(|component| component as i16)
            .collect();
        let squares: f32 = query.iter().map(|it| f32::from(*it) * f32::from(*it)).sum();
        let (lengths, _) = self.inverse_lengths.as_chunks::<4>();
        let vectors = self.components.chunks_exact(self.dimensions);
        let cosines = vectors.zip(lengths).map(|(vector, length)| {
            product(&query, vector) * inverse_root(squares) * f32::from_le_bytes(*length)
        });
        cosines.collect()
    }
}

/// Returns the sum of the products of components. Sums of parts are exact in an `i32`.
fn product(query: &[i16], stored: &[u8]) -> f32 {
    let parts = query.chunks(CHUNK).zip(stored.chunks(CHUNK));
    let sums = parts.map(|(query, stored)| {
        let pairs = query.iter().zip(stored);
        let products = pairs.map(|(a, b)| i32::from(*a) * i32::from(*b as i8));
        products.sum::<i32>() as f32
    });
    sums.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedding(components: &[f32]) -> Embedding {
        Embedding::new(components).expect("it has a direction")
    }

    #[test]
    fn cosines_are_those_of_the_vectors() {
        let long: Vec<f32> = (0..300).map(|at| (at as f32 * 0.37).sin()).collect();
        let other: Vec<f32> = (0..300).map(|at| (at as f32 * 0.11).cos()).collect();
        let negative: Vec<f32> = long.iter().map(|it| -it).collect();
        let tools = [&long, &other, &negative].map(|vector| Some(embedding(vector)));
        let mut tools = Vec::from(tools);
        tools.push(None);
        let bytes = vector_bytes(300, &tools);
        let vectors = ModelVectors::new(&bytes, 4).expect("they were made now");
        let query = embedding(&long);
        let cosines = vectors.cosines(&query);
        let exact: f32 = query
            .components()
            .iter()
            .zip(embedding(&other).components())
            .map(|(a, b)| a * b)
            .sum();
        for (found, expected) in cosines.iter().zip([1.0, exact, -1.0, 0.0]) {
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        for vector in [
            &[][..],
            &[0.0, 0.0],
            &[f32::NAN, 1.0],
            &[1.0, f32::INFINITY],
            &[1.0; MAX_DIMENSIONS + 1],
        ] {
            assert!(Embedding::new(vector).is_none());
        }
        let huge = embedding(&[f32::MAX, f32::MAX]);
        assert!((huge.components()[0] - 0.5f32.sqrt()).abs() < 1e-6);
        let opposite = embedding(&[1.0, 0.0]).between(&embedding(&[-1.0, 0.0]));
        assert_eq!(opposite.components(), [1.0, 0.0]);
    }

    #[test]
    fn damaged_vectors_are_refused() {
        let bytes = vector_bytes(3, &[Some(embedding(&[1.0, 2.0, 3.0])), None]);
        for end in 0..bytes.len() {
            assert!(ModelVectors::new(&bytes[..end], 2).is_err(), "cut at {end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(ModelVectors::new(&longer, 2).is_err());
        assert!(ModelVectors::new(&bytes, 1).is_err());
        let mut wide = bytes;
        wide[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(ModelVectors::new(&wide, 2).is_err());
    }
}
