//! The configuration of a cluster, stored in its directory. Ports must not change, because runs
//! identify their cluster by its address.

use std::fmt;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::managed_process::ClusterProcess;
use crate::error::CliError;

pub(crate) const FILE_NAME: &str = "cluster.json";

/// Maximum number of workers of one build.
pub(crate) const MAX_WORKERS: u16 = 64;

/// Format version of the file.
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterPlan {
    schema: u32,
    /// Restate nodes.
    pub(crate) nodes: Vec<RestateNode>,
    pub(crate) database: ClusterDatabase,
    /// One set for each build with workers. The last set takes new runs.
    pub(crate) workers: Vec<WorkerSet>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestateNode {
    pub(crate) node: u16,
    pub(crate) ingress: u16,
    pub(crate) admin: u16,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterDatabase {
    pub(crate) port: u16,
    pub(crate) password: String,
}

impl fmt::Debug for ClusterDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterDatabase").field("port", &self.port).finish_non_exhaustive()
    }
}

/// Workers of one build, which share one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSet {
    pub(crate) build: String,
    pub(crate) port: u16,
    pub(crate) count: u16,
}

impl ClusterPlan {
    /// Chooses free ports and a random password.
    pub(crate) fn new(nodes: usize) -> Result<Self, CliError> {
        let mut ports = free_ports(nodes * 3 + 1)?.into_iter();
        let mut next = || ports.next().unwrap_or_default();
        let node = |_| RestateNode { node: next(), ingress: next(), admin: next() };
        let nodes = (0..nodes).map(node).collect();
        let database = ClusterDatabase { port: next(), password: password()? };
        Ok(Self { schema: SCHEMA, nodes, database, workers: Vec::new() })
    }

    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, CliError> {
        let path = folder.join(FILE_NAME);
        let text = match fs_err::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(
                    CliError::failed("cannot read the cluster configuration").with_source(error)
                );
            }
        };
        let plan: Self = serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!("cannot parse {}", path.display()))
                .with_source(error)
                .with_hint("if another version of moothall created it, run `moothall cluster down` with that version")
        })?;
        match plan.schema {
            SCHEMA => Ok(Some(plan)),
            other => Err(CliError::failed(format!(
                "the cluster was created by another version of moothall: its format is {other}, not {SCHEMA}"
            ))
            .with_hint("run `moothall cluster down` with the version that created it, or use another directory with `--dir`")),
        }
    }

    /// Readable only by its owner, because it contains a password.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), CliError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| {
            CliError::failed("cannot save the cluster configuration").with_source(error)
        })?;
        write_private(folder, FILE_NAME, &text)
    }

    /// Makes the workers of this build take new runs, at an address that no other build has used,
    /// because Restate identifies a build by its address. Drops the sets of other builds that have
    /// no live workers.
    pub(crate) fn activate_build(
        &mut self,
        folder: &Path,
        build: &str,
        count: Option<u16>,
    ) -> Result<(), CliError> {
        let default_count = self.workers.last().map_or(2, |set| set.count);
        let set = match self.workers.iter().position(|set| set.build == build) {
            Some(at) => self.workers.remove(at),
            None => {
                let port = free_ports(1)?.first().copied().unwrap_or_default();
                WorkerSet { build: build.to_owned(), port, count: default_count }
            }
        };
        self.workers.retain(|set| set.processes(folder).iter().any(ClusterProcess::is_alive));
        self.workers.push(WorkerSet { count: count.unwrap_or(set.count), ..set });
        Ok(())
    }

    /// URL of Restate's ingress.
    pub(crate) fn ingress(&self) -> String {
        self.nodes.first().map(RestateNode::ingress_url).unwrap_or_default()
    }

    /// URL of Restate's admin API.
    pub(crate) fn admin(&self) -> String {
        self.nodes.first().map(RestateNode::admin_url).unwrap_or_default()
    }
}

impl RestateNode {
    pub(crate) fn ingress_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// URL for the other nodes.
    pub(crate) fn node_url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.node)
    }
}

impl ClusterDatabase {
    pub(crate) fn url(&self) -> String {
        let Self { port, password } = self;
        format!("postgres://moothall:{password}@127.0.0.1:{port}/moothall")
    }
}

impl WorkerSet {
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn processes(&self, folder: &Path) -> Vec<ClusterProcess> {
        (1..=self.count).map(|number| self.process(folder, number)).collect()
    }

    /// Workers beyond the configured count, which must be stopped.
    pub(crate) fn excess_processes(&self, folder: &Path) -> Vec<ClusterProcess> {
        let excess = (self.count + 1)..=MAX_WORKERS;
        excess.map(|number| self.process(folder, number)).collect()
    }

    fn process(&self, folder: &Path, number: u16) -> ClusterProcess {
        ClusterProcess::new(folder, format!("worker-{}-{number}", self.build))
    }
}

/// Atomically writes a file that only its owner can read.
pub(crate) fn write_private(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), CliError> {
    let write = || -> std::io::Result<()> {
        // Temporary files are created with mode 0600.
        let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
        fresh.write_all(bytes)?;
        fresh.as_file().sync_all()?;
        fresh.persist(folder.join(name)).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| {
        CliError::failed(format!("cannot write {}", folder.join(name).display())).with_source(error)
    })
}

fn free_ports(count: usize) -> Result<Vec<u16>, CliError> {
    let bind = |_| TcpListener::bind(("127.0.0.1", 0));
    // All are bound at the same time, so no port is returned twice.
    let free = (0..count).map(bind).collect::<Result<Vec<_>, _>>();
    let ports = free.and_then(|free| {
        free.iter().map(|one| Ok(one.local_addr()?.port())).collect::<Result<Vec<_>, _>>()
    });
    ports.map_err(|error| CliError::failed("cannot find a free port").with_source(error))
}

fn password() -> Result<String, CliError> {
    let random: ring::rand::Random<[u8; 16]> =
        ring::rand::generate(&ring::rand::SystemRandom::new())
            .map_err(|_| CliError::failed("cannot get random bytes from the operating system"))?;
    Ok(random.expose().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
