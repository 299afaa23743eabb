//! The event loop, which serves the host and the program without letting either block the other.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::agent::{GuestAgent, PIECE_BYTES};
use crate::error::GuestError;
use crate::machine::SandboxBackend;

/// The connection to the host.
#[derive(Debug)]
pub(crate) struct HostConnection {
    from_host: OwnedFd,
    to_host: OwnedFd,
    silence: DisconnectPolicy,
}

/// What a closed connection means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisconnectPolicy {
    /// A pipe: the host is gone, and the agent exits.
    Gone,
    /// A microVM port: the host is temporarily disconnected, for example while a template is
    /// cloned.
    Away,
}

/// Retry interval while the host is disconnected.
const AWAY: Duration = Duration::from_millis(5);

impl HostConnection {
    /// Uses two file descriptors and makes them non-blocking.
    pub(crate) fn new(
        from_host: OwnedFd,
        to_host: OwnedFd,
        silence: DisconnectPolicy,
    ) -> Result<Self, GuestError> {
        for fd in [&from_host, &to_host] {
            let flags = rustix::fs::fcntl_getfl(fd)?;
            rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { from_host, to_host, silence })
    }
}

/// Which operations can proceed without blocking.
#[derive(Debug, Default, Clone, Copy)]
struct ReadyEvents {
    hear: bool,
    say: bool,
    children: bool,
    feed: bool,
    starves: bool,
    printed: [bool; 2],
}

/// Serves until the host is gone or violates the protocol, then kills all processes.
pub(crate) fn serve(machine: SandboxBackend, line: &HostConnection) -> GuestError {
    let mut agent = match GuestAgent::new(machine) {
        Ok(agent) => agent,
        Err(error) => return error,
    };
    let mut piece = vec![0; PIECE_BYTES];
    let ended = loop {
        if let Err(error) = turn(&mut agent, line, &mut piece) {
            break error;
        }
    };
    // The agent exits in any case.
    let _ = agent.world().stop();
    ended
}

fn turn(
    agent: &mut GuestAgent<SandboxBackend>,
    line: &HostConnection,
    piece: &mut [u8],
) -> Result<(), GuestError> {
    agent.advance()?;
    let ready = wait(agent, line)?;
    if ready.children {
        agent.world().reap();
    }
    for (channel, ready) in SandboxBackend::PRINTED.into_iter().zip(ready.printed) {
        if ready
            && let Some(program) = agent.world().program()
            && let Some(length) = program.read_output(channel, piece)
        {
            agent.printed(channel, piece.get(..length).unwrap_or(&[]));
        }
    }
    if ready.feed
        && let Some(program) = agent.world().program()
    {
        program.write_input();
    }
    if ready.starves
        && let Some(program) = agent.world().program()
    {
        program.starves();
    }
    if ready.hear {
        hear(agent, line, piece)?;
    }
    end_program_if_over(agent, piece)?;
    if ready.say {
        match rustix::io::write(&line.to_host, agent.output()) {
            Ok(length) => agent.sent(length),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) if line.silence == DisconnectPolicy::Away => std::thread::sleep(AWAY),
            Err(_) => return Err(GuestError::HostGone),
        }
    }
    Ok(())
}

fn hear(
    agent: &mut GuestAgent<SandboxBackend>,
    line: &HostConnection,
    piece: &mut [u8],
) -> Result<(), GuestError> {
    match (rustix::io::read(&line.from_host, &mut *piece), line.silence) {
        (Ok(0), DisconnectPolicy::Gone) => Err(GuestError::HostGone),
        (Ok(0), DisconnectPolicy::Away) => {
            std::thread::sleep(AWAY);
            Ok(())
        }
        (Ok(length), _) => agent.hear(piece.get(..length).unwrap_or(&[])),
        (Err(Errno::AGAIN | Errno::INTR), _) => Ok(()),
        (Err(_), DisconnectPolicy::Away) => {
            std::thread::sleep(AWAY);
            Ok(())
        }
        (Err(error), DisconnectPolicy::Gone) => Err(error.into()),
    }
}

/// If the program is over, kills its processes, sends the remaining output and reports its end.
fn end_program_if_over(
    agent: &mut GuestAgent<SandboxBackend>,
    piece: &mut [u8],
) -> Result<(), GuestError> {
    let Some(way) = agent.world().running().and_then(|program| program.way_to_end()) else {
        return Ok(());
    };
    let left_running = agent.world().stop()?;
    for channel in SandboxBackend::PRINTED {
        // All processes are dead, so the output is complete.
        while let Some(program) = agent.world().program()
            && let Some(length) = program.read_output(channel, piece)
        {
            agent.printed(channel, piece.get(..length).unwrap_or(&[]));
        }
    }
    match agent.world().close(way, left_running) {
        Some(ended) => agent.ended(ended),
        None => Ok(()),
    }
}

fn wait(
    agent: &mut GuestAgent<SandboxBackend>,
    line: &HostConnection,
) -> Result<ReadyEvents, GuestError> {
    let listens = agent.listens();
    let speaks = !agent.output().is_empty();
    let has_room = agent.has_room();
    let machine = &*agent.world();
    let program = machine.running();

    // Polling without events still reports a closed pipe while the agent does not listen.
    let hear = if listens { PollFlags::IN } else { PollFlags::empty() };
    let mut fds = vec![
        PollFd::new(&line.from_host, hear),
        PollFd::from_borrowed_fd(machine.children(), PollFlags::IN),
    ];
    let mut roles: Vec<fn(&mut ReadyEvents) -> &mut bool> =
        vec![|ready| &mut ready.hear, |ready| &mut ready.children];
    if speaks {
        fds.push(PollFd::new(&line.to_host, PollFlags::OUT));
        roles.push(|ready| &mut ready.say);
    }
    if let Some(stdin) = program.and_then(|program| program.hungry()) {
        fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::OUT));
        roles.push(|ready| &mut ready.feed);
    }
    if let Some(hunger) = program.and_then(|program| program.hunger.as_ref()) {
        fds.push(PollFd::new(hunger, PollFlags::PRI));
        roles.push(|ready| &mut ready.starves);
    }
    for (index, channel) in SandboxBackend::PRINTED.into_iter().enumerate() {
        if has_room && let Some(output) = program.and_then(|program| program.output(channel)) {
            fds.push(PollFd::from_borrowed_fd(output, PollFlags::IN));
            roles.push(match index {
                0 => |ready| &mut ready.printed[0],
                _ => |ready| &mut ready.printed[1],
            });
        }
    }
    let timeout = program.and_then(|program| Timespec::try_from(program.time_left()).ok());
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(ReadyEvents::default()),
        Err(error) => return Err(error.into()),
    }
    let mut ready = ReadyEvents::default();
    for (fd, role) in fds.iter().zip(roles) {
        *role(&mut ready) = !fd.revents().is_empty();
    }
    // A closed connection is normally detected by reading, because bytes may precede it.
    let host = fds.first().map_or(PollFlags::empty(), PollFd::revents);
    if !listens && !host.is_empty() {
        ready.hear = false;
        if line.silence == DisconnectPolicy::Gone
            && host.intersects(PollFlags::HUP | PollFlags::ERR)
        {
            return Err(GuestError::HostGone);
        }
        std::thread::sleep(AWAY);
    }
    Ok(ready)
}
