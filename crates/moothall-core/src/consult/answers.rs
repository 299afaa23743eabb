//! What an answer means.

use std::collections::BTreeSet;

use super::checking::Check;
use super::ids::{Desk, MoveIds};
use super::moves::{Move, Proposal};
use super::proceedings::{DebateEnd, Document, Failure, Tried};
use super::prompt;
use super::proposals;
use super::words::lines;
use super::workflow::{Attempt, Call, Consult, Open, Reading, Synthetic, Task};
use crate::child::ChildEnd;
use crate::debate::Debated;
use crate::model::{ModelReply, ModelRequest, StopReason};
use crate::structured::{OutputFault, ask_again};
use crate::{Conclusion, EffectId, Finding, RunEvent, RunEventBody, Severity, Step};

/// The longest document that is kept.
const MAX_DOCUMENT_BYTES: usize = 32 * 1024;

const EMPTY: &str = "the answer is empty";
const WORSE: &str = "code finds more in it than in the text that it would replace";

impl Consult {
    /// A model answered.
    pub(super) fn answered(
        &mut self,
        id: &EffectId,
        call: Call,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let Call { task, request } = call;
        step.publish.push(RunEvent::model_replied(id, &request, reply));
        match task {
            Task::Synthesize(what) => self.synthesized(what, reply, step),
            Task::Read(which, None) => self.read(id, which, &request, reply, step),
            Task::Read(which, Some(first)) => self.read_again(id, which, first, reply, step),
            Task::Propose { desk, attempt } => {
                self.proposed(id, desk, attempt, &request, reply, step);
            }
            Task::Rewrite { desk, number } => self.rewritten(id, desk, number, reply, step),
            Task::Alone(alone) => self.scored_alone(id, alone, &request, reply, step),
        }
    }

    /// A model did not answer, and nobody asks it again.
    pub(super) fn without_answer(&mut self, task: Task, why: Failure, step: &mut Step) {
        match task {
            Task::Synthesize(what) => {
                self.failed(what.agent(), why);
                self.agent_complete(step, 0, what.agent(), Vec::new());
            }
            Task::Read(which, None) => {
                self.failed(which.agent(), why);
                self.agent_complete(step, 1, which.agent(), Vec::new());
            }
            Task::Read(which, Some(first)) => {
                self.failed(&format!("{}/rewrite", which.agent()), why);
                self.keep(which, first, step);
            }
            Task::Propose { desk, .. } => {
                let Some(agent) = self.analyst(desk) else { return };
                self.failed(&agent, why);
                self.agent_complete(step, 2, &agent, Vec::new());
            }
            Task::Rewrite { desk, number } => {
                self.failed(&format!("m{number}/rewrite"), why);
                self.settle(desk, step);
            }
            Task::Alone(alone) => self.not_scored_alone(&alone),
        }
    }

    fn failed(&mut self, who: &str, why: Failure) {
        self.known.failures.insert(who.to_owned(), why);
    }

    fn synthesized(&mut self, what: Synthetic, reply: &ModelReply, step: &mut Step) {
        let text = lines(&reply.text, MAX_DOCUMENT_BYTES);
        if text.is_empty() {
            return self.without_answer(Task::Synthesize(what), Failure::of_answer(EMPTY), step);
        }
        let text = Some(self.known.marked(text));
        match what {
            Synthetic::Financials => self.known.financials = text,
            Synthetic::News => self.known.news = text,
        }
        self.agent_complete(step, 0, what.agent(), vec![what.document().to_owned()]);
    }

    /// The first text of F1 or F2: it is checked, and written again where something is flagged.
    fn read(
        &mut self,
        id: &EffectId,
        which: Reading,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let Some(document) = self.checked(which, reply) else {
            return self.without_answer(Task::Read(which, None), Failure::of_answer(EMPTY), step);
        };
        let is_flagged = document.check.is_flagged();
        step.publish.push(claim_checked(id, which.document(), &document.check, is_flagged));
        if is_flagged {
            let again = match which {
                Reading::F1 => self.ids.f1.again.clone(),
                Reading::F2 => self.ids.f2.again.clone(),
            };
            let found = &document.check.findings;
            let request = prompt::rewrite_document(request, &document.text, found);
            self.call(step, again, Task::Read(which, Some(document)), request);
        } else {
            self.keep(which, cut_off(document, which, reply), step);
        }
    }

