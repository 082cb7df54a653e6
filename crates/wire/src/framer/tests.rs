//! Lines of both peers, whole and in pieces.

use super::*;
use broker_memory::{MemoryBudget, Size};
use bytes::BufMut;
use proptest::prelude::*;

fn of(peer: Peer, limit: usize, budget: &MemoryBudget) -> Framer {
    Framer::new(peer, LineLimit::new(limit), budget.whole_account())
}

fn new(limit: usize) -> Framer {
    of(Peer::Server, limit, &MemoryBudget::new(usize::MAX))
}

fn number(number: i128) -> Option<Id> {
    Some(Id::Integer(number))
}

/// Returns all frames when the bytes arrive in pieces of these sizes.
fn frames(bytes: &[u8], limit: usize, pieces: &[usize]) -> Vec<Frame> {
    all(new(limit), bytes, pieces)
}

fn all(mut framer: Framer, bytes: &[u8], pieces: &[usize]) -> Vec<Frame> {
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut sizes = pieces.iter().copied().cycle();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
        framer.buffer().put_slice(&rest[..size]);
        rest = &rest[size..];
        out.extend(std::iter::from_fn(|| framer.next_frame()));
    }
    out.extend(framer.finish());
    out
}

fn shown(id: Option<&Id>) -> String {
    id.map_or("none".to_owned(), ToString::to_string)
}

fn lines(bytes: &[u8], limit: usize) -> Vec<String> {
    frames(bytes, limit, &[usize::MAX])
        .into_iter()
        .map(|frame| match frame {
            Frame::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
            Frame::Oversize { id } => format!("oversize {}", shown(id.as_ref())),
            Frame::OutOfMemory { id, .. } => format!("no room {}", shown(id.as_ref())),
            Frame::Endless => "endless".to_owned(),
        })
        .collect()
}

#[test]
fn framer_accepts_carriage_returns_marks_and_an_open_last_line() {
    assert_eq!(
        lines(
            b"\xef\xbb\xbf{\"a\":1}\r\n\n \r\n\xef\xbb\xbfb\n c \nlast",
            100
        ),
        ["{\"a\":1}", "b", "c", "last"]
    );
    assert_eq!(lines(b"", 100), [""; 0]);
}

#[test]
fn framer_reports_a_line_over_the_limit_with_its_id() {
    let long = "x".repeat(50);
    let text = format!(
        "{{\"id\":7,\"result\":\"{long}\"}}\nok\n{{\"result\":\"{long}\",\"id\":\"8\"}}\n{long}\nend"
    );
    let expected = ["oversize 7", "ok", "oversize \"8\"", "oversize none", "end"];
    assert_eq!(lines(text.as_bytes(), 40), expected);
    let cut = format!("ok\n{{\"result\":\"{long}\",\"id\":9}}");
    assert_eq!(lines(cut.as_bytes(), 40), ["ok", "oversize 9"]);
}

#[test]
fn framer_accepts_a_line_of_exactly_the_limit() {
    let text = format!("{}\r\n{}\n", "x".repeat(40), "y".repeat(41));
    assert_eq!(
        lines(text.as_bytes(), 40),
        ["x".repeat(40), "oversize none".to_owned()]
    );
    // Its carriage return may arrive before its newline.
    assert_eq!(
        frames(text.as_bytes(), 40, &[1]),
        frames(text.as_bytes(), 40, &[usize::MAX])
    );
}

#[test]
fn framer_continues_after_a_very_long_line_that_ends() {
    let mut framer = new(1000);
    let chunk = vec![b'x'; MIN_ENDLESS_BYTES / 64];
    for _ in 0..64 {
        framer.buffer().put_slice(&chunk);
        assert_eq!(framer.next_frame(), None);
    }
    framer.buffer().put_slice(b"xx\nok\n");
    assert_eq!(framer.next_frame(), Some(Frame::Oversize { id: None }));
    assert_eq!(
        framer.next_frame(),
        Some(Frame::Line(Bytes::from_static(b"ok")))
    );
}

#[test]
fn framer_releases_the_memory_of_a_long_line() {
    let mut framer = new(8 << 20);
    let long = vec![b'x'; 4 << 20];
    framer.buffer().put_slice(&long);
    framer.buffer().put_slice(b"\nnext");
    let Some(Frame::Line(line)) = framer.next_frame() else {
        panic!("a line");
    };
    assert_eq!(line, long);
    // The framer has released its memory.
    assert!(framer.buffer.capacity() < MAX_KEPT_BYTES);
    framer.buffer().put_slice(b" line\n");
    assert_eq!(
        framer.next_frame(),
        Some(Frame::Line(Bytes::from_static(b"next line")))
    );
}

