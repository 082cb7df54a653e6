//! Two pipes in place of the streams of a process, for a server that is not a process of the broker.

use std::io;
use std::os::fd::OwnedFd;

use tokio::process::{ChildStdin, ChildStdout};

/// The ends of two pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// The connection writes to it.
    pub(crate) stdin: ChildStdin,
    /// The connection reads from it.
    pub(crate) stdout: ChildStdout,
    /// Bytes that the connection wrote.
    pub(crate) input: ChildStdout,
    /// Bytes for the connection.
    pub(crate) output: ChildStdin,
}

/// Opens the pipes.
pub(crate) fn open() -> io::Result<Pipes> {
    let (input, stdin) = io::pipe()?;
    let (stdout, output) = io::pipe()?;
    let reader = |end: OwnedFd| ChildStdout::from_std(end.into());
    let writer = |end: OwnedFd| ChildStdin::from_std(end.into());
    Ok(Pipes {
        stdin: writer(stdin.into())?,
        stdout: reader(stdout.into())?,
        input: reader(input.into())?,
        output: writer(output.into())?,
    })
}
