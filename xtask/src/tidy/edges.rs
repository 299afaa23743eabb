//! Which crate of the workspace may depend on which.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::{Level, Problem};

pub(crate) const ID: &str = "edges";

const THIS_FILE: &str = "xtask/src/tidy/edges.rs";

/// What one crate may use of the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    name: &'static str,
    /// In the product: normal and build dependencies.
    uses: &'static [&'static str],
    /// In its tests, beside the above.
    tests_use: &'static [&'static str],
}

/// The allowed edges, from the top of the house down.
///
/// Only crates that exist have a row. A row written ahead would let a crate appear without anyone
/// looking here, and a new crate must buy what a module cannot; so adding the crate and adding its
/// row is one decision. A row whose crate is gone is a problem too.
pub(crate) const TABLE: &[Row] = &[
    // Its tasks run the product as commands, so that they work while the product does not compile.
    Row { name: "xtask", uses: &[], tests_use: &[] },
    Row {
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
    Row {
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
    // Its processes talk to coding agents. Of the server it uses the limits on connections.
    Row {
        name: "moothall-mcp",
        uses: &["moothall-server", "moothall-workspace", "moothall-core"],
        tests_use: &[],
    },
    // It drives nothing: the program behind it is a port that the program fills.
    Row {
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
    // A heavy dependency of its own: nobody else knows Restate.
    Row {
        name: "moothall-restate",
        uses: &["moothall-engine", "moothall-models", "moothall-store", "moothall-core"],
        tests_use: &[],
    },
    Row {
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
    // It reads files below a folder as the workspace does, and PDF files in a sandbox.
    Row {
        name: "moothall-sources",
        uses: &["moothall-models", "moothall-sandbox", "moothall-workspace", "moothall-core"],
        tests_use: &[],
    },
    // The only crate that changes the user's files.
    Row { name: "moothall-workspace", uses: &["moothall-core"], tests_use: &[] },
    Row { name: "moothall-models", uses: &["moothall-core"], tests_use: &["moothall-testkit"] },
    Row { name: "moothall-sandbox", uses: &["moothall-core"], tests_use: &[] },
    // A program of its own inside the sandbox; the product holds its bytes, not its code.
    Row { name: "moothall-guest", uses: &["moothall-core"], tests_use: &[] },
    // A separate program, because of a heavy dependency; `moothall` starts it.
    Row { name: "moothall-pdf", uses: &[], tests_use: &["moothall-core"] },
    // A leaf: files of the web interface as bytes.
    Row { name: "moothall-ui", uses: &[], tests_use: &[] },
    Row { name: "moothall-store", uses: &["moothall-core"], tests_use: &[] },
    Row { name: "moothall-testkit", uses: &["moothall-core"], tests_use: &[] },
    // Nothing, and no testkit either: core's tests need no runtime.
    Row {
        name: "moothall-core",
        uses: &["moothall-evidence", "moothall-gate", "moothall-types"],
        tests_use: &[],
    },
    // Core exports these three, so nobody else names them.
    Row { name: "moothall-evidence", uses: &["moothall-types"], tests_use: &[] },
    Row { name: "moothall-gate", uses: &["moothall-types"], tests_use: &[] },
    Row { name: "moothall-types", uses: &[], tests_use: &[] },
];

/// Crates that never see each other, whatever the table says: each can be replaced without the
/// other noticing.
const STRANGERS: &[&str] = &["moothall-models", "moothall-sandbox", "moothall-store"];

/// A crate of the workspace and the crates of the workspace it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Product,
    Test,
}

/// Asks `cargo metadata` for the workspace's crates and the edges between them.
pub(crate) fn members(root: &Path) -> Result<Vec<Member>> {
    let metadata =
        MetadataCommand::new().current_dir(root).no_deps().exec().context("cargo metadata")?;
    let inside = |name: &str| metadata.packages.iter().any(|package| package.name.as_str() == name);
    let member = |package: &cargo_metadata::Package| Member {
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
            .map(|dependency| Edge {
                to: dependency.name.clone(),
                kind: match dependency.kind {
                    DependencyKind::Development => Kind::Test,
                    // What cargo may invent later counts as product: the stricter reading.
                    DependencyKind::Normal | DependencyKind::Build | DependencyKind::Unknown => {
                        Kind::Product
                    }
                },
            })
            .collect(),
    };
    Ok(metadata.packages.iter().map(member).collect())
}

pub(crate) fn check(table: &[Row], members: &[Member]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in members {
        let Some(row) = table.iter().find(|row| row.name == member.name) else {
            problems.push(problem(
                &member.manifest,
                format!("crate `{}` has no row in the table of allowed edges", member.name),
                format!("a new crate must buy what a module cannot; if it does, add a row to {THIS_FILE}"),
            ));
            continue;
        };
        problems.extend(member.edges.iter().filter_map(|edge| check_edge(row, member, edge)));
    }
    let gone = table.iter().filter(|row| !members.iter().any(|member| member.name == row.name));
    problems.extend(gone.map(|row| {
        problem(
            THIS_FILE,
            format!("row `{}` names no crate of the workspace", row.name),
            "remove the row".to_owned(),
        )
    }));
    problems
}

fn check_edge(row: &Row, member: &Member, edge: &Edge) -> Option<Problem> {
    let to = edge.to.as_str();
    let from = &member.name;
    if STRANGERS.contains(&row.name) && STRANGERS.contains(&to) {
        return Some(problem(
            &member.manifest,
            format!("`{from}` and `{to}` must never depend on each other"),
            "let the crate above both pass data between them".to_owned(),
        ));
    }
    let (allowed, what) = match edge.kind {
        Kind::Product => (row.uses.contains(&to), "depend on"),
        Kind::Test => (row.uses.contains(&to) || row.tests_use.contains(&to), "use in tests"),
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

fn problem(path: &str, message: String, hint: String) -> Problem {
    Problem { path: path.to_owned(), line: None, rule: ID, level: Level::Fail, message, hint }
}

#[cfg(test)]
#[path = "edges_tests.rs"]
mod tests;
