//! Starts the processes of sandboxes, sees them die, and lets none of them stay.
//!
//! A child asks the kernel to be killed when its parent dies (`PR_SET_PDEATHSIG`). The kernel means
//! the *thread* that forked, not the process: a child that is started from a thread of an async
//! runtime's pool is killed when that pool shrinks. So all of them are started by one thread that
//! lives as long as the process.

use std::io;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;

/// How long nobody looks whether a process that is waited for has ended.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A child that dies with this value, and with this process.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` once it was waited for, or while it is handed on.
    child: Option<Child>,
    pid: u32,
}

struct Order {
    command: Command,
    answer: oneshot::Sender<io::Result<Process>>,
}

/// Starts a program from the thread that lives as long as the process. If nobody waits for the
/// answer any more, the child is killed.
pub(crate) async fn spawn(command: Command) -> io::Result<Process> {
    static SPAWNER: OnceLock<Option<Sender<Order>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes is gone");
    let spawner = SPAWNER
        .get_or_init(|| {
            thread("moothall-spawner", |mut order: Order| {
                let child = order.command.spawn();
                // Its copies of what was handed to the child: as long as they are open, nobody
                // on the other side sees the end of anything.
                drop(order.command);
                let process = child.map(|child| Process { pid: child.id(), child: Some(child) });
                // An answer that nobody takes is dropped, and the process dies with it.
                let _ = order.answer.send(process);
            })
        })
        .as_ref()
        .ok_or_else(gone)?;
    let (answer, told) = oneshot::channel();
    spawner.send(Order { command, answer }).map_err(|_| gone())?;
    told.await.map_err(|_| gone())?
}

impl Process {
    /// The kernel's number for it.
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// What it prints, if that is a pipe and was not taken before.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.as_mut().and_then(|child| child.stdout.take())
    }

    /// What it says on its standard error, if that is a pipe and was not taken before.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut().and_then(|child| child.stderr.take())
    }

    /// Stops it, if it still runs. It is not gone before [`Process::wait`] says so.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }

    /// Waits until it is gone. `None` if it was gone before.
    pub(crate) async fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut pause = Duration::from_millis(1);
        while let Some(child) = &mut self.child {
            if let Some(status) = child.try_wait()? {
                self.child = None;
                return Ok(Some(status));
            }
            // Looked at again and again, because the safe ways to be told of a child's end want
            // to have started it themselves.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        static UNDERTAKER: OnceLock<Option<Sender<Child>>> = OnceLock::new();
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        // It takes a moment to give its memory back, and nobody should have to stand by. A dead
        // child that nobody waits for would stay in the kernel's table.
        let undertaker = UNDERTAKER.get_or_init(|| {
            thread("moothall-undertaker", |mut child: Child| {
                let _ = child.wait();
            })
        });
        if let Some(undertaker) = undertaker {
            let _ = undertaker.send(child);
        }
    }
}

/// A thread that does one thing for everything it is sent, as long as the process lives.
fn thread<T: Send + 'static>(
    name: &str,
    mut each: impl FnMut(T) + Send + 'static,
) -> Option<Sender<T>> {
    let (sender, receiver) = channel();
    let work = move || receiver.into_iter().for_each(&mut each);
    std::thread::Builder::new().name(name.to_owned()).spawn(work).ok().map(|_| sender)
}

#[cfg(test)]
#[path = "spawner_tests.rs"]
mod tests;
