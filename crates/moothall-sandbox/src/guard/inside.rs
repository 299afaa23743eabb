//! The two processes between the supervisor and the agent. The first enters the namespaces; the
//! second is PID 1 in them.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::Command;

use command_fds::inherited::take_fd_ownership;
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, path_beneath_rules,
};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, WaitOptions, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use super::{
    AgentExit, CONTROL_FD, ControlMessage, GuardFault, GuardLimits, GuardPart, GuardPlan, PART,
};
use super::{root_view, root_view::RootView};
use crate::{confine, ffi};

/// The Landlock ABI that is requested, and the lowest one accepted: `truncate` is covered since
/// version 3.
const LANDLOCK: ABI = ABI::V5;
const MIN_LANDLOCK_ABI: u32 = 3;

/// Runs one of the two processes. `args` follow [`PART`]. Returns when the agent has ended.
///
/// Must be called first in a process, before it opens files or starts a second thread.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Result<(), GuardFault> {
    let control = |what: &str| GuardFault::new(GuardPart::Control, what);
    ffi::take_inherited_files()
        .map_err(GuardFault::io(GuardPart::Control, "cannot count open files"))?;
    let socket =
        take_fd_ownership(CONTROL_FD).map_err(|_| control("the control socket is missing"))?;
    let done = run_part(args, &socket);
    if let Err(fault) = &done {
        let message = ControlMessage::Failed { part: fault.part, problem: fault.problem.clone() };
        let _ = report(&socket, &message, &[]);
    }
    done
}

fn run_part(args: impl IntoIterator<Item = OsString>, socket: &OwnedFd) -> Result<(), GuardFault> {
    let control = |what: &str| GuardFault::new(GuardPart::Control, what);
    let mut args = args.into_iter();
    let stage = args.next().unwrap_or_default();
    let parent = args.next().unwrap_or_default();
    let plan_text = args.next().unwrap_or_default();
    let plan: GuardPlan = plan_text
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| control("cannot read the plan; restart moothall if it was updated"))?;
    let command_line: Vec<OsString> = args.collect();
    let threads = fs_err::read_dir("/proc/self/task").map(Iterator::count);
    if threads.map_err(GuardFault::io(GuardPart::Control, "cannot count threads"))? != 1 {
        return Err(control("the process has a second thread, which would not be confined"));
    }
    match stage.to_str() {
        Some("outer") => {
            let parent = parent.to_str().and_then(|text| text.parse().ok());
            run_outer(socket, parent, &plan_text, &command_line)
        }
        Some("inner") => run_inner(socket, &plan, &command_line),
        _ => Err(control("unknown part")),
    }
}

/// Enters the namespaces and starts PID 1 in them.
fn run_outer(
    socket: &OwnedFd,
    parent: Option<u32>,
    plan_text: &OsString,
    command_line: &[OsString],
) -> Result<(), GuardFault> {
    let failed = |what| GuardFault::io(GuardPart::Namespaces, what);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    ffi::unshare(
        UnshareFlags::NEWUSER
            | UnshareFlags::NEWNS
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC,
    )
    .map_err(|error| failed("cannot create user namespaces")(error.into()))?;
    let write =
        |file: &str, text: String| fs_err::write(file, text).map_err(failed("cannot map user ids"));
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
    die_with_parent()?;
    let is_orphan =
        || rustix::process::getppid().map(|id| id.as_raw_nonzero().get() as u32) != parent;
    if is_orphan() {
        return Err(GuardFault::new(GuardPart::Control, "the parent process is gone"));
    }
    let pass_on = fcntl_setfd(socket, FdFlags::empty());
    pass_on.map_err(|error| failed("cannot pass on the control socket")(error.into()))?;
    pass_on_capabilities().map_err(|error| failed("cannot pass on capabilities")(error.into()))?;
    let mut child = Command::new("/proc/self/exe")
        .args([PART, "inner", ""])
        .arg(plan_text)
        .args(command_line)
        .spawn()
        .map_err(failed("cannot start a process in the namespaces"))?;
    let pid = i32::try_from(child.id()).unwrap_or_default();
    report(socket, &ControlMessage::Started { pid }, &[])
        .map_err(GuardFault::io(GuardPart::Control, "cannot report"))?;
    // PID 1 reports how the agent ended.
    let _ = child.wait();
    Ok(())
}

/// Lets the next program keep the capabilities in the namespaces. Without this, only root's would.
fn pass_on_capabilities() -> rustix::io::Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: sets.permitted, ..sets })?;
    sets.permitted.iter().try_for_each(|one| configure_capability_in_ambient_set(one, true))
}

