//! Standard output. A line is written at once if the output accepts it without a wait; what it does not accept is
//! written by a separate thread, so that a write that blocks forever delays neither other work nor the end.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use broker_wire::write::Line;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of lines that wait to be written.
const MAX_UNWRITTEN: usize = 64;
/// The bytes that a pipe to the client holds: some long answers. With the 64 KiB of the system, a longer answer
/// waits until the client has read a part of it.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 << 10;

/// Writes as much as an output accepts without a wait; `WouldBlock` if it accepts no byte now.
pub(crate) type WriteAtOnce = Box<dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize> + Send>;

/// Lines to be written, in their order.
pub(super) struct Output {
    /// `None` if the output cannot be written without a wait.
    at_once: Option<WriteAtOnce>,
    lines: mpsc::Sender<Line>,
    /// The number of lines that the thread has to write.
    unwritten: Arc<AtomicUsize>,
    written: oneshot::Receiver<()>,
}

/// The output is closed.
#[derive(Debug)]
pub(super) struct Closed;

impl Output {
    /// Starts the thread. It writes until the value is dropped or `output` is closed.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        at_once: Option<WriteAtOnce>,
    ) -> io::Result<Self> {
        let (lines, receiver) = mpsc::channel(MAX_UNWRITTEN);
        let (done, written) = oneshot::channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&unwritten);
        thread::Builder::new()
            .name("stdout".to_owned())
            .spawn(move || {
                write_lines(output, receiver, &counter);
                // The receiver may not wait for it.
                let _: Result<(), ()> = done.send(());
            })?;
        Ok(Self {
            at_once,
            lines,
            unwritten,
            written,
        })
    }

    /// Writes a line, or gives it to the thread. A partly written line is never lost: then the thread has no other one.
    pub(super) async fn send(&mut self, mut line: Line) -> Result<(), Closed> {
        // Acquire: all earlier lines are written.
        if self.unwritten.load(Ordering::Acquire) == 0 && self.is_written_at_once(&mut line) {
            return Ok(());
        }
        let place = match self.lines.try_reserve() {
            Ok(place) => place,
            Err(_) => self.lines.reserve().await.map_err(|_closed| Closed)?,
        };
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        place.send(line);
        Ok(())
    }

    /// Writes the part of a line that the output accepts without a wait; returns whether this was all of it.
    fn is_written_at_once(&mut self, line: &mut Line) -> bool {
        while let Some(write) = &mut self.at_once {
            let parts: Vec<_> = line.parts().iter().map(|part| IoSlice::new(part)).collect();
            match write(&parts) {
                Ok(written) => {
                    drop(parts);
                    line.advance(written);
                    if line.parts().is_empty() {
                        return true;
                    }
                    // The output is full, or nearly.
                    return false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // The thread finds out whether the output is closed.
                Err(_) => self.at_once = None,
            }
        }
        false
    }

    /// Resolves once every line is written, or the output is closed.
    pub(super) async fn finish(self) {
        drop(self.lines);
        // An error means that the thread has ended.
        drop(self.written.await);
    }
}

fn write_lines(mut output: impl Write, mut lines: mpsc::Receiver<Line>, unwritten: &AtomicUsize) {
    while let Some(line) = lines.blocking_recv() {
        if let Err(error) = write_line(&mut output, &line).and_then(|()| output.flush()) {
            tracing::warn!(%error, "standard output cannot be written");
            return;
        }
        unwritten.fetch_sub(1, Ordering::Release);
    }
}

/// Standard output, and writes to it without a wait. If it is a pipe, it gets more room.
pub(super) fn standard_output() -> (io::Stdout, Option<WriteAtOnce>) {
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = rustix::pipe::fcntl_setpipe_size(io::stdout(), PIPE_BYTES) {
            tracing::debug!(%error, "standard output is not a pipe, or gets no more room");
        }
        (io::stdout(), Some(without_wait(io::stdout())))
    }
    #[cfg(not(target_os = "linux"))]
    (io::stdout(), None)
}

