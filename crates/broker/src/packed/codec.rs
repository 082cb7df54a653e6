//! The bytes of numbers, texts and lists. Numbers are little-endian; a text or a list begins with its length.
//!
//! A reader takes no more memory than the bytes account for: a length that lies ends with the bytes.

/// The reason why bytes are not a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// The number of elements for which a list reserves memory before it has read them.
const RESERVED_ELEMENTS: usize = 1024;

/// A value with a form in bytes.
pub(super) trait Packed: Sized {
    /// Appends the bytes of the value.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads a value from the beginning of the rest.
    fn read(input: &mut Input) -> Result<Self, Malformed>;
}

/// Bytes that are read from their beginning.
#[derive(Debug)]
pub(super) struct Input {
    rest: &'static [u8],
}

impl Input {
    pub(super) const fn new(bytes: &'static [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'static [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Malformed("it ends too early"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]: [u8; 1]| byte)
    }

    /// Refuses bytes that follow the value.
    pub(super) const fn end(&self) -> Result<(), Malformed> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Malformed("bytes follow it")),
        }
    }
}

/// Writes a length. A catalog has less than 4 GiB, since its spans have 32 bits.
fn write_length(length: usize, out: &mut Vec<u8>) {
    u32::try_from(length).unwrap_or(u32::MAX).write(out);
}

impl Packed for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        input.array().map(Self::from_le_bytes)
    }
}

impl Packed for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        input.array().map(Self::from_le_bytes)
    }
}

impl Packed for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }
}

impl Packed for &'static [u8] {
    fn write(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        out.extend(*self);
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        let length = u32::read(input)?;
        input.take(length as usize)
    }
}

impl Packed for &'static str {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_bytes().write(out);
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        let bytes = <&[u8]>::read(input)?;
        std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

impl<T: Packed> Packed for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        match bool::read(input)? {
            true => T::read(input).map(Some),
            false => Ok(None),
        }
    }
}

impl<T: Packed + 'static> Packed for &'static [T] {
    fn write(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        self.iter().for_each(|element| element.write(out));
    }

    fn read(input: &mut Input) -> Result<Self, Malformed> {
        let length = u32::read(input)? as usize;
        let mut list = Vec::with_capacity(length.min(RESERVED_ELEMENTS));
        for _ in 0..length {
            list.push(T::read(input)?);
        }
        Ok(list.leak())
    }
}