/// PID 1: prepares the view, confines itself, runs the agent and reaps orphans. When it exits, the
/// kernel kills everything that is left.
fn run_inner(
    socket: &OwnedFd,
    plan: &GuardPlan,
    command_line: &[OsString],
) -> Result<(), GuardFault> {
    die_with_parent()?;
    let view = root_view::build(plan)?;
    let listeners = listen(&plan.ports)?;
    let sockets: Vec<BorrowedFd<'_>> = listeners.iter().map(|one| one.as_fd()).collect();
    report(socket, &ControlMessage::Ready, &sockets)
        .map_err(GuardFault::io(GuardPart::Control, "cannot report"))?;
    drop(listeners);
    // End of file means that the supervisor is gone.
    let mut answer = [0; 8];
    let answered = recv(socket, &mut answer, RecvFlags::empty());
    if !matches!(answered, Ok((_, length)) if length > 0) {
        return Ok(());
    }
    // The agent must not inherit the socket, and must not take it from this process.
    let close = fcntl_setfd(socket, FdFlags::CLOEXEC)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable));
    close.map_err(|error| {
        GuardFault::io(GuardPart::Control, "cannot protect the control socket")(error.into())
    })?;
    confine_agent(&view, plan.limits)?;
    let (program, args) = command_line
        .split_first()
        .ok_or_else(|| GuardFault::new(GuardPart::Program, "missing agent command"))?;
    let started = Command::new(program).args(args).current_dir(&plan.workspace).spawn();
    let shown = program.to_string_lossy();
    let agent =
        started.map_err(GuardFault::io(GuardPart::Program, &format!("cannot start `{shown}`")))?;
    let exit = reap_until(agent.id());
    let _ = report(socket, &ControlMessage::Ended(exit), &[]);
    Ok(())
}

/// Reaps every child until this one exits.
fn reap_until(agent: u32) -> AgentExit {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == agent => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => AgentExit::Exited(code),
                    (None, Some(signal)) => AgentExit::Signalled(signal),
                    (None, None) => continue,
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return AgentExit::Killed,
        }
    }
}

/// Entering a namespace clears the setting, so it is made afterwards.
fn die_with_parent() -> Result<(), GuardFault> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        GuardFault::io(GuardPart::Control, "cannot follow the parent process")(error.into())
    })
}

/// Listens on the loopback interface of the namespace. The supervisor accepts the connections.
fn listen(ports: &[u16]) -> Result<Vec<TcpListener>, GuardFault> {
    let failed = |what| GuardFault::io(GuardPart::Network, what);
    ffi::enable_loopback().map_err(failed("cannot enable the loopback interface"))?;
    let listener = |port: &u16| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(failed("cannot listen on loopback"))
    };
    ports.iter().map(listener).collect()
}

/// Gives up capabilities, then denies writes outside of the view's writable directories, system
/// calls that reach the user's terminal, and keyrings.
fn confine_agent(view: &RootView, limits: GuardLimits) -> Result<(), GuardFault> {
    let failed = |error: rustix::io::Errno| {
        GuardFault::io(GuardPart::Filter, "cannot drop capabilities")(error.into())
    };
    let core = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, core).map_err(failed)?;
    let allowed = getrlimit(Resource::Nproc).maximum;
    let processes = Some(allowed.map_or(limits.processes, |most| most.min(limits.processes)));
    let processes = Rlimit { current: processes, maximum: processes };
    setrlimit(Resource::Nproc, processes).map_err(failed)?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // Older kernels do not know newer capabilities.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    clear_ambient_capability_set().map_err(failed)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(failed)?;
    set_no_new_privs(true).map_err(failed)?;
    restrict_files(view)?;
    confine::filter_agent_calls()
        .map_err(|error| GuardFault::new(GuardPart::Filter, error.failure().detail))
}

fn restrict_files(view: &RootView) -> Result<(), GuardFault> {
    let landlock = |error: landlock::RulesetError| {
        GuardFault::new(GuardPart::Landlock, format!("cannot apply Landlock rules: {error}"))
    };
    let all = AccessFs::from_all(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(["/"], AccessFs::from_read(LANDLOCK))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&view.writable, all)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&view.devices, device)))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(landlock)?;
    let found = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled => {
            let problem = "Landlock is disabled on this kernel";
            return Err(GuardFault::new(GuardPart::Landlock, problem));
        }
        LandlockStatus::NotImplemented => 0,
    };
    if found < MIN_LANDLOCK_ABI {
        let problem =
            format!("the kernel supports Landlock ABI {found}, but {MIN_LANDLOCK_ABI} is required");
        return Err(GuardFault::new(GuardPart::Landlock, problem));
    }
    Ok(())
}

fn report(
    socket: &OwnedFd,
    message: &ControlMessage,
    sockets: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if sockets.is_empty() {
        send(socket, &bytes, SendFlags::NOSIGNAL)?;
        return Ok(());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(super::MAX_LISTENERS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::other("too many sockets"));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
