//! Runs a coding agent in a private view of this machine.
//!
//! The agent sees a private copy of the workspace at the workspace's own path, a private home and
//! temporary directory, programs and libraries, and nothing else. It runs in user, mount, PID, IPC
//! and network namespaces, without capabilities, under Landlock and a system call filter. Its
//! network consists of a loopback interface on which this process accepts connections.
//!
//! Namespaces need a process with one thread, so this program starts itself twice: the first
//! process enters the namespaces, the second is PID 1 in them, prepares the view and starts the
//! agent. See [`enter`].

mod egress_proxy;
mod inside;
mod limits;
mod root_view;

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags,
    SocketType, recvmsg, send, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

pub use self::egress_proxy::{EgressLog, EgressRecord, EgressRules, HostRule, HostRuleFault};
pub use self::inside::enter;
pub use self::limits::GuardLimits;

use self::limits::AgentGroup;

use crate::jail::JailCommand;
use crate::spawner::{ChildProcess, spawn};

/// First argument of the processes that [`GuardedProcess::start`] starts. Their program must call
/// [`enter`] with the arguments that follow it.
pub const PART: &str = "guard-part";

/// File descriptor of the socket to the supervisor.
const CONTROL_FD: i32 = 3;

/// Size limit of a control message.
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// Limit of listening sockets: the proxy and ports on loopback.
const MAX_LISTENERS: usize = 16;

/// How long the namespaces and the view may take.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How the private copy is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivateCopy {
    /// An overlay over the workspace; changes are in `upper`.
    Overlay { upper: PathBuf, work: PathBuf },
    /// A full copy in this directory.
    Folder(PathBuf),
}

/// What the agent sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardPlan {
    /// The workspace, as an absolute path without links. The copy has the same path.
    pub workspace: PathBuf,
    pub copy: PrivateCopy,
    /// Directory that the agent sees at `home_at`.
    pub home: PathBuf,
    pub home_at: PathBuf,
    /// Directory that the agent sees at `/tmp`.
    pub tmp: PathBuf,
    /// An empty directory, on which the view is built.
    pub root: PathBuf,
    /// Files and directories that the agent can read, in addition to those of the system.
    pub read: Vec<PathBuf>,
    /// Ports on the agent's loopback interface on which this process accepts connections.
    pub ports: Vec<u16>,
    pub limits: GuardLimits,
}

/// The part of the isolation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardPart {
    Namespaces,
    Overlay,
    View,
    Network,
    Landlock,
    Filter,
    Limits,
    Program,
    Control,
}

/// Why an agent was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct GuardFault {
    pub part: GuardPart,
    pub problem: String,
}

impl GuardFault {
    fn new(part: GuardPart, problem: impl Into<String>) -> Self {
        Self { part, problem: problem.into() }
    }

    fn io(part: GuardPart, what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(part, format!("{what}: {error}"))
    }
}

/// How the agent's first process ended. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentExit {
    Exited(i32),
    Signalled(i32),
    /// The processes were killed before the agent ended.
    Killed,
}

/// A message on the control socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ControlMessage {
    /// The host's process id of PID 1 in the namespaces.
    Started {
        pid: i32,
    },
    /// The view is prepared. Carries the listening sockets.
    Ready,
    /// The agent ended.
    Ended(AgentExit),
    Failed {
        part: GuardPart,
        problem: String,
    },
}

/// A running agent. It is killed, with all processes that it started, when this value is dropped or
/// this process dies.
#[derive(Debug)]
pub struct GuardedProcess {
    outer: ChildProcess,
    /// PID 1 of the namespaces.
    init: OwnedFd,
    /// Closed when no process is left.
    empty: watch::Receiver<()>,
    ended: Option<oneshot::Receiver<Result<AgentExit, GuardFault>>>,
    group: Option<AgentGroup>,
}

/// Where the agent's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentOutput {
    /// To standard output of this process.
    Inherit,
    /// To standard error of this process.
    Stderr,
}

/// A started agent and the sockets on which this process accepts its connections, in the order of
/// [`GuardPlan::ports`].
#[derive(Debug)]
pub struct StartedAgent {
    pub process: GuardedProcess,
    pub listeners: Vec<TcpListener>,
}