#[test]
fn framer_reports_an_endless_line_early_and_gives_it_up() {
    let mut framer = new(1000);
    framer
        .buffer()
        .put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"");
    let chunk = vec![b'x'; 1 << 20];
    let mut seen = Vec::new();
    for _ in 0..66 {
        framer.buffer().put_slice(&chunk);
        seen.extend(framer.next_frame());
        assert!(framer.buffer.is_empty(), "nothing is kept");
    }
    assert_eq!(seen[0], Frame::Oversize { id: number(3) });
    assert!(seen.len() > 1 && seen[1..].iter().all(|frame| *frame == Frame::Endless));
}

#[test]
fn server_line_is_charged_until_its_last_share_is_dropped() {
    let budget = MemoryBudget::new(16 << 20);
    let mut framer = of(Peer::Server, 8 << 20, &budget);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..4 {
        framer.buffer().put_slice(&piece);
        assert_eq!(framer.next_frame(), None);
    }
    assert_eq!(budget.used(), 4 << 20);
    framer.buffer().put_slice(b"\nok\n");
    let Some(Frame::Line(line)) = framer.next_frame() else {
        panic!("a line");
    };
    let share = line.slice(..10);
    drop(line);
    assert_eq!(
        framer.next_frame(),
        Some(Frame::Line(Bytes::from_static(b"ok")))
    );
    assert_eq!(budget.used(), 4 << 20);
    drop(share);
    assert_eq!(budget.used(), 0);
}

#[test]
fn server_line_without_memory_is_skipped_and_reported() {
    let budget = MemoryBudget::new(4 << 20);
    let taken = budget.account().charge(1 << 20, Size::Large);
    let mut framer = of(Peer::Server, 8 << 20, &budget);
    framer.buffer().put_slice(b"{\"id\":7,\"result\":\"");
    let piece = vec![b'x'; 1 << 20];
    let mut seen = Vec::new();
    for _ in 0..6 {
        framer.buffer().put_slice(&piece);
        seen.extend(framer.next_frame());
        assert!(framer.buffer.len() <= 4 << 20);
    }
    framer.buffer().put_slice(b"\"}\nok\n");
    seen.extend(std::iter::from_fn(|| framer.next_frame()));
    let ok = Frame::Line(Bytes::from_static(b"ok"));
    let charge_error = Frame::OutOfMemory {
        id: number(7),
        charge_error: ChargeError::Total,
        needed: (3 << 20) + 18,
    };
    assert_eq!(seen, [charge_error, ok]);
    drop(taken);
    assert_eq!(budget.used(), 0);
    assert!(framer.buffer.capacity() < 1 << 20);
}

fn pushed(limit: usize, chunks: &[&[u8]]) -> Vec<Frame> {
    pushed_within(&MemoryBudget::new(usize::MAX), limit, chunks)
}

fn pushed_within(budget: &MemoryBudget, limit: usize, chunks: &[&[u8]]) -> Vec<Frame> {
    let mut framer = of(Peer::Client, limit, budget);
    let mut found = Vec::new();
    for chunk in chunks {
        framer.push(chunk);
        found.extend(std::iter::from_fn(|| framer.next_frame()));
    }
    found.extend(framer.finish());
    found
}

fn text(text: &'static str) -> Frame {
    Frame::Line(Bytes::from_static(text.as_bytes()))
}

#[test]
fn client_lines_are_whole_in_any_chunks() {
    let input = "\u{feff}{\"a\":1}\r\n\n  \n{\"b\":2}\nlast".as_bytes();
    let expected = vec![text("{\"a\":1}"), text("{\"b\":2}"), text("last")];
    assert_eq!(pushed(100, &[input]), expected);
    let single: Vec<_> = input.chunks(1).collect();
    assert_eq!(pushed(100, &single), expected);
}

#[test]
fn client_line_over_the_limit_is_skipped_and_reported_once() {
    let long = vec![b'x'; 50];
    for size in [1, 7, 1000] {
        let input = [&b"12345678\r\n"[..], &long, b"\n1\n123456789\n2"].concat();
        let chunks: Vec<_> = input.chunks(size).collect();
        let expected = vec![
            text("12345678"),
            Frame::Oversize { id: None },
            text("1"),
            Frame::Oversize { id: None },
            text("2"),
        ];
        assert_eq!(pushed(8, &chunks), expected, "in chunks of {size}");
    }
    assert_eq!(pushed(8, &[&long]), [Frame::Oversize { id: None }]);
}

