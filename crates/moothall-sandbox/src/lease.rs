//! A sandbox in someone's hands, for one execution.

use std::collections::BTreeMap;
use std::time::Duration;

use moothall_core::guest::{Place, RunRequest, WayToEnd};
use moothall_core::sandbox::{
    Attestation, ExecuteRequest, Execution, Exit, FileRef, GuestPath, Output,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::session::{Ran, RanEnd};
use crate::{Listener, SandboxError, Session, Spec, Vessel, VesselEnd};

/// The most files that are brought back.
const MOST_FILES: u32 = 200;

/// The most bytes of one file that is brought back.
const MOST_FILE_BYTES: u64 = 16 << 20;

/// The most bytes that are brought back in all.
const MOST_BYTES: u64 = 64 << 20;

/// How long all files together may take: an agent that drips them must not hold on to a run.
const FETCHING: Duration = Duration::from_secs(90);

/// A sandbox that nobody used before. Executing consumes it: it cannot be used twice. Dropping it
/// ends it.
#[derive(Debug)]
pub struct Lease {
    session: Session,
    end: Box<dyn VesselEnd>,
    spec: Spec,
    attestation: Attestation,
    /// Its part of the memory that all sandboxes together may take. Given back when it has ended.
    share: Option<OwnedSemaphorePermit>,
}

/// What an execution left behind.
#[derive(Debug)]
pub struct Executed {
    /// What is known about it.
    pub execution: Execution,
    /// The bytes of the files that were brought back, by path below the output folder.
    pub files: BTreeMap<GuestPath, Vec<u8>>,
    /// The end of the sandbox. Nobody needs to wait for it; whoever wants to be sure that
    /// everything is gone does.
    pub clean_up: tokio::task::JoinHandle<()>,
}

impl Lease {
    /// A lease of a vessel that was started for `spec`.
    pub(crate) fn new(
        vessel: Vessel,
        spec: Spec,
        attestation: Attestation,
        share: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { session: vessel.session, end: vessel.end, spec, attestation, share }
    }

    /// The sandbox's name among all sandboxes of this host.
    pub fn name(&self) -> &str {
        self.end.name()
    }

    /// What is known about the sandbox.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// What it was made for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The conversation, for workflows that run inside.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Whether its agent can no longer be asked anything.
    pub(crate) fn is_broken(&self) -> bool {
        self.session.is_broken()
    }

    /// Takes everything out of `/workspace`, as far as it may be brought back: regular files, and
    /// no more of them than a program may leave.
    pub(crate) async fn pack(&mut self) -> Result<BTreeMap<GuestPath, Vec<u8>>, SandboxError> {
        let mut brought = Brought::default();
        self.fetch(None, &mut brought).await?;
        for left in &brought.left_behind {
            tracing::warn!(sandbox = self.name(), left, "not kept while a sandbox rests");
        }
        Ok(brought.files)
    }

    /// Puts files into `/workspace`.
    pub(crate) async fn unpack(
        &mut self,
        files: &BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<(), SandboxError> {
        for (path, bytes) in files {
            self.session.put(Place::Workspace, path, bytes).await?;
        }
        Ok(())
    }

    /// Ends it.
    pub async fn end(self) {
        self.end.finish().await;
    }

    /// Runs one program. The wall limit counts from now. A program that crashes, hangs or prints
    /// too much is `Ok`; an error means that it did not run, and says whether another sandbox may
    /// do better. Dropping the future kills the program.
    pub async fn execute(
        mut self,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        listener: Option<&mut dyn Listener>,
    ) -> Result<Executed, SandboxError> {
        let ran = self.put_and_run(request, inputs, listener).await?;
        // Asked while the sandbox still stands: its end takes the counters along.
        let out_of_memory = self.end.was_out_of_memory();
        let told = matches!(ran.end, RanEnd::Told(_));
        let mut left_running = 0;
        let (mut stdout_truncated, mut stderr_truncated) =
            (ran.stdout_truncated, ran.stderr_truncated);
        let exit = match ran.end {
            RanEnd::Told(ended) => {
                stdout_truncated |= ended.stdout_truncated;
                stderr_truncated |= ended.stderr_truncated;
                left_running = ended.left_running;
                match ended.way {
                    WayToEnd::OutOfMemory => Exit::OutOfMemory,
                    WayToEnd::TimedOut => Exit::TimedOut,
                    // 137 is what a shell says of a program that was killed.
                    WayToEnd::Signalled(9) | WayToEnd::Exited(137) if out_of_memory => {
                        Exit::OutOfMemory
                    }
                    WayToEnd::Exited(code) => Exit::Exited { code },
                    WayToEnd::Signalled(signal) => Exit::Signalled { signal },
                    WayToEnd::Killed => Exit::Signalled { signal: 9 },
                }
            }
            RanEnd::Silent => Exit::TimedOut,
            RanEnd::Broken(SandboxError::Request(why)) => return Err(SandboxError::Request(why)),
            RanEnd::Broken(_) if out_of_memory => Exit::OutOfMemory,
            RanEnd::Broken(error) => {
                let words = self.end.last_words();
                let detail = match words.is_empty() {
                    true => error.failure().detail,
                    false => format!("{} ({words})", error.failure().detail),
                };
                Exit::SandboxDied { detail }
            }
        };
        let mut brought = Brought::default();
        if told && request.collect {
            // Files that cannot be fetched are left behind; what the program printed is not.
            let fetched = match ExecuteRequest::OUTPUT_FOLDER.parse() {
                Ok(folder) => {
                    let late = SandboxError::NotReady { what: "the last file", waited: FETCHING };
                    let fetch = self.fetch(Some(&folder), &mut brought);
                    tokio::time::timeout(FETCHING, fetch).await.unwrap_or(Err(late))
                }
                Err(_) => Ok(()),
            };
            if let Err(error) = fetched {
                brought.left_behind.push(error.failure().detail);
            }
        }
        if left_running > 0 {
            brought.left_behind.push(format!("{left_running} processes, which were stopped"));
        }
        let execution = Execution {
            exit,
            stdout: output(&ran.stdout, stdout_truncated),
            stderr: output(&ran.stderr, stderr_truncated),
            files: brought
                .files
                .iter()
                .map(|(path, bytes)| {
                    let file = FileRef::of(bytes);
                    (path.clone(), file)
                })
                .collect(),
            left_behind: brought.left_behind,
            attestation: self.attestation,
        };
        let (end, share) = (self.end, self.share);
        let clean_up = tokio::spawn(async move {
            end.finish().await;
            drop(share);
        });
        Ok(Executed { execution, files: brought.files, clean_up })
    }

    async fn put_and_run(
        &mut self,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        listener: Option<&mut dyn Listener>,
    ) -> Result<Ran, SandboxError> {
        for (path, bytes) in inputs {
            self.session.put(Place::Inputs, path, bytes).await?;
        }
        for (path, text) in &request.sources {
            self.session.put(Place::Workspace, path, text.as_bytes()).await?;
        }
        let run = RunRequest {
            argv: request.argv.clone(),
            env: request.env.clone(),
            limits: request.limits,
        };
        Ok(self.session.run(run, request.stdin.as_bytes(), listener).await)
    }

    async fn fetch(
        &mut self,
        folder: Option<&GuestPath>,
        brought: &mut Brought,
    ) -> Result<(), SandboxError> {
        let (found, others) = self.session.list(folder, MOST_FILES).await?;
        brought.left_behind.extend(others);
        let mut total = 0;
        for file in found {
            let room = MOST_FILE_BYTES.min(MOST_BYTES - total);
            if file.bytes > room {
                brought.left_behind.push(format!("{}: larger than {room} bytes", file.path));
                continue;
            }
            let inside = match folder {
                Some(folder) => format!("{folder}/{}", file.path).parse(),
                None => Ok(file.path.clone()),
            };
            let Ok(inside) = inside else {
                brought.left_behind.push(format!("{}: its path is too long", file.path));
                continue;
            };
            match self.session.get(&inside, room).await? {
                Ok(bytes) => {
                    total += bytes.len() as u64;
                    brought.files.insert(file.path, bytes);
                }
                Err(why) => brought.left_behind.push(format!("{}: {why}", file.path)),
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Brought {
    files: BTreeMap<GuestPath, Vec<u8>>,
    left_behind: Vec<String>,
}

fn output(bytes: &[u8], truncated: bool) -> Output {
    Output { text: String::from_utf8_lossy(bytes).into_owned(), truncated }
}
