//! The `oci` engine: containers run by runsc (gVisor), runc or crun.
//!
//! A container gets the image's shared, read-only root file system, the agent binary and in-memory
//! file systems. The agent is root inside, with only the capabilities it needs to switch to another
//! user for the program. The runtime runs in the foreground; its standard input and output are the
//! channel to the agent, which exits when the channel closes.
//!
//! Limits shared by several processes are enforced with cgroups, which only root can create.
//! Without root, this engine is not available.

mod bundle;
pub(crate) mod cgroup;
mod container_handle;
mod runtime;
mod seccomp;
mod user_namespace;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use moothall_core::Sha256Hex;
use moothall_core::sandbox::{IsolationClass, LimitName, SandboxLabels};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use self::bundle::{AGENT, MOUNT_POINTS, OciBundle};
use self::cgroup::{CgroupController, CgroupSupport};
use self::container_handle::OciHandle;
pub(crate) use self::runtime::program;
use self::runtime::{OciRuntime, OciRuntimeKind};
pub use self::user_namespace::UserNamespace;
use self::user_namespace::{IdRange, UserNamespaceSupport};
use crate::image::ImageStore;
use crate::{
    AgentSession, CleanupList, ContainerRef, EngineFuture, EngineName, GuestBinary, SandboxEngine,
    SandboxError, SandboxRegistry, SandboxSpec, StartedSandbox, spawner,
};

/// The kernel that handles a sandbox's system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxKernel {
    Host,
    Gvisor,
}

/// Start time limit. On an idle host a start takes a tenth of a second.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Delays the runtime until its process is on record. If this process dies before that, `read` sees
/// end of file and the shell exits.
const GATE: &str = r#"read -r _ && exec "$@""#;

#[derive(Debug, Clone)]
pub struct OciOptions {
    /// `runsc`, `runc` or `crun`.
    pub runtime: EngineName,
    pub images: ImageStore,
    /// The agent binary.
    pub guest: GuestBinary,
    /// Registry for sandbox records.
    pub registry: SandboxRegistry,
    /// Folder for bundles and runtime state. Keep its path short: runsc creates a socket in it, and
    /// socket paths are limited to 107 bytes.
    pub state: PathBuf,
    /// Whether containers get their own user ids.
    pub user_namespace: UserNamespace,
}

/// The engine for one OCI runtime.
#[derive(Debug)]
pub struct OciEngine(Arc<OciEngineInner>);

#[derive(Debug)]
struct OciEngineInner {
    options: OciOptions,
    runtime: OciRuntime,
    /// The runtime's version and whether it uses a user namespace.
    version: String,
    /// `None` if containers use the host's user ids.
    staging: Option<UserNamespaceSupport>,
    cgroups: CgroupSupport,
    /// Root file system for images without one.
    bare_root: PathBuf,
}

/// Everything needed to start a runtime.
struct PreparedContainer {
    end: OciHandle,
    command: Command,
    /// The host's ends of the channel to the agent.
    from: OwnedFd,
    to: OwnedFd,
    image_sha256: Sha256Hex,
}

impl OciEngine {
    /// Finds the runtime and checks its requirements. Only a probe shows whether isolation works.
    pub fn new(options: OciOptions) -> Result<Self, SandboxError> {
        let kind = OciRuntimeKind::of(options.runtime).ok_or_else(|| SandboxError::Start {
            engine: options.runtime.to_string(),
            problem: "not an OCI runtime".to_owned(),
        })?;
        let runtime = OciRuntime::find(kind)?;
        let cgroups = CgroupSupport::detect()?;
        runtime.check(&cgroups)?;
        let bare_root = options.state.join("bare");
        make_bare_root(&bare_root)
            .map_err(SandboxError::host("cannot create an empty root file system"))?;
        let staging = match options.user_namespace {
            UserNamespace::Private => UserNamespaceSupport::detect(kind),
            UserNamespace::Host => None,
        };
        let version = match (kind.kernel(), &staging) {
            (SandboxKernel::Gvisor, _) => runtime.version.clone(),
            (SandboxKernel::Host, Some(_)) => format!("{} (user namespace)", runtime.version),
            (SandboxKernel::Host, None) => format!("{} (no user namespace)", runtime.version),
        };
        Ok(Self(Arc::new(OciEngineInner {
            options,
            runtime,
            version,
            staging,
            cgroups,
            bare_root,
        })))
    }
}

