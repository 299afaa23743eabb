//! What a cluster consists of, kept in its folder: what was chosen once must stay, because runs know
//! their cluster by its address.

use std::fmt;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::error::CliError;

pub(super) const FILE_NAME: &str = "cluster.json";

/// Workers of one build, at most.
pub(super) const MOST_WORKERS: u16 = 64;

/// The form of the file.
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    schema: u32,
    /// Nodes of Restate.
    pub(super) nodes: Vec<Node>,
    pub(super) database: Database,
    /// One set for each build that has workers; the last one takes the runs that begin.
    pub(super) workers: Vec<WorkerSet>,
}

/// The ports of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) node: u16,
    pub(super) ingress: u16,
    pub(super) admin: u16,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Database {
    pub(super) port: u16,
    pub(super) password: String,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("port", &self.port).finish_non_exhaustive()
    }
}

/// Workers of one build, behind one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerSet {
    pub(super) build: String,
    pub(super) port: u16,
    pub(super) count: u16,
}

impl Plan {
    /// A new one, with ports that nobody listens on and a password that nobody knows.
    pub(super) fn new(nodes: usize) -> Result<Self, CliError> {
        let mut ports = free_ports(nodes * 3 + 1)?.into_iter();
        let mut next = || ports.next().unwrap_or_default();
        let node = |_| Node { node: next(), ingress: next(), admin: next() };
        let nodes = (0..nodes).map(node).collect();
        let database = Database { port: next(), password: password()? };
        Ok(Self { schema: SCHEMA, nodes, database, workers: Vec::new() })
    }

    /// The one in this folder.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, CliError> {
        let path = folder.join(FILE_NAME);
        let text = match fs_err::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CliError::failed("the cluster cannot be read").with_source(error));
            }
        };
        let plan: Self = serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!("{} cannot be understood", path.display()))
                .with_source(error)
                .with_hint("another version of moothall may have made it: take its `cluster down`")
        })?;
        match plan.schema {
            SCHEMA => Ok(Some(plan)),
            other => Err(CliError::failed(format!(
                "the cluster is of another version of moothall: its form is {other}, not {SCHEMA}"
            ))),
        }
    }

    /// Keeps it, closed to everybody else: it holds a password.
    pub(super) fn write(&self, folder: &Path) -> Result<(), CliError> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| CliError::failed("the cluster cannot be kept").with_source(error))?;
        write_private(folder, FILE_NAME, &text)
    }

    /// Lets workers of this build take the runs that begin, at an address that no other build has had:
    /// Restate knows a build by it. Sets of which nobody lives are gone.
    pub(super) fn take_build(
        &mut self,
        folder: &Path,
        build: &str,
        count: Option<u16>,
    ) -> Result<(), CliError> {
        let usual = self.workers.last().map_or(2, |set| set.count);
        let set = match self.workers.iter().position(|set| set.build == build) {
            Some(at) => self.workers.remove(at),
            None => {
                let port = free_ports(1)?.first().copied().unwrap_or_default();
                WorkerSet { build: build.to_owned(), port, count: usual }
            }
        };
        self.workers.retain(|set| set.parts(folder).iter().any(Part::is_alive));
        self.workers.push(WorkerSet { count: count.unwrap_or(set.count), ..set });
        Ok(())
    }

    /// Where Restate takes requests.
    pub(super) fn ingress(&self) -> String {
        self.nodes.first().map(Node::ingress_url).unwrap_or_default()
    }

    /// Where it is administered.
    pub(super) fn admin(&self) -> String {
        self.nodes.first().map(Node::admin_url).unwrap_or_default()
    }
}

impl Node {
    pub(super) fn ingress_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    pub(super) fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// Where other nodes reach it.
    pub(super) fn node_url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.node)
    }
}

impl Database {
    pub(super) fn url(&self) -> String {
        let Self { port, password } = self;
        format!("postgres://moothall:{password}@127.0.0.1:{port}/moothall")
    }
}

impl WorkerSet {
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn parts(&self, folder: &Path) -> Vec<Part> {
        (1..=self.count).map(|number| self.part(folder, number)).collect()
    }

    /// Those that there shall not be any more.
    pub(super) fn further(&self, folder: &Path) -> Vec<Part> {
        let further = (self.count + 1)..=MOST_WORKERS;
        further.map(|number| self.part(folder, number)).collect()
    }

    fn part(&self, folder: &Path, number: u16) -> Part {
        Part::new(folder, format!("worker-{}-{number}", self.build))
    }
}

/// Writes a file that nobody else may read, or leaves the old one.
pub(super) fn write_private(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), CliError> {
    let write = || -> std::io::Result<()> {
        // Files of this kind are closed from the beginning.
        let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
        fresh.write_all(bytes)?;
        fresh.as_file().sync_all()?;
        fresh.persist(folder.join(name)).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| {
        CliError::failed(format!("{} cannot be written", folder.join(name).display()))
            .with_source(error)
    })
}

/// Ports that nobody listens on.
fn free_ports(count: usize) -> Result<Vec<u16>, CliError> {
    let bind = |_| TcpListener::bind(("127.0.0.1", 0));
    // All at once, so that none comes twice.
    let free = (0..count).map(bind).collect::<Result<Vec<_>, _>>();
    let ports = free.and_then(|free| {
        free.iter().map(|one| Ok(one.local_addr()?.port())).collect::<Result<Vec<_>, _>>()
    });
    ports.map_err(|error| CliError::failed("no port is free").with_source(error))
}

fn password() -> Result<String, CliError> {
    let random: ring::rand::Random<[u8; 16]> =
        ring::rand::generate(&ring::rand::SystemRandom::new())
            .map_err(|_| CliError::failed("this machine has no randomness"))?;
    Ok(random.expose().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
