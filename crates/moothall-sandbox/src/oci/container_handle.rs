//! The life cycle of one container, from its record to its cleanup.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::sandbox::SandboxLabels;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::cgroup::CgroupLimits;
use super::cgroup::SandboxCgroup;
use crate::registry::{RecordGuard, remove_cgroup};
use crate::spawner::ChildProcess;
use crate::{ContainerRef, ProcessId, SandboxError, SandboxHandle};

/// How long a runtime may take to notice that its container is dead.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to read the output of a runtime that failed to start.
const STDERR_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// How many bytes of a runtime's standard error are kept.
const STDERR_TAIL_BYTES: usize = 2048;

/// Ends a container. Created before any other resource, so that dropping it cleans up everything.
#[derive(Debug)]
pub(crate) struct OciHandle {
    /// `None` once cleanup has started.
    cleanup: Option<ContainerCleanup>,
    name: String,
    group: SandboxCgroup,
    stderr_tail: RuntimeStderrTail,
    /// Signals the end of the runtime's standard error.
    stderr_closed: Option<oneshot::Receiver<()>>,
}

/// Resources to clean up.
#[derive(Debug)]
struct ContainerCleanup {
    record: RecordGuard,
    container: ContainerRef,
    group: SandboxCgroup,
    folder: PathBuf,
    process: Option<ChildProcess>,
}

impl OciHandle {
    pub(crate) fn new(
        record: RecordGuard,
        container: ContainerRef,
        group: SandboxCgroup,
        folder: PathBuf,
    ) -> Self {
        let name = record.record().name.clone();
        let cleanup =
            ContainerCleanup { record, container, group: group.clone(), folder, process: None };
        Self {
            cleanup: Some(cleanup),
            name,
            group,
            stderr_tail: RuntimeStderrTail::default(),
            stderr_closed: None,
        }
    }

    /// Records the started runtime process.
    pub(crate) fn started(&mut self, mut process: ChildProcess) -> Result<(), SandboxError> {
        self.stderr_closed = process.take_stderr().map(|stderr| self.stderr_tail.collect(stderr));
        let Some(cleanup) = &mut self.cleanup else { return Ok(()) };
        let running = i32::try_from(process.id()).ok().and_then(ProcessId::of);
        cleanup.process = Some(process);
        cleanup.record.update(|list| list.processes.extend(running))
    }

    /// Applies the CPU limit once the agent is ready and before any program runs.
    pub(crate) fn limit_cpu(&self, resources: &CgroupLimits) -> Result<(), SandboxError> {
        self.group.limit_cpu(resources).map_err(SandboxError::host("cannot limit CPU usage"))
    }

    /// Returns the runtime's error output after a failed start.
    pub(crate) async fn read_stderr(&mut self) -> String {
        if let Some(stderr_closed) = self.stderr_closed.take() {
            let _ = tokio::time::timeout(STDERR_READ_TIMEOUT, stderr_closed).await;
        }
        self.stderr_tail.text()
    }
}

impl SandboxHandle for OciHandle {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &SandboxLabels) {
        if let Some(cleanup) = &mut self.cleanup {
            cleanup.record.assign(labels);
        }
    }

    fn was_out_of_memory(&mut self) -> bool {
        self.group.was_out_of_memory()
    }

    fn stderr_tail(&mut self) -> String {
        self.stderr_tail.text()
    }

    fn finish(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let cleanup = self.cleanup.take();
        Box::pin(async {
            if let Some(cleanup) = cleanup {
                cleanup.run().await;
            }
        })
    }
}

impl Drop for OciHandle {
    fn drop(&mut self) {
        let Some(cleanup) = self.cleanup.take() else { return };
        cleanup.group.kill();
        // Outside of a Tokio runtime, the reaper does the rest.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(cleanup.run());
        }
    }
}

impl ContainerCleanup {
    async fn run(mut self) {
        let group = self.group.clone();
        let _ = tokio::task::spawn_blocking(move || group.kill()).await;
        if let Some(mut process) = self.process.take() {
            // The runtime notices that its container is dead and exits.
            let gone = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await;
            if gone.is_err() {
                process.kill();
                let _ = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await;
            }
        }
        let _ = tokio::task::spawn_blocking(move || self.remove()).await;
    }

    /// Removes everything that remains once all processes are gone.
    fn remove(self) {
        let Self { record, container, group, folder, process: _ } = self;
        let name = record.record().name.clone();
        if group.has_no_controllers() {
            // Without cgroups the container's processes have not been killed yet. With cgroups the
            // container is dead and its state is in our folder, so the runtime's own cleanup is not
            // needed.
            delete(&container);
        }
        for cgroup in &group.folders {
            if let Err(error) = remove_cgroup(cgroup) {
                tracing::warn!(sandbox = name, %error, "cannot remove a cgroup; leaving it to the reaper");
                return;
            }
        }
        match fs_err::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(sandbox = name, %error, "cannot remove a folder; leaving it to the reaper");
            }
            _ => record.remove(),
        }
    }
}

fn delete(container: &ContainerRef) {
    let deleted = Command::new(&container.runtime)
        .arg("--root")
        .arg(&container.root)
        .args(["delete", "--force", &container.id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = deleted {
        tracing::warn!(container = container.id, %error, "cannot delete a container");
    }
}

/// The end of a runtime's standard error, read continuously so the runtime never blocks.
#[derive(Debug, Clone, Default)]
struct RuntimeStderrTail(Arc<Mutex<Vec<u8>>>);

impl RuntimeStderrTail {
    /// Reads until the end of the stream and then signals the receiver.
    fn collect(&self, stderr: ChildStderr) -> oneshot::Receiver<()> {
        let kept = Arc::clone(&self.0);
        let (closed, on_closed) = oneshot::channel();
        tokio::spawn(async move {
            if let Ok(mut stderr) = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)) {
                let mut piece = [0; STDERR_TAIL_BYTES];
                while let Ok(read @ 1..) = stderr.read(&mut piece).await {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&piece[..read]);
                    let too_many = kept.len().saturating_sub(STDERR_TAIL_BYTES);
                    kept.drain(..too_many);
                }
            }
            let _ = closed.send(());
        });
        on_closed
    }

    /// The text as a single line.
    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        text.split(|c: char| c.is_control()).map(str::trim).filter(|line| !line.is_empty()).fold(
            String::new(),
            |mut joined, line| {
                if !joined.is_empty() {
                    joined.push_str("; ");
                }
                joined.push_str(line);
                joined
            },
        )
    }
}

#[cfg(test)]
#[path = "container_handle_tests.rs"]
mod tests;
