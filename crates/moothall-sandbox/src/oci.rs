//! The `oci` engine: containers of runsc (gVisor), runc or crun, from one bundle writer.
//!
//! A container gets the image's root file system, read-only and shared by all, the agent's binary and
//! file systems in memory. The agent is root inside, with the few capabilities that it needs to
//! become somebody else for the program. The runtime runs in the foreground; its standard input and
//! output are the way to the agent, which ends when that way ends.
//!
//! All limits that processes share are held by control groups, which only root can make: without
//! root there is no such engine.

mod bundle;
mod cgroup;
mod runtime;
mod seccomp;
mod user_namespace;
mod vessel;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use moothall_core::Sha256Hex;
use moothall_core::sandbox::{IsolationClass, Labels, LimitName};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use self::bundle::{AGENT, Bundle, MOUNT_POINTS};
use self::cgroup::{Cgroups, Controller};
pub(crate) use self::runtime::program;
use self::runtime::{Kind, Runtime};
pub use self::user_namespace::UserNamespace;
use self::user_namespace::{IdRange, UserNamespaceSupport};
use self::vessel::OciEnd;
use crate::image::ImageStore;
use crate::{
    Container, Engine, EngineFuture, EngineName, GuestBinary, Leaves, Registry, SandboxError,
    Session, Spec, Vessel, spawner,
};

/// Which kernel a sandbox's programs talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Host,
    Gvisor,
}

/// How long a container may take to start. It takes a tenth of a second on a host that has time.
const STARTING: Duration = Duration::from_secs(30);

/// A runtime is not to make anything before its process is on record. If we die before that, it finds
/// the end of its input instead of a line, and goes.
const GATE: &str = r#"read -r _ && exec "$@""#;

/// What an engine is made of.
#[derive(Debug, Clone)]
pub struct OciOptions {
    /// `runsc`, `runc` or `crun`.
    pub runtime: EngineName,
    /// The images.
    pub images: ImageStore,
    /// The agent.
    pub guest: GuestBinary,
    /// Where sandboxes are written down.
    pub registry: Registry,
    /// A folder for bundles and the runtimes' state. Its path should be short: runsc has a socket
    /// in it, and a socket's path has at most 107 bytes.
    pub state: PathBuf,
    /// Whether containers have user ids of their own.
    pub user_namespace: UserNamespace,
}

/// Starts containers.
#[derive(Debug)]
pub struct Oci(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: OciOptions,
    runtime: Runtime,
    /// The runtime's version, and whose user ids containers have.
    version: String,
    /// Nothing where containers have the host's user ids.
    staging: Option<UserNamespaceSupport>,
    cgroups: Cgroups,
    /// The root file system of images that have none.
    bare_root: PathBuf,
}

/// What a runtime is started with.
struct Prepared {
    end: OciEnd,
    command: Command,
    /// The host's ends of the way to the agent.
    from: OwnedFd,
    to: OwnedFd,
    image_sha256: Sha256Hex,
}

impl Oci {
    /// Looks for the runtime and for what it needs. Whether it really holds is for a probe to find
    /// out.
    pub fn new(options: OciOptions) -> Result<Self, SandboxError> {
        let kind = Kind::of(options.runtime).ok_or_else(|| SandboxError::Start {
            engine: options.runtime.to_string(),
            problem: "it is not an OCI runtime".to_owned(),
        })?;
        let runtime = Runtime::find(kind)?;
        let cgroups = Cgroups::detect()?;
        runtime.check(&cgroups)?;
        let bare_root = options.state.join("bare");
        make_bare_root(&bare_root)
            .map_err(SandboxError::host("an empty root file system cannot be made"))?;
        let staging = match options.user_namespace {
            UserNamespace::Private => UserNamespaceSupport::detect(kind),
            UserNamespace::Host => None,
        };
        let version = match (kind.kernel(), &staging) {
            (Kernel::Gvisor, _) => runtime.version.clone(),
            (Kernel::Host, Some(_)) => format!("{} (user namespace)", runtime.version),
            (Kernel::Host, None) => format!("{} (no user namespace)", runtime.version),
        };
        Ok(Self(Arc::new(Inner { options, runtime, version, staging, cgroups, bare_root })))
    }
}

