//! The queue with writers that block, fail, or accept a few bytes at a time.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::super::Format;
use super::*;

/// The timeout of a test.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A writer that forwards bytes. Before each write it waits for an order: how many bytes to accept, or
/// which error to return.
struct Script {
    signal_receivers: Receiver<io::Result<usize>>,
    written: Sender<Vec<u8>>,
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(order) = self.signal_receivers.recv() else {
            // The test is over.
            loop {
                thread::park();
            }
        };
        let taken = order?.min(bytes.len());
        drop(self.written.send(bytes[..taken].to_vec()));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn plain(_: Format, lost: u64) -> String {
    format!("{lost} lost\n")
}

/// A queue whose thread writes as the test orders.
fn scripted() -> (Arc<Queue>, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
    let queue = Arc::new(Queue::new(Format::Human, plain));
    let (order, signal_receivers) = channel();
    let (written, received) = channel();
    queue
        .start_to(move || Script {
            signal_receivers,
            written,
        })
        .expect("a thread can be started");
    (queue, order, received)
}

/// The bytes written from now on, until `last` arrives.
fn read_to(last: &str, order: &Sender<io::Result<usize>>, received: &Receiver<Vec<u8>>) -> String {
    let mut text = String::new();
    while !text.ends_with(last) {
        order.send(Ok(usize::MAX)).expect("the thread runs");
        let bytes = received.recv_timeout(WAIT_TIMEOUT).expect("it is written");
        text.push_str(std::str::from_utf8(&bytes).expect("lines are text"));
    }
    text
}

fn is_idle(queue: &Queue) -> bool {
    queue.state().thread == ThreadState::Idle
}

fn await_idle(queue: &Queue) {
    await_state(queue, |state| state.thread == ThreadState::Idle);
}

fn await_state(queue: &Queue, condition: impl Fn(&QueueState) -> bool) {
    let began = Instant::now();
    while !condition(&queue.state()) {
        assert!(
            began.elapsed() < WAIT_TIMEOUT,
            "the thread never gets there"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn log_queue_when_full_counts_dropped_lines_in_their_place() {
    let (queue, order, received) = scripted();
    let line = |number: usize| format!("{number:05} {}\n", "x".repeat(2000));
    let pushed = 2 * MAX_QUEUE_BYTES / line(0).len();
    queue.push_line(&line(0));
    // From here on the thread waits for an order and accepts nothing.
    await_state(&queue, |state| state.unwritten > 0);
    for number in 1..pushed {
        queue.push_line(&line(number));
    }
    let held = |state: &QueueState| state.waiting.len() + state.unwritten;
    assert!(held(&queue.state()) <= MAX_QUEUE_BYTES);
    let lost = queue.state().lost;
    assert!(lost > 0);
    let text = read_to(&format!("{lost} lost\n"), &order, &received);
    let kept = pushed - usize::try_from(lost).expect("a small number");
    let expected: String = (0..kept).map(line).collect();
    assert!(text == expected + &format!("{lost} lost\n"), "{text}");
    queue.push_line("after\n");
    assert_eq!(read_to("after\n", &order, &received), "after\n");
}

#[test]
fn log_queue_reports_lost_lines_with_the_next_written_line() {
    let (queue, order, received) = scripted();
    await_idle(&queue);
    let full = || order.send(Err(io::ErrorKind::StorageFull.into()));
    for line in ["one\n", "two\n"] {
        // The second failure is at the notice.
        full().expect("the thread runs");
        queue.push_line(line);
        await_idle(&queue);
    }
    order.send(Ok(usize::MAX)).expect("the thread runs");
    queue.push_line("three\n");
    let text = read_to("three\n", &order, &received);
    assert_eq!(text, "2 lost\nthree\n");
}

#[test]
fn log_queue_after_a_partial_line_starts_a_new_line() {
    let (queue, order, received) = scripted();
    await_idle(&queue);
    let full = || Err(io::ErrorKind::StorageFull.into());
    // The second line finds no room for the end of the first.
    for taken in [Ok(4), full(), full()] {
        order.send(taken).expect("the thread runs");
    }
    for line in ["torn line\n", "two\n"] {
        queue.push_line(line);
        await_idle(&queue);
    }
    order.send(Ok(usize::MAX)).expect("the thread runs");
    queue.push_line("three\n");
    let text = read_to("three\n", &order, &received);
    assert_eq!(text, "torn\n2 lost\nthree\n");
}

#[test]
fn log_queue_writes_a_whole_line_in_parts() {
    let (queue, order, received) = scripted();
    let long = format!("{}\n", "y".repeat(3 * MAX_WRITE_BYTES));
    queue.push_line(&long);
    for taken in [
        Ok(3),
        Err(io::ErrorKind::Interrupted),
        Err(io::ErrorKind::WouldBlock),
    ] {
        order
            .send(taken.map_err(io::Error::from))
            .expect("the thread runs");
    }
    assert_eq!(read_to("\n", &order, &received), long);
}

#[test]
fn log_queue_pieces_end_at_line_ends() {
    let lines = "some text\n".repeat(MAX_WRITE_BYTES);
    let first = piece(lines.as_bytes());
    assert!(first.ends_with(b"\n") && first.len() > MAX_WRITE_BYTES - 10);
    assert_eq!(piece(b"one\ntwo"), b"one\n");
    assert_eq!(piece(&[b'x'; 2 * MAX_WRITE_BYTES]).len(), MAX_WRITE_BYTES);
}

#[test]
fn log_queue_finish_waits_only_for_an_output_that_accepts() {
    let (queue, order, received) = scripted();
    await_idle(&queue);
    // Nothing is waiting, so this returns at once.
    queue.finish();
    let began = Instant::now();
    queue.push_line("a line\n");
    queue.finish();
    assert!(began.elapsed() >= LOG_END_TIMEOUT && !is_idle(&queue));
    // Stuck for longer than the limit: does not wait any longer.
    queue.finish();
    queue.push_report("a report\n");
    thread::scope(|scope| {
        let finished = scope.spawn(|| queue.finish());
        assert_eq!(
            read_to("a report\n", &order, &received),
            "a line\na report\n"
        );
        finished.join().expect("it does not panic");
    });
    await_idle(&queue);
}

#[test]
fn log_queue_writes_lines_from_before_its_thread_first() {
    let queue = Arc::new(Queue::new(Format::Human, plain));
    queue.push_line("early\n");
    queue.push_report("and a report\n");
    let (order, signal_receivers) = channel();
    let (written, received) = channel();
    queue
        .start_to(move || Script {
            signal_receivers,
            written,
        })
        .expect("a thread can be started");
    let text = read_to("report\n", &order, &received);
    assert_eq!(text, "early\nand a report\n");
}
