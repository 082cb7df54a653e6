//! Standard input, read by a separate thread: a read that blocks forever delays neither other work nor the end.

use std::io::{self, Read};
use std::thread;

use broker_wire::{Frame, Framer};
use tokio::sync::mpsc;

/// The maximum number of lines that were read and not processed. Each can be as long as
/// `limits.body_bytes`, and is charged.
const READ_AHEAD: usize = 4;
const READ_BYTES: usize = 64 << 10;

/// Reads lines until the end of `input`.
pub(super) fn read(
    mut input: impl Read + Send + 'static,
    mut framer: Framer,
) -> io::Result<mpsc::Receiver<Frame>> {
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
                framer.push(&buffer[..read]);
                while let Some(frame) = framer.next_frame() {
                    if sender.blocking_send(frame).is_err() {
                        return;
                    }
                }
            }
            if let Some(frame) = framer.finish() {
                // If the receiver is gone, the frame is dropped.
                drop(sender.blocking_send(frame));
            }
        })?;
    Ok(receiver)
}
