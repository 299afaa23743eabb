//! PID 1 of a microVM: loads modules, mounts file systems, creates the cgroup and opens the port to
//! the host.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::MountFlags;

use crate::cgroup::ProgramCgroup;
use crate::error::GuestError;
use crate::event_loop::{DisconnectPolicy, HostConnection};
use crate::machine::{GuestEnvironment, GuestMicroVm, ProgramRoot, SandboxBackend};

/// Kernel parameter that must be present before anything is mounted, because in a container PID 1
/// must not do that.
const AGENT_PARAM: &str = "moothall.agent=vm";

/// Kernel parameter for the size of `/workspace` and `/tmp`, each.
const DISK_PARAM: &str = "moothall.disk=";

/// Kernel parameter for the size of `/inputs`.
const INPUTS_PARAM: &str = "moothall.inputs=";

const DISK_BYTES: u64 = 64 << 20;

/// Limit of files and folders in each file system.
const MAX_INODES: u32 = 16_384;

const PORT_NAME: &str = "moothall.agent";
const DISK: &str = "/dev/vda";
const ROOT: &CStr = c"/image";
const CGROUPS: &str = "/cgroup";

/// Kernel settings.
const SETTINGS: [(&str, &str); 4] = [
    // Programs do not need these, and they are a large attack surface.
    ("user/max_user_namespaces", "0"),
    ("kernel/unprivileged_bpf_disabled", "1"),
    ("kernel/dmesg_restrict", "1"),
    // Programs that exceed their memory limit are killed, as in a container; allocations do not
    // fail.
    ("vm/overcommit_memory", "1"),
];

/// How long to wait for the disk after its driver was loaded. It appears immediately, or there is
/// none.
const DISK_WAIT: Duration = Duration::from_millis(250);

/// How long to wait for the port.
const PORT_WAIT: Duration = Duration::from_secs(20);

/// Boots and returns the machine and the connection to the host.
pub(crate) fn boot() -> Result<(SandboxBackend, HostConnection), GuestError> {
    let params = command_line()?;
    rustix::system::sethostname(b"sandbox").map_err(GuestError::setup("set the host name"))?;
    mount("dev", "/dev", "devtmpfs", MountFlags::NOSUID, c"")?;
    mount("sys", "/sys", "sysfs", RESTRICTED, c"")?;
    load_modules()?;
    let (root, workspace) =
        if wait_for(DISK_WAIT, || Path::new(DISK).exists().then_some(())).is_some() {
            let (root, workspace) = mount_root(&params)?;
            (Some(root), workspace)
        } else {
            (None, mount_workspace(&params)?)
        };
    let machine = SandboxBackend::new(GuestEnvironment::MicroVm(GuestMicroVm { root }), workspace)?;
    let port = wait_for(PORT_WAIT, find_port).ok_or_else(|| {
        GuestError::setup("find the port to the host")(std::io::Error::from(
            std::io::ErrorKind::NotFound,
        ))
    })?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    let port = rustix::fs::open(&port, flags, Mode::empty())
        .map_err(GuestError::setup("open the port to the host"))?;
    let connection = HostConnection::new(port.try_clone()?, port, DisconnectPolicy::Away)?;
    Ok((machine, connection))
}

/// Writes the error to the kernel log and reboots, which ends a microVM.
pub(crate) fn log_and_reboot(error: &GuestError) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(log) = rustix::fs::open("/dev/kmsg", flags, Mode::empty()) {
        let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        let _ = rustix::io::write(&log, format!("moothall-guest: {error}: {source}").as_bytes());
    }
    let _ = rustix::system::reboot(rustix::system::RebootCommand::Restart);
}

const RESTRICTED: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Reads the kernel command line. Mounts `/proc` if needed.
fn command_line() -> Result<Vec<String>, GuestError> {
    if !Path::new("/proc/cmdline").exists() {
        mount("proc", "/proc", "proc", RESTRICTED, c"")?;
    }
    let line = fs_err::read_to_string("/proc/cmdline")?;
    let params: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if params.iter().any(|param| param == AGENT_PARAM) {
        Ok(params)
    } else {
        Err(GuestError::Usage)
    }
}

fn size_param(params: &[String], prefix: &str) -> Option<u64> {
    params.iter().find_map(|param| param.strip_prefix(prefix)?.parse().ok())
}

