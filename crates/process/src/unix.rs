//! Calls of the operating system: process groups, the parent-death signal, and blocked signals. The
//! only file with `unsafe`.

use std::io;
use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};
use tokio::process::Command;

/// Puts the child into a separate process group and, on Linux, has the kernel kill it with the thread
/// that spawns it.
pub(super) fn isolate(command: &mut Command) {
    command.process_group(0);
    release_signals(command.as_std_mut());
    if let Some(limit) = super::file_limit::for_children() {
        limit_files(command.as_std_mut(), limit);
    }
    #[cfg(target_os = "linux")]
    die_with_parent(command.as_std_mut());
}

/// Unblocks all signals in the child.
#[expect(
    unsafe_code,
    reason = "a hook between fork and exec is unsafe to register"
)]
fn release_signals(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let none = set_of(&[]);
    // SAFETY: between fork and exec the hook only makes one system call; the set is its own.
    unsafe {
        command.pre_exec(move || mask(libc::SIG_SETMASK, &none));
    }
}

/// Gives the child this limit of open files.
#[expect(
    unsafe_code,
    reason = "a hook between fork and exec is unsafe to register"
)]
fn limit_files(command: &mut std::process::Command, limit: Rlimit) {
    use std::os::unix::process::CommandExt as _;
    let hook = move || Ok(setrlimit(Resource::Nofile, limit)?);
    // SAFETY: between fork and exec the hook only makes one system call.
    unsafe {
        command.pre_exec(hook);
    }
}

/// Makes the child join a control group before it executes the program, so that all its processes are
/// in the group. `procs` is the group's file for that.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "a hook between fork and exec is unsafe to register"
)]
pub(super) fn join(command: &mut Command, procs: std::fs::File) {
    let hook = move || {
        // If the child cannot join, its processes are still found by the other marks.
        let _: rustix::io::Result<usize> = rustix::io::write(&procs, b"0");
        Ok(())
    };
    // SAFETY: between fork and exec the hook only makes one system call; the file was opened before.
    unsafe {
        command.pre_exec(hook);
    }
}

/// Has the kernel kill the child with the thread that spawns it.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "a hook between fork and exec is unsafe to register"
)]
pub(crate) fn die_with_parent(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let parent = rustix::process::getpid();
    let hook = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above; then the signal is never sent.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the hook only makes two system calls: it allocates no memory, takes no lock, and
    // touches no state of the parent.
    unsafe {
        command.pre_exec(hook);
    }
}

/// Takes over a file that the guard opened for this process, so that no server inherits it.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "only the number of an inherited file is known, from the environment"
)]
pub(crate) fn inherited_file(number: std::os::fd::RawFd) -> io::Result<std::fs::File> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: the caller checked that the guard wrote the number, and calls this once, before other files are opened;
    // so the number is an open file that no other code owns.
    let file = unsafe { std::fs::File::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
    Ok(file)
}

/// A process group, named by its leader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// Returns the group that a child of [`isolate`] leads.
    pub(super) fn from_leader(pid: u32) -> Option<Self> {
        Pid::from_raw(i32::try_from(pid).ok()?).map(Self)
    }

    /// Sends SIGTERM to every member. Returns whether there was one.
    pub(super) fn terminate(self) -> bool {
        rustix::process::kill_process_group(self.0, Signal::TERM).is_ok()
    }

    /// Sends SIGKILL to every member. Returns whether there was one.
    pub(super) fn kill(self) -> bool {
        rustix::process::kill_process_group(self.0, Signal::KILL).is_ok()
    }

    /// Whether a member is left.
    pub(super) fn has_members(self) -> bool {
        rustix::process::test_kill_process_group(self.0).is_ok()
    }
}

/// Blocked signals. They wait until they are received.
#[derive(Clone, Copy)]
pub(crate) struct BlockedSignals(libc::sigset_t);

/// A signal that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedSignal {
    /// The signal; `None` if the wait was interrupted.
    pub(crate) signal: Option<Signal>,
    /// The process that sent it; `None` for the kernel, or if it is not known.
    pub(crate) sender: Option<Pid>,
}

impl BlockedSignals {
    /// Blocks the signals in this thread and in threads that it starts later.
    pub(crate) fn block(signals: &[Signal]) -> io::Result<Self> {
        let set = set_of(signals);
        mask(libc::SIG_BLOCK, &set)?;
        Ok(Self(set))
    }

