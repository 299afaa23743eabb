//! The agent's root directory: an empty file system with only what the agent may see mounted in it.
//!
//! Files that are not mounted do not exist for the agent. This also hides sockets of other programs
//! (a desktop session, a terminal multiplexer, a container engine), which Landlock does not cover.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::{GuardFault, GuardPart, GuardPlan, PrivateCopy};
use crate::ffi;

/// Directories of the system that are visible, if they exist.
const SYSTEM_PATHS: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    concat!("/home", "/linuxbrew"),
];

/// Devices of the view.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Links that programs expect.
const LINKS: [(&str, &str); 7] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/var/tmp", "/tmp"),
    ("/var/run", "/run"),
];

/// Paths of the view that need more than read access.
#[derive(Debug)]
pub(crate) struct RootView {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
}

/// What is mounted at a path of the view.
enum ViewMount<'a> {
    Bind(&'a Path),
    Copy(&'a PrivateCopy),
}

/// Builds the view and makes it the root directory of this process.
pub(crate) fn build(plan: &GuardPlan) -> Result<RootView, GuardFault> {
    let failed = |what: &'static str| GuardFault::io(GuardPart::View, what);
    let errno = |what: &'static str| {
        move |error: Errno| GuardFault::io(GuardPart::View, what)(error.into())
    };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(errno("cannot make mounts private"))?;
    let root = &plan.root;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", root, "tmpfs", plain, Some(c"mode=755,size=1m"))
        .map_err(errno("cannot mount a file system in memory"))?;

    let mut mounts: Vec<(PathBuf, ViewMount<'_>)> = Vec::new();
    let system = SYSTEM_PATHS.iter().chain(&DEVICES).map(Path::new);
    for path in system.chain(plan.read.iter().map(PathBuf::as_path)) {
        // The copy has its own version of everything in the workspace.
        if path.starts_with(&plan.workspace) {
            continue;
        }
        mounts.push((path.to_owned(), ViewMount::Bind(path)));
    }
    mounts.push((plan.home_at.clone(), ViewMount::Bind(&plan.home)));
    mounts.push((PathBuf::from("/tmp"), ViewMount::Bind(&plan.tmp)));
    mounts.push((plan.workspace.clone(), ViewMount::Copy(&plan.copy)));
    // Parents first, because a mount hides what is below it.
    mounts.sort_by(|(one, _), (other, _)| one.cmp(other));
    mounts.dedup_by(|(one, _), (other, _)| one == other);
    let mut bound: Vec<PathBuf> = Vec::new();
    for (path, what) in &mounts {
        match what {
            ViewMount::Bind(source) => {
                // A directory that is already visible through its parent needs no mount.
                let is_covered =
                    source == path && bound.iter().any(|above| path.starts_with(above));
                if !is_covered {
                    bind(root, source, path).map_err(failed("cannot mount a directory"))?;
                    // Landlock alone would allow writes to what is mounted below the private home.
                    if source == path && !path.starts_with("/dev") {
                        protect(root, path)?;
                    }
                }
                if source == path {
                    bound.push(path.clone());
                }
            }
            ViewMount::Copy(PrivateCopy::Folder(folder)) => {
                bind(root, folder, path).map_err(failed("cannot mount the copy"))?;
            }
            ViewMount::Copy(PrivateCopy::Overlay { upper, work }) => {
                let target = inside(root, path);
                fs::create_dir_all(&target).map_err(failed("cannot create a directory"))?;
                mount_overlay(&plan.workspace, upper, work, &target)?;
            }
        }
    }
    mount_own_file_systems(root)?;
    for (link, target) in LINKS {
        let link = inside(root, Path::new(link));
        let made = link.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::os::unix::fs::symlink(target, &link))
            .map_err(failed("cannot create a link"))?;
    }
    fs::create_dir_all(inside(root, Path::new("/run"))).map_err(failed("cannot create `/run`"))?;

    rustix::process::chdir(root).map_err(errno("cannot enter the view"))?;
    rustix::process::pivot_root(".", ".").map_err(errno("cannot change the root directory"))?;
    unmount(".", UnmountFlags::DETACH).map_err(errno("cannot hide the old root directory"))?;
    rustix::process::chdir("/").map_err(errno("cannot enter the view"))?;
    mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | plain, c"")
        .map_err(errno("cannot make the root directory read-only"))?;
    let devices = DEVICES.iter().chain(&["/dev/pts"]).map(PathBuf::from);
    Ok(RootView {
        writable: vec![
            plan.workspace.clone(),
            plan.home_at.clone(),
            PathBuf::from("/tmp"),
            PathBuf::from("/dev/shm"),
        ],
        devices: devices.filter(|path| path.exists()).collect(),
    })
}

