//! Probes an engine: starts a sandbox in which a program tries what must not be possible. Device
//! files and version numbers do not prove that isolation works. In an image without a root file
//! system no program can run; there, the agent itself tries it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::RuleId;
use moothall_core::sandbox::{
    ExecuteRequest, GuestPath, IsolationClass, LimitName, SandboxLabels, SandboxLimits, SelfTest,
};
use serde::{Deserialize, Serialize};

use crate::engine::attestation;
use crate::image::SandboxImage;
use crate::lease::SandboxLease;
use crate::{EngineName, SandboxEngine, SandboxError, SandboxSpec};

/// Time limit for a probe. The slowest part is the first boot of an emulated machine.
const PROBE_TIMEOUT: Duration = Duration::from_secs(90);

/// The probe program. It only opens files and connections and does not damage what it can reach.
pub(crate) const PROGRAM: &str = include_str!("probe/probe.py");

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    pub engine: EngineName,
    pub version: String,
    /// The isolation class, which applies only if all tests passed.
    pub class: IsolationClass,
    /// Results of the individual tests.
    pub self_tests: Vec<SelfTest>,
    /// What enforces each limit.
    pub held_by: BTreeMap<LimitName, String>,
    /// Time until the sandbox was ready.
    pub start_ms: u64,
    /// Run time of the probe program.
    pub run_ms: u64,
}

impl ProbeReport {
    /// Failed tests. An engine with any is not used. Memory and process limits that are not
    /// enforced also count as failures.
    pub fn faults(&self) -> Vec<RuleId> {
        let limits =
            [(LimitName::Memory, "sandbox.memory-limit"), (LimitName::Pids, "sandbox.pids-limit")];
        let open = limits.iter().filter(|(limit, _)| !self.held_by.contains_key(limit));
        let failed = self.self_tests.iter().filter(|test| !test.held);
        let failed = failed.map(|test| test.rule.clone());
        failed.chain(open.map(|(_, rule)| RuleId::new(rule))).collect()
    }
}

/// Keys that the probe program prints, and their rules. A missing key counts as failed.
const RULES: [(&str, &str); 9] = [
    ("root-read-only", "sandbox.root-read-only"),
    ("inputs-read-only", "sandbox.inputs-read-only"),
    ("no-network", "sandbox.no-network"),
    ("no-host-files", "sandbox.no-host-files"),
    ("not-root", "sandbox.not-root"),
    ("no-capabilities", "sandbox.no-capabilities"),
    ("no-new-privileges", "sandbox.no-new-privileges"),
    ("own-processes", "sandbox.own-processes"),
    ("no-devices", "sandbox.no-devices"),
];

/// The same for a sandbox in which only the agent runs. The agent is root inside, so its privileges
/// there say nothing.
const AGENT_RULES: [(&str, &str); 4] = [
    ("no-network", "sandbox.no-network"),
    ("no-host-files", "sandbox.no-host-files"),
    ("own-processes", "sandbox.own-processes"),
    ("no-devices", "sandbox.no-devices"),
];

/// What tries to leave the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeSubject {
    /// A Python program, in an image with a root file system.
    Program,
    /// The agent, in an image without one.
    Agent,
}

impl ProbeSubject {
    pub fn of(image: &SandboxImage) -> Self {
        match (&image.rootfs, &image.root_tree) {
            (None, None) => Self::Agent,
            _ => Self::Program,
        }
    }
}

/// Starts a sandbox on this engine and tests its isolation.
pub async fn probe(
    engine: &Arc<dyn SandboxEngine>,
    image: &str,
    subject: ProbeSubject,
) -> Result<ProbeReport, SandboxError> {
    let timed_out = SandboxError::NotReady { what: "the probe", waited: PROBE_TIMEOUT };
    let probing = run_probe(engine, image, subject);
    tokio::time::timeout(PROBE_TIMEOUT, probing).await.map_err(|_| timed_out)?
}

