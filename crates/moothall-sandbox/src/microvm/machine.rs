//! One QEMU process: its command line, its files, its end.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::Accel;
use super::host::kvm_group;
use super::qmp::Qmp;
use crate::jail::{FIRST_FD, Inmate, JailCommand, JailReport, read_report};
use crate::spawner::{self, Process};
use crate::{SandboxError, Session};

/// Mebibytes that the emulator may fill with translated code. Its own default is a gibibyte, which
/// a program that writes ever new code could use up, outside of every limit.
pub(super) const TRANSLATED_MIB: u64 = 64;

/// The name of the port over which the agent speaks.
const PORT: &str = "moothall.agent";

/// How long the jail may take to become QEMU.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of what QEMU says last is kept.
const LAST_WORDS: usize = 2 << 10;

/// How every QEMU here is started.
#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) qemu: PathBuf,
    pub(super) jail: JailCommand,
    /// The walls that were reported when QEMU was looked at. One behind others is not used.
    pub(super) walls: JailReport,
}

/// What is to be started.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) accel: Accel,
    pub(super) ram: &'a OwnedFd,
    pub(super) ram_bytes: u64,
    /// The root file system, open for reading.
    pub(super) root: Option<&'a OwnedFd>,
    pub(super) start: Start<'a>,
}

/// From where it starts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    /// From the kernel. What the guest writes goes into `ram` itself.
    Boot { kernel: &'a OwnedFd, initramfs: &'a OwnedFd, command_line: &'a str },
    /// From the state of a template, which comes later. What the guest writes is its own; `ram`
    /// stays as it is. The kernel is in it, so it is not loaded again.
    Clone,
}

/// A QEMU that runs. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) process: Process,
    pub(super) qmp: Qmp,
    pub(super) session: Session,
    pub(super) words: LastWords,
}

/// What QEMU said last on its standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<Vec<u8>>>);

impl Launcher {
    /// Starts QEMU and waits for its greeting.
    pub(super) async fn launch(&self, plan: &Plan<'_>) -> Result<Machine, SandboxError> {
        let unusable = || SandboxError::host("QEMU cannot be given its files");
        let (session, agent) = channel()?;
        let (monitor, qmp) = channel()?;
        let mut files = vec![agent, qmp];
        let (ram, root) = (Some(plan.ram), plan.root);
        let (kernel, initramfs) = match plan.start {
            Start::Boot { kernel, initramfs, .. } => (Some(kernel), Some(initramfs)),
            Start::Clone => (None, None),
        };
        for file in [ram, root, kernel, initramfs].into_iter().flatten() {
            files.push(file.as_fd().try_clone_to_owned().map_err(unusable())?);
        }
        let mut devices = vec![PathBuf::from("/dev/null"), PathBuf::from("/dev/urandom")];
        let mut group = None;
        if plan.accel == Accel::Kvm {
            devices.push(PathBuf::from("/dev/kvm"));
            group = kvm_group();
        }
        let args = arguments(plan);
        let inmate = Inmate { program: self.qemu.clone(), args, devices, group, files };

        let (command, report) = self.jail.command(inmate).map_err(unusable())?;
        let mut process = spawner::spawn(command)
            .await
            .map_err(SandboxError::host("the jail cannot be started"))?;
        let words = LastWords::default();
        if let Some(stderr) = process.take_stderr() {
            let stderr = Receiver::from_owned_fd(stderr.into()).map_err(unusable())?;
            tokio::spawn(words.clone().listen(stderr));
        }
        let late = SandboxError::NotReady { what: "the jail", waited: PATIENCE };
        let walls = timeout(PATIENCE, read_report(report)).await.map_err(|_| late)??;
        if walls != self.walls {
            return Err(SandboxError::Start {
                engine: "the jail".to_owned(),
                problem: format!("its walls are {walls:?}, and they were {:?}", self.walls),
            });
        }
        let qmp = match Qmp::greet(monitor).await {
            Ok(qmp) => qmp,
            Err(SandboxError::Lost(_)) => return Err(silent(&mut process, &words).await),
            Err(other) => return Err(other),
        };
        let (from, to) = session.into_split();
        let session = Session::new(Box::new(from), Box::new(to));
        Ok(Machine { process, qmp, session, words })
    }
}