/// The overlay's directories are named by file descriptor, because a path may contain characters
/// that separate mount options.
fn mount_overlay(lower: &Path, upper: &Path, work: &Path, target: &Path) -> Result<(), GuardFault> {
    let open = |path: &Path| -> Result<OwnedFd, GuardFault> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
            GuardFault::io(GuardPart::View, "cannot open a directory of the copy")(error.into())
        })
    };
    let (lower, upper, work) = (open(lower)?, open(upper)?, open(work)?);
    let at = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
    let options =
        format!("lowerdir={},upperdir={},workdir={},userxattr", at(&lower), at(&upper), at(&work));
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", target, "overlay", flags, Some(options.as_c_str())).map_err(|error| {
        GuardFault::io(GuardPart::Overlay, "cannot mount an overlay file system")(error.into())
    })
}

/// `/proc` of the PID namespace, and terminals and shared memory of the agent.
fn mount_own_file_systems(root: &Path) -> Result<(), GuardFault> {
    let mounts = [
        ("proc", "/proc", MountFlags::NOEXEC, c""),
        ("devpts", "/dev/pts", MountFlags::NOEXEC, c"newinstance,ptmxmode=0666,mode=0600"),
        ("tmpfs", "/dev/shm", MountFlags::NODEV, c"mode=1777,size=256m"),
    ];
    for (kind, path, flags, options) in mounts {
        let target = inside(root, Path::new(path));
        let what = format!("cannot mount `{path}`");
        fs::create_dir_all(&target).map_err(GuardFault::io(GuardPart::View, &what))?;
        let flags = flags | MountFlags::NOSUID;
        mount(kind, &target, kind, flags, Some(options))
            .map_err(|error| GuardFault::io(GuardPart::View, &what)(error.into()))?;
    }
    Ok(())
}

/// Mounts a file or a directory, or repeats a link. Skips what does not exist.
fn bind(root: &Path, source: &Path, path: &Path) -> io::Result<()> {
    let target = inside(root, path);
    let found = match fs::symlink_metadata(source) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    if found.is_symlink() {
        return match fs::os::unix::fs::symlink(fs::read_link(source)?, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
    }
    match found.is_dir() {
        true => fs::create_dir_all(&target)?,
        false => drop(fs::OpenOptions::new().create(true).append(true).open(&target)?),
    }
    mount_bind_recursive(source, &target)?;
    Ok(())
}

/// Makes what was mounted at a path read-only.
fn protect(root: &Path, path: &Path) -> Result<(), GuardFault> {
    let target = inside(root, path);
    // A repeated link is not a mount.
    if !fs::symlink_metadata(&target).is_ok_and(|found| found.is_dir() || found.is_file()) {
        return Ok(());
    }
    let failed = GuardFault::io(GuardPart::View, "cannot make a directory read-only");
    match std::ffi::CString::new(target.as_os_str().as_bytes()) {
        Ok(target) => ffi::make_read_only(&target).map_err(failed),
        Err(_) => Err(GuardFault::new(GuardPart::View, "a path contains a zero byte")),
    }
}

/// A path of the view while it is being built.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
