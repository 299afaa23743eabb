//! The real world: a sandbox with its folders, its program and its interpreter that waits.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use moothall_core::guest::{Channel, Ended, FromGuest, Place, RunRequest, WayToEnd};
use moothall_core::sandbox::{ExecuteRequest, GuestPath};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit};
use rustix::thread::{Gid, Uid};
use rustix::time::{ClockId, Timespec};

use crate::agent::World;
use crate::cgroup::Cgroup;
use crate::error::{GuestError, Refusal};
use crate::files::{self, NewFile, Ownership};
use crate::parked::Parked;
use crate::processes;
use crate::program::{self, Kernel, Program, Streams};
use crate::sys::{self, Walls};

/// Whom programs run as, where the agent is root.
const USER: u32 = 1000;

/// Where the agent lives.
#[derive(Debug)]
pub(crate) enum Home {
    /// It is PID 1 of a microVM and has root's rights.
    MicroVm(MicroVm),
    /// A container runtime has built the outer walls.
    Container(Container),
}

/// A container that was started.
#[derive(Debug)]
pub(crate) struct Container {
    /// Where programs start.
    workspace: CString,
    /// Whom they run as; where the agent is not root, it cannot make them anybody else.
    user: Option<(Uid, Gid)>,
    /// Where files go that the program may only read: there must be somebody else to own them.
    inputs: Option<OwnedFd>,
}

/// A microVM that has booted.
#[derive(Debug)]
pub(crate) struct MicroVm {
    /// What the program sees. Without it there is nothing to run.
    pub(crate) root: Option<Root>,
}

/// The root file system of a program.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: CString,
    pub(crate) inputs: OwnedFd,
    pub(crate) cgroup: Cgroup,
}

/// A sandbox from inside.
#[derive(Debug)]
pub(crate) struct Machine {
    home: Home,
    workspace: OwnedFd,
    /// Becomes readable when a child changed.
    children: OwnedFd,
    parked: Option<Parked>,
    program: Option<Program>,
}

impl Machine {
    /// A container, whose folders are there already. An agent that is root in it becomes somebody
    /// else for its programs.
    pub(crate) fn in_container() -> Result<Self, GuestError> {
        let root = rustix::process::geteuid().is_root();
        let user = root.then(|| (Uid::from_raw(USER), Gid::from_raw(USER)));
        let inputs = if root { Some(open_folder("/inputs")?) } else { None };
        let container = Container { workspace: c"/workspace".to_owned(), user, inputs };
        Self::new(Home::Container(container), open_folder("/workspace")?)
    }

    /// A folder of a host, without walls of its own, for trying the agent out.
    pub(crate) fn in_folder(workspace: &str) -> Result<Self, GuestError> {
        let folder = CString::new(workspace).map_err(|_| GuestError::Usage)?;
        let container = Container { workspace: folder, user: None, inputs: None };
        Self::new(Home::Container(container), open_folder(workspace)?)
    }

    pub(crate) fn new(home: Home, workspace: OwnedFd) -> Result<Self, GuestError> {
        let children = sys::watch_children()?;
        Ok(Self { home, workspace, children, parked: None, program: None })
    }

