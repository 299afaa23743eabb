//! The real sandbox: its folders, its program and its parked interpreter.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use moothall_core::guest::{
    ExitCause, GuestMessage, GuestRunRequest, GuestStream, Place, ProgramExit,
};
use moothall_core::sandbox::{ExecuteRequest, GuestPath};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit};
use rustix::thread::{Gid, Uid};
use rustix::time::{ClockId, Timespec};

use crate::agent::GuestBackend;
use crate::cgroup::ProgramCgroup;
use crate::error::{GuestError, GuestRefusal};
use crate::files::{self, FileOwnership, PendingFile};
use crate::parked_interpreter::ParkedInterpreter;
use crate::probe;
use crate::processes;
use crate::program::{self, KernelSharing, ProgramStreams, RunningProgram};
use crate::sys::{self, ProcessRestrictions};

/// User and group id of programs if the agent is root.
const USER: u32 = 1000;

/// The environment in which the agent runs.
#[derive(Debug)]
pub(crate) enum GuestEnvironment {
    /// PID 1 of a microVM, as root.
    MicroVm(GuestMicroVm),
    /// A container, whose runtime provides the isolation.
    Container(GuestContainer),
}

/// A running container.
#[derive(Debug)]
pub(crate) struct GuestContainer {
    /// Working directory of programs.
    workspace: CString,
    /// User of programs. `None` if the agent is not root and cannot switch users.
    user: Option<(Uid, Gid)>,
    /// Folder of read-only inputs. `None` without a second user, because the program could change
    /// them.
    inputs: Option<OwnedFd>,
}

/// A booted microVM.
#[derive(Debug)]
pub(crate) struct GuestMicroVm {
    /// Root file system of programs. Without it nothing can be run.
    pub(crate) root: Option<ProgramRoot>,
}

#[derive(Debug)]
pub(crate) struct ProgramRoot {
    pub(crate) path: CString,
    pub(crate) inputs: OwnedFd,
    pub(crate) cgroup: ProgramCgroup,
}

/// A sandbox as seen from inside.
#[derive(Debug)]
pub(crate) struct SandboxBackend {
    environment: GuestEnvironment,
    workspace: OwnedFd,
    /// Becomes readable when a child changes state.
    children: OwnedFd,
    parked: Option<ParkedInterpreter>,
    program: Option<RunningProgram>,
}

impl SandboxBackend {
    /// A container with existing folders. If the agent is root, it runs programs as another user.
    pub(crate) fn in_container() -> Result<Self, GuestError> {
        let root = rustix::process::geteuid().is_root();
        let user = root.then(|| (Uid::from_raw(USER), Gid::from_raw(USER)));
        let inputs = if root { Some(open_folder("/inputs")?) } else { None };
        let container = GuestContainer { workspace: c"/workspace".to_owned(), user, inputs };
        Self::new(GuestEnvironment::Container(container), open_folder("/workspace")?)
    }

    /// A folder on the host, without isolation, for trying out the agent.
    pub(crate) fn in_folder(workspace: &str) -> Result<Self, GuestError> {
        let folder = CString::new(workspace).map_err(|_| GuestError::Usage)?;
        let container = GuestContainer { workspace: folder, user: None, inputs: None };
        Self::new(GuestEnvironment::Container(container), open_folder(workspace)?)
    }

    pub(crate) fn new(
        environment: GuestEnvironment,
        workspace: OwnedFd,
    ) -> Result<Self, GuestError> {
        let children = sys::watch_children()?;
        Ok(Self { environment, workspace, children, parked: None, program: None })
    }

