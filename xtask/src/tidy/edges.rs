//! Checks which crates of the workspace may depend on each other.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::{ProblemLevel, TidyProblem};

pub(crate) const ID: &str = "edges";

const THIS_FILE: &str = "xtask/src/tidy/edges.rs";

/// The workspace crates that one crate may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedEdges {
    name: &'static str,
    /// Normal and build dependencies.
    uses: &'static [&'static str],
    /// Additional dependencies of its tests.
    tests_use: &'static [&'static str],
}

/// The allowed edges, from the top crate down.
///
/// Only existing crates have a row, and a row without a crate is a problem. A new crate therefore
/// needs a new row, which is the point to decide whether a module would be enough.
pub(crate) const TABLE: &[AllowedEdges] = &[
    // Its tasks run the product as a command, so they work even if the product does not compile.
    AllowedEdges { name: "xtask", uses: &[], tests_use: &[] },
    AllowedEdges {
        name: "moothall-bench",
        uses: &[
            "moothall-engine",
            "moothall-models",
            "moothall-restate",
            "moothall-sandbox",
            "moothall-store",
            "moothall-testkit",
            "moothall-workspace",
            "moothall-core",
        ],
        tests_use: &[],
    },
    AllowedEdges {
        name: "moothall-fuzz",
        uses: &["moothall-guest", "moothall-models", "moothall-core"],
        tests_use: &[],
    },
    AllowedEdges {
        name: "moothall",
        uses: &[
            "moothall-engine",
            "moothall-mcp",
            "moothall-models",
            "moothall-restate",
            "moothall-sandbox",
            "moothall-server",
            "moothall-sources",
            "moothall-store",
            "moothall-ui",
            "moothall-workspace",
            "moothall-core",
        ],
        tests_use: &["moothall-testkit"],
    },
    // Its processes talk to coding agents. From the server it uses only the connection limits.
    AllowedEdges {
        name: "moothall-mcp",
        uses: &["moothall-server", "moothall-workspace", "moothall-core"],
        tests_use: &[],
    },
    // Drives no runs itself: it calls the program through a trait that the `moothall` crate
    // implements.
    AllowedEdges {
        name: "moothall-server",
        uses: &[
            "moothall-engine",
            "moothall-store",
            "moothall-ui",
            "moothall-workspace",
            "moothall-core",
        ],
        tests_use: &[],
    },
    // A separate crate for a heavy dependency: no other crate uses Restate.
    AllowedEdges {
        name: "moothall-restate",
        uses: &["moothall-engine", "moothall-models", "moothall-store", "moothall-core"],
        tests_use: &[],
    },
    AllowedEdges {
        name: "moothall-engine",
        uses: &[
            "moothall-models",
            "moothall-sandbox",
            "moothall-sources",
            "moothall-store",
            "moothall-workspace",
            "moothall-core",
        ],
        tests_use: &["moothall-testkit"],
    },
    // Uses the workspace to read files below a directory, and a sandbox to read PDF files.
    AllowedEdges {
        name: "moothall-sources",
        uses: &["moothall-models", "moothall-sandbox", "moothall-workspace", "moothall-core"],
        tests_use: &[],
    },
    // The only crate that changes the user's files.
    AllowedEdges { name: "moothall-workspace", uses: &["moothall-core"], tests_use: &[] },
    AllowedEdges {
        name: "moothall-models",
        uses: &["moothall-core"],
        tests_use: &["moothall-testkit"],
    },
    AllowedEdges { name: "moothall-sandbox", uses: &["moothall-core"], tests_use: &[] },
    // A separate program inside the sandbox. The product embeds its binary and does not link its
    // code.
    AllowedEdges { name: "moothall-guest", uses: &["moothall-core"], tests_use: &[] },
    // A separate program because of a heavy dependency. `moothall` starts it.
    AllowedEdges { name: "moothall-pdf", uses: &[], tests_use: &["moothall-core"] },
    // Embeds the files of the web UI; has no dependencies in the workspace.
    AllowedEdges { name: "moothall-ui", uses: &[], tests_use: &[] },
    AllowedEdges { name: "moothall-store", uses: &["moothall-core"], tests_use: &[] },
    AllowedEdges { name: "moothall-testkit", uses: &["moothall-core"], tests_use: &[] },
    // Not even the testkit: core's tests need no async runtime.
    AllowedEdges {
        name: "moothall-core",
        uses: &["moothall-evidence", "moothall-gate", "moothall-types"],
        tests_use: &[],
    },
    // Core re-exports these three, so no other crate depends on them directly.
    AllowedEdges { name: "moothall-evidence", uses: &["moothall-types"], tests_use: &[] },
    AllowedEdges { name: "moothall-gate", uses: &["moothall-types"], tests_use: &[] },
    AllowedEdges { name: "moothall-types", uses: &[], tests_use: &[] },
];

