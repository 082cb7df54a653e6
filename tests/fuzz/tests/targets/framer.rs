//! Framing: any split of the bytes gives the same frames, and never keeps more than a line may hold.

use broker_wire::Peer;
use broker_wire::fuzzing::{Piece, frames};
use fuzz::behaviour;

const LIMIT: usize = 64;
/// What a framer may hold beyond its limit: room for reads, twice, as buffers grow by doubling.
const ROOM: usize = 1 << 18;

#[test]
fn f_14_framer() {
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
    // Every line that fits comes out, in order, and nothing else does. Blanks around a line count
    // while it is read, and one byte more is let in for a carriage return.
    let mut lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !trimmed(line).is_empty() || line.len() > LIMIT + 1);
    for piece in &whole {
        let line = lines.next().ok_or("a frame that no line stands for")?;
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

/// What is left of a line without mark and blanks.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii()
}
