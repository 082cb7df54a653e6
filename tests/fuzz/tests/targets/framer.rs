//! Framing: any split of the bytes gives the same frames, and the framer never keeps more than the line
//! limit.

use broker_wire::Peer;
use broker_wire::fuzzing::{Piece, frames};
use fuzz::behaviour;

const LIMIT: usize = 64;
/// The memory of a framer beyond its limit: two read buffers, as buffers grow by doubling.
const ROOM: usize = 1 << 18;

#[test]
fn framer_of_any_bytes_gives_the_same_frames_for_any_split() {
    let words = [
        "{\"id\":",
        "\"result\":",
        "\"error\":",
        "\r\n",
        "\n",
        "\u{feff}",
        "},",
        "{\"id\":\"7\"",
        "\"method\":",
    ];
    fuzz::run("framer", &words, |bytes| {
        let of_client = lines_come_out(Peer::Client, bytes)?;
        let of_server = lines_come_out(Peer::Server, bytes)?;
        Ok(behaviour((of_client, of_server)))
    });
}

/// The kinds of the first frames.
fn lines_come_out(peer: Peer, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (whole, held) = frames(peer, bytes, LIMIT, &[usize::MAX]);
    if held > LIMIT + ROOM + 2 * bytes.len() {
        return Err(format!("{held} bytes are held"));
    }
    for pieces in [&[1][..], &[2, 3, 5, 7], &[64, 1], &[65], &[66, 13]] {
        let (split, held) = frames(peer, bytes, LIMIT, pieces);
        if split != whole {
            return Err(format!(
                "in pieces of {pieces:?}: {split:?}, as a whole: {whole:?}"
            ));
        }
        if held > LIMIT + ROOM {
            return Err(format!("{held} bytes are held"));
        }
    }
    // Exactly the lines within the limit are returned, in order. Blanks around a line count while it is
    // read, and one more byte is allowed for a carriage return.
    let mut lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !trimmed(line).is_empty() || line.len() > LIMIT + 1);
    for piece in &whole {
        let line = lines.next().ok_or("a frame without a line")?;
        let fits = match piece {
            Piece::Line(text) => text == trimmed(line) && text.len() <= LIMIT,
            Piece::Oversize(_) => line.len() > LIMIT,
            Piece::Endless => false,
        };
        if !fits {
            return Err(format!("{piece:?} for {:?}", String::from_utf8_lossy(line)));
        }
    }
    let kinds: Vec<_> = whole
        .iter()
        .map(|piece| match piece {
            Piece::Line(_) => 0,
            Piece::Oversize(None) => 1,
            Piece::Oversize(Some(_)) => 2,
            Piece::Endless => 3,
        })
        .take(6)
        .collect();
    match lines.next() {
        Some(line) => Err(format!("lost: {:?}", String::from_utf8_lossy(line))),
        None => Ok(kinds),
    }
}

/// A line without byte order mark and blanks.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii()
}
