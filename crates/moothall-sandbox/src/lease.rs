//! A sandbox checked out for one execution.

use std::collections::BTreeMap;
use std::time::Duration;

use moothall_core::guest::{ExitCause, GuestRunRequest, Place};
use moothall_core::sandbox::{
    CapturedOutput, ExecuteRequest, ExecutionExit, FileRef, GuestPath, SandboxAttestation,
    SandboxExecution,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::session::{SessionRun, SessionRunEnd};
use crate::{
    AgentSession, OutputListener, SandboxError, SandboxHandle, SandboxSpec, StartedSandbox,
};

/// Limit of collected files.
const MAX_FILES: u32 = 200;

/// Size limit of one collected file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Size limit of all collected files together.
const MAX_TOTAL_BYTES: u64 = 64 << 20;

/// Time limit for collecting all files, so a slow agent cannot block a run.
const COLLECT_TIMEOUT: Duration = Duration::from_secs(90);

/// A fresh sandbox. Executing consumes it, so it cannot be reused. Dropping it ends the sandbox.
#[derive(Debug)]
pub struct SandboxLease {
    session: AgentSession,
    end: Box<dyn SandboxHandle>,
    spec: SandboxSpec,
    attestation: SandboxAttestation,
    /// Share of the memory budget of all sandboxes, released when the sandbox has ended.
    share: Option<OwnedSemaphorePermit>,
}

/// Result of one execution.
#[derive(Debug)]
pub struct LeaseOutcome {
    pub execution: SandboxExecution,
    /// Contents of the collected files, by path below the output folder.
    pub files: BTreeMap<GuestPath, Vec<u8>>,
    /// Cleanup task of the sandbox. Await it only to be sure that everything is gone.
    pub clean_up: tokio::task::JoinHandle<()>,
}

impl SandboxLease {
    pub(crate) fn new(
        sandbox: StartedSandbox,
        spec: SandboxSpec,
        attestation: SandboxAttestation,
        share: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { session: sandbox.session, end: sandbox.end, spec, attestation, share }
    }

    /// Name of the sandbox, unique on this host.
    pub fn name(&self) -> &str {
        self.end.name()
    }

    pub fn attestation(&self) -> &SandboxAttestation {
        &self.attestation
    }

    pub fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    /// The session with the agent, for workflows that run inside.
    pub fn session(&mut self) -> &mut AgentSession {
        &mut self.session
    }

    pub async fn end(self) {
        self.end.finish().await;
    }

    /// Runs one program. The wall-clock limit starts now. A program that crashes, hangs or prints
    /// too much is `Ok`; an error means that it did not run and tells whether a retry in another
    /// sandbox may help. Dropping the future kills the program.
    pub async fn execute(
        mut self,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        listener: Option<&mut dyn OutputListener>,
    ) -> Result<LeaseOutcome, SandboxError> {
        let ran = self.put_and_run(request, inputs, listener).await?;
        // Must be read before the sandbox ends, because the counters end with it.
        let out_of_memory = self.end.was_out_of_memory();
        let is_reported = matches!(ran.end, SessionRunEnd::Reported(_));
        let mut left_running = 0;
        let (mut stdout_truncated, mut stderr_truncated) =
            (ran.stdout_truncated, ran.stderr_truncated);
        let exit = match ran.end {
            SessionRunEnd::Reported(ended) => {
                stdout_truncated |= ended.stdout_truncated;
                stderr_truncated |= ended.stderr_truncated;
                left_running = ended.left_running;
                match ended.way {
                    ExitCause::OutOfMemory => ExecutionExit::OutOfMemory,
                    ExitCause::TimedOut => ExecutionExit::TimedOut,
                    // Shells report 137 for a killed program.
                    ExitCause::Signalled(9) | ExitCause::Exited(137) if out_of_memory => {
                        ExecutionExit::OutOfMemory
                    }
                    ExitCause::Exited(code) => ExecutionExit::Exited { code },
                    ExitCause::Signalled(signal) => ExecutionExit::Signalled { signal },
                    ExitCause::Killed => ExecutionExit::Signalled { signal: 9 },
                }
            }
            SessionRunEnd::TimedOut => ExecutionExit::TimedOut,
            SessionRunEnd::Broken(SandboxError::Request(why)) => {
                return Err(SandboxError::Request(why));
            }
            SessionRunEnd::Broken(_) if out_of_memory => ExecutionExit::OutOfMemory,
            SessionRunEnd::Broken(error) => {
                let stderr_tail = self.end.stderr_tail();
                let detail = match stderr_tail.is_empty() {
                    true => error.failure().detail,
                    false => format!("{} ({stderr_tail})", error.failure().detail),
                };
                ExecutionExit::SandboxDied { detail }
            }
        };
        let mut collected = CollectedFiles::default();
        if is_reported && request.collect {
            // A failed download only loses files, not the program's output.
            let fetched = match ExecuteRequest::OUTPUT_FOLDER.parse() {
                Ok(folder) => {
                    let timed_out = SandboxError::NotReady {
                        what: "the last output file",
                        waited: COLLECT_TIMEOUT,
                    };
                    let fetch = self.fetch(&folder, &mut collected);
                    tokio::time::timeout(COLLECT_TIMEOUT, fetch).await.unwrap_or(Err(timed_out))
                }
                Err(_) => Ok(()),
            };
            if let Err(error) = fetched {
                collected.left_behind.push(error.failure().detail);
            }
        }
        if left_running > 0 {
            collected
                .left_behind
                .push(format!("{left_running} processes were still running and were stopped"));
        }
        let execution = SandboxExecution {
            exit,
            stdout: output(&ran.stdout, stdout_truncated),
            stderr: output(&ran.stderr, stderr_truncated),
            files: collected
                .files
                .iter()
                .map(|(path, bytes)| {
                    let file = FileRef::of(bytes);
                    (path.clone(), file)
                })
                .collect(),
            left_behind: collected.left_behind,
            attestation: self.attestation,
        };
        let (end, share) = (self.end, self.share);
        let clean_up = tokio::spawn(async move {
            end.finish().await;
            drop(share);
        });
        Ok(LeaseOutcome { execution, files: collected.files, clean_up })
    }

    async fn put_and_run(
        &mut self,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        listener: Option<&mut dyn OutputListener>,
    ) -> Result<SessionRun, SandboxError> {
        for (path, bytes) in inputs {
            self.session.put(Place::Inputs, path, bytes).await?;
        }
        for (path, text) in &request.sources {
            self.session.put(Place::Workspace, path, text.as_bytes()).await?;
        }
        let run = GuestRunRequest {
            argv: request.argv.clone(),
            env: request.env.clone(),
            limits: request.limits,
        };
        Ok(self.session.run(run, request.stdin.as_bytes(), listener).await)
    }

    async fn fetch(
        &mut self,
        folder: &GuestPath,
        collected: &mut CollectedFiles,
    ) -> Result<(), SandboxError> {
        let (found, others) = self.session.list(Some(folder), MAX_FILES).await?;
        collected.left_behind.extend(others);
        let mut total = 0;
        for file in found {
            let max_bytes = MAX_FILE_BYTES.min(MAX_TOTAL_BYTES - total);
            if file.bytes > max_bytes {
                collected.left_behind.push(format!("{}: larger than {max_bytes} bytes", file.path));
                continue;
            }
            let Ok(guest_path) = format!("{folder}/{}", file.path).parse() else {
                collected.left_behind.push(format!("{}: path is too long", file.path));
                continue;
            };
            match self.session.get(&guest_path, max_bytes).await? {
                Ok(bytes) => {
                    total += bytes.len() as u64;
                    collected.files.insert(file.path, bytes);
                }
                Err(why) => collected.left_behind.push(format!("{}: {why}", file.path)),
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct CollectedFiles {
    files: BTreeMap<GuestPath, Vec<u8>>,
    left_behind: Vec<String>,
}

fn output(bytes: &[u8], truncated: bool) -> CapturedOutput {
    CapturedOutput { text: String::from_utf8_lossy(bytes).into_owned(), truncated }
}