impl Engine for Oci {
    fn name(&self) -> EngineName {
        self.0.runtime.kind.name()
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn class(&self) -> IsolationClass {
        self.0.runtime.kind.class()
    }

    fn holds(&self) -> BTreeMap<LimitName, String> {
        let kernel = match self.0.runtime.kind.kernel() {
            Kernel::Gvisor => "gvisor",
            Kernel::Host => "host kernel",
        };
        let mut holds = BTreeMap::from([
            (LimitName::Wall, "agent and host".to_owned()),
            (LimitName::CpuTime, format!("{kernel} process limit")),
            (LimitName::Output, "agent and host".to_owned()),
            (LimitName::FileSize, format!("{kernel} process limit")),
            (LimitName::Disk, format!("{kernel} tmpfs size")),
            (LimitName::OpenFiles, format!("{kernel} process limit")),
        ]);
        for (controller, limit) in [
            (Controller::Cpu, LimitName::CpuShare),
            (Controller::Memory, LimitName::Memory),
            (Controller::Pids, LimitName::Pids),
        ] {
            if self.0.cgroups.holds(controller) {
                holds.insert(limit, self.0.runtime.kind.holder(controller));
            }
        }
        holds
    }

    fn footprint_bytes(&self, spec: &Spec) -> u64 {
        spec.limits.memory_bytes.saturating_add(self.0.runtime.kind.own_bytes())
    }

    fn is_worth_pooling(&self) -> bool {
        match self.0.runtime.kind {
            Kind::Runsc => true,
            Kind::Runc | Kind::Crun => false,
        }
    }

    fn without_user_namespace(&self) -> Option<Arc<dyn Engine>> {
        self.0.staging.as_ref()?;
        let user_namespace = UserNamespace::Host;
        let plain = Self::new(OciOptions { user_namespace, ..self.0.options.clone() });
        plain.ok().map(|plain| Arc::new(plain) as Arc<dyn Engine>)
    }

    fn start<'a>(&'a self, spec: &'a Spec, labels: &'a Labels) -> EngineFuture<'a, Vessel> {
        Box::pin(self.0.start(spec, labels))
    }
}

