//! Parses the replies of analysts.
//!
//! The first reply must have every requested move, complete; otherwise the analyst is asked again
//! with a list of the problems. From the second reply everything usable is taken: surplus moves are
//! dropped, and moves without a title or a thesis are ignored.

use serde::Deserialize;
use serde_json::Value;

use super::moves::Proposal;
use crate::PromptRevision;
use crate::model::{ModelReply, OutputSchema};
use crate::output_schema::{list, object, text, v1_schema};
use crate::structured::{MAX_PROBLEMS, OutputFault, read_json};
use crate::text::one_line;

/// Longer replies are rejected.
const MAX_ANSWER_BYTES: usize = 128 * 1024;

const MAX_TITLE: usize = 120;
const MAX_THESIS: usize = 2_000;
const MAX_ITEM: usize = 500;
const MAX_ID: usize = 80;

/// Maximum number of entries in each list of a move, except evidence ids.
const MAX_ITEMS: usize = 8;
const MAX_IDS: usize = 12;

/// What an analyst answers. Its name in parser errors is part of the requests of stored runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename = "Answer")]
struct AnalystReply {
    /// The moves, best first.
    moves: Vec<Proposal>,
}

/// Output schema of a reply with this many moves.
pub(crate) fn schema(revision: PromptRevision, moves: u32) -> OutputSchema {
    if revision == PromptRevision::V1 {
        let schema = v1_schema(include_str!("prompts/v1/moves.schema.json"));
        return OutputSchema::of_object("moves", schema);
    }
    let items = |most| list(text(most), 1..=MAX_ITEMS);
    let proposal = object([
        ("title", text(MAX_TITLE)),
        ("thesis", text(MAX_THESIS)),
        ("actions", items(MAX_ITEM)),
        ("what_must_be_true", items(MAX_ITEM)),
        ("evidence", list(text(MAX_ID), 1..=MAX_IDS)),
        ("risks", items(MAX_ITEM)),
        ("cost", text(MAX_ITEM)),
        ("horizon", text(MAX_ITEM)),
        ("kill_criteria", items(MAX_ITEM)),
    ]);
    let moves = moves as usize;
    OutputSchema::of_object("moves", object([("moves", list(proposal, moves..=moves))]))
}

/// The moves of a reply that is exactly as requested.
pub(crate) fn read(
    revision: PromptRevision,
    reply: &ModelReply,
    share: usize,
) -> Result<Vec<Proposal>, OutputFault> {
    let AnalystReply { moves } = parse(reply)?;
    let tidy: Vec<Proposal> =
        moves.iter().cloned().map(|one| truncated_to_limits(revision, one)).collect();
    let checked = match revision {
        PromptRevision::V1 => &moves,
        // What is too long is cut, and an id with other text around it is still that id.
        PromptRevision::V2 => &tidy,
    };
    let mut problems = Vec::new();
    if checked.len() < share {
        problems.push(format!("`moves` has {} moves; there must be {share}", checked.len()));
    }
    for (number, proposal) in (1..).zip(checked.iter().take(share)) {
        problems
            .extend(faults(proposal, 1).into_iter().map(|fault| format!("move {number}: {fault}")));
    }
    problems.truncate(MAX_PROBLEMS);
    if problems.is_empty() {
        Ok(usable(tidy, share))
    } else {
        Err(OutputFault::Invalid { problems })
    }
}

/// The usable moves of a reply, even if other parts of it are invalid.
pub(crate) fn read_usable_moves(
    revision: PromptRevision,
    reply: &ModelReply,
    share: usize,
) -> Result<Vec<Proposal>, OutputFault> {
    let found = match parse(reply) {
        Ok(AnalystReply { moves }) => moves,
        // One invalid move must not discard the others.
        Err(fault) => {
            let value = read_json(reply, &|_: &Value| Vec::new()).map_err(|_| fault.clone())?;
            let moves = value.get("moves").and_then(Value::as_array).ok_or(fault)?;
            moves.iter().filter_map(|one| Proposal::deserialize(one).ok()).collect()
        }
    };
    let moves = usable(found.into_iter().map(|one| truncated_to_limits(revision, one)), share);
    if moves.is_empty() {
        let problems = vec!["there is no move with a title and a thesis".to_owned()];
        return Err(OutputFault::Invalid { problems });
    }
    Ok(moves)
}

fn parse(reply: &ModelReply) -> Result<AnalystReply, OutputFault> {
    let invalid = |problem: String| OutputFault::Invalid { problems: vec![problem] };
    if reply.text.len() > MAX_ANSWER_BYTES {
        return Err(invalid(format!("the answer has more than {MAX_ANSWER_BYTES} bytes")));
    }
    let value = read_json(reply, &|_: &Value| Vec::new())?;
    // The error may quote model output.
    AnalystReply::deserialize(value).map_err(|error| invalid(one_line(&error.to_string(), 200)))
}

