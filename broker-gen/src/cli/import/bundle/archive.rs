//! The list of files in a zip archive that a stranger made. Only two methods are read; a link, an encrypted entry, a path
//! that leads out, and names that occur twice are refused before anything is unpacked.

use std::collections::HashSet;
use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// Maximum number of entries.
const MAX_ENTRIES: usize = 10_000;
/// Maximum bytes of the name of an entry.
const MAX_NAME_BYTES: usize = 1024;
/// The length of the fixed part of each record.
const END_BYTES: usize = 22;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The marks of the records.
const END_MARK: &[u8] = b"PK\x05\x06";
const CENTRAL_MARK: &[u8] = b"PK\x01\x02";
const LOCAL_MARK: &[u8] = b"PK\x03\x04";
/// The type of a file in its Unix mode: the bits, a regular file, a folder.
const TYPE_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
/// The methods of compression.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A file of an archive.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its path: parts with `/` between them, without `..`.
    pub(super) name: String,
    /// Whether it is a folder.
    pub(super) is_folder: bool,
    /// Whether its owner may execute it.
    pub(super) is_program: bool,
    /// Its length, as the archive says.
    pub(super) length: usize,
    method: u16,
    checksum: u32,
    packed: std::ops::Range<usize>,
}

/// Reads the list of an archive. An error is a clause about the archive.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let end = end_record(bytes).ok_or("it is not a zip archive")?;
    let field = |at| number(bytes, end + at, 2);
    let count = field(10).unwrap_or_default();
    if field(4) != Some(0) || field(8) != Some(count) || count == 0xffff {
        return Err("it has several parts or more than 65 534 entries".to_owned());
    }
    if count > MAX_ENTRIES {
        return Err(format!(
            "it has {count} entries; at most {MAX_ENTRIES} are read"
        ));
    }
    let mut at = number(bytes, end + 16, 4).unwrap_or_default();
    let (mut entries, mut names) = (Vec::new(), HashSet::new());
    for _ in 0..count {
        let (entry, next) = entry(bytes, at, end)?;
        if !names.insert(entry.name.clone()) {
            return Err(format!("`{}` is there twice", entry.name));
        }
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

/// Returns the offset of the record at the end of the archive. A comment may follow the record.
fn end_record(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_BYTES)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let is_end = |at: &usize| {
        bytes[*at..].starts_with(END_MARK)
            && number(bytes, at + 20, 2)
                .is_some_and(|comment| at + END_BYTES + comment == bytes.len())
    };
    (first..=last).rev().find(is_end)
}

/// Reads a number of the archive. Its lowest byte is the first one.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    let number = bytes
        .iter()
        .rev()
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

/// Reads the entry at an offset of the list; returns also the offset of the next one.
fn entry(bytes: &[u8], at: usize, end: usize) -> Result<(Entry, usize), String> {
    let damaged = || "it is damaged".to_owned();
    let field = |offset, length| number(bytes, at + offset, length).ok_or_else(damaged);
    if at >= end || !bytes[at..].starts_with(CENTRAL_MARK) {
        return Err(damaged());
    }
    let (name_length, extra, comment) = (field(28, 2)?, field(30, 2)?, field(32, 2)?);
    let name_at = at + CENTRAL_BYTES;
    let name = bytes
        .get(name_at..name_at + name_length)
        .ok_or_else(damaged)?;
    let name = std::str::from_utf8(name).map_err(|_| "a name in it is not UTF-8".to_owned())?;
    let next = name_at + name_length + extra + comment;
    if next > end {
        return Err(damaged());
    }
    let is_folder = name.ends_with('/');
    check_name(name)?;
    if field(8, 2)? & 1 != 0 {
        return Err(format!("`{name}` is encrypted"));
    }
    // The upper byte is the system that wrote the mode; others have none.
    let mode = match field(5, 1)? {
        3 | 19 => u32::try_from(field(38, 4)? >> 16).unwrap_or_default(),
        _ => 0,
    };
    let kind = mode & TYPE_BITS;
    if kind != 0 && kind != REGULAR && (kind != FOLDER || !is_folder) {
        return Err(format!("`{name}` is a link or a special file"));
    }
    let (packed, length, local) = (field(20, 4)?, field(24, 4)?, field(42, 4)?);
    let method = u16::try_from(field(10, 2)?).unwrap_or(u16::MAX);
    if !matches!(method, STORED | DEFLATED) {
        return Err(format!("`{name}` is compressed in a way that is not read"));
    }
    if !bytes
        .get(local..)
        .is_some_and(|local| local.starts_with(LOCAL_MARK))
    {
        return Err(damaged());
    }
    let local_field = |offset| number(bytes, local + offset, 2).ok_or_else(damaged);
    let start = local + LOCAL_BYTES + local_field(26)? + local_field(28)?;
    if start + packed > bytes.len() {
        return Err(damaged());
    }
    let entry = Entry {
        name: name.trim_end_matches('/').to_owned(),
        is_folder,
        is_program: mode & 0o100 != 0,
        length,
        method,
        checksum: u32::try_from(field(16, 4)?).unwrap_or_default(),
        packed: start..start + packed,
    };
    Ok((entry, next))
}

/// Refuses a name that is not a path below the folder to which the archive is unpacked.
fn check_name(name: &str) -> Result<(), String> {
    let shown = broker_model::text::shown_line(name, 80);
    let path = name.strip_suffix('/').unwrap_or(name);
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_fine = name.len() <= MAX_NAME_BYTES
        && path.split('/').all(is_part)
        && !name.contains(['\\', ':'])
        && !name.chars().any(char::is_control);
    match is_fine {
        true => Ok(()),
        false => Err(format!("`{shown}` is not a path within it")),
    }
}

/// Unpacks an entry, at most `max` bytes.
pub(super) fn unpack(bytes: &[u8], entry: &Entry, max: usize) -> Result<Vec<u8>, String> {
    let name = &entry.name;
    if entry.length > max {
        return Err(format!("`{name}` has more than {max} bytes"));
    }
    let packed = bytes.get(entry.packed.clone()).unwrap_or_default();
    let mut out = Vec::new();
    // One byte more than the archive says shows that it does not say the truth.
    let limit = entry.length as u64 + 1;
    let read = match entry.method {
        DEFLATED => DeflateDecoder::new(packed)
            .take(limit)
            .read_to_end(&mut out),
        _ => packed.take(limit).read_to_end(&mut out),
    };
    if read.is_err() || out.len() != entry.length {
        return Err(format!("`{name}` is damaged or has another length"));
    }
    let mut checksum = flate2::Crc::new();
    checksum.update(&out);
    match checksum.sum() == entry.checksum {
        true => Ok(out),
        false => Err(format!("`{name}` is damaged")),
    }
}