/// Crates that must never depend on each other, regardless of the table, so each can be replaced
/// independently.
const INDEPENDENT_CRATES: &[&str] = &["moothall-models", "moothall-sandbox", "moothall-store"];

/// A crate of the workspace and its dependencies in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceMember {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) edges: Vec<CrateEdge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrateEdge {
    pub(crate) to: String,
    pub(crate) kind: EdgeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    Product,
    Test,
}

/// Reads the workspace's crates and the edges between them from `cargo metadata`.
pub(crate) fn members(root: &Path) -> Result<Vec<WorkspaceMember>> {
    let metadata =
        MetadataCommand::new().current_dir(root).no_deps().exec().context("cargo metadata")?;
    let inside = |name: &str| metadata.packages.iter().any(|package| package.name.as_str() == name);
    let member = |package: &cargo_metadata::Package| WorkspaceMember {
        name: package.name.to_string(),
        manifest: package
            .manifest_path
            .strip_prefix(&metadata.workspace_root)
            .unwrap_or(&package.manifest_path)
            .to_string(),
        edges: package
            .dependencies
            .iter()
            .filter(|dependency| inside(&dependency.name))
            .map(|dependency| CrateEdge {
                to: dependency.name.clone(),
                kind: match dependency.kind {
                    DependencyKind::Development => EdgeKind::Test,
                    // Unknown future kinds count as product dependencies, which is the stricter
                    // choice.
                    DependencyKind::Normal | DependencyKind::Build | DependencyKind::Unknown => {
                        EdgeKind::Product
                    }
                },
            })
            .collect(),
    };
    Ok(metadata.packages.iter().map(member).collect())
}

pub(crate) fn check(table: &[AllowedEdges], members: &[WorkspaceMember]) -> Vec<TidyProblem> {
    let mut problems = Vec::new();
    for member in members {
        let Some(row) = table.iter().find(|row| row.name == member.name) else {
            problems.push(problem(
                &member.manifest,
                format!("crate `{}` has no row in the table of allowed edges", member.name),
                format!(
                    "add a crate only if a module is not enough; if so, add a row to {THIS_FILE}"
                ),
            ));
            continue;
        };
        problems.extend(member.edges.iter().filter_map(|edge| check_edge(row, member, edge)));
    }
    let gone = table.iter().filter(|row| !members.iter().any(|member| member.name == row.name));
    problems.extend(gone.map(|row| {
        problem(
            THIS_FILE,
            format!("row `{}` does not match a crate of the workspace", row.name),
            "remove the row".to_owned(),
        )
    }));
    problems
}

fn check_edge(
    row: &AllowedEdges,
    member: &WorkspaceMember,
    edge: &CrateEdge,
) -> Option<TidyProblem> {
    let to = edge.to.as_str();
    let from = &member.name;
    if INDEPENDENT_CRATES.contains(&row.name) && INDEPENDENT_CRATES.contains(&to) {
        return Some(problem(
            &member.manifest,
            format!("`{from}` and `{to}` must never depend on each other"),
            "pass data between them in a crate that depends on both".to_owned(),
        ));
    }
    let (allowed, what) = match edge.kind {
        EdgeKind::Product => (row.uses.contains(&to), "depend on"),
        EdgeKind::Test => (row.uses.contains(&to) || row.tests_use.contains(&to), "use in tests"),
    };
    (!allowed).then(|| {
        problem(
            &member.manifest,
            format!("`{from}` may not {what} `{to}`"),
            format!(
                "dependencies point one way, towards moothall-core; the table is in {THIS_FILE}"
            ),
        )
    })
}

fn problem(path: &str, message: String, hint: String) -> TidyProblem {
    TidyProblem {
        path: path.to_owned(),
        line: None,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint,
    }
}

#[cfg(test)]
#[path = "edges_tests.rs"]
mod tests;
