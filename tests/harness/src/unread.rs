//! A full pipe that is not read: a host that starts a program and ignores its output.

use std::fs;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::program::{WAIT_TIMEOUT, wait_until};

/// The pipe. It is full from the beginning: writes block until [`UnreadPipe::read_to`].
#[derive(Debug)]
pub struct UnreadPipe {
    reader: PipeReader,
    writer: PipeWriter,
    is_read: Arc<AtomicBool>,
}

impl UnreadPipe {
    /// A full pipe.
    pub fn new() -> Self {
        let (reader, writer) = pipe().expect("a pipe can be made");
        let mut filler = writer.try_clone().expect("a file can be opened twice");
        let is_read = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_read);
        let (sender, receiver) = channel();
        thread::spawn(move || {
            // Below `/proc`, which shows whether this thread waits.
            let thread = fs::read_link("/proc/thread-self").expect("there is `/proc`");
            sender.send(thread).expect("the test waits for it");
            // Until it is read or closed.
            while !ends.load(Ordering::Acquire) && filler.write_all(&[b'\n'; 1 << 10]).is_ok() {}
        });
        let thread = receiver.recv().expect("the thread says who it is");
        wait_until("the pipe is full", || is_asleep(&thread));
        Self {
            reader,
            writer,
            is_read,
        }
    }

    /// Its writing end, for a program to start.
    pub fn stdio(&self) -> Stdio {
        let writer = self.writer.try_clone();
        writer.expect("a file can be opened twice").into()
    }

    /// Reads until this text arrives, then closes the pipe; returns all text.
    pub fn read_to(self, text: &str) -> String {
        let Self {
            mut reader,
            writer,
            is_read,
        } = self;
        drop(writer);
        is_read.store(true, Ordering::Release);
        let (sender, chunks) = channel();
        thread::spawn(move || {
            let mut chunk = [0; 64 << 10];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut read = String::new();
        while !read.contains(text) {
            let chunk = chunks.recv_timeout(WAIT_TIMEOUT);
            let chunk = chunk.unwrap_or_else(|_| panic!("`{text}` never came: {read}"));
            read.push_str(String::from_utf8_lossy(&chunk).trim_start_matches('\n'));
        }
        read
    }
}

impl Default for UnreadPipe {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether this thread of the test waits. The thread does nothing but write.
fn is_asleep(thread: &PathBuf) -> bool {
    let stat = fs::read_to_string(PathBuf::from("/proc").join(thread).join("stat"));
    let stat = stat.unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}
