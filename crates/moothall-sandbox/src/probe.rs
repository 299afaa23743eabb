//! Finding out by trying what an engine is worth on this host. A device file, a version or a
//! promise proves nothing: a sandbox is started and a program in it tries what it must not be able
//! to do.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::RuleId;
use moothall_core::sandbox::{
    ExecuteRequest, GuestPath, IsolationClass, Labels, LimitName, Limits, SelfTest,
};
use serde::{Deserialize, Serialize};

use crate::engine::attestation;
use crate::lease::Lease;
use crate::{Engine, EngineName, SandboxError, Spec};

/// How long a probe may take in all; the first boot of an emulated machine is the longest part.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the program in the sandbox tries. It opens and connects; it never harms what it reaches.
pub(crate) const PROGRAM: &str = include_str!("probe/probe.py");

/// What was found out about an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    /// The engine.
    pub engine: EngineName,
    /// Its version.
    pub version: String,
    /// How strong it is, where everything held.
    pub class: IsolationClass,
    /// What was tried.
    pub self_tests: Vec<SelfTest>,
    /// Who holds each limit.
    pub held_by: BTreeMap<LimitName, String>,
    /// From the wish to a sandbox that is ready.
    pub start_ms: u64,
    /// From there to the program's end.
    pub run_ms: u64,
}

impl ProbeReport {
    /// What did not hold. An engine with such a thing is not used. A program that may take all the
    /// memory or all the processes of the host is not held.
    pub fn faults(&self) -> Vec<RuleId> {
        let limits =
            [(LimitName::Memory, "sandbox.memory-limit"), (LimitName::Pids, "sandbox.pids-limit")];
        let open = limits.iter().filter(|(limit, _)| !self.held_by.contains_key(limit));
        let failed = self.self_tests.iter().filter(|test| !test.held);
        let failed = failed.map(|test| test.rule.clone());
        failed.chain(open.map(|(_, rule)| RuleId::new(rule))).collect()
    }
}

/// What the probe expects to hear, by rule; what is missing did not hold.
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

/// Starts a sandbox on this engine and tries what must not be possible in it.
pub async fn probe(engine: &Arc<dyn Engine>, image: &str) -> Result<ProbeReport, SandboxError> {
    let late = SandboxError::NotReady { what: "the probe", waited: PATIENCE };
    tokio::time::timeout(PATIENCE, try_out(engine, image)).await.map_err(|_| late)?
}

async fn try_out(engine: &Arc<dyn Engine>, image: &str) -> Result<ProbeReport, SandboxError> {
    let unready = || SandboxError::host("the probe cannot be prepared");
    // Something to find, which only a hole would show: a file of the host and a port of the host.
    let secret = uuid::Uuid::now_v7().simple().to_string();
    let host_file = std::env::temp_dir().join(format!("moothall-probe-{secret}"));
    fs_err::write(&host_file, &secret).map_err(unready())?;
    let _guard = RemoveFile(host_file.clone());
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(unready())?;
    let port = listener.local_addr().map_err(unready())?.port();

    let spec = Spec { image: image.to_owned(), limits: Limits::default() };
    let labels = Labels(BTreeMap::from([("project".to_owned(), "moothall-probe".to_owned())]));
    let started = Instant::now();
    let vessel = engine.start(&spec, &labels).await?;
    let start_ms = millis(started);
    let attestation = attestation(engine.as_ref(), &vessel, &spec, Vec::new());
    let held_by = attestation.held_by.clone();
    let lease = Lease::new(vessel, spec, attestation, None);

    let path = |text: &str| -> Result<GuestPath, SandboxError> {
        text.parse().map_err(|_| SandboxError::Request("the probe has no name".to_owned()))
    };
    let mut request = ExecuteRequest::python(image, path("probe.py")?, PROGRAM);
    request.argv.extend([host_file.to_string_lossy().into_owned(), port.to_string()]);
    let inputs = BTreeMap::from([(path("given.txt")?, b"given".to_vec())]);
    let started = Instant::now();
    let executed = lease.execute(&request, &inputs, None).await?;
    let run_ms = millis(started);
    let execution = executed.execution;
    // The guest's words are not trusted for more than this: each rule is true or it is not.
    let told: BTreeMap<String, bool> =
        serde_json::from_str(execution.stdout.text.trim()).unwrap_or_default();
    if !execution.exit.is_zero() || told.is_empty() {
        return Err(SandboxError::Start {
            engine: engine.name().to_string(),
            problem: format!(
                "the probe's program did not run: {} {}",
                execution.exit,
                execution.stderr.text.lines().last().unwrap_or_default()
            ),
        });
    }
    let inside = RULES.iter().map(|(key, rule)| SelfTest {
        rule: RuleId::new(rule),
        held: told.get(*key).copied().unwrap_or(false),
    });
    let self_tests = inside.chain(engine.self_tests()).collect();
    // What its start left behind is gone before anything is said about it.
    let _ = executed.clean_up.await;
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

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

struct RemoveFile(std::path::PathBuf);

impl Drop for RemoveFile {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.0);
    }
}
