//! `moothall verify`: a receipt, checked offline.

use moothall_core::consult::{Change, RankedMove, Review};
use moothall_core::receipt::{Receipt, ReceiptProblem, VerifiedReceipt, verify};
use moothall_core::text;
use moothall_core::{Conclusion, Verdict};
use serde_json::json;

use crate::args::VerifyArgs;
use crate::error::{CliError, Exit};
use crate::terminal;

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Exit> {
    let bytes = fs_err::read(&args.receipt)
        .map_err(|error| CliError::usage("the receipt cannot be read").with_source(error))?;
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
                "{} does not hold: {fault}",
                args.receipt.display()
            ))
            .with_hint(match fault.problem {
                ReceiptProblem::OtherFormat(_) => {
                    "another version of moothall wrote it; verify it with that one"
                }
                _ => "it was changed after it was written, or is not a receipt",
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
            " (a demonstration, no model was asked)"
        } else {
            ""
        };
        let mut text = format!(
            "the receipt holds\nrun       {}\nworkflow  {} with {}{demonstration}\neffects   {}\nverdict   {verdict}\nhead      {head}\n",
            receipt.notes.run_id,
            text::shown_line(&receipt.manifest.workflow),
            text::shown_line(&receipt.manifest.model),
            receipt.effects.len(),
        );
        // Derived again from the answers, so it is the ranking and not somebody's word for it.
        if let Some(Conclusion::Ranked(ranked)) = receipt.conclusion.as_deref() {
            for one in &ranked.recommended {
                text.push_str(&text::shown_line(&recommended(one)));
                text.push('\n');
            }
        }
        for change in changes(receipt) {
            let line = format!("changed   {}", change.words());
            text.push_str(&text::shown_line(&line));
            text.push('\n');
        }
        for approval in &receipt.approvals {
            let line = format!("approved  {} by {}", approval.move_id, approval.by);
            text.push_str(&text::shown_line(&line));
            text.push('\n');
        }
        for finding in &receipt.findings {
            let line = format!("finding   {}: {}", finding.rule, finding.message);
            text.push_str(&text::shown_line(&line));
            text.push('\n');
        }
        terminal::print(&text)?;
    }
    Ok(match verdict {
        Verdict::Pass => Exit::Fine,
        Verdict::NeedsPerson => Exit::NeedsPerson,
        Verdict::Fail => Exit::VerdictNegative,
    })
}

/// What a person changed in the moves before they were debated.
fn changes(receipt: &Receipt) -> Vec<&Change> {
    let said = receipt.effects.values().filter_map(|record| Review::of(&record.result));
    said.flat_map(|review| &review.changes).collect()
}

fn recommended(one: &RankedMove) -> String {
    let rank = one.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let score = one.debated.as_ref().map_or_else(String::new, |debated| {
        format!(" ({}/{})", debated.total_score, debated.top_score)
    });
    format!("rank {rank:<4} {} {}{score}", one.move_id, one.title)
}
