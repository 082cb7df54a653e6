//! Checks by the first bytes of a file whether it can be executed on this machine.
//!
//! The error of the system is not available: if the kernel refuses the format of a file, the C library passes the file
//! to a shell, and the shell executes it as a script.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Checks whether the file is a program. A file that cannot be read may still be executable.
pub(crate) fn check(file: &Path) -> Result<(), &'static str> {
    let mut head = Vec::with_capacity(256);
    let read = File::open(file).and_then(|file| file.take(256).read_to_end(&mut head));
    match read {
        Ok(_) => check_head(&head, takes_other_formats),
        Err(_) => Ok(()),
    }
}

fn check_head(head: &[u8], takes_others: impl Fn() -> bool) -> Result<(), &'static str> {
    if head.starts_with(b"#!") {
        return Ok(());
    }
    if is_text(head) {
        return Err("it is text without a `#!` line");
    }
    if is_native(head) || takes_others() {
        return Ok(());
    }
    Err("it was built for another machine, or is not an executable")
}

fn is_text(head: &[u8]) -> bool {
    head.iter()
        .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..))
}

/// Whether these are the first bytes of an executable for this machine.
#[cfg(target_os = "linux")]
fn is_native(head: &[u8]) -> bool {
    // Class and byte order are at offsets 4 and 5, the machine at 18. A file of the other class may
    // run: 32-bit programs do on most 64-bit kernels.
    let little = cfg!(target_endian = "little");
    let machines: &[u16] = match std::env::consts::ARCH {
        "x86" => &[3],
        "x86_64" => &[62, 3],
        "arm" => &[40],
        "aarch64" => &[183, 40],
        "riscv64" => &[243],
        // Unknown, so not checked.
        _ => return head.starts_with(b"\x7fELF"),
    };
    let Some((bytes, machine)) = head.first_chunk::<20>().map(|h| (h, [h[18], h[19]])) else {
        return false;
    };
    let order = if little { 1 } else { 2 };
    bytes.starts_with(b"\x7fELF")
        && bytes[5] == order
        && machines.contains(&u16::from_ne_bytes(machine))
}

/// Whether the file is native. On other systems only text is recognised.
#[cfg(not(target_os = "linux"))]
fn is_native(_head: &[u8]) -> bool {
    true
}

/// Whether further formats are registered with the kernel, for emulators of other machines.
fn takes_other_formats() -> bool {
    let Ok(entries) = std::fs::read_dir("/proc/sys/fs/binfmt_misc") else {
        return false;
    };
    let own = ["register", "status"];
    entries
        .filter_map(Result::ok)
        .any(|entry| own.iter().all(|own| entry.file_name() != *own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_recognised_by_its_first_bytes() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let own = &own[..256];
        let mut foreign = own.to_vec();
        foreign[18] ^= 0x55;
        let other = Err("it was built for another machine, or is not an executable");
        let text = Err("it is text without a `#!` line");
        for (head, expected) in [
            (own, Ok(())),
            (&b"#!/bin/sh\n"[..], Ok(())),
            (b"#! /no/such/thing", Ok(())),
            (b"echo hi\n", text),
            ("\u{fc}\n".as_bytes(), text),
            (b"", text),
            (&foreign, other),
            (b"\x7fELF", other),
            (b"MZ\x90\0", other),
            (&[0xcf, 0xfa, 0xed, 0xfe, 0, 0], other),
        ] {
            // On other systems only text is recognised.
            let expected = if cfg!(target_os = "linux") || expected == text {
                expected
            } else {
                Ok(())
            };
            assert_eq!(check_head(head, || false), expected, "{head:x?}");
        }
        assert_eq!(check_head(&foreign, || true), Ok(()));
        assert_eq!(check_head(b"echo", || true), text);
    }
}