/// Problems of a move, by field. Each list needs at least `least` entries.
fn faults(proposal: &Proposal, least: usize) -> Vec<String> {
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
    } = proposal;
    let texts = [
        ("title", title, MAX_TITLE),
        ("thesis", thesis, MAX_THESIS),
        ("cost", cost, MAX_ITEM),
        ("horizon", horizon, MAX_ITEM),
    ];
    let mut faults = Vec::new();
    for (field, text, longest) in texts {
        faults.extend(text_fault(field, text, longest));
    }
    let lists = [
        ("actions", actions, MAX_ITEM, MAX_ITEMS),
        ("what_must_be_true", what_must_be_true, MAX_ITEM, MAX_ITEMS),
        ("evidence", evidence, MAX_ID, MAX_IDS),
        ("risks", risks, MAX_ITEM, MAX_ITEMS),
        ("kill_criteria", kill_criteria, MAX_ITEM, MAX_ITEMS),
    ];
    for (field, list, longest, most) in lists {
        if !(least..=most).contains(&list.len()) {
            let found = list.len();
            faults.push(format!("`{field}` has {found} entries; {least} to {most} are wanted"));
        }
        faults.extend(list.iter().find_map(|text| text_fault(field, text, longest)));
    }
    faults
}

fn text_fault(field: &str, text: &str, longest: usize) -> Option<String> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        Some(format!("`{field}` is empty"))
    } else if length > longest {
        Some(format!("`{field}` has {length} characters; {longest} are the most"))
    } else {
        None
    }
}

/// Validates a person's move and normalizes each text to one line. Texts that are too long are
/// rejected instead of truncated, and lists may be empty.
pub(crate) fn validate_user_move(proposal: Proposal) -> Result<Proposal, Vec<String>> {
    let mut faults = faults(&proposal, 0);
    faults.truncate(MAX_PROBLEMS);
    if faults.is_empty() {
        Ok(truncated_to_limits(PromptRevision::V1, proposal))
    } else {
        Err(faults)
    }
}

/// The problem of a stored move of a person, which must be exactly as [`validate_user_move`]
/// returned it.
pub(crate) fn user_move_fault(proposal: &Proposal) -> Option<String> {
    match validate_user_move(proposal.clone()) {
        Ok(tidy) if tidy == *proposal => None,
        Ok(_) => Some("it has line breaks, hidden characters or spaces too many".to_owned()),
        Err(faults) => faults.into_iter().next(),
    }
}

/// The first `share` of these moves that can be used.
fn usable(tidy: impl IntoIterator<Item = Proposal>, share: usize) -> Vec<Proposal> {
    let moves = tidy.into_iter();
    moves.filter(|one| !one.title.is_empty() && !one.thesis.is_empty()).take(share).collect()
}

/// The move truncated to the limits, with each text on one line.
fn truncated_to_limits(revision: PromptRevision, proposal: Proposal) -> Proposal {
    let list = |items: Vec<String>, longest: usize, most: usize| -> Vec<String> {
        let items = items.iter().map(|item| one_line(item, longest));
        items.filter(|item| !item.is_empty()).take(most).collect()
    };
    let items = |of: Vec<String>| list(of, MAX_ITEM, MAX_ITEMS);
    let ids = proposal.evidence.iter().map(|id| match revision {
        PromptRevision::V1 => strip_brackets(id).to_owned(),
        PromptRevision::V2 => leading_id(id).to_owned(),
    });
    let ids = ids.collect();
    Proposal {
        title: one_line(&proposal.title, MAX_TITLE),
        thesis: one_line(&proposal.thesis, MAX_THESIS),
        actions: items(proposal.actions),
        what_must_be_true: items(proposal.what_must_be_true),
        evidence: list(ids, MAX_ID, MAX_IDS),
        risks: items(proposal.risks),
        cost: one_line(&proposal.cost, MAX_ITEM),
        horizon: one_line(&proposal.horizon, MAX_ITEM),
        kill_criteria: items(proposal.kill_criteria),
    }
}

/// The id at the start of a citation: `U0:plan:3` of `[U0:plan:3] the plan says so`.
fn leading_id(citation: &str) -> &str {
    let id = citation.trim_start().trim_start_matches('[');
    id.split(|sign: char| sign.is_whitespace() || "];,".contains(sign)).next().unwrap_or(id)
}

/// An id without the brackets of a citation.
fn strip_brackets(id: &str) -> &str {
    let id = id.trim();
    id.strip_prefix('[').and_then(|id| id.strip_suffix(']')).unwrap_or(id).trim()
}

#[cfg(test)]
#[path = "proposals_tests.rs"]
mod tests;
