//! Starts and reaps the processes of sandboxes.
//!
//! A child asks the kernel to kill it when its parent dies (`PR_SET_PDEATHSIG`). That refers to the
//! *thread* that forked, not the process: a child started from an async runtime's thread pool is
//! killed when the pool shrinks. So one thread that lives as long as the process starts all
//! children.

use std::io;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;

/// Longest interval between checks whether a process has exited.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A child process that is killed when this value is dropped or this process dies.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    /// `None` after it was waited for or handed over.
    child: Option<Child>,
    pid: u32,
}

struct SpawnRequest {
    command: Command,
    reply: oneshot::Sender<io::Result<ChildProcess>>,
}

/// Starts a program from the spawner thread. If the caller stops waiting, the child is killed.
pub(crate) async fn spawn(command: Command) -> io::Result<ChildProcess> {
    static SPAWNER: OnceLock<Option<Sender<SpawnRequest>>> = OnceLock::new();
    let gone = || io::Error::other("the spawner thread is gone");
    let spawner = SPAWNER
        .get_or_init(|| {
            start_thread("moothall-spawner", |mut request: SpawnRequest| {
                let child = request.command.spawn();
                // Close our copies of the child's file descriptors, because the other ends see end
                // of file only when all copies are closed.
                drop(request.command);
                let process =
                    child.map(|child| ChildProcess { pid: child.id(), child: Some(child) });
                // If the receiver is gone, the process is dropped and killed.
                let _ = request.reply.send(process);
            })
        })
        .as_ref()
        .ok_or_else(gone)?;
    let (reply, receiver) = oneshot::channel();
    spawner.send(SpawnRequest { command, reply }).map_err(|_| gone())?;
    receiver.await.map_err(|_| gone())?
}

impl ChildProcess {
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// Standard output, if it is piped and was not taken before.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.as_mut().and_then(|child| child.stdout.take())
    }

    /// Standard error, if it is piped and was not taken before.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut().and_then(|child| child.stderr.take())
    }

    /// Kills the process. It may still exist until [`ChildProcess::wait`] returns.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }

    /// Waits until the process has exited. `None` if that was already reported.
    pub(crate) async fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut pause = Duration::from_millis(1);
        while let Some(child) = &mut self.child {
            if let Some(status) = child.try_wait()? {
                self.child = None;
                return Ok(Some(status));
            }
            // Polls, because the safe ways to be notified work only for children that they started
            // themselves.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
        Ok(None)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        static REAPER: OnceLock<Option<Sender<Child>>> = OnceLock::new();
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Releasing its memory takes a moment, so another thread waits for it. Without a wait, the
        // child would remain as a zombie.
        let reaper = REAPER.get_or_init(|| {
            start_thread("moothall-undertaker", |mut child: Child| {
                let _ = child.wait();
            })
        });
        if let Some(reaper) = reaper {
            let _ = reaper.send(child);
        }
    }
}

/// Starts a thread that handles every received value and lives as long as the process.
fn start_thread<T: Send + 'static>(
    name: &str,
    mut handle: impl FnMut(T) + Send + 'static,
) -> Option<Sender<T>> {
    let (sender, receiver) = channel();
    let work = move || receiver.into_iter().for_each(&mut handle);
    std::thread::Builder::new().name(name.to_owned()).spawn(work).ok().map(|_| sender)
}

#[cfg(test)]
#[path = "spawner_tests.rs"]
mod tests;