impl GuardedProcess {
    /// Starts an agent. It inherits standard input and error. `environment` is its whole
    /// environment.
    pub async fn start(
        launcher: &JailCommand,
        plan: &GuardPlan,
        environment: &[(OsString, OsString)],
        command_line: &[OsString],
        output: AgentOutput,
    ) -> Result<StartedAgent, GuardFault> {
        let control = |what| GuardFault::io(GuardPart::Control, what);
        if plan.ports.len() > MAX_LISTENERS {
            let problem = format!("too many ports (limit: {MAX_LISTENERS})");
            return Err(GuardFault::new(GuardPart::Network, problem));
        }
        let plan_text = serde_json::to_string(plan)
            .map_err(|error| GuardFault::new(GuardPart::Control, error.to_string()))?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| control("cannot create a socket")(error.into()))?;
        let mut command = Command::new(&launcher.program);
        command
            .args(&launcher.args)
            .args([PART, "outer", &std::process::id().to_string(), &plan_text])
            .args(command_line)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/");
        if output == AgentOutput::Stderr {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.map_err(control("cannot duplicate standard error"))?);
        }
        command
            .fd_mappings(vec![FdMapping { parent_fd: theirs, child_fd: CONTROL_FD }])
            .map_err(|error| GuardFault::new(GuardPart::Control, error.to_string()))?;
        let mut outer = spawn(command).await.map_err(control("cannot start a process"))?;
        let (ended_to, ended) = oneshot::channel();
        let reading = ours.try_clone().map_err(control("cannot duplicate a socket"))?;
        let started = receive_start(reading, ended_to);
        let started = tokio::time::timeout(START_TIMEOUT, started).await;
        let (pid, listeners) = match started {
            Ok(started) => started?,
            Err(_) => {
                outer.kill();
                return Err(GuardFault::new(GuardPart::View, "the view was not ready in time"));
            }
        };
        let pid = Pid::from_raw(pid)
            .ok_or_else(|| GuardFault::new(GuardPart::Control, "invalid process id"))?;
        let group = AgentGroup::enter(pid, plan.limits)?;
        let init = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| control("cannot open a process")(error.into()))?;
        let waiting = init.try_clone().map_err(control("cannot duplicate a process handle"))?;
        let empty = wait_for_exit(waiting).map_err(control("cannot wait for a process"))?;
        // PID 1 waits for this, so nothing runs unless both processes are under our control.
        send(&ours, b"go", SendFlags::NOSIGNAL)
            .map_err(|error| control("the agent's supervisor has exited")(error.into()))?;
        let process = Self { outer, init, empty, ended: Some(ended), group };
        Ok(StartedAgent { process, listeners })
    }

    /// Waits until the agent has ended and no process of it is left. An error means that it was not
    /// started.
    pub async fn wait(&mut self) -> Result<AgentExit, GuardFault> {
        let exit = match self.ended.take() {
            Some(ended) => ended.await.unwrap_or(Ok(AgentExit::Killed)),
            None => Ok(AgentExit::Killed),
        };
        self.wait_until_empty().await;
        exit
    }

    /// Whether the kernel killed a process of the agent because of the memory limit.
    pub fn was_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(AgentGroup::was_out_of_memory)
    }

    /// Kills every process of the agent and waits until none is left.
    pub async fn kill(&mut self) {
        // An error means that it has already exited.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
        self.wait_until_empty().await;
    }

    async fn wait_until_empty(&mut self) {
        // An error means that the thread has ended.
        while self.empty.changed().await.is_ok() {}
        let _ = self.outer.wait().await;
    }
}

impl Drop for GuardedProcess {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }
}

/// Waits for the end of PID 1 on a separate thread. The kernel reports it only after it has killed
/// and reaped every process of the namespace.
fn wait_for_exit(init: OwnedFd) -> io::Result<watch::Receiver<()>> {
    let (alive, empty) = watch::channel(());
    let thread = move || {
        let mut polled = [PollFd::new(&init, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
        drop(alive);
    };
    std::thread::Builder::new().name("guard-wait".to_owned()).spawn(thread)?;
    Ok(empty)
}

/// Receives messages on a separate thread until the agent runs, then leaves the thread to wait for
/// its end.
async fn receive_start(
    socket: OwnedFd,
    ended: oneshot::Sender<Result<AgentExit, GuardFault>>,
) -> Result<(i32, Vec<TcpListener>), GuardFault> {
    let (to, from) = oneshot::channel();
    let thread = move || {
        let _ = to.send(receive_until_ready(&socket));
        let _ = match receive(&socket) {
            Ok(Some((ControlMessage::Ended(exit), _))) => ended.send(Ok(exit)),
            Ok(Some((ControlMessage::Failed { part, problem }, _))) => {
                ended.send(Err(GuardFault { part, problem }))
            }
            _ => ended.send(Ok(AgentExit::Killed)),
        };
    };
    std::thread::Builder::new()
        .name("guard-control".to_owned())
        .spawn(thread)
        .map_err(GuardFault::io(GuardPart::Control, "cannot start a thread"))?;
    let gone = || GuardFault::new(GuardPart::Control, "the control thread is gone");
    from.await.map_err(|_| gone())?
}

fn receive_until_ready(socket: &OwnedFd) -> Result<(i32, Vec<TcpListener>), GuardFault> {
    let (mut pid, mut listeners) = (None, None);
    loop {
        match receive(socket)
            .map_err(GuardFault::io(GuardPart::Control, "cannot read a message"))?
        {
            Some((ControlMessage::Started { pid: started }, _)) => pid = Some(started),
            Some((ControlMessage::Ready, sockets)) => listeners = Some(sockets),
            Some((ControlMessage::Failed { part, problem }, _)) => {
                return Err(GuardFault { part, problem });
            }
            Some((ControlMessage::Ended(_), _)) | None => {
                let problem = "the supervisor of the agent exited early";
                return Err(GuardFault::new(GuardPart::Control, problem));
            }
        }
        if let (Some(pid), Some(_)) = (pid, &listeners) {
            let sockets = listeners.take().unwrap_or_default();
            return Ok((pid, sockets.into_iter().map(TcpListener::from).collect()));
        }
    }
}

/// One message and its file descriptors, or `None` at the end.
fn receive(socket: &OwnedFd) -> io::Result<Option<(ControlMessage, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let sockets = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        })
        .flatten()
        .collect();
    let message = serde_json::from_slice(&bytes[..received.bytes])?;
    Ok(Some((message, sockets)))
}
