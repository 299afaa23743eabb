//! The Restate nodes of a cluster.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use moothall_restate::{RestateAdmin, RestateIngress};

use super::managed_process::ClusterProcess;
use super::plan::{ClusterPlan, RestateNode};
use crate::error::CliError;

/// Settings shared by all ways to start Restate.
const SETTINGS: &str = include_str!("../../../../../deploy/restate/restate.env");

/// Nodes respond after one or two seconds; leader election takes about ten.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Process of a node, counted from 1.
pub(crate) fn node_process(folder: &Path, number: usize) -> ClusterProcess {
    ClusterProcess::new(folder, format!("restate-{number}"))
}

/// Starts the nodes that are not running.
pub(crate) async fn start(
    folder: &Path,
    programs: &Path,
    plan: &ClusterPlan,
) -> Result<(), CliError> {
    for (index, node) in plan.nodes.iter().enumerate() {
        let part = node_process(folder, index + 1);
        if part.is_alive() {
            continue;
        }
        for port in [node.node, node.ingress, node.admin] {
            ensure_port_free(port)?;
        }
        let settings = settings(folder, plan, index + 1, node);
        part.start(&programs.join("restate-server"), ["--no-logo"], |command| {
            // Other `RESTATE*` variables in the environment are meant for another server.
            let others = std::env::vars_os().map(|(name, _)| name);
            for name in others.filter(|name| name.to_string_lossy().starts_with("RESTATE")) {
                command.env_remove(name);
            }
            command.envs(settings);
        })
        .await?;
    }
    Ok(())
}

fn settings(
    folder: &Path,
    plan: &ClusterPlan,
    number: usize,
    node: &RestateNode,
) -> Vec<(String, String)> {
    let shared = SETTINGS.lines().filter(|line| !line.starts_with('#'));
    let mut settings: Vec<(String, String)> = shared
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut set = |name: &str, value: String| settings.push((name.to_owned(), value));
    let data = folder.join("restate").join(number.to_string());
    set("RESTATE_BASE_DIR", data.display().to_string());
    set("RESTATE_CLUSTER_NAME", "moothall".to_owned());
    // Restate stores data under the node's name, so it must not change.
    set("RESTATE_NODE_NAME", format!("n{number}"));
    // The ports have no authentication, so they listen only on the loopback interface.
    set("RESTATE_BIND_ADDRESS", format!("127.0.0.1:{}", node.node));
    set("RESTATE_ADVERTISED_ADDRESS", node.node_url());
    set("RESTATE_INGRESS__BIND_ADDRESS", format!("127.0.0.1:{}", node.ingress));
    set("RESTATE_ADMIN__BIND_ADDRESS", format!("127.0.0.1:{}", node.admin));
    if plan.nodes.len() > 1 {
        let all: Vec<String> =
            plan.nodes.iter().map(|node| format!("{:?}", node.node_url())).collect();
        set("RESTATE_METADATA_CLIENT__ADDRESSES", format!("[{}]", all.join(",")));
        set("RESTATE_AUTO_PROVISION", (number == 1).to_string());
        set("RESTATE_DEFAULT_REPLICATION", "2".to_owned());
        set("RESTATE_DEFAULT_NUM_PARTITIONS", "6".to_owned());
        set("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "512MB".to_owned());
    }
    settings
}

/// Waits until every node is healthy.
pub(crate) async fn wait_until_healthy(folder: &Path, plan: &ClusterPlan) -> Result<(), CliError> {
    for (index, node) in plan.nodes.iter().enumerate() {
        node_process(folder, index + 1)
            .wait_until_healthy(START_TIMEOUT, async || is_healthy(node).await)
            .await?;
    }
    Ok(())
}

/// Whether a node accepts requests and knows a leader for each partition.
pub(crate) async fn is_healthy(node: &RestateNode) -> bool {
    let probe = async {
        RestateIngress::new(&node.ingress_url())?.health().await?;
        RestateAdmin::new(&node.admin_url())?.ready().await
    };
    probe.await.is_ok()
}

/// Another program may have taken a port since it was chosen.
pub(crate) fn ensure_port_free(port: u16) -> Result<(), CliError> {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::failed(format!(
            "port {port} of the cluster is already in use"
        ))
        .with_source(error)
        .with_hint(
            "runs identify their cluster by its ports: stop the program that uses the port, or \
                 start over after `moothall cluster down --purge`",
        )),
    }
}
