//! The nodes of Restate.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use moothall_restate::{Admin, Cluster};

use super::part::Part;
use super::plan::{Node, Plan};
use crate::error::CliError;

/// What is the same however Restate is started.
const SETTINGS: &str = include_str!("../../../../../deploy/restate/restate.env");

/// Nodes answer after a second or two; leaders are found after ten.
const PATIENCE: Duration = Duration::from_secs(120);

/// The part that a node is, counted from 1.
pub(super) fn part(folder: &Path, number: usize) -> Part {
    Part::new(folder, format!("restate-{number}"))
}

/// Starts what is not there.
pub(super) async fn start(folder: &Path, programs: &Path, plan: &Plan) -> Result<(), CliError> {
    for (index, node) in plan.nodes.iter().enumerate() {
        let part = part(folder, index + 1);
        if part.is_alive() {
            continue;
        }
        for port in [node.node, node.ingress, node.admin] {
            refuse_taken(port)?;
        }
        let settings = settings(folder, plan, index + 1, node);
        part.start(&programs.join("restate-server"), ["--no-logo"], |command| {
            // Whatever else in the environment begins with RESTATE is meant for another server.
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

fn settings(folder: &Path, plan: &Plan, number: usize, node: &Node) -> Vec<(String, String)> {
    let usual = SETTINGS.lines().filter(|line| !line.starts_with('#'));
    let mut settings: Vec<(String, String)> = usual
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut set = |name: &str, value: String| settings.push((name.to_owned(), value));
    let data = folder.join("restate").join(number.to_string());
    set("RESTATE_BASE_DIR", data.display().to_string());
    set("RESTATE_CLUSTER_NAME", "moothall".to_owned());
    // Data lies under the node's name: it must stay.
    set("RESTATE_NODE_NAME", format!("n{number}"));
    // Its ports have no authentication at all: nobody but this machine may reach them.
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

/// Waits until work is done on every node.
pub(super) async fn until_well(folder: &Path, plan: &Plan) -> Result<(), CliError> {
    for (index, node) in plan.nodes.iter().enumerate() {
        part(folder, index + 1).until_well(PATIENCE, async || is_well(node).await).await?;
    }
    Ok(())
}

/// Whether a node takes requests and knows somebody who does the work of each partition.
pub(super) async fn is_well(node: &Node) -> bool {
    let asked = async {
        Cluster::new(&node.ingress_url())?.health().await?;
        Admin::new(&node.admin_url())?.ready().await
    };
    asked.await.is_ok()
}

/// A port that was chosen once may have been taken by somebody else since.
pub(super) fn refuse_taken(port: u16) -> Result<(), CliError> {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::failed(format!("port {port} of the cluster is not free"))
            .with_source(error)
            .with_hint(
                "runs know their cluster by its ports, so it keeps them: end what listens there, or \
                 begin anew after `moothall cluster down --purge`",
            )),
    }
}
