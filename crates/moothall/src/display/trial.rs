//! Events of a consultation in words.

use std::collections::BTreeMap;

use moothall_core::consult::EvidenceSource;
use moothall_core::debate::{Degradation, ObjectionSeverity, Stance};
use moothall_core::{RoundStatus, RunEventBody, Severity, Verdict};

use super::line;

/// What a layer does.
pub(crate) fn layer(layer: u8) -> &'static str {
    match layer {
        0 => "gather",
        1 => "infer",
        2 => "analyse",
        3 => "debate",
        4 => "rank",
        _ => "another layer",
    }
}

/// One way in which a debate is not as it should be.
pub(crate) fn degradation(degradation: &Degradation) -> String {
    line(&match degradation {
        Degradation::EndedEarly { thread, after_round, why } => {
            format!("{thread} ended after round {after_round} ({why})")
        }
        Degradation::Unstructured { thread, messages } => {
            let plural = if *messages == 1 { "" } else { "s" };
            format!("{messages} message{plural} in {thread} not in the form asked for")
        }
        Degradation::ScoreFromText { decision_maker } => {
            format!("{decision_maker}'s scores were taken from prose")
        }
        Degradation::NeutralScore { decision_maker } => {
            format!("{decision_maker} gave no usable scores: neutral 5s")
        }
        Degradation::Truncated { chain } => {
            format!("older rounds of {chain} were replaced by a summary")
        }
    })
}

pub(crate) fn objection_severity(severity: ObjectionSeverity) -> &'static str {
    match severity {
        ObjectionSeverity::Minor => "minor",
        ObjectionSeverity::Major => "major",
        ObjectionSeverity::Fatal => "fatal",
    }
}

fn stance(stance: Stance) -> &'static str {
    match stance {
        Stance::Hold => "holds",
        Stance::Partial => "grants a part",
        Stance::Concede => "concedes",
    }
}

/// One event in one line. Events of other trials have none here.
pub(super) fn event(body: &RunEventBody) -> String {
    match body {
        RunEventBody::ConsultStarted { ticker, rounds, moves, provenance, est_calls, .. } => {
            let source = match provenance {
                EvidenceSource::Filings => "filings",
                EvidenceSource::Files => "the user's documents",
                EvidenceSource::Synthetic => "evidence that a model makes up",
            };
            line(&format!(
                "{ticker}: {moves} moves, {rounds} rounds each, {est_calls} calls, from {source}"
            ))
        }
        RunEventBody::LayerStart { layer: number, .. } => {
            format!("layer {number}, {}: started", layer(*number))
        }
        RunEventBody::LayerComplete { layer: number, artifacts, total_policies_scored, .. } => {
            let mut words = format!("layer {number}, {}: done", layer(*number));
            if let Some(scored) = total_policies_scored {
                words.push_str(&format!(" · {scored} moves scored"));
            }
            if !artifacts.is_empty() {
                words.push_str(&format!(" · {}", artifacts.join(" ")));
            }
            line(&words)
        }
        RunEventBody::AgentStart { agent_id, persona, .. } => {
            line(&format!("{agent_id}, {persona}: started"))
        }
        RunEventBody::AgentComplete { agent_id, outputs, .. } => match outputs.is_empty() {
            true => line(&format!("{agent_id}: nothing usable")),
            false => line(&format!("{agent_id}: {}", outputs.join(" "))),
        },
        RunEventBody::ClaimChecked { document, numbers, supported, flagged, rewrite, .. } => {
            let mut words = format!("{document}: {supported} of {numbers} numbers supported");
            if !flagged.is_empty() {
                let rules: Vec<String> =
                    flagged.iter().map(|one| format!("{}: {}", one.rule, one.message)).collect();
                words.push_str(&format!(" · {} flagged ({})", flagged.len(), rules.join("; ")));
            }
            match *rewrite {
                true => words.push_str(" · to be written again"),
                false if flagged.iter().any(|one| one.severity >= Severity::Escalate) => {
                    words.push_str(" · held back");
                }
                false => {}
            }
            line(&words)
        }
        RunEventBody::MovesReviewed { vetoed, edited, added, .. } => {
            let said = [("vetoed", vetoed), ("edited", edited), ("added", added)];
            let said = said.iter().filter(|(_, moves)| !moves.is_empty());
            let said: Vec<String> =
                said.map(|(word, moves)| format!("{word} {}", moves.join(", "))).collect();
            match said.is_empty() {
                true => "a person let the moves stand as they are".to_owned(),
                false => line(&format!("a person reviewed the moves: {}", said.join("; "))),
            }
        }
        RunEventBody::Isolation { move_id, class, fallback, .. } => {
            let why = fallback.as_ref().map_or(String::new(), |why| format!(" ({why})"));
            line(&format!("{move_id} is debated in class {class}{why}"))
        }
        RunEventBody::SandboxRound { move_id, round, status } => {
            let status = match status {
                RoundStatus::CriticResponding => "the critic is asked",
                RoundStatus::CriticResponded => "the critic has spoken",
                RoundStatus::DmResponding => "the decision makers are asked",
                RoundStatus::DmResponded => "the decision makers have spoken",
            };
            line(&format!("{move_id}, round {round}: {status}"))
        }
        RunEventBody::SandboxTurn { move_id, thread, round, role, preview, stance: at, .. } => {
            let to = match role.as_str() {
                "critic" if thread == "all" => " to all".to_owned(),
                "critic" => format!(" to {thread}"),
                _ => String::new(),
            };
            let at = at.map_or(String::new(), |at| format!(", who {}", stance(at)));
            line(&format!("{move_id}, round {round}, {role}{to}{at}: {preview}"))
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
            let mut words = format!("{move_id}: {score}/{out_of}");
            if !breakdown.is_empty() {
                words.push_str(&format!(" · {}", cards(breakdown)));
            }
            for one in degraded {
                words.push_str(&format!(" · degraded: {}", degradation(one)));
            }
            if let Some(objection) = key_objection {
                let severity = objection_severity(objection.severity);
                words.push_str(&format!(" · open ({severity}): {}", objection.text));
            }
            line(&words)
        }
        RunEventBody::PipelineComplete { verdict, recommended, other } => {
            let mut words = match recommended.is_empty() {
                true => "ranked: no move is recommended".to_owned(),
                false => format!("ranked: {} first", recommended.join(", ")),
            };
            words.push_str(&format!(", {} others", other.len()));
            if *verdict != Verdict::Pass {
                words.push_str(&format!(" · {verdict}"));
            }
            line(&words)
        }
        _ => String::new(),
    }
}

/// What each decision maker gives in all.
fn cards(breakdown: &BTreeMap<String, BTreeMap<String, u8>>) -> String {
    let card = |(member, scores): (&String, &BTreeMap<String, u8>)| {
        let sum: u32 = scores.values().map(|score| u32::from(*score)).sum();
        format!("{member} {sum}")
    };
    breakdown.iter().map(card).collect::<Vec<_>>().join(", ")
}