    /// The second text, unless code finds more in it than in the first.
    fn read_again(
        &mut self,
        id: &EffectId,
        which: Reading,
        first: Document,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        match self.checked(which, reply) {
            Some(second) if second.check.weight() <= first.check.weight() => {
                step.publish.push(claim_checked(id, which.document(), &second.check, false));
                self.keep(which, cut_off(second, which, reply), step);
            }
            found => {
                let why = if found.is_some() { WORSE } else { EMPTY };
                step.publish.push(rejected(id, why));
                self.failed(id.as_str(), Failure::of_answer(why));
                self.keep(which, first, step);
            }
        }
    }

    fn checked(&self, which: Reading, reply: &ModelReply) -> Option<Document> {
        let text = lines(&reply.text, MAX_DOCUMENT_BYTES);
        let evidence = self.known.evidence.as_deref()?;
        if text.is_empty() {
            return None;
        }
        let check = Check::of_document(evidence, which.agent(), &text);
        Some(Document { text, check })
    }

    fn keep(&mut self, which: Reading, document: Document, step: &mut Step) {
        let Document { text, check } = document;
        let document = Some(Document { text: self.known.marked(text), check });
        match which {
            Reading::F1 => self.known.f1 = document,
            Reading::F2 => self.known.f2 = document,
        }
        self.agent_complete(step, 1, which.agent(), vec![which.document().to_owned()]);
    }

    fn proposed(
        &mut self,
        id: &EffectId,
        desk: usize,
        attempt: Attempt,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let Some(Desk { again, moves, .. }) = self.ids.desks.get(desk) else { return };
        let (again, share) = (again.clone(), moves.len());
        let read = match attempt {
            Attempt::First => proposals::read(reply, share),
            Attempt::Second => proposals::read_what_is_there(reply, share),
        };
        match (read, attempt) {
            (Ok(proposals), _) => self.take(id, desk, proposals, request, reply, step),
            (Err(fault), Attempt::First) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                let answer = lines(&reply.text, MAX_DOCUMENT_BYTES);
                let request = ask_again(request, &answer, &fault);
                let task = Task::Propose { desk, attempt: Attempt::Second };
                self.call(step, again, task, request);
            }
            (Err(fault), Attempt::Second) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                let why = Failure::of_answer(&fault.to_string());
                self.without_answer(Task::Propose { desk, attempt }, why, step);
            }
        }
    }

    /// Takes moves over: each is checked, and written again where something is flagged.
    fn take(
        &mut self,
        id: &EffectId,
        desk: usize,
        proposals: Vec<Proposal>,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let (Some(analyst), Some(ids)) = (self.analyst(desk), self.ids.desks.get(desk)) else {
            return;
        };
        let rewrites: Vec<(u32, EffectId)> = ids
            .moves
            .iter()
            .map(|MoveIds { number, rewrite, .. }| (*number, rewrite.clone()))
            .collect();
        let missing = rewrites.len() - proposals.len().min(rewrites.len());
        if missing > 0 {
            let why = format!("{missing} of {} moves could not be used", rewrites.len());
            self.failed(&analyst, Failure::of_answer(&why));
        }
        for (place, (proposal, (number, rewrite))) in (1..).zip(proposals.into_iter().zip(rewrites))
        {
            let Some(tried) = self.tried(number, &analyst, proposal) else { continue };
            let is_flagged = tried.check.is_flagged();
            let document = format!("m{number}.md");
            step.publish.push(claim_checked(id, &document, &tried.check, is_flagged));
            if is_flagged {
                let (title, found) = (&tried.proposed.proposal.title, &tried.check.findings);
                let request = prompt::rewrite_move(request, &reply.text, place, title, found);
                self.call(step, rewrite, Task::Rewrite { desk, number }, request);
            }
            self.known.moves.insert(number, tried);
        }
        self.settle(desk, step);
    }

    pub(super) fn tried(&self, number: u32, analyst: &str, proposal: Proposal) -> Option<Tried> {
        let evidence = self.known.evidence.as_deref()?;
        let move_id = format!("m{number}");
        let proposed = Move { move_id, analyst: analyst.to_owned(), proposal };
        let check = Check::of_move(evidence, &proposed);
        Some(Tried { proposed, check, similar_to: BTreeSet::new(), said: None, debate: None })
    }

    /// The second text of a move, unless code finds more in it than in the first.
    fn rewritten(
        &mut self,
        id: &EffectId,
        desk: usize,
        number: u32,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let again = proposals::read_what_is_there(reply, 1);
        let again = again.and_then(|mut moves| {
            let problems = vec!["there is no move".to_owned()];
            moves.pop().ok_or(OutputFault::Invalid { problems })
        });
        let analyst = self.analyst(desk).unwrap_or_default();
        let first = self.known.moves.get(&number).map(|tried| tried.check.weight());
        match again.map(|proposal| self.tried(number, &analyst, proposal)) {
            Ok(Some(second)) if first.is_some_and(|first| second.check.weight() <= first) => {
                let document = format!("m{number}.md");
                step.publish.push(claim_checked(id, &document, &second.check, false));
                self.known.moves.insert(number, second);
            }
            Ok(_) => {
                step.publish.push(rejected(id, WORSE));
                self.failed(id.as_str(), Failure::of_answer(WORSE));
            }
            Err(fault) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                self.failed(id.as_str(), Failure::of_answer(&fault.to_string()));
            }
        }
        self.settle(desk, step);
    }

    /// Says that an analyst is done, where nothing of it is open any more.
    fn settle(&mut self, desk: usize, step: &mut Step) {
        let is_of_desk = |open: &Open| match open {
            Open::Call(call) => call.task.desk() == Some(desk),
            Open::Gather | Open::Review | Open::Debate { .. } => false,
        };
        if self.open.values().any(is_of_desk) {
            return;
        }
        let (Some(agent), Some(ids)) = (self.analyst(desk), self.ids.desks.get(desk)) else {
            return;
        };
        let numbers = ids.moves.iter().map(|ids| ids.number);
        let made = numbers.filter(|number| self.known.moves.contains_key(number));
        let outputs = made.map(|number| format!("m{number}.md")).collect();
        self.agent_complete(step, 2, &agent, outputs);
    }

    fn analyst(&self, desk: usize) -> Option<String> {
        let seat = self.ids.desks.get(desk)?.seat;
        Some(self.input.committee.analysts.get(seat)?.id.clone())
    }

    /// A debate came to its end.
    pub(super) fn debated(&mut self, id: &EffectId, number: u32, end: ChildEnd, step: &mut Step) {
        let ChildEnd { outcome, isolation } = end;
        let move_id = id.to_string();
        step.publish.push(RunEvent::about(
            id,
            RunEventBody::Isolation {
                effect_id: id.clone(),
                move_id,
                class: isolation.class,
                fallback: isolation.fallback.clone(),
            },
        ));
        let result = match outcome.conclusion {
            Conclusion::Debated(debated) => sound(*debated, id, self.input.committee.top_score()),
            Conclusion::NotDebated { why } => Err(Failure::of_answer(&why).why),
            _ => Err("it ended as something else than a debate".to_owned()),
        };
        if let Some(tried) = self.known.moves.get_mut(&number) {
            tried.debate = Some(DebateEnd { result, findings: outcome.findings, isolation });
        }
    }
}

