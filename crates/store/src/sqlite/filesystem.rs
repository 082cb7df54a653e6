//! Refuses file systems of other machines: their locks and syncs do not hold what a store needs.

use std::path::Path;

use crate::error::OpenError;

/// Refuses a folder on a network file system.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    match network_kind(folder) {
        Ok(None) => Ok(()),
        Ok(Some(kind)) => Err(OpenError::NetworkFileSystem {
            path: path.to_owned(),
            kind,
        }),
        Err(error) => Err(OpenError::Io {
            path: path.to_owned(),
            error,
        }),
    }
}

/// Returns the kind of a network file system, if the folder is on one.
#[cfg(target_os = "linux")]
fn network_kind(folder: &Path) -> std::io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt as _;

    // A magic number is 32 bits; some machines sign it.
    let magic = rustix::fs::statfs(folder)?.f_type & 0xffff_ffff;
    let magic = u32::try_from(magic).unwrap_or_default();
    let device = std::fs::metadata(folder)?.dev();
    let name = || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        name_in(&mounts, device)
    };
    Ok(kind_of(magic, name))
}

/// Returns the kind of a network file system, if the folder is on one.
#[cfg(not(target_os = "linux"))]
fn network_kind(folder: &Path) -> std::io::Result<Option<String>> {
    /// The flag of file systems on this machine, in `sys/mount.h`.
    const LOCAL: u32 = 0x1000;
    let stat = rustix::fs::statfs(folder)?;
    Ok((stat.f_flags & LOCAL == 0).then(|| "not local".to_owned()))
}

/// Magic numbers of network and cluster file systems, in `statfs(2)` and `linux/magic.h`.
#[cfg(any(target_os = "linux", test))]
const NETWORK: [(u32, &str); 14] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
];
/// The magic number of each file system of a program.
#[cfg(any(target_os = "linux", test))]
const FUSE: u32 = 0x6573_5546;
/// File systems of programs that are on this machine.
#[cfg(any(target_os = "linux", test))]
const LOCAL_FUSE: [&str; 2] = ["fuseblk", "fuse.fuse-overlayfs"];

/// Returns the kind, if the numbers are those of a network file system. Of a file system of a program only the name says
/// where its files are; one that is not known is refused.
#[cfg(any(target_os = "linux", test))]
fn kind_of(magic: u32, name: impl FnOnce() -> Option<String>) -> Option<String> {
    if magic == FUSE {
        let name = name().unwrap_or_else(|| "fuse".to_owned());
        return (!LOCAL_FUSE.contains(&name.as_str())).then_some(name);
    }
    let known = NETWORK.iter().find(|(number, _)| *number == magic);
    known.map(|(_, name)| (*name).to_owned())
}

/// Returns the name of the file system of a device in the list of mounts.
#[cfg(any(target_os = "linux", test))]
fn name_in(mounts: &str, device: u64) -> Option<String> {
    let device = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(&device))?;
    let (_, behind) = line.split_once(" - ")?;
    behind.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{kind_of, name_in};

    #[test]
    fn network_file_systems_are_refused_and_local_ones_are_not() {
        let none = || None;
        assert_eq!(kind_of(0x6969, none).as_deref(), Some("nfs"));
        assert_eq!(kind_of(0xff53_4d42, none).as_deref(), Some("cifs"));
        assert_eq!(kind_of(0xfe53_4d42, none).as_deref(), Some("smb2"));
        assert_eq!(kind_of(0x0102_1997, none).as_deref(), Some("9p"));
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(kind_of(local, none), None, "{local:x}");
        }
    }

    #[test]
    fn file_system_of_a_program_is_refused_unless_it_is_known_as_local() {
        let kind = |name: &str| kind_of(0x6573_5546, || Some(name.to_owned()));
        assert_eq!(kind("fuse.sshfs").as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind("virtiofs").as_deref(), Some("virtiofs"));
        assert_eq!(kind("fuseblk"), None);
        assert_eq!(kind("fuse.fuse-overlayfs"), None);
        assert_eq!(kind_of(0x6573_5546, || None).as_deref(), Some("fuse"));
    }

    #[test]
    fn mount_is_found_by_its_device() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      40 22 0:52 / /home/a/far rw,nosuid shared:9 - fuse.sshfs a@b: rw\n";
        let device = |minor| rustix::fs::makedev(0, minor);
        assert_eq!(name_in(mounts, device(52)).as_deref(), Some("fuse.sshfs"));
        assert_eq!(name_in(mounts, device(7)), None);
    }
}
