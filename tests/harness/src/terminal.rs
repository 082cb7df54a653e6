//! A program in a pseudo-terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::WAIT_TIMEOUT;

/// Runs a program whose standard streams are a terminal, with this input; returns its exit code and the
/// output, with line ends as the program wrote them.
pub fn on_terminal(mut command: Command, typed: &str) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is mine");
    unlockpt(&master).expect("it is mine");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let side = || -> OwnedFd {
        open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens")
    };
    command
        .stdin(Stdio::from(side()))
        .stdout(Stdio::from(side()))
        .stderr(Stdio::from(side()));
    let mut child = command.spawn().expect("the program starts");
    // The command keeps the terminal open, so the read would never end.
    drop(command);
    let mut terminal = File::from(master);
    terminal.write_all(typed.as_bytes()).expect("it listens");
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut screen = Vec::new();
        // Linux ends a terminal that no process has open with an error.
        let _ = terminal.read_to_end(&mut screen);
        let _ = sender.send(screen);
    });
    let screen = receiver.recv_timeout(WAIT_TIMEOUT).unwrap_or_else(|_| {
        child.kill().expect("it is mine");
        panic!("the program does not end")
    });
    let code = child.wait().expect("it ends").code();
    let screen = String::from_utf8(screen).expect("text");
    (code, screen.replace("\r\n", "\n"))
}