    /// Becomes readable when a child exits or stops.
    pub(crate) fn children(&self) -> BorrowedFd<'_> {
        self.children.as_fd()
    }

    pub(crate) fn program(&mut self) -> Option<&mut RunningProgram> {
        self.program.as_mut()
    }

    pub(crate) fn running(&self) -> Option<&RunningProgram> {
        self.program.as_ref()
    }

    /// Reaps the program, the parked interpreter and orphans.
    pub(crate) fn reap(&mut self) {
        processes::drain_notifications(self.children.as_fd());
        while let Some((pid, status)) = processes::reap() {
            if let Some(program) = self.program.as_mut().filter(|program| program.pid == pid) {
                program.set_exit_status(status);
            }
            self.parked.take_if(|parked| parked.pid == pid);
        }
    }

    /// Kills all processes of the program. Its output can still be read.
    pub(crate) fn stop(&mut self) -> Result<u32, GuestError> {
        self.parked = None;
        let first = self.program.as_ref().map(|program| program.pid);
        Ok(processes::kill_everything(self.children.as_fd(), first)?.others)
    }

    /// Removes the program and returns how it ended.
    pub(crate) fn close(&mut self, way: ExitCause, left_running: u32) -> Option<ProgramExit> {
        let program = self.program.take()?;
        let counted = self.cgroup().map_or(0, ProgramCgroup::oom_kills);
        let is_out_of_memory = counted > program.oom_kills_before;
        let way = match way {
            ExitCause::Signalled(SIGKILL) if is_out_of_memory => ExitCause::OutOfMemory,
            way => way,
        };
        Some(ProgramExit {
            way,
            stdout_truncated: program.stdout_truncated(),
            stderr_truncated: program.stderr_truncated(),
            left_running,
        })
    }

    fn cgroup(&self) -> Option<&ProgramCgroup> {
        match &self.environment {
            GuestEnvironment::MicroVm(GuestMicroVm { root: Some(root) }) => Some(&root.cgroup),
            GuestEnvironment::MicroVm(GuestMicroVm { root: None })
            | GuestEnvironment::Container(_) => None,
        }
    }

    fn kernel(&self) -> KernelSharing {
        match &self.environment {
            GuestEnvironment::MicroVm(_) => KernelSharing::Own,
            GuestEnvironment::Container(_) => KernelSharing::Shared,
        }
    }

    fn restrictions(
        &self,
        limits: Vec<(Resource, Rlimit)>,
    ) -> Result<ProcessRestrictions, GuestRefusal> {
        match &self.environment {
            GuestEnvironment::Container(GuestContainer { workspace, user, .. }) => {
                Ok(ProcessRestrictions {
                    cgroup: None,
                    root: None,
                    folder: workspace.clone(),
                    user: *user,
                    limits,
                })
            }
            GuestEnvironment::MicroVm(GuestMicroVm { root: None }) => Err(no_root()),
            GuestEnvironment::MicroVm(GuestMicroVm { root: Some(root) }) => {
                Ok(ProcessRestrictions {
                    cgroup: Some(
                        root.cgroup
                            .procs()
                            .map_err(GuestRefusal::because("open the program's cgroup"))?,
                    ),
                    root: Some(root.path.clone()),
                    folder: c"/workspace".to_owned(),
                    user: Some((Uid::from_raw(USER), Gid::from_raw(USER))),
                    limits,
                })
            }
        }
    }

    /// Ownership of files that belong to the program.
    fn program_ownership(&self) -> FileOwnership {
        let owner = match &self.environment {
            GuestEnvironment::MicroVm(_) => Some((Uid::from_raw(USER), Gid::from_raw(USER))),
            GuestEnvironment::Container(container) => container.user,
        };
        FileOwnership { owner, mode: Mode::from_raw_mode(0o644) }
    }

    /// Runs the program in the parked interpreter. If that fails, for example because the
    /// interpreter died, returns `None` and the caller starts a new one.
    fn launch_parked(
        &mut self,
        request: &GuestRunRequest,
    ) -> Result<Option<(Pid, ProgramStreams)>, GuestRefusal> {
        let Some(parked) = self.parked.take() else { return Ok(None) };
        let used = parked.cpu_seconds_used();
        let limits = program::process_limits(&request.limits, self.kernel(), used);
        if let Ok(launched) = parked.launch(request, &limits) {
            return Ok(Some(launched));
        }
        processes::kill_everything(self.children.as_fd(), None)
            .map_err(GuestRefusal::because("stop the parked interpreter"))?;
        Ok(None)
    }

    /// Kills the parked interpreter.
    fn unpark(&mut self) -> Result<(), GuestRefusal> {
        if self.parked.take().is_some() {
            processes::kill_everything(self.children.as_fd(), None)
                .map_err(GuestRefusal::because("stop the parked interpreter"))?;
        }
        Ok(())
    }
}

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();

fn open_folder(path: &str) -> Result<OwnedFd, GuestError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| GuestError::setup(format_args!("open `{path}`"))(error))
}

fn no_root() -> GuestRefusal {
    GuestRefusal::new("this sandbox has no root file system")
}

