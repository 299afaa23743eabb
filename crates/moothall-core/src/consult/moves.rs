//! A strategic move, as proposed by an analyst.

use serde::{Deserialize, Serialize};

/// A move with its id and author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// `m1` to `m15`.
    pub move_id: String,
    /// Id of its author, such as `analyst_3`.
    pub analyst: String,
    /// The proposal itself.
    pub proposal: Proposal,
}

/// What an analyst writes. The order of fields is the order in which models write them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The move in one line.
    pub title: String,
    /// Why it is right, in a few sentences; every number is cited.
    pub thesis: String,
    /// What is done, step by step.
    pub actions: Vec<String>,
    /// What must be true for it to work; each can be checked and cites what speaks for it.
    pub what_must_be_true: Vec<String>,
    /// The ids of the evidence that carries it, such as `F0:Revenue:FY2025`.
    pub evidence: Vec<String>,
    /// What can go wrong.
    pub risks: Vec<String>,
    /// What it costs; a number that is not a fact is marked as an assumption.
    pub cost: String,
    /// Until when it pays.
    pub horizon: String,
    /// What would make the company stop it.
    pub kill_criteria: Vec<String>,
}

impl Move {
    /// Formats the move as the document `mN.md`.
    pub fn markdown(&self) -> String {
        let Proposal {
            title,
            thesis,
            actions,
            what_must_be_true,
            evidence,
            risks,
            cost,
            horizon,
            kill_criteria,
        } = &self.proposal;
        let list = |items: &[String]| -> String {
            items.iter().map(|item| format!("- {item}\n")).collect()
        };
        let cited: Vec<String> = evidence.iter().map(|id| format!("[{id}]")).collect();
        format!(
            "# {id}: {title}\n\n{thesis}\n\n## Actions\n{actions}\n## What must be true\n{must}\n\
             ## Evidence\n{cited}\n\n## Risks\n{risks}\n## Cost and horizon\n- Cost: {cost}\n\
             - Horizon: {horizon}\n\n## Kill criteria\n{kill}",
            id = self.move_id,
            actions = list(actions),
            must = list(what_must_be_true),
            cited = cited.join(" "),
            risks = list(risks),
            kill = list(kill_criteria),
        )
    }
}
