//! One sandbox of an OCI runtime, from its record to its end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::sandbox::Labels;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::cgroup::Group;
use super::cgroup::Resources;
use crate::registry::{RecordGuard, remove_cgroup};
use crate::spawner::Process;
use crate::{Container, ProcessId, SandboxError, VesselEnd};

/// How long a runtime may take to see that its container is dead.
const DYING: Duration = Duration::from_secs(5);

/// How long a runtime that failed is listened to.
const LISTENING: Duration = Duration::from_millis(500);

/// What is kept of what a runtime says.
const LAST_WORDS: usize = 2048;

/// The means to end a container. Made before anything else is, so that whatever there is goes with
/// it.
#[derive(Debug)]
pub(super) struct OciEnd {
    /// `None` once the end has begun.
    remains: Option<Remains>,
    name: String,
    group: Group,
    words: LastWords,
    /// Tells when the last word was said.
    silence: Option<oneshot::Receiver<()>>,
}

/// Everything that has to go.
#[derive(Debug)]
struct Remains {
    record: RecordGuard,
    container: Container,
    group: Group,
    folder: PathBuf,
    process: Option<Process>,
}

impl OciEnd {
    /// The end of something that is on record.
    pub(super) fn new(
        record: RecordGuard,
        container: Container,
        group: Group,
        folder: PathBuf,
    ) -> Self {
        let name = record.record().name.clone();
        let remains = Remains { record, container, group: group.clone(), folder, process: None };
        Self { remains: Some(remains), name, group, words: LastWords::default(), silence: None }
    }

    /// The runtime runs.
    pub(super) fn started(&mut self, mut process: Process) -> Result<(), SandboxError> {
        self.silence = process.take_stderr().map(|stderr| self.words.listen(stderr));
        let Some(remains) = &mut self.remains else { return Ok(()) };
        let running = i32::try_from(process.id()).ok().and_then(ProcessId::of);
        remains.process = Some(process);
        remains.record.update(|leaves| leaves.processes.extend(running))
    }

    /// The agent is there, and no program has run: what follows is held to its share of a CPU.
    pub(super) fn limit_cpu(&self, resources: &Resources) -> Result<(), SandboxError> {
        self.group
            .limit_cpu(resources)
            .map_err(SandboxError::host("the share of a CPU cannot be limited"))
    }

    /// What the runtime said about a start that failed.
    pub(super) async fn hear_out(&mut self) -> String {
        if let Some(silence) = self.silence.take() {
            let _ = tokio::time::timeout(LISTENING, silence).await;
        }
        self.words.text()
    }
}

impl VesselEnd for OciEnd {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &Labels) {
        if let Some(remains) = &mut self.remains {
            remains.record.assign(labels);
        }
    }

    fn was_out_of_memory(&mut self) -> bool {
        self.group.was_out_of_memory()
    }

    fn last_words(&mut self) -> String {
        self.words.text()
    }

    fn finish(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let remains = self.remains.take();
        Box::pin(async {
            if let Some(remains) = remains {
                remains.clear().await;
            }
        })
    }
}

impl Drop for OciEnd {
    fn drop(&mut self) {
        let Some(remains) = self.remains.take() else { return };
        remains.group.kill();
        // Without a runtime of ours to do it on, the rest is the reaper's.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(remains.clear());
        }
    }
}

impl Remains {
    async fn clear(mut self) {
        let group = self.group.clone();
        let _ = tokio::task::spawn_blocking(move || group.kill()).await;
        if let Some(mut process) = self.process.take() {
            // It sees that its container is dead, and goes.
            let gone = tokio::time::timeout(DYING, process.wait()).await;
            if gone.is_err() {
                process.kill();
                let _ = tokio::time::timeout(DYING, process.wait()).await;
            }
        }
        let _ = tokio::task::spawn_blocking(move || self.remove()).await;
    }

    /// Removes what is left when every process is gone.
    fn remove(self) {
        let Self { record, container, group, folder, process: _ } = self;
        let name = record.record().name.clone();
        if group.holds_nothing() {
            // Nobody could kill what is in it by its group. Otherwise what the runtime has to say
            // about the container does not matter: it is dead, and its state is in our folder.
            delete(&container);
        }
        for cgroup in &group.folders {
            if let Err(error) = remove_cgroup(cgroup) {
                tracing::warn!(sandbox = name, %error, "a control group stays for the reaper");
                return;
            }
        }
        match fs_err::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(sandbox = name, %error, "a folder stays for the reaper");
            }
            _ => record.remove(),
        }
    }
}

fn delete(container: &Container) {
    let deleted = Command::new(&container.runtime)
        .arg("--root")
        .arg(&container.root)
        .args(["delete", "--force", &container.id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = deleted {
        tracing::warn!(container = container.id, %error, "a container cannot be deleted");
    }
}

/// The end of what a runtime says, read as long as it says something, so that it never waits.
#[derive(Debug, Clone, Default)]
struct LastWords(Arc<Mutex<Vec<u8>>>);

impl LastWords {
    /// Listens until the end. Gives a signal when it has come.
    fn listen(&self, stderr: ChildStderr) -> oneshot::Receiver<()> {
        let kept = Arc::clone(&self.0);
        let (over, is_over) = oneshot::channel();
        tokio::spawn(async move {
            if let Ok(mut stderr) = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)) {
                let mut piece = [0; LAST_WORDS];
                while let Ok(read @ 1..) = stderr.read(&mut piece).await {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&piece[..read]);
                    let too_many = kept.len().saturating_sub(LAST_WORDS);
                    kept.drain(..too_many);
                }
            }
            let _ = over.send(());
        });
        is_over
    }

    /// As one line.
    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        text.split(|c: char| c.is_control()).map(str::trim).filter(|line| !line.is_empty()).fold(
            String::new(),
            |mut words, line| {
                if !words.is_empty() {
                    words.push_str("; ");
                }
                words.push_str(line);
                words
            },
        )
    }
}

#[cfg(test)]
#[path = "vessel_tests.rs"]
mod tests;