impl SandboxEngine for OciEngine {
    fn name(&self) -> EngineName {
        self.0.runtime.kind.name()
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn class(&self) -> IsolationClass {
        self.0.runtime.kind.class()
    }

    fn enforced_limits(&self) -> BTreeMap<LimitName, String> {
        let kernel = match self.0.runtime.kind.kernel() {
            SandboxKernel::Gvisor => "gvisor",
            SandboxKernel::Host => "host kernel",
        };
        let mut enforced = BTreeMap::from([
            (LimitName::Wall, "agent and host".to_owned()),
            (LimitName::CpuTime, format!("{kernel} process limit")),
            (LimitName::Output, "agent and host".to_owned()),
            (LimitName::FileSize, format!("{kernel} process limit")),
            (LimitName::Disk, format!("{kernel} tmpfs size")),
            (LimitName::OpenFiles, format!("{kernel} process limit")),
        ]);
        for (controller, limit) in [
            (CgroupController::Cpu, LimitName::CpuShare),
            (CgroupController::Memory, LimitName::Memory),
            (CgroupController::Pids, LimitName::Pids),
        ] {
            if self.0.cgroups.can_enforce(controller) {
                enforced.insert(limit, self.0.runtime.kind.enforced_by(controller));
            }
        }
        enforced
    }

    fn footprint_bytes(&self, spec: &SandboxSpec) -> u64 {
        spec.limits.memory_bytes.saturating_add(self.0.runtime.kind.own_bytes())
    }

    fn is_worth_pooling(&self) -> bool {
        match self.0.runtime.kind {
            OciRuntimeKind::Runsc => true,
            OciRuntimeKind::Runc | OciRuntimeKind::Crun => false,
        }
    }

    fn without_user_namespace(&self) -> Option<Arc<dyn SandboxEngine>> {
        self.0.staging.as_ref()?;
        let user_namespace = UserNamespace::Host;
        let plain = Self::new(OciOptions { user_namespace, ..self.0.options.clone() });
        plain.ok().map(|plain| Arc::new(plain) as Arc<dyn SandboxEngine>)
    }

    fn start<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        labels: &'a SandboxLabels,
    ) -> EngineFuture<'a, StartedSandbox> {
        Box::pin(self.0.start(spec, labels))
    }
}