impl Inner {
    async fn start(self: &Arc<Self>, spec: &Spec, labels: &Labels) -> Result<Vessel, SandboxError> {
        let kind = self.runtime.kind;
        let resources = kind.resources(&spec.limits);
        let (inner, spec, labels) = (Arc::clone(self), spec.clone(), labels.clone());
        // Whatever was prepared goes with its end, also if nobody waits for it any more.
        let prepared = tokio::task::spawn_blocking(move || inner.prepare(&spec, &labels));
        let Prepared { mut end, command, from, to, image_sha256 } =
            prepared.await.map_err(|error| self.failed(error.to_string()))??;
        let process = spawner::spawn(command).await.map_err(|error| {
            self.failed(format!("`{}` cannot be run: {error}", self.runtime.program.display()))
        })?;
        end.started(process)?;
        open_gate(&to)?;
        let mut session = session(from, to)
            .map_err(SandboxError::host("the way to a container cannot be used"))?;
        match session.ready(STARTING).await {
            Ok(()) => {
                if kind == Kind::Runsc {
                    end.limit_cpu(&resources)?;
                }
                let guest_sha256 = self.options.guest.sha256;
                Ok(Vessel { session, end: Box::new(end), image_sha256, guest_sha256 })
            }
            // It ended before it began: the runtime says why.
            Err(SandboxError::Lost(error)) => {
                let words = end.hear_out().await;
                Err(self.failed(if words.is_empty() { error.to_string() } else { words }))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes down and makes everything that a container needs.
    fn prepare(&self, spec: &Spec, labels: &Labels) -> Result<Prepared, SandboxError> {
        let image = self.options.images.find(&spec.image)?;
        let root = image.root_tree.as_deref().unwrap_or(&self.bare_root);
        check_root(root, &spec.image)?;
        // Not every runtime says what it misses.
        let agent = &self.options.guest.path;
        if !agent.is_file() {
            return Err(self.failed(format!("the agent `{}` is missing", agent.display())));
        }

        let kind = self.runtime.kind;
        let name = self.options.registry.name_for(labels);
        // Short, because paths of sockets are; the last part of the name is the random one.
        let id = format!("mh{}", name.rsplit('-').next().unwrap_or(&name));
        let folder = self.options.state.join(&id);
        let state = folder.join("state");
        let group = self.cgroups.group(&name);
        let container = Container {
            runtime: self.runtime.program.clone(),
            root: state.clone(),
            id: id.clone(),
        };
        let leaves = Leaves {
            processes: Vec::new(),
            container: Some(container.clone()),
            cgroups: group.folders.clone(),
            folders: vec![folder.clone()],
        };
        let registry = &self.options.registry;
        let record =
            registry.record(&name, kind.name(), kind.class(), &spec.image, labels, leaves)?;
        let end = OciEnd::new(record, container, group.clone(), folder.clone());

        let resources = kind.resources(&spec.limits);
        let staged = match &self.staging {
            Some(staging) => {
                let needed: [&Path; 4] = [root, agent, &self.options.state, &self.runtime.program];
                let stage = staging.stage(&needed).ok_or_else(|| {
                    self.failed("no folder can be covered for a user namespace".to_owned())
                })?;
                Some((staging.command(&stage, root, agent), stage.root(), stage.agent()))
            }
            None => None,
        };
        let (seen_root, seen_agent) = match &staged {
            Some((_, root, agent)) => (root.as_path(), agent.as_path()),
            None => (root, agent.as_path()),
        };
        let bundle = Bundle {
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
        write().map_err(SandboxError::host("a bundle cannot be written"))?;
        if kind == Kind::Runsc {
            // It leaves groups alone that it finds, so that their counters outlive it. And half a
            // CPU would let gVisor itself take twice as long to start.
            group
                .create(&resources)
                .map_err(SandboxError::host("a control group cannot be made"))?;
        }

        let pipes = || -> rustix::io::Result<_> {
            Ok((pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?))
        };
        let ((stdin, to), (from, stdout)) =
            pipes().map_err(|error| SandboxError::host("no pipe can be made")(error.into()))?;
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
        Ok(Prepared { end, command, from, to, image_sha256: image.sha256 })
    }

    fn failed(&self, problem: String) -> SandboxError {
        SandboxError::Start { engine: self.runtime.kind.name().to_string(), problem }
    }
}

/// What was started is written down: it may go on.
fn open_gate(gate: &OwnedFd) -> Result<(), SandboxError> {
    let closed = SandboxError::host("a container cannot be told to start");
    match rustix::io::write(gate, b"\n") {
        Ok(_) => Ok(()),
        Err(error) => Err(closed(error.into())),
    }
}

fn session(from: OwnedFd, to: OwnedFd) -> std::io::Result<Session> {
    let from = pipe::Receiver::from_owned_fd(from)?;
    let to = pipe::Sender::from_owned_fd(to)?;
    Ok(Session::new(Box::new(from), Box::new(to)))
}

/// A runtime makes mount points that are missing, in the image that all share. So none may be.
fn check_root(root: &Path, image: &str) -> Result<(), SandboxError> {
    let broken = |missing: &str| SandboxError::Image {
        image: image.to_owned(),
        problem: format!("`/{missing}` is missing in its root file system"),
    };
    for folder in MOUNT_POINTS {
        // Not a link: the runtime would follow it.
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

/// A root file system with nothing but mount points.
fn make_bare_root(root: &Path) -> std::io::Result<()> {
    for folder in MOUNT_POINTS {
        fs::create_dir_all(root.join(folder))?;
    }
    // Whatever the umask says: the users of a container are no users of the host.
    fs::set_permissions(root, PermissionsExt::from_mode(0o755))?;
    let agent = root.join(AGENT.trim_start_matches('/'));
    fs::OpenOptions::new().create(true).append(true).open(agent)?;
    Ok(())
}

#[cfg(test)]
#[path = "oci_tests.rs"]
mod tests;
