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
    on_disconnect: DisconnectPolicy,
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
const RECONNECT_INTERVAL: Duration = Duration::from_millis(5);

impl HostConnection {
    /// Uses two file descriptors and makes them non-blocking.
    pub(crate) fn new(
        from_host: OwnedFd,
        to_host: OwnedFd,
        on_disconnect: DisconnectPolicy,
    ) -> Result<Self, GuestError> {
        for fd in [&from_host, &to_host] {
            let flags = rustix::fs::fcntl_getfl(fd)?;
            rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { from_host, to_host, on_disconnect })
    }
}

/// Which operations can proceed without blocking.
#[derive(Debug, Default, Clone, Copy)]
struct ReadyEvents {
    readable: bool,
    writable: bool,
    children: bool,
    stdin: bool,
    memory_pressure: bool,
    output: [bool; 2],
}

/// Serves until the host is gone or violates the protocol, then kills all processes.
pub(crate) fn serve(machine: SandboxBackend, connection: &HostConnection) -> GuestError {
    let mut agent = match GuestAgent::new(machine) {
        Ok(agent) => agent,
        Err(error) => return error,
    };
    let mut piece = vec![0; PIECE_BYTES];
    let ended = loop {
        if let Err(error) = poll_once(&mut agent, connection, &mut piece) {
            break error;
        }
    };
    // The agent exits in any case.
    let _ = agent.backend().stop();
    ended
}

fn poll_once(
    agent: &mut GuestAgent<SandboxBackend>,
    connection: &HostConnection,
    piece: &mut [u8],
) -> Result<(), GuestError> {
    agent.advance()?;
    let ready = wait(agent, connection)?;
    if ready.children {
        agent.backend().reap();
    }
    for (channel, ready) in SandboxBackend::OUTPUT_STREAMS.into_iter().zip(ready.output) {
        if ready
            && let Some(program) = agent.backend().program()
            && let Some(length) = program.read_output(channel, piece)
        {
            agent.queue_output(channel, piece.get(..length).unwrap_or(&[]));
        }
    }
    if ready.stdin
        && let Some(program) = agent.backend().program()
    {
        program.write_input();
    }
    if ready.memory_pressure
        && let Some(program) = agent.backend().program()
    {
        program.mark_out_of_memory();
    }
    if ready.readable {
        receive(agent, connection, piece)?;
    }
    end_program_if_over(agent, piece)?;
    if ready.writable {
        match rustix::io::write(&connection.to_host, agent.output()) {
            Ok(length) => agent.mark_sent(length),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) if connection.on_disconnect == DisconnectPolicy::Away => {
                std::thread::sleep(RECONNECT_INTERVAL)
            }
            Err(_) => return Err(GuestError::HostGone),
        }
    }
    Ok(())
}

fn receive(
    agent: &mut GuestAgent<SandboxBackend>,
    connection: &HostConnection,
    piece: &mut [u8],
) -> Result<(), GuestError> {
    match (rustix::io::read(&connection.from_host, &mut *piece), connection.on_disconnect) {
        (Ok(0), DisconnectPolicy::Gone) => Err(GuestError::HostGone),
        (Ok(0), DisconnectPolicy::Away) => {
            std::thread::sleep(RECONNECT_INTERVAL);
            Ok(())
        }
        (Ok(length), _) => agent.receive(piece.get(..length).unwrap_or(&[])),
        (Err(Errno::AGAIN | Errno::INTR), _) => Ok(()),
        (Err(_), DisconnectPolicy::Away) => {
            std::thread::sleep(RECONNECT_INTERVAL);
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
    let Some(cause) = agent.backend().running().and_then(|program| program.exit_cause()) else {
        return Ok(());
    };
    let left_running = agent.backend().stop()?;
    for channel in SandboxBackend::OUTPUT_STREAMS {
        // All processes are dead, so the output is complete.
        while let Some(program) = agent.backend().program()
            && let Some(length) = program.read_output(channel, piece)
        {
            agent.queue_output(channel, piece.get(..length).unwrap_or(&[]));
        }
    }
    match agent.backend().close(cause, left_running) {
        Some(ended) => agent.report_exit(ended),
        None => Ok(()),
    }
}

fn wait(
    agent: &mut GuestAgent<SandboxBackend>,
    connection: &HostConnection,
) -> Result<ReadyEvents, GuestError> {
    let can_receive = agent.can_receive();
    let has_output = !agent.output().is_empty();
    let can_queue_output = agent.can_queue_output();
    let machine = &*agent.backend();
    let program = machine.running();

    // Polling without events still reports a closed pipe while the agent does not listen.
    let host_events = if can_receive { PollFlags::IN } else { PollFlags::empty() };
    let mut fds = vec![
        PollFd::new(&connection.from_host, host_events),
        PollFd::from_borrowed_fd(machine.children(), PollFlags::IN),
    ];
    let mut roles: Vec<fn(&mut ReadyEvents) -> &mut bool> =
        vec![|ready| &mut ready.readable, |ready| &mut ready.children];
    if has_output {
        fds.push(PollFd::new(&connection.to_host, PollFlags::OUT));
        roles.push(|ready| &mut ready.writable);
    }
    if let Some(stdin) = program.and_then(|program| program.stdin_to_write()) {
        fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::OUT));
        roles.push(|ready| &mut ready.stdin);
    }
    if let Some(memory_pressure) = program.and_then(|program| program.memory_pressure.as_ref()) {
        fds.push(PollFd::new(memory_pressure, PollFlags::PRI));
        roles.push(|ready| &mut ready.memory_pressure);
    }
    for (index, channel) in SandboxBackend::OUTPUT_STREAMS.into_iter().enumerate() {
        if can_queue_output
            && let Some(output) = program.and_then(|program| program.output(channel))
        {
            fds.push(PollFd::from_borrowed_fd(output, PollFlags::IN));
            roles.push(match index {
                0 => |ready| &mut ready.output[0],
                _ => |ready| &mut ready.output[1],
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
    if !can_receive && !host.is_empty() {
        ready.readable = false;
        if connection.on_disconnect == DisconnectPolicy::Gone
            && host.intersects(PollFlags::HUP | PollFlags::ERR)
        {
            return Err(GuestError::HostGone);
        }
        std::thread::sleep(RECONNECT_INTERVAL);
    }
    Ok(ready)
}
