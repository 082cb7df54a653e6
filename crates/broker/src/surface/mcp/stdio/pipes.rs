//! Standard input and output, each in a separate thread: a read or write that blocks forever delays
//! neither other work nor the end.

use std::io::{self, IoSlice, Read, Write};
use std::thread;

use broker_wire::write::Line;
use broker_wire::{Frame, Framer};
use tokio::sync::{mpsc, oneshot};

/// The maximum number of lines that were read and not processed. Each can be as long as
/// `limits.body_bytes`, and is charged.
const READ_AHEAD: usize = 4;
/// The maximum number of lines that wait to be written.
const MAX_UNWRITTEN: usize = 64;
const READ_BYTES: usize = 64 << 10;

/// Lines to be written, in their order.
#[derive(Debug)]
pub(super) struct OutputLines {
    pub(super) lines: mpsc::Sender<Line>,
    /// Resolves once every line is written and the sender is dropped, or the output is closed.
    pub(super) written: oneshot::Receiver<()>,
}

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
                // The receiver is gone: there is nothing to report to.
                drop(sender.blocking_send(frame));
            }
        })?;
    Ok(receiver)
}

/// Writes lines until the sender is dropped or `output` is closed.
pub(super) fn write(mut output: impl Write + Send + 'static) -> io::Result<OutputLines> {
    let (lines, mut receiver) = mpsc::channel::<Line>(MAX_UNWRITTEN);
    let (done, written) = oneshot::channel();
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            while let Some(line) = receiver.blocking_recv() {
                if let Err(error) = write_line(&mut output, &line).and_then(|()| output.flush()) {
                    tracing::warn!(%error, "standard output cannot be written");
                    break;
                }
            }
            // The receiver may not wait for it.
            let _: Result<(), ()> = done.send(());
        })?;
    Ok(OutputLines { lines, written })
}

/// Writes the parts of a line together, so that a long result is not copied into one text.
fn write_line(output: &mut impl Write, line: &Line) -> io::Result<()> {
    let mut parts: Vec<_> = line.parts().iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = &mut parts[..];
    while !rest.is_empty() {
        match output.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use broker_wire::{Id, write};

    use super::*;

    /// Accepts seven bytes at a time, from one part or several.
    struct Narrow(Vec<u8>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(7);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            self.write(&whole)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stdio_line_is_written_whole_in_small_pieces() {
        let answer = |id| write::result(&Id::Integer(id), b"{\"a\":[1,2,3]}".to_vec().into());
        let line = write::batch(vec![answer(1), answer(2)]).into_line();
        let mut output = Narrow(Vec::new());
        write_line(&mut output, &line).unwrap();
        assert_eq!(output.0, line.into_bytes());
    }
}
