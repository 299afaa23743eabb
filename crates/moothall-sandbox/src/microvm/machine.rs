//! One QEMU process: its command line, inherited files and shutdown.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::VmAccelerator;
use super::host_info::kvm_group;
use super::qmp::QmpClient;
use crate::jail::{FIRST_FD, JailCommand, JailReport, JailedProcess, read_report};
use crate::spawner::{self, ChildProcess};
use crate::{AgentSession, SandboxError};

/// Size limit of the emulator's translation cache, in MiB. QEMU's default is 1 GiB, which a program
/// that keeps generating code could fill outside of every limit.
pub(crate) const TRANSLATED_MIB: u64 = 64;

/// Name of the agent's serial port.
const PORT: &str = "moothall.agent";

/// Time limit for the jail to report.
const JAIL_TIMEOUT: Duration = Duration::from_secs(20);

/// How many bytes of QEMU's standard error are kept.
const STDERR_TAIL_BYTES: usize = 2 << 10;

/// Starts QEMU processes.
#[derive(Debug)]
pub(crate) struct QemuLauncher {
    pub(crate) qemu: PathBuf,
    pub(crate) jail: JailCommand,
    /// Expected restrictions. A QEMU process that reports different ones is not used.
    pub(crate) restrictions: JailReport,
}

/// Configuration of one QEMU process.
#[derive(Debug)]
pub(crate) struct QemuConfig<'a> {
    pub(crate) accel: VmAccelerator,
    pub(crate) ram: &'a OwnedFd,
    pub(crate) ram_bytes: u64,
    /// Root file system, opened for reading.
    pub(crate) root: Option<&'a OwnedFd>,
    pub(crate) start: QemuStartMode<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum QemuStartMode<'a> {
    /// Boot the kernel. Guest writes go to `ram` itself.
    Boot { kernel: &'a OwnedFd, initramfs: &'a OwnedFd, command_line: &'a str },
    /// Load the state of a template later. Guest writes are private and `ram` does not change. The
    /// kernel is already in memory, so it is not loaded again.
    Clone,
}

/// A running QEMU process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct QemuMachine {
    pub(crate) process: ChildProcess,
    pub(crate) qmp: QmpClient,
    pub(crate) session: AgentSession,
    pub(crate) stderr_tail: QemuStderrTail,
}

/// The end of QEMU's standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct QemuStderrTail(Arc<Mutex<Vec<u8>>>);

impl QemuLauncher {
    /// Starts QEMU and waits for its QMP greeting.
    pub(crate) async fn launch(
        &self,
        config: &QemuConfig<'_>,
    ) -> Result<QemuMachine, SandboxError> {
        let unusable = || SandboxError::host("cannot pass files to QEMU");
        let (session, agent) = channel()?;
        let (monitor, qmp) = channel()?;
        let mut files = vec![agent, qmp];
        let (ram, root) = (Some(config.ram), config.root);
        let (kernel, initramfs) = match config.start {
            QemuStartMode::Boot { kernel, initramfs, .. } => (Some(kernel), Some(initramfs)),
            QemuStartMode::Clone => (None, None),
        };
        for file in [ram, root, kernel, initramfs].into_iter().flatten() {
            files.push(file.as_fd().try_clone_to_owned().map_err(unusable())?);
        }
        let mut devices = vec![PathBuf::from("/dev/null"), PathBuf::from("/dev/urandom")];
        let mut group = None;
        if config.accel == VmAccelerator::Kvm {
            devices.push(PathBuf::from("/dev/kvm"));
            group = kvm_group();
        }
        let args = arguments(config);
        let jailed = JailedProcess { program: self.qemu.clone(), args, devices, group, files };

        let (command, report) = self.jail.command(jailed).map_err(unusable())?;
        let mut process =
            spawner::spawn(command).await.map_err(SandboxError::host("cannot start the jail"))?;
        let stderr_tail = QemuStderrTail::default();
        if let Some(stderr) = process.take_stderr() {
            let stderr = Receiver::from_owned_fd(stderr.into()).map_err(unusable())?;
            tokio::spawn(stderr_tail.clone().collect(stderr));
        }
        let timed_out = SandboxError::NotReady { what: "the jail", waited: JAIL_TIMEOUT };
        let restrictions =
            timeout(JAIL_TIMEOUT, read_report(report)).await.map_err(|_| timed_out)??;
        if restrictions != self.restrictions {
            return Err(SandboxError::Start {
                engine: "the jail".to_owned(),
                problem: format!(
                    "its restrictions changed: {restrictions:?}, expected {:?}",
                    self.restrictions
                ),
            });
        }
        let qmp = match QmpClient::greet(monitor).await {
            Ok(qmp) => qmp,
            Err(SandboxError::Lost(_)) => {
                return Err(startup_error(&mut process, &stderr_tail).await);
            }
            Err(other) => return Err(other),
        };
        let (from, to) = session.into_split();
        let session = AgentSession::new(Box::new(from), Box::new(to));
        Ok(QemuMachine { process, qmp, session, stderr_tail })
    }
}

