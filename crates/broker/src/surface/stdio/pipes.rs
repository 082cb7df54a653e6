//! Standard input and output, each in a thread of its own: a read or a write that never comes back
//! holds up neither the broker's other work nor its end.

use std::io::{self, Read, Write};
use std::thread;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::lines::{Line, Lines};

/// Lines that were read and not looked at yet. Each can be as long as `limits.body_bytes`, and is charged.
const READ_AHEAD: usize = 4;
/// Lines that wait to be written.
const UNWRITTEN: usize = 64;
const READ_BYTES: usize = 64 << 10;

/// Lines to be written, in their order.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) lines: mpsc::Sender<Bytes>,
    /// Resolves once every line is written and the sender is gone, or nobody reads any more.
    pub(super) written: oneshot::Receiver<()>,
}

/// Reads lines until the end of `input`.
pub(super) fn read(
    mut input: impl Read + Send + 'static,
    mut lines: Lines,
) -> io::Result<mpsc::Receiver<Line>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read = match input.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        tracing::warn!(%error, "standard input cannot be read");
                        break;
                    }
                };
                lines.push(&buffer[..read]);
                while let Some(line) = lines.next() {
                    if sender.blocking_send(line).is_err() {
                        return;
                    }
                }
            }
            if let Some(line) = lines.finish() {
                // Nobody listens any more: there is nobody to tell.
                drop(sender.blocking_send(line));
            }
        })?;
    Ok(receiver)
}

/// Writes lines until the sender is dropped or `output` is closed.
pub(super) fn write(mut output: impl Write + Send + 'static) -> io::Result<Output> {
    let (lines, mut receiver) = mpsc::channel::<Bytes>(UNWRITTEN);
    let (done, written) = oneshot::channel();
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            while let Some(line) = receiver.blocking_recv() {
                if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
                    tracing::warn!(%error, "standard output cannot be written");
                    break;
                }
            }
            // The other side may not wait for it.
            let _: Result<(), ()> = done.send(());
        })?;
    Ok(Output { lines, written })
}
