//! Formats the events of a consultation.

use std::collections::BTreeMap;

use moothall_core::consult::EvidenceSource;
use moothall_core::debate::DebateDegradation;
use moothall_core::{FindingSeverity, RoundStatus, RunEventBody, RunVerdict};

use super::line;

/// The names of the stages, in order.
pub(crate) const LAYERS: [&str; 5] = ["gather", "infer", "analyze", "debate", "rank"];

/// The name of a stage.
pub(crate) fn layer(layer: u8) -> &'static str {
    LAYERS.get(usize::from(layer)).copied().unwrap_or("unknown stage")
}

/// One reason why a debate is degraded.
pub(crate) fn degradation(degradation: &DebateDegradation) -> String {
    line(&degradation.describe())
}

/// An event on one line. Empty for events of other workflows.
pub(crate) fn event(body: &RunEventBody) -> String {
    match body {
        RunEventBody::ConsultStarted { ticker, rounds, moves, provenance, est_calls, .. } => {
            let source = match provenance {
                EvidenceSource::Filings => "filings",
                EvidenceSource::Files => "the user's documents",
                EvidenceSource::Synthetic => "evidence invented by a model",
            };
            line(&format!(
                "{ticker}: {moves} moves, {rounds} rounds each, {est_calls} calls, from {source}"
            ))
        }
        RunEventBody::LayerStart { layer: number, .. } => {
            format!("stage {number}, {}: started", layer(*number))
        }
        RunEventBody::LayerComplete { layer: number, artifacts, total_policies_scored, .. } => {
            let mut summary = format!("stage {number}, {}: done", layer(*number));
            if let Some(scored) = total_policies_scored {
                summary.push_str(&format!(" · {scored} moves scored"));
            }
            if !artifacts.is_empty() {
                summary.push_str(&format!(" · {}", artifacts.join(" ")));
            }
            line(&summary)
        }
        RunEventBody::AgentStart { agent_id, persona, .. } => {
            line(&format!("{agent_id}, {persona}: started"))
        }
        RunEventBody::AgentComplete { agent_id, outputs, .. } => match outputs.is_empty() {
            true => line(&format!("{agent_id}: no usable output")),
            false => line(&format!("{agent_id}: {}", outputs.join(" "))),
        },
        RunEventBody::ClaimChecked { document, numbers, supported, flagged, rewrite, .. } => {
            let mut summary = format!("{document}: {supported} of {numbers} numbers supported");
            if !flagged.is_empty() {
                let rules: Vec<String> =
                    flagged.iter().map(|one| format!("{}: {}", one.rule, one.message)).collect();
                summary.push_str(&format!(" · {} flagged ({})", flagged.len(), rules.join("; ")));
            }
            match *rewrite {
                true => summary.push_str(" · will be rewritten"),
                false if flagged.iter().any(|one| one.severity >= FindingSeverity::Escalate) => {
                    summary.push_str(" · needs review");
                }
                false => {}
            }
            line(&summary)
        }
        RunEventBody::MovesReviewed { vetoed, edited, added, .. } => {
            let said = [("vetoed", vetoed), ("edited", edited), ("added", added)];
            let said = said.iter().filter(|(_, moves)| !moves.is_empty());
            let said: Vec<String> =
                said.map(|(word, moves)| format!("{word} {}", moves.join(", "))).collect();
            match said.is_empty() {
                true => "moves reviewed without changes".to_owned(),
                false => line(&format!("moves reviewed: {}", said.join("; "))),
            }
        }
        RunEventBody::Isolation { move_id, class, fallback, .. } => {
            let why = fallback.as_ref().map_or(String::new(), |why| format!(" ({why})"));
            line(&format!("{move_id} is debated with isolation class {class}{why}"))
        }
        RunEventBody::SandboxRound { move_id, round, status } => {
            let status = match status {
                RoundStatus::CriticResponding => "waiting for the critic",
                RoundStatus::CriticResponded => "the critic replied",
                RoundStatus::DmResponding => "waiting for the decision makers",
                RoundStatus::DmResponded => "the decision makers replied",
            };
            line(&format!("{move_id}, round {round}: {status}"))
        }
        RunEventBody::SandboxTurn { move_id, thread, round, role, preview, stance: at, .. } => {
            let to = match role.as_str() {
                "critic" if thread == "all" => " to all".to_owned(),
                "critic" => format!(" to {thread}"),
                _ => String::new(),
            };
            let at = at.map_or(String::new(), |at| format!(" ({})", at.word()));
            line(&format!("{move_id}, round {round}, {role}{to}{at}: {preview}"))
        }
        RunEventBody::Calculated { move_id, calculation, .. } => {
            let (id, purpose) = (&calculation.id, &calculation.purpose);
            let outcome = calculation.outcome_text();
            line(&format!("{move_id}, calculation {id}: {purpose} · {outcome}"))
        }
        RunEventBody::SandboxScored {
            move_id,
            score,
            out_of,
            breakdown,
            degraded,
            key_objection,
            ..
        } => {
            let mut summary = match DebateDegradation::is_scored(degraded) {
                true => format!("{move_id}: {score}/{out_of}"),
                false => format!("{move_id}: not scored"),
            };
            let given = cards(breakdown);
            if !given.is_empty() {
                summary.push_str(&format!(" · {given}"));
            }
            for one in degraded {
                summary.push_str(&format!(" · degraded: {}", degradation(one)));
            }
            if let Some(objection) = key_objection {
                let severity = objection.severity.word();
                summary.push_str(&format!(" · open ({severity}): {}", objection.text));
            }
            line(&summary)
        }
        RunEventBody::VerdictUpdated { stage, again, headline, warning, .. } => {
            let warning = warning.as_ref().map(|warning| format!(" · {warning}"));
            let again = match again.is_empty() {
                true => String::new(),
                false => format!(" · debated again: {}", again.join(", ")),
            };
            let warning = warning.unwrap_or_default();
            line(&format!("verdict after stage {stage}: {headline}{warning}{again}"))
        }
        RunEventBody::PipelineComplete { verdict, recommended, other, .. } => {
            let mut summary = match recommended.is_empty() {
                true => "ranked: no recommended moves".to_owned(),
                false => format!("ranked: {} recommended", recommended.join(", ")),
            };
            summary.push_str(&format!(", {} others", other.len()));
            if *verdict != RunVerdict::Pass {
                summary.push_str(&format!(" · {verdict}"));
            }
            line(&summary)
        }
        _ => String::new(),
    }
}

/// The total score of each decision maker.
fn cards(breakdown: &BTreeMap<String, BTreeMap<String, u8>>) -> String {
    let card = |(member, scores): (&String, &BTreeMap<String, u8>)| {
        let sum: u32 = scores.values().map(|score| u32::from(*score)).sum();
        format!("{member} {sum}")
    };
    let given = breakdown.iter().filter(|(_, scores)| !scores.is_empty());
    given.map(card).collect::<Vec<_>>().join(", ")
}