/// The debate, if it is about this move and its sums are right.
fn sound(debated: Debated, id: &EffectId, top: u32) -> Result<Debated, String> {
    let sum: u32 = debated.scorecards.values().map(|card| card.sum()).sum();
    if debated.move_id != id.as_str() {
        Err("its debate is about another move".to_owned())
    } else if debated.total_score != sum || sum > top || debated.top_score != top {
        Err("its scores do not add up".to_owned())
    } else {
        Ok(debated)
    }
}

/// Words that were cut off still say something, and are worth a mark.
fn cut_off(mut document: Document, which: Reading, reply: &ModelReply) -> Document {
    if reply.stop == StopReason::MaxTokens {
        let fault = OutputFault::CutOff;
        let found = Finding::new(fault.rule(), Severity::Warn, which.agent(), fault.to_string());
        document.check.findings.push(found);
    }
    document
}

pub(super) fn claim_checked(
    id: &EffectId,
    document: &str,
    check: &Check,
    rewrite: bool,
) -> RunEvent {
    let body = RunEventBody::ClaimChecked {
        effect_id: id.clone(),
        document: document.to_owned(),
        numbers: check.support.total,
        supported: check.support.supported,
        flagged: check.findings.clone(),
        rewrite,
    };
    RunEvent::about(id, body)
}

fn rejected(id: &EffectId, why: &str) -> RunEvent {
    RunEvent::output_rejected(id, &OutputFault::Invalid { problems: vec![why.to_owned()] })
}