impl OciEngineInner {
    async fn start(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<StartedSandbox, SandboxError> {
        let kind = self.runtime.kind;
        let resources = kind.resources(&spec.limits);
        let (inner, spec, labels) = (Arc::clone(self), spec.clone(), labels.clone());
        // `OciHandle` cleans up whatever was prepared, even if this future is dropped.
        let prepared = tokio::task::spawn_blocking(move || inner.prepare(&spec, &labels));
        let PreparedContainer { mut end, command, from, to, image_sha256 } =
            prepared.await.map_err(|error| self.failed(error.to_string()))??;
        let process = spawner::spawn(command).await.map_err(|error| {
            self.failed(format!("cannot run `{}`: {error}", self.runtime.program.display()))
        })?;
        end.started(process)?;
        open_gate(&to)?;
        let mut session = session(from, to)
            .map_err(SandboxError::host("cannot open the channel to a container"))?;
        match session.ready(START_TIMEOUT).await {
            Ok(()) => {
                if kind == OciRuntimeKind::Runsc {
                    end.limit_cpu(&resources)?;
                }
                let guest_sha256 = self.options.guest.sha256;
                Ok(StartedSandbox { session, end: Box::new(end), image_sha256, guest_sha256 })
            }
            // The container exited before the agent was ready; the runtime's output says why.
            Err(SandboxError::Lost(error)) => {
                let stderr = end.read_stderr().await;
                Err(self.failed(if stderr.is_empty() { error.to_string() } else { stderr }))
            }
            Err(error) => Err(error),
        }
    }

    /// Records the sandbox and creates everything that its container needs.
    fn prepare(
        &self,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<PreparedContainer, SandboxError> {
        let image = self.options.images.find(&spec.image)?;
        let root = image.root_tree.as_deref().unwrap_or(&self.bare_root);
        check_root(root, &spec.image)?;
        // Not every runtime reports a missing file clearly.
        let agent = &self.options.guest.path;
        if !agent.is_file() {
            return Err(self.failed(format!(
                "the agent binary `{}` is missing; restart moothall to create it again",
                agent.display()
            )));
        }

        let kind = self.runtime.kind;
        let name = self.options.registry.name_for(labels);
        // Short, because socket paths are limited; the last part of the name is random.
        let id = format!("mh{}", name.rsplit('-').next().unwrap_or(&name));
        let folder = self.options.state.join(&id);
        let state = folder.join("state");
        let group = self.cgroups.group(&name);
        let container = ContainerRef {
            runtime: self.runtime.program.clone(),
            root: state.clone(),
            id: id.clone(),
        };
        let cleanup = CleanupList {
            processes: Vec::new(),
            container: Some(container.clone()),
            cgroups: group.folders.clone(),
            folders: vec![folder.clone()],
        };
        let registry = &self.options.registry;
        let record =
            registry.record(&name, kind.name(), kind.class(), &spec.image, labels, cleanup)?;
        let end = OciHandle::new(record, container, group.clone(), folder.clone());

        let resources = kind.resources(&spec.limits);
        let staged = match &self.staging {
            Some(staging) => {
                let needed: [&Path; 4] = [root, agent, &self.options.state, &self.runtime.program];
                let stage = staging.stage(&needed).ok_or_else(|| {
                    self.failed(
                        "no folder is available to stage mounts for a user namespace".to_owned(),
                    )
                })?;
                Some((staging.command(&stage, root, agent), stage.root(), stage.agent()))
            }
            None => None,
        };
        let (seen_root, seen_agent) = match &staged {
            Some((_, root, agent)) => (root.as_path(), agent.as_path()),
            None => (root, agent.as_path()),
        };
        let bundle = OciBundle {
            root: seen_root,
            agent: seen_agent,
            ids: staged.is_some().then(|| IdRange::of(&id)),
            limits: &spec.limits,
            resources: &resources,
            cgroups_path: &group.path,
            kernel: kind.kernel(),
        };
        let config = bundle.config(&self.cgroups);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&state)?;
            fs::write(folder.join("config.json"), serde_json::to_vec(&config)?)
        };
        write().map_err(SandboxError::host("cannot write the bundle"))?;
        if kind == OciRuntimeKind::Runsc {
            // runsc does not remove groups that already exist, so their counters can be read after
            // it exits. The CPU limit is set later, because half a CPU would double gVisor's start
            // time.
            group.create(&resources).map_err(SandboxError::host("cannot create a cgroup"))?;
        }

        let pipes = || -> rustix::io::Result<_> {
            Ok((pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?))
        };
        let ((stdin, to), (from, stdout)) =
            pipes().map_err(|error| SandboxError::host("cannot create a pipe")(error.into()))?;
        let mut command = match staged {
            Some((command, _, _)) => command,
            None => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", GATE, "moothall"]);
                command
            }
        };
        command
            .arg(&self.runtime.program)
            .args(self.runtime.run(&state, &folder, &id))
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .current_dir("/")
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::piped());
        Ok(PreparedContainer { end, command, from, to, image_sha256: image.sha256 })
    }

    fn failed(&self, problem: String) -> SandboxError {
        SandboxError::Start { engine: self.runtime.kind.name().to_string(), problem }
    }
}

/// Lets the waiting runtime continue, after its process was recorded.
fn open_gate(gate: &OwnedFd) -> Result<(), SandboxError> {
    let closed = SandboxError::host("cannot signal the container to start");
    match rustix::io::write(gate, b"\n") {
        Ok(_) => Ok(()),
        Err(error) => Err(closed(error.into())),
    }
}

fn session(from: OwnedFd, to: OwnedFd) -> std::io::Result<AgentSession> {
    let from = pipe::Receiver::from_owned_fd(from)?;
    let to = pipe::Sender::from_owned_fd(to)?;
    Ok(AgentSession::new(Box::new(from), Box::new(to)))
}

/// Checks that all mount points exist. A runtime would create missing ones in the image that all
/// sandboxes share.
fn check_root(root: &Path, image: &str) -> Result<(), SandboxError> {
    let broken = |missing: &str| SandboxError::Image {
        image: image.to_owned(),
        problem: format!("`/{missing}` is missing in its root file system"),
    };
    for folder in MOUNT_POINTS {
        // A link is not accepted, because the runtime would follow it.
        if !root.join(folder).symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(broken(folder));
        }
    }
    let agent = AGENT.trim_start_matches('/');
    match root.join(agent).symlink_metadata() {
        Ok(found) if found.is_file() => Ok(()),
        _ => Err(broken(agent)),
    }
}

/// Creates a root file system with only mount points.
fn make_bare_root(root: &Path) -> std::io::Result<()> {
    for folder in MOUNT_POINTS {
        fs::create_dir_all(root.join(folder))?;
    }
    // Independent of the umask, because users in the container are other users on the host.
    fs::set_permissions(root, PermissionsExt::from_mode(0o755))?;
    let agent = root.join(AGENT.trim_start_matches('/'));
    fs::OpenOptions::new().create(true).append(true).open(agent)?;
    Ok(())
}

#[cfg(test)]
#[path = "oci_tests.rs"]
mod tests;