#[test]
fn client_line_is_charged_until_its_last_share_is_dropped() {
    let budget = MemoryBudget::new(64 << 20);
    let mut lines = of(Peer::Client, 8 << 20, &budget);
    let piece = vec![b'x'; 1 << 20];
    for pieces in 1..=4 {
        lines.push(&piece);
        assert_eq!(lines.next_frame(), None);
        assert_eq!(budget.used(), pieces << 20);
    }
    lines.push(b"\nnext");
    let Some(Frame::Line(line)) = lines.next_frame() else {
        panic!("a line");
    };
    assert_eq!(lines.next_frame(), None);
    assert!(lines.buffer.capacity() < MAX_KEPT_BYTES);
    let share = line.slice(..10);
    drop(line);
    assert_eq!(budget.used(), 4 << 20);
    drop(share);
    assert_eq!(budget.used(), 0);
    assert_eq!(lines.finish(), Some(text("next")));
}

#[test]
fn client_line_without_memory_is_skipped_and_its_id_reported() {
    let budget = MemoryBudget::new(4 << 20);
    let _taken = budget.whole_account().charge(3 << 20, Size::Large).unwrap();
    let filler = "x".repeat(900 << 10);
    let early = format!(r#"{{"id":"a","method":"m","params":"{filler}"}}"#);
    let late = format!(r#"{{"params":"{filler}{filler}","id":2,"method":"m"}}"#);
    let input = format!("{early}\n1\n{late}\n[{late}]\n2\n{late}");
    for size in [999, 64 << 10, usize::MAX] {
        // A line in one piece is charged when the piece arrives.
        let held = budget
            .whole_account()
            .charge(512 << 10, Size::Large)
            .unwrap();
        let chunks: Vec<_> = input.as_bytes().chunks(size.min(input.len())).collect();
        let found = pushed_within(&budget, 8 << 20, &chunks);
        let ids: Vec<_> = found
            .iter()
            .map(|line| match line {
                Frame::OutOfMemory { id, needed, .. } => {
                    assert!(*needed > 16 << 10, "{needed}");
                    shown(id.as_ref())
                }
                Frame::Line(text) => format!("text {}", text.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = ["\"a\"", "text 1", "2", "none", "text 1", "2"];
        assert_eq!(ids, expected, "in pieces of {size}");
        drop((found, held));
        assert_eq!(budget.used(), 3 << 20);
    }
}

#[test]
fn client_line_over_a_quarter_of_the_memory_is_refused() {
    let budget = MemoryBudget::new(4 << 20);
    let line = vec![b'x'; (1 << 20) + 1];
    let found = pushed_within(&budget, 8 << 20, &[&line, b"\n1\n"]);
    let refused = Frame::OutOfMemory {
        id: None,
        charge_error: ChargeError::Caller,
        needed: (1 << 20) + 1,
    };
    assert_eq!(found, [refused, text("1")]);
}

proptest! {
    #[test]
    fn framer_gives_the_same_frames_for_any_split(
        parts in prop::collection::vec(
            prop_oneof![
                "[a-z{}\":, \r]{0,60}",
                Just("{\"id\":5,\"result\":{\"text\":\"01234567890123456789012345678901\"}}".to_owned()),
                Just("{\"result\":\"0123456789\\\\\\\"}01234567890123456789\",\"id\":\"6\"}".to_owned()),
            ], 0..12),
        pieces in prop::collection::vec(1usize..40, 1..20),
        last in any::<bool>(),
    ) {
        let mut text = parts.join("\n");
        if last { text.push('\n'); }
        let budget = MemoryBudget::new(usize::MAX);
        for peer in [Peer::Client, Peer::Server] {
            let frames = |pieces| all(of(peer, 30, &budget), text.as_bytes(), pieces);
            prop_assert_eq!(frames(&pieces), frames(&[usize::MAX]));
        }
    }

    #[test]
    fn framer_of_arbitrary_bytes_does_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        pieces in prop::collection::vec(1usize..40, 1..20),
    ) {
        let budget = MemoryBudget::new(usize::MAX);
        for peer in [Peer::Client, Peer::Server] {
            all(of(peer, 16, &budget), &bytes, &pieces);
        }
    }
}