impl QemuStderrTail {
    /// The text as a single line.
    pub(crate) fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// Reads to the end so that QEMU never blocks, and keeps the last part.
    async fn collect(self, mut from: Receiver) {
        let mut piece = [0; 1 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend_from_slice(&piece[..read]);
            let surplus = tail.len().saturating_sub(STDERR_TAIL_BYTES);
            tail.drain(..surplus);
        }
    }
}

/// QEMU exited instead of sending a greeting; its standard error says why.
async fn startup_error(process: &mut ChildProcess, stderr_tail: &QemuStderrTail) -> SandboxError {
    let _ = timeout(Duration::from_secs(2), process.wait()).await;
    // Output may arrive shortly after the process exits.
    tokio::task::yield_now().await;
    let text = stderr_tail.text();
    let problem =
        if text.is_empty() { "it exited without an error message".to_owned() } else { text };
    SandboxError::Start { engine: "QEMU".to_owned(), problem }
}

/// A pair of connected sockets: ours and the one that QEMU inherits.
fn channel() -> Result<(UnixStream, OwnedFd), SandboxError> {
    let unusable = || SandboxError::host("cannot create a socket pair for QEMU");
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| unusable()(error.into()))?;
    let ours = std::os::unix::net::UnixStream::from(ours);
    ours.set_nonblocking(true).map_err(unusable())?;
    Ok((UnixStream::from_std(ours).map_err(unusable())?, theirs))
}

/// QEMU's command line. File descriptors are numbered in the order of [`QemuLauncher::launch`].
fn arguments(config: &QemuConfig<'_>) -> Vec<String> {
    let mut fds = FIRST_FD..;
    let mut fd = || fds.next().unwrap_or_default();
    let (agent, qmp, ram) = (fd(), fd(), fd());
    let mib = config.ram_bytes >> 20;
    let share = match config.start {
        QemuStartMode::Boot { .. } => "on",
        QemuStartMode::Clone => "off",
    };
    let mut args: Vec<String> = Vec::new();
    let mut add = |new: &[&str]| args.extend(new.iter().map(|word| (*word).to_owned()));
    // The real-time clock is kept because the kernel waits four seconds for a missing one. Page
    // merging is off because a guest could infer what its neighbours have in memory.
    add(&["-M", "microvm,acpi=on,pit=off,pic=off,rtc=on,mem-merge=off,memory-backend=ram"]);
    match config.accel {
        VmAccelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
        VmAccelerator::Tcg => {
            add(&["-accel", &format!("tcg,tb-size={TRANSLATED_MIB}"), "-cpu", "max"]);
        }
    }
    add(&["-smp", "1", "-m", &format!("{mib}M")]);
    add(&["-nodefaults", "-no-user-config", "-no-reboot"]);
    add(&["-display", "none", "-nic", "none", "-serial", "null"]);
    let memory = format!(
        "memory-backend-file,id=ram,size={mib}M,mem-path=/proc/self/fd/{ram},share={share}"
    );
    add(&["-object", &memory]);
    if config.root.is_some() {
        let root = fd();
        add(&["-add-fd", &format!("fd={root},set={root}")]);
        let file = format!("id=root,file=/dev/fdset/{root},format=raw,if=none,readonly=on");
        // The image is read-only, so no lock is needed.
        add(&["-drive", &format!("{file},file.locking=off")]);
        add(&["-device", "virtio-blk-device,drive=root"]);
    }
    add(&["-chardev", &format!("socket,id=agent,fd={agent}")]);
    add(&["-device", "virtio-serial-device,max_ports=2"]);
    add(&["-device", &format!("virtserialport,chardev=agent,name={PORT},nr=1")]);
    add(&["-chardev", &format!("socket,id=qmp,fd={qmp}"), "-mon", "chardev=qmp,mode=control"]);
    let denied = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
    add(&["-sandbox", denied]);
    match config.start {
        QemuStartMode::Boot { command_line, .. } => {
            let (kernel, initramfs) = (fd(), fd());
            add(&["-kernel", &format!("/proc/self/fd/{kernel}")]);
            add(&["-initrd", &format!("/proc/self/fd/{initramfs}")]);
            add(&["-append", command_line]);
        }
        QemuStartMode::Clone => add(&["-incoming", "defer", "-S"]),
    }
    args
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