impl GuestBackend for SandboxBackend {
    type IncomingFile = PendingFile;
    type Outgoing = std::io::Take<File>;

    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), GuestRefusal> {
        match self.environment {
            // A container shares the host's kernel, randomness and clock.
            GuestEnvironment::Container(_) => Ok(()),
            GuestEnvironment::MicroVm(_) => {
                let flags = OFlags::RDWR | OFlags::CLOEXEC;
                let random = rustix::fs::open("/dev/urandom", flags, Mode::empty())
                    .map_err(GuestRefusal::because("open /dev/urandom"))?;
                sys::add_entropy(&random, seed).map_err(GuestRefusal::because("reseed"))?;
                let now = Timespec::try_from(Duration::from_millis(unix_ms))
                    .map_err(GuestRefusal::because("convert the time"))?;
                rustix::time::clock_settime(ClockId::Realtime, now)
                    .map_err(GuestRefusal::because("set the clock"))
            }
        }
    }

    fn put(&mut self, place: Place, path: &GuestPath) -> Result<PendingFile, GuestRefusal> {
        let read_only = FileOwnership { owner: None, mode: Mode::from_raw_mode(0o444) };
        match (place, &self.environment) {
            (Place::Workspace, _) => {
                files::create(self.workspace.as_fd(), path, self.program_ownership())
            }
            (Place::Inputs, GuestEnvironment::Container(GuestContainer { inputs, .. })) => {
                let none = || GuestRefusal::new("read-only inputs need an agent that runs as root");
                files::create(inputs.as_ref().ok_or_else(none)?, path, read_only)
            }
            (Place::Inputs, GuestEnvironment::MicroVm(GuestMicroVm { root })) => {
                let inputs = &root.as_ref().ok_or_else(no_root)?.inputs;
                files::create(inputs, path, read_only)
            }
        }
    }

    fn replace(&mut self, path: &GuestPath, bytes: &[u8]) -> Result<(), GuestRefusal> {
        files::replace(self.workspace.as_fd(), path, self.program_ownership(), bytes)
    }

    fn park(&mut self, argv: &[String]) -> Result<(), GuestRefusal> {
        self.unpark()?;
        if let Some(cgroup) = self.cgroup() {
            cgroup.remove_limits()?;
        }
        let restrictions = self.restrictions(Vec::new())?;
        match ParkedInterpreter::start(argv, restrictions, self.children.as_fd()) {
            Ok(parked) => {
                self.parked = Some(parked);
                Ok(())
            }
            Err(refusal) => {
                processes::kill_everything(self.children.as_fd(), None)
                    .map_err(GuestRefusal::because("stop the interpreter"))?;
                Err(refusal)
            }
        }
    }

    fn run(&mut self, request: &GuestRunRequest) -> Result<(), GuestRefusal> {
        let program = &request.argv.first().map_or("", String::as_str);
        let limits = &request.limits;
        // Programs are told to write output files there, and most do not create the folder.
        let ownership = self.program_ownership();
        files::make_folder(self.workspace.as_fd(), ExecuteRequest::OUTPUT_FOLDER, ownership)?;
        if !self.parked.as_ref().is_some_and(|parked| parked.can_run(request)) {
            self.unpark()?;
        }
        if let Some(cgroup) = self.cgroup() {
            cgroup.limit(limits)?;
        }
        let killed_before = self.cgroup().map_or(0, ProgramCgroup::oom_kills);
        let memory_pressure = self.cgroup().map(ProgramCgroup::memory_pressure).transpose()?;
        let action = format!("start `{program}`");
        let (pid, streams) = match self.launch_parked(request)? {
            Some(launched) => launched,
            None => {
                let restrictions =
                    self.restrictions(program::process_limits(limits, self.kernel(), 0))?;
                program::start(&request.argv, &request.env, restrictions)
                    .map_err(GuestRefusal::because(action))?
            }
        };
        let mut program = RunningProgram::new(pid, streams, limits);
        program.oom_kills_before = killed_before;
        program.memory_pressure = memory_pressure;
        self.program = Some(program);
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8]) {
        if let Some(program) = &mut self.program {
            program.feed(bytes);
        }
    }

    fn end_of_input(&mut self) {
        if let Some(program) = &mut self.program {
            program.end_of_input();
        }
    }

    fn backlog(&self) -> usize {
        self.program.as_ref().map_or(0, RunningProgram::backlog)
    }

    fn kill(&mut self) {
        if let Some(program) = &mut self.program {
            program.kill();
        }
    }

    fn list(
        &mut self,
        folder: Option<&GuestPath>,
        most: u32,
    ) -> Result<GuestMessage, GuestRefusal> {
        files::list(self.workspace.as_fd(), folder, most)
    }

    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, GuestRefusal> {
        files::open(self.workspace.as_fd(), path, most_bytes)
    }

    fn probe(&mut self, host_file: &str, port: u16) -> BTreeMap<String, bool> {
        probe::held(host_file, port)
    }
}

impl SandboxBackend {
    /// The output streams of a program.
    pub(crate) const OUTPUT_STREAMS: [GuestStream; 2] = [GuestStream::Stdout, GuestStream::Stderr];
}
