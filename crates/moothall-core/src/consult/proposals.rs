//! Parses the replies of analysts.
//!
//! The first reply must be exactly as requested; otherwise the analyst is asked again with a list
//! of the problems. From the second reply everything usable is taken: long texts are truncated,
//! surplus moves are dropped, and moves without a title or a thesis are ignored.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::moves::Proposal;
use crate::model::{ModelReply, OutputSchema};
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

/// What an analyst answers. The number of moves is not in the schema, so that the first question and
/// a rewrite share it, and with it the provider's cache.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// The moves, best first.
    moves: Vec<Proposal>,
}

/// Output schema of analysts' replies. Type names and doc comments of [`Answer`] and [`Proposal`]
/// are part of it, and thereby of the request hashes in journals and receipts.
pub(crate) fn schema() -> OutputSchema {
    OutputSchema::of::<Answer>("moves")
}

/// The moves of a reply that is exactly as requested.
pub(crate) fn read(reply: &ModelReply, share: usize) -> Result<Vec<Proposal>, OutputFault> {
    let Answer { moves } = parse(reply)?;
    let mut problems = Vec::new();
    if moves.len() < share {
        problems.push(format!("`moves` has {} moves; there must be {share}", moves.len()));
    }
    for (number, proposal) in (1..).zip(moves.iter().take(share)) {
        problems
            .extend(faults(proposal, 1).into_iter().map(|fault| format!("move {number}: {fault}")));
    }
    problems.truncate(MAX_PROBLEMS);
    if problems.is_empty() {
        Ok(usable(moves, share))
    } else {
        Err(OutputFault::Invalid { problems })
    }
}

/// The usable moves of a reply, even if other parts of it are invalid.
pub(crate) fn read_what_is_there(
    reply: &ModelReply,
    share: usize,
) -> Result<Vec<Proposal>, OutputFault> {
    let found = match parse(reply) {
        Ok(Answer { moves }) => moves,
        // One invalid move must not discard the others.
        Err(fault) => {
            let value = read_json(reply, &|_: &Value| Vec::new()).map_err(|_| fault.clone())?;
            let moves = value.get("moves").and_then(Value::as_array).ok_or(fault)?;
            moves.iter().filter_map(|one| Proposal::deserialize(one).ok()).collect()
        }
    };
    let moves = usable(found, share);
    if moves.is_empty() {
        let problems = vec!["there is no move with a title and a thesis".to_owned()];
        return Err(OutputFault::Invalid { problems });
    }
    Ok(moves)
}

fn parse(reply: &ModelReply) -> Result<Answer, OutputFault> {
    let invalid = |problem: String| OutputFault::Invalid { problems: vec![problem] };
    if reply.text.len() > MAX_ANSWER_BYTES {
        return Err(invalid(format!("the answer has more than {MAX_ANSWER_BYTES} bytes")));
    }
    let value = read_json(reply, &|_: &Value| Vec::new())?;
    // The error may quote model output.
    Answer::deserialize(value).map_err(|error| invalid(one_line(&error.to_string(), 200)))
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
pub(crate) fn own(proposal: Proposal) -> Result<Proposal, Vec<String>> {
    let mut faults = faults(&proposal, 0);
    faults.truncate(MAX_PROBLEMS);
    if faults.is_empty() { Ok(tidied(proposal)) } else { Err(faults) }
}

/// The problem of a stored move of a person, which must be exactly as [`own`] returned it.
pub(crate) fn own_fault(proposal: &Proposal) -> Option<String> {
    match own(proposal.clone()) {
        Ok(tidy) if tidy == *proposal => None,
        Ok(_) => Some("it has line breaks, hidden characters or spaces too many".to_owned()),
        Err(faults) => faults.into_iter().next(),
    }
}

/// The first `share` usable moves, truncated to the limits and with each text on one line.
fn usable(moves: Vec<Proposal>, share: usize) -> Vec<Proposal> {
    let moves = moves.into_iter().map(tidied);
    moves.filter(|one| !one.title.is_empty() && !one.thesis.is_empty()).take(share).collect()
}

fn tidied(proposal: Proposal) -> Proposal {
    let list = |items: Vec<String>, longest: usize, most: usize| -> Vec<String> {
        let items = items.iter().map(|item| one_line(item, longest));
        items.filter(|item| !item.is_empty()).take(most).collect()
    };
    let items = |of: Vec<String>| list(of, MAX_ITEM, MAX_ITEMS);
    let ids = proposal.evidence.iter().map(|id| bare(id).to_owned()).collect();
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

/// An id without the brackets of a citation.
fn bare(id: &str) -> &str {
    let id = id.trim();
    id.strip_prefix('[').and_then(|id| id.strip_suffix(']')).unwrap_or(id).trim()
}

#[cfg(test)]
#[path = "proposals_tests.rs"]
mod tests;
