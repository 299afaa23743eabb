//! `moothall verify`: verifies a receipt offline.

use moothall_core::consult::{MoveReview, RankedMove, ReviewChange};
use moothall_core::receipt::{Receipt, ReceiptProblem, VerifiedReceipt, verify};
use moothall_core::text;
use moothall_core::{Conclusion, RunVerdict};
use serde_json::json;

use crate::args::VerifyArgs;
use crate::error::{CliError, CliExit};
use crate::terminal;

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<CliExit> {
    let bytes = fs_err::read(&args.receipt)
        .map_err(|error| CliError::usage("cannot read the receipt").with_source(error))?;
    let verified = match verify(&bytes) {
        Ok(verified) => verified,
        Err(fault) => {
            if args.json {
                terminal::print(&format!(
                    "{:#}\n",
                    json!({"holds": false, "line": fault.line, "problem": fault.problem.to_string()})
                ))?;
            }
            return Err(CliError::failed(format!(
                "{} is not valid: {fault}",
                args.receipt.display()
            ))
            .with_hint(match fault.problem {
                ReceiptProblem::OtherFormat(_) => {
                    "it was written by another version of moothall; verify it with that version"
                }
                _ => "it was modified after it was written, or is not a receipt",
            })
            .into());
        }
    };
    let VerifiedReceipt { receipt, verdict, head } = &verified;
    if args.json {
        let report = json!({
            "holds": true,
            "verdict": verdict,
            "head": head,
            "run_id": receipt.notes.run_id,
            "manifest": receipt.manifest,
            "effects": receipt.effects.len(),
            "findings": receipt.findings,
            "conclusion": receipt.conclusion,
            "approvals": receipt.approvals,
            "changes": changes(receipt),
        });
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        let demonstration = if receipt.manifest.demonstration {
            " (demo model: scripted answers, no API call)"
        } else {
            ""
        };
        let mut text = format!(
            "receipt is valid\nrun       {}\nworkflow  {} with {}{demonstration}\neffects   {}\nverdict   {verdict}\nhead      {head}\n",
            receipt.notes.run_id,
            text::sanitize_line(&receipt.manifest.workflow),
            text::sanitize_line(&receipt.manifest.model),
            receipt.effects.len(),
        );
        // Verification recomputed this ranking from the recorded replies.
        if let Some(Conclusion::Ranked(ranked)) = receipt.conclusion.as_deref() {
            for one in &ranked.recommended {
                text.push_str(&text::sanitize_line(&recommended(one)));
                text.push('\n');
            }
        }
        for change in changes(receipt) {
            let line = format!("changed   {}", change.describe());
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        for approval in &receipt.approvals {
            let line = format!("approved  {} by {}", approval.move_id, approval.by);
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        for finding in &receipt.findings {
            let line = format!("finding   {}: {}", finding.rule, finding.message);
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        terminal::print(&text)?;
    }
    Ok(match verdict {
        RunVerdict::Pass => CliExit::Fine,
        RunVerdict::NeedsPerson => CliExit::NeedsPerson,
        RunVerdict::Fail => CliExit::VerdictNegative,
    })
}

/// Changes that a person made to the moves before the debates.
fn changes(receipt: &Receipt) -> Vec<&ReviewChange> {
    let said = receipt.effects.values().filter_map(|record| MoveReview::of(&record.result));
    said.flat_map(|review| &review.changes).collect()
}

fn recommended(one: &RankedMove) -> String {
    let rank = one.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let score = one
        .debated
        .as_ref()
        .map_or_else(String::new, |debated| format!(" ({})", debated.score_text()));
    format!("rank {rank:<4} {} {}{score}", one.move_id, one.title)
}