impl LastWords {
    /// On one line.
    pub(super) fn text(&self) -> String {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&heard);
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// Reads to the end, so that QEMU never waits for us, and keeps what came last.
    async fn listen(self, mut from: Receiver) {
        let mut piece = [0; 1 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            heard.extend_from_slice(&piece[..read]);
            let surplus = heard.len().saturating_sub(LAST_WORDS);
            heard.drain(..surplus);
        }
    }
}

/// QEMU ended instead of speaking; its last words say why.
async fn silent(process: &mut Process, words: &LastWords) -> SandboxError {
    let _ = timeout(Duration::from_secs(2), process.wait()).await;
    // The words may arrive a moment after the end.
    tokio::task::yield_now().await;
    let text = words.text();
    let problem = if text.is_empty() { "it ended without a word".to_owned() } else { text };
    SandboxError::Start { engine: "QEMU".to_owned(), problem }
}

/// A pair of connected sockets: ours, and the one that QEMU inherits.
fn channel() -> Result<(UnixStream, OwnedFd), SandboxError> {
    let unusable = || SandboxError::host("no channel to QEMU can be made");
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| unusable()(error.into()))?;
    let ours = std::os::unix::net::UnixStream::from(ours);
    ours.set_nonblocking(true).map_err(unusable())?;
    Ok((UnixStream::from_std(ours).map_err(unusable())?, theirs))
}

/// QEMU's command line. Files are the ones that it inherits, in the order of [`Launcher::launch`].
fn arguments(plan: &Plan<'_>) -> Vec<String> {
    let mut fds = FIRST_FD..;
    let mut fd = || fds.next().unwrap_or_default();
    let (agent, qmp, ram) = (fd(), fd(), fd());
    let mib = plan.ram_bytes >> 20;
    let share = match plan.start {
        Start::Boot { .. } => "on",
        Start::Clone => "off",
    };
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    // No clock chips but the one that tells the time of day: the kernel would wait four seconds for
    // a missing one. No merging of equal pages: a guest could feel what its neighbours hold.
    add(&["-M", "microvm,acpi=on,pit=off,pic=off,rtc=on,mem-merge=off,memory-backend=ram"]);
    match plan.accel {
        Accel::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
        Accel::Tcg => {
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
    if plan.root.is_some() {
        let root = fd();
        add(&["-add-fd", &format!("fd={root},set={root}")]);
        let file = format!("id=root,file=/dev/fdset/{root},format=raw,if=none,readonly=on");
        // Nobody writes to it, so nobody needs to lock it.
        add(&["-drive", &format!("{file},file.locking=off")]);
        add(&["-device", "virtio-blk-device,drive=root"]);
    }
    add(&["-chardev", &format!("socket,id=agent,fd={agent}")]);
    add(&["-device", "virtio-serial-device,max_ports=2"]);
    add(&["-device", &format!("virtserialport,chardev=agent,name={PORT},nr=1")]);
    add(&["-chardev", &format!("socket,id=qmp,fd={qmp}"), "-mon", "chardev=qmp,mode=control"]);
    let denied = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
    add(&["-sandbox", denied]);
    match plan.start {
        Start::Boot { command_line, .. } => {
            let (kernel, initramfs) = (fd(), fd());
            add(&["-kernel", &format!("/proc/self/fd/{kernel}")]);
            add(&["-initrd", &format!("/proc/self/fd/{initramfs}")]);
            add(&["-append", command_line]);
        }
        Start::Clone => add(&["-incoming", "defer", "-S"]),
    }
    args
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