    /// Becomes readable when a child ended or stopped.
    pub(crate) fn children(&self) -> BorrowedFd<'_> {
        self.children.as_fd()
    }

    pub(crate) fn program(&mut self) -> Option<&mut Program> {
        self.program.as_mut()
    }

    pub(crate) fn running(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Takes the dead: the program, the one that waits, and orphans.
    pub(crate) fn reap(&mut self) {
        processes::forget_changes(self.children.as_fd());
        while let Some((pid, status)) = processes::reap() {
            if let Some(program) = self.program.as_mut().filter(|program| program.pid == pid) {
                program.is_gone(status);
            }
            self.parked.take_if(|parked| parked.pid == pid);
        }
    }

    /// Stops whatever is left of the program. What it printed can still be read.
    pub(crate) fn stop(&mut self) -> Result<u32, GuestError> {
        self.parked = None;
        let first = self.program.as_ref().map(|program| program.pid);
        Ok(processes::kill_everything(self.children.as_fd(), first)?.others)
    }

    /// Puts the program away.
    pub(crate) fn close(&mut self, way: WayToEnd, left_running: u32) -> Option<Ended> {
        let program = self.program.take()?;
        let counted = self.cgroup().map_or(0, Cgroup::killed_for_memory);
        let starved = counted > program.killed_for_memory_before;
        let way = match way {
            WayToEnd::Signalled(SIGKILL) if starved => WayToEnd::OutOfMemory,
            way => way,
        };
        Some(Ended {
            way,
            stdout_truncated: program.stdout_truncated(),
            stderr_truncated: program.stderr_truncated(),
            left_running,
        })
    }

    fn cgroup(&self) -> Option<&Cgroup> {
        match &self.home {
            Home::MicroVm(MicroVm { root: Some(root) }) => Some(&root.cgroup),
            Home::MicroVm(MicroVm { root: None }) | Home::Container(_) => None,
        }
    }

    fn kernel(&self) -> Kernel {
        match &self.home {
            Home::MicroVm(_) => Kernel::Own,
            Home::Container(_) => Kernel::Shared,
        }
    }

    fn walls(&self, limits: Vec<(Resource, Rlimit)>) -> Result<Walls, Refusal> {
        match &self.home {
            Home::Container(Container { workspace, user, .. }) => Ok(Walls {
                cgroup: None,
                root: None,
                folder: workspace.clone(),
                user: *user,
                limits,
            }),
            Home::MicroVm(MicroVm { root: None }) => Err(no_root()),
            Home::MicroVm(MicroVm { root: Some(root) }) => Ok(Walls {
                cgroup: Some(
                    root.cgroup
                        .procs()
                        .map_err(Refusal::because("open the program's control group"))?,
                ),
                root: Some(root.path.clone()),
                folder: c"/workspace".to_owned(),
                user: Some((Uid::from_raw(USER), Gid::from_raw(USER))),
                limits,
            }),
        }
    }

    /// What belongs to the program.
    fn programs_own(&self) -> Ownership {
        let owner = match &self.home {
            Home::MicroVm(_) => Some((Uid::from_raw(USER), Gid::from_raw(USER))),
            Home::Container(container) => container.user,
        };
        Ownership { owner, mode: Mode::from_raw_mode(0o644) }
    }

    /// Hands the program to the interpreter that waits. One that has died meanwhile is no reason
    /// not to run it.
    fn launch_parked(&mut self, request: &RunRequest) -> Result<Option<(Pid, Streams)>, Refusal> {
        let Some(parked) = self.parked.take() else { return Ok(None) };
        let used = parked.cpu_seconds_used();
        let limits = program::process_limits(&request.limits, self.kernel(), used);
        if let Ok(launched) = parked.launch(request, &limits) {
            return Ok(Some(launched));
        }
        processes::kill_everything(self.children.as_fd(), None)
            .map_err(Refusal::because("stop the parked interpreter"))?;
        Ok(None)
    }

    /// Kills the interpreter that waits.
    fn unpark(&mut self) -> Result<(), Refusal> {
        if self.parked.take().is_some() {
            processes::kill_everything(self.children.as_fd(), None)
                .map_err(Refusal::because("stop the parked interpreter"))?;
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

fn no_root() -> Refusal {
    Refusal::new("this sandbox has no root file system")
}

impl World for Machine {
    type Incoming = NewFile;
    type Outgoing = std::io::Take<File>;

    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), Refusal> {
        match self.home {
            // The kernel is the host's, and so are its randomness and its clock.
            Home::Container(_) => Ok(()),
            Home::MicroVm(_) => {
                let flags = OFlags::RDWR | OFlags::CLOEXEC;
                let random = rustix::fs::open("/dev/urandom", flags, Mode::empty())
                    .map_err(Refusal::because("open /dev/urandom"))?;
                sys::add_entropy(&random, seed).map_err(Refusal::because("reseed"))?;
                let now = Timespec::try_from(Duration::from_millis(unix_ms))
                    .map_err(Refusal::because("read the time"))?;
                rustix::time::clock_settime(ClockId::Realtime, now)
                    .map_err(Refusal::because("set the clock"))
            }
        }
    }

    fn put(&mut self, place: Place, path: &GuestPath) -> Result<NewFile, Refusal> {
        let given = Ownership { owner: None, mode: Mode::from_raw_mode(0o444) };
        match (place, &self.home) {
            (Place::Workspace, _) => {
                files::create(self.workspace.as_fd(), path, self.programs_own())
            }
            (Place::Inputs, Home::Container(Container { inputs, .. })) => {
                let none = || Refusal::new("nobody here could keep the program from writing to it");
                files::create(inputs.as_ref().ok_or_else(none)?, path, given)
            }
            (Place::Inputs, Home::MicroVm(MicroVm { root })) => {
                let inputs = &root.as_ref().ok_or_else(no_root)?.inputs;
                files::create(inputs, path, given)
            }
        }
    }

    fn park(&mut self, argv: &[String]) -> Result<(), Refusal> {
        self.unpark()?;
        if let Some(cgroup) = self.cgroup() {
            cgroup.lift()?;
        }
        let walls = self.walls(Vec::new())?;
        match Parked::start(argv, walls, self.children.as_fd()) {
            Ok(parked) => {
                self.parked = Some(parked);
                Ok(())
            }
            Err(refusal) => {
                processes::kill_everything(self.children.as_fd(), None)
                    .map_err(Refusal::because("stop the interpreter"))?;
                Err(refusal)
            }
        }
    }

    fn run(&mut self, request: &RunRequest) -> Result<(), Refusal> {
        let program = &request.argv.first().map_or("", String::as_str);
        let limits = &request.limits;
        // Programs are told to leave files there; most do not make it themselves.
        let own = self.programs_own();
        files::make_folder(self.workspace.as_fd(), ExecuteRequest::OUTPUT_FOLDER, own)?;
        if !self.parked.as_ref().is_some_and(|parked| parked.fits(request)) {
            self.unpark()?;
        }
        if let Some(cgroup) = self.cgroup() {
            cgroup.limit(limits)?;
        }
        let killed_before = self.cgroup().map_or(0, Cgroup::killed_for_memory);
        let hunger = self.cgroup().map(Cgroup::hunger).transpose()?;
        let trying = format!("start `{program}`");
        let (pid, streams) = match self.launch_parked(request)? {
            Some(launched) => launched,
            None => {
                let walls = self.walls(program::process_limits(limits, self.kernel(), 0))?;
                program::start(&request.argv, &request.env, walls)
                    .map_err(Refusal::because(trying))?
            }
        };
        let mut program = Program::new(pid, streams, limits);
        program.killed_for_memory_before = killed_before;
        program.hunger = hunger;
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
        self.program.as_ref().map_or(0, Program::backlog)
    }

    fn kill(&mut self) {
        if let Some(program) = &mut self.program {
            program.kill();
        }
    }

    fn list(&mut self, folder: Option<&GuestPath>, most: u32) -> Result<FromGuest, Refusal> {
        files::list(self.workspace.as_fd(), folder, most)
    }

    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, Refusal> {
        files::open(self.workspace.as_fd(), path, most_bytes)
    }
}

impl Machine {
    /// Both streams that a program prints to.
    pub(crate) const PRINTED: [Channel; 2] = [Channel::Stdout, Channel::Stderr];
}