    /// Blocks these signals in this thread and unblocks all others.
    #[cfg(target_os = "linux")]
    pub(crate) fn block_only(signals: &[Signal]) -> io::Result<()> {
        mask(libc::SIG_SETMASK, &set_of(signals))
    }

    /// Unblocks the signals in this thread.
    #[cfg(target_os = "linux")]
    pub(crate) fn unblock(self) -> io::Result<()> {
        mask(libc::SIG_UNBLOCK, &self.0)
    }

    /// Waits for the next signal.
    #[cfg(target_os = "linux")]
    #[expect(
        unsafe_code,
        reason = "only the C library reports the sender of a signal"
    )]
    pub(crate) fn take(&self) -> ReceivedSignal {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: set and information are ours and live through the call. Zeroed, the information is valid even if the
        // call wrote no information; a sender exists for every signal that was sent.
        let (signal, sender) = unsafe {
            let signal = libc::sigwaitinfo(&self.0, info.as_mut_ptr());
            (signal, info.assume_init().si_pid())
        };
        ReceivedSignal {
            signal: Signal::from_named_raw(signal),
            sender: Pid::from_raw(sender),
        }
    }

    /// Waits for the next signal, at most `timeout`. The result has no signal if none has arrived by then.
    #[cfg(target_os = "linux")]
    #[expect(
        unsafe_code,
        reason = "waiting for a signal with a timeout is a call of the C library"
    )]
    pub(crate) fn take_within(&self, timeout: Duration) -> ReceivedSignal {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: set, information and time are ours and live through the call. Zeroed, the information is valid even if
        // the call wrote no information; a sender exists for every signal that was sent.
        let (signal, sender) = unsafe {
            let signal = libc::sigtimedwait(&self.0, info.as_mut_ptr(), &timeout);
            (signal, info.assume_init().si_pid())
        };
        ReceivedSignal {
            signal: Signal::from_named_raw(signal),
            sender: Pid::from_raw(sender),
        }
    }

    /// Waits for the next signal.
    #[cfg(not(target_os = "linux"))]
    #[expect(
        unsafe_code,
        reason = "waiting for a signal is a call of the C library"
    )]
    pub(crate) fn take(&self) -> ReceivedSignal {
        let mut signal = 0;
        // SAFETY: set and number are ours and live through the call.
        let failed = unsafe { libc::sigwait(&self.0, &mut signal) };
        ReceivedSignal {
            signal: (failed == 0)
                .then(|| Signal::from_named_raw(signal))
                .flatten(),
            sender: None,
        }
    }
}

#[expect(unsafe_code, reason = "signal sets are types of the C library")]
fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is ours, and the first call initialises it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// Waits until a child has ended, and leaves it to be reaped. Fails with `CHILD` without children.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only the C library reports which child ended")]
pub(super) fn await_ended_child() -> rustix::io::Result<Pid> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the information is ours and lives through the call. Zeroed, it is valid even if the call wrote no
    // information; it has a process id for every child that ended.
    let (failed, pid) = unsafe {
        let options = libc::WEXITED | libc::WNOWAIT;
        let failed = libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0;
        (failed, info.assume_init().si_pid())
    };
    if failed {
        let error = io::Error::last_os_error();
        return Err(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::INTR));
    }
    Pid::from_raw(pid).ok_or(rustix::io::Errno::CHILD)
}

/// Enables SIGCHLD and exit statuses of children, even if the program that started this one had
/// disabled them.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "setting a signal action is a call of the C library"
)]
pub(crate) fn enable_sigchld() {
    // SAFETY: the default action runs no code of this program.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Ends this process at once: no destructor, no lock, no output.
#[expect(unsafe_code, reason = "ending the process is a call of the C library")]
pub(crate) fn end_process(code: u8) -> ! {
    // SAFETY: the call takes a number and touches no memory of this process.
    unsafe { libc::_exit(code.into()) }
}

/// Makes the C library return free memory of its heaps to the system. By itself it returns only the end
/// of a heap, so one small block in use keeps all memory below it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "trimming the heap is a call of the C library")]
pub fn trim_heap() {
    // SAFETY: the call takes a number, locks the heaps itself, and touches free memory only. The result
    // is not needed.
    let _: libc::c_int = unsafe { libc::malloc_trim(0) };
}

/// Has no effect: other C libraries return free memory by themselves or have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn trim_heap() {}

#[expect(
    unsafe_code,
    reason = "the signal mask of a thread is set by the C library"
)]
fn mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised and lives through the call; the previous mask is not read.
    let error = unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) };
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(error))
    }
}