async fn run_probe(
    engine: &Arc<dyn SandboxEngine>,
    image: &str,
    subject: ProbeSubject,
) -> Result<ProbeReport, SandboxError> {
    let unready = || SandboxError::host("cannot prepare the probe");
    // A file and a port on the host that the program can find only if isolation fails.
    let secret = uuid::Uuid::now_v7().simple().to_string();
    let host_file = std::env::temp_dir().join(format!("moothall-probe-{secret}"));
    fs_err::write(&host_file, &secret).map_err(unready())?;
    let _guard = ProbeFileGuard(host_file.clone());
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(unready())?;
    let port = listener.local_addr().map_err(unready())?.port();

    let spec = match subject {
        ProbeSubject::Program => {
            SandboxSpec { image: image.to_owned(), limits: SandboxLimits::default() }
        }
        // The same as for debates: they then use the template that the probe makes.
        ProbeSubject::Agent => SandboxSpec::agent_only(image),
    };
    let labels =
        SandboxLabels(BTreeMap::from([("project".to_owned(), "moothall-probe".to_owned())]));
    let started = Instant::now();
    let sandbox = engine.start(&spec, &labels).await?;
    let start_ms = millis(started);
    let attestation = attestation(engine.as_ref(), &sandbox, &spec, Vec::new());
    let held_by = attestation.held_by.clone();
    let mut lease = SandboxLease::new(sandbox, spec, attestation, None);
    let started = Instant::now();
    let (results, rules): (BTreeMap<String, bool>, &[_]) = match subject {
        ProbeSubject::Program => {
            (run_program(lease, engine, image, &host_file, port).await?, &RULES)
        }
        ProbeSubject::Agent => {
            let host_file = host_file.to_string_lossy().into_owned();
            let held = lease.session().probe(host_file, port).await?;
            lease.end().await;
            (held, &AGENT_RULES)
        }
    };
    let run_ms = millis(started);
    let inside = rules.iter().map(|(key, rule)| SelfTest {
        rule: RuleId::new(rule),
        held: results.get(*key).copied().unwrap_or(false),
    });
    let self_tests = inside.chain(engine.self_tests()).collect();
    Ok(ProbeReport {
        engine: engine.name(),
        version: engine.version().to_owned(),
        class: engine.class(),
        self_tests,
        held_by,
        start_ms,
        run_ms,
    })
}

/// Runs the probe program and returns what it printed. Waits until its sandbox is removed.
async fn run_program(
    lease: SandboxLease,
    engine: &Arc<dyn SandboxEngine>,
    image: &str,
    host_file: &Path,
    port: u16,
) -> Result<BTreeMap<String, bool>, SandboxError> {
    let path = |text: &str| -> Result<GuestPath, SandboxError> {
        text.parse()
            .map_err(|_| SandboxError::Request("the probe has an invalid file name".to_owned()))
    };
    let mut request = ExecuteRequest::python(image, path("probe.py")?, PROGRAM);
    request.argv.extend([host_file.to_string_lossy().into_owned(), port.to_string()]);
    let inputs = BTreeMap::from([(path("given.txt")?, b"given".to_vec())]);
    let executed = lease.execute(&request, &inputs, None).await?;
    let execution = executed.execution;
    // The guest's output is untrusted: only one boolean per rule is read from it.
    let results: BTreeMap<String, bool> =
        serde_json::from_str(execution.stdout.text.trim()).unwrap_or_default();
    if !execution.exit.is_zero() || results.is_empty() {
        return Err(SandboxError::Start {
            engine: engine.name().to_string(),
            problem: format!(
                "the probe program did not run: {} {}",
                execution.exit,
                execution.stderr.text.lines().last().unwrap_or_default()
            ),
        });
    }
    let _ = executed.clean_up.await;
    Ok(results)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

struct ProbeFileGuard(std::path::PathBuf);

impl Drop for ProbeFileGuard {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.0);
    }
}