/// Returns a writer that does not change the open file: the file belongs to the client too, and the client may rely on
/// blocking writes. Kernels and files that cannot do this return an error.
#[cfg(target_os = "linux")]
fn without_wait(output: impl std::os::fd::AsFd + Send + 'static) -> WriteAtOnce {
    use rustix::io::{ReadWriteFlags, pwritev2};
    /// The current position of the file; pipes have no other.
    const POSITION: u64 = u64::MAX;
    Box::new(move |parts| Ok(pwritev2(&output, parts, POSITION, ReadWriteFlags::NOWAIT)?))
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
    use std::io::Read;
    use std::time::Duration;

    use broker_wire::{Id, write};
    use tokio::time::timeout;

    use super::*;

    /// Answers of very different lengths: shorter than the room of a pipe, and several times as long.
    fn lines() -> Vec<Line> {
        let answer = |id: usize| {
            let text = "x".repeat(if id.is_multiple_of(10) {
                300_000
            } else {
                100 * id
            });
            let result = format!("{{\"text\":\"{text}\"}}").into_bytes();
            write::result(&Id::Integer(id as i128), result.into()).into_line()
        };
        (0..60).map(answer).collect()
    }

    fn expected() -> Vec<u8> {
        let lines = lines().into_iter().map(Line::into_bytes);
        lines.collect::<Vec<_>>().concat()
    }

    /// Maximum duration of a test, far above what a slow machine takes.
    const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// The bytes that a client gets if it begins to read when the output is full. An output that loses a line fails the
    /// test at the time limit.
    async fn arrived(
        pipe: (impl Read + Send + 'static, impl Write + Send + 'static),
        at_once: Option<WriteAtOnce>,
    ) -> Vec<u8> {
        let all = timeout(TIME_LIMIT, read_late(pipe, at_once)).await;
        all.expect("the client gets every line and the end")
    }

    async fn read_late(
        (mut reader, writer): (impl Read + Send + 'static, impl Write + Send + 'static),
        at_once: Option<WriteAtOnce>,
    ) -> Vec<u8> {
        let mut output = Output::start(writer, at_once).unwrap();
        let mut lines = lines().into_iter();
        for line in lines.by_ref().take(20) {
            output.send(line).await.unwrap();
        }
        let (sender, received) = oneshot::channel();
        thread::spawn(move || {
            let mut all = Vec::new();
            sender.send(reader.read_to_end(&mut all).map(|_| all))
        });
        for line in lines {
            output.send(line).await.unwrap();
        }
        output.finish().await;
        received.await.unwrap().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn lines_arrive_in_order_though_some_are_written_by_the_thread() {
        let (reader, writer) = io::pipe().unwrap();
        let at_once = without_wait(writer.try_clone().unwrap());
        let got = arrived((reader, writer), Some(at_once)).await;
        assert!(got == expected(), "{} bytes over a pipe", got.len());
        // Some clients give their servers sockets.
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let at_once = without_wait(writer.try_clone().unwrap());
        let got = arrived((reader, writer), Some(at_once)).await;
        assert!(got == expected(), "{} bytes over a socket", got.len());
    }

    #[tokio::test]
    async fn output_that_cannot_be_written_at_once_is_written_by_the_thread() {
        for kind in [ErrorKind::Unsupported, ErrorKind::InvalidInput] {
            let mut attempts = 0;
            let refuse = move |_: &[IoSlice<'_>]| {
                attempts += 1;
                assert_eq!(attempts, 1, "it is tried once");
                Err(kind.into())
            };
            let got = arrived(io::pipe().unwrap(), Some(Box::new(refuse))).await;
            assert!(got == expected(), "{} bytes", got.len());
        }
        assert!(arrived(io::pipe().unwrap(), None).await == expected());
    }

    #[tokio::test]
    async fn output_that_is_closed_is_reported_to_the_sender() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut output = Output::start(writer, None).unwrap();
        let mut sent = Ok(());
        while sent.is_ok() {
            let line = lines().remove(1);
            sent = output.send(line).await;
        }
        output.finish().await;
    }

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