/// Listed modules must load. Modules built into the kernel are not listed.
fn load_modules() -> Result<(), GuestError> {
    let order = Path::new("/modules/order");
    if !order.exists() {
        return Ok(());
    }
    for name in fs_err::read_to_string(order)?.lines().filter(|line| !line.is_empty()) {
        let setup = |error: rustix::io::Errno| {
            GuestError::setup::<std::io::Error>(format_args!("load the module `{name}`"))(
                error.into(),
            )
        };
        let path = Path::new("/modules").join(name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let module = rustix::fs::open(path, flags, Mode::empty()).map_err(setup)?;
        match rustix::system::finit_module(&module, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(setup(error)),
        }
    }
    Ok(())
}

fn mount_root(params: &[String]) -> Result<(ProgramRoot, OwnedFd), GuestError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let disk = size_param(params, DISK_PARAM).unwrap_or(DISK_BYTES);
    let inputs = size_param(params, INPUTS_PARAM).unwrap_or(disk);
    mount(DISK, "/image", "squashfs", flags | MountFlags::RDONLY, c"")?;
    mount("tmpfs", "/image/tmp", "tmpfs", flags, &tmpfs(disk, "mode=1777")?)?;
    mount(
        "tmpfs",
        "/image/workspace",
        "tmpfs",
        flags,
        &tmpfs(disk, "mode=755,uid=1000,gid=1000")?,
    )?;
    mount("tmpfs", "/image/inputs", "tmpfs", RESTRICTED, &tmpfs(inputs, "mode=755")?)?;
    mount("proc", "/image/proc", "proc", RESTRICTED, c"hidepid=2")?;
    make_devices()?;
    for (name, value) in SETTINGS {
        // A kernel without this setting does not have the feature.
        let _ = fs_err::write(Path::new("/proc/sys").join(name), value);
    }
    mount("cgroup", CGROUPS, "cgroup2", RESTRICTED, c"")?;
    let cgroup = ProgramCgroup::create(Path::new(CGROUPS))?;
    let workspace = open_folder("/image/workspace")?;
    let inputs = open_folder("/image/inputs")?;
    Ok((ProgramRoot { path: ROOT.to_owned(), inputs, cgroup }, workspace))
}

/// Without a root file system nothing can be run, but workflows still write their transcripts.
fn mount_workspace(params: &[String]) -> Result<OwnedFd, GuestError> {
    let disk = size_param(params, DISK_PARAM).unwrap_or(DISK_BYTES);
    mount("tmpfs", "/workspace", "tmpfs", RESTRICTED, &tmpfs(disk, "mode=755")?)?;
    open_folder("/workspace")
}

fn open_folder(path: &str) -> Result<OwnedFd, GuestError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(GuestError::setup(format_args!("open `{path}`")))
}

fn tmpfs(bytes: u64, rest: &str) -> Result<CString, GuestError> {
    CString::new(format!("size={bytes},nr_inodes={MAX_INODES},{rest}"))
        .map_err(|_| GuestError::Usage)
}

/// Creates the few devices that programs expect, then makes the folder read-only.
fn make_devices() -> Result<(), GuestError> {
    let setup = |error: rustix::io::Errno| {
        GuestError::setup::<std::io::Error>("create devices")(error.into())
    };
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", "/image/dev", "tmpfs", flags, c"size=64k,nr_inodes=32,mode=755")?;
    let folder = open_folder("/image/dev")?;
    for (name, minor) in [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)] {
        let mode = Mode::from_raw_mode(0o666);
        let device = rustix::fs::makedev(1, minor);
        rustix::fs::mknodat(&folder, name, FileType::CharacterDevice, mode, device)
            .map_err(setup)?;
        rustix::fs::chmodat(&folder, name, mode, rustix::fs::AtFlags::empty()).map_err(setup)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        // For named semaphores. Files there count towards the size of /tmp.
        ("shm", "/tmp"),
    ] {
        rustix::fs::symlinkat(target, &folder, name).map_err(setup)?;
    }
    rustix::mount::mount_remount("/image/dev", flags | MountFlags::RDONLY, "").map_err(setup)
}

/// Finds the device of the port with our name.
fn find_port() -> Option<String> {
    let ports = fs_err::read_dir("/sys/class/virtio-ports").ok()?;
    ports.flatten().find_map(|entry| {
        let name = fs_err::read_to_string(entry.path().join("name")).ok()?;
        let device = format!("/dev/{}", entry.file_name().to_str()?);
        (name.trim() == PORT_NAME && Path::new(&device).exists()).then_some(device)
    })
}

fn wait_for<T>(timeout: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = check() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Mounts a file system and creates the mount point if needed.
fn mount(
    source: &str,
    target: &str,
    kind: &str,
    flags: MountFlags,
    data: &CStr,
) -> Result<(), GuestError> {
    let setup = |error: rustix::io::Errno| {
        GuestError::setup::<std::io::Error>(format_args!("mount `{target}`"))(error.into())
    };
    if !Path::new(target).is_dir() {
        rustix::fs::mkdir(target, Mode::from_raw_mode(0o755)).map_err(setup)?;
    }
    rustix::mount::mount(source, target, kind, flags, Some(data)).map_err(setup)
}
