//! Handles model replies and finished debates: checks them, requests rewrites and records the
//! results.

use std::collections::BTreeSet;

use super::ids::{AnalystIds, MoveIds};
use super::moves::{Move, Proposal};
use super::panel::DebateKey;
use super::prompt;
use super::proposals;
use super::state::{AgentFailure, CheckedDocument, DebateRecord, MoveRecord};
use super::text_check::TextCheck;
use super::truncate::lines;
use super::workflow::{
    AnalystAttempt, Consult, ConsultCall, ConsultTask, EvidenceReading, PendingConsultEffect,
    ReadingAttempt, SyntheticDataKind,
};
use crate::child::ChildEnd;
use crate::debate::DebateResult;
use crate::echo::is_echo;
use crate::model::{ModelReply, ModelRequest, StopReason};
use crate::structured::{OutputFault, ask_again};
use crate::{
    Conclusion, EffectId, FindingSeverity, PromptRevision, RunEvent, RunEventBody, RunFinding, Step,
};

const MAX_DOCUMENT_BYTES: usize = 32 * 1024;

/// How much of an answer without a reading is shown to its author.
const MAX_REPEATED_BYTES: usize = 400;

const EMPTY: &str = "the answer is empty";
const ECHO: &str = "the answer repeats the prompt";
const WORSE: &str = "code finds more in it than in the text that it would replace";

impl Consult {
    pub(crate) fn answered(
        &mut self,
        id: &EffectId,
        call: ConsultCall,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let ConsultCall { task, request } = call;
        // An inherited reply is part of the parent's usage.
        if !self.input.is_inherited(id) {
            step.publish.push(RunEvent::model_replied(id, &request, reply));
        }
        match task {
            ConsultTask::Synthesize(what) => self.synthesized(what, reply, step),
            ConsultTask::Read(which, ReadingAttempt::First) => {
                self.read(id, which, &request, reply, step);
            }
            ConsultTask::Read(which, ReadingAttempt::Rewrite(first)) => {
                self.accept_rewrite(id, which, first, &request, reply, step);
            }
            ConsultTask::Propose { analyst_index, attempt } => {
                self.proposed(id, analyst_index, attempt, &request, reply, step);
            }
            ConsultTask::Rewrite { analyst_index, number } => {
                self.rewritten(id, analyst_index, number, reply, step)
            }
            ConsultTask::Score(task) => self.scored(id, task, &request, reply, step),
            ConsultTask::Forecast { member } => self.forecast_answered(&member, reply),
        }
    }

    /// Records that a task got no usable reply and will not be retried.
    pub(crate) fn record_failure(&mut self, task: ConsultTask, why: AgentFailure, step: &mut Step) {
        match task {
            ConsultTask::Synthesize(what) => {
                self.failed(what.agent(), why);
                self.agent_complete(step, 0, what.agent(), Vec::new());
            }
            ConsultTask::Read(which, ReadingAttempt::First | ReadingAttempt::Rewrite(None)) => {
                self.failed(which.agent(), why);
                self.agent_complete(step, 1, which.agent(), Vec::new());
            }
            ConsultTask::Read(which, ReadingAttempt::Rewrite(Some(first))) => {
                self.failed(&format!("{}/rewrite", which.agent()), why);
                self.store_reading(which, first, step);
            }
            ConsultTask::Propose { analyst_index, .. } => {
                let Some(agent) = self.analyst(analyst_index) else { return };
                self.failed(&agent, why);
                self.agent_complete(step, 2, &agent, Vec::new());
            }
            ConsultTask::Rewrite { analyst_index, number } => {
                self.failed(&format!("m{number}/rewrite"), why);
                self.settle(analyst_index, step);
            }
            ConsultTask::Score(task) => self.not_scored(task),
            // A member without forecasts is missing from their score.
            ConsultTask::Forecast { .. } => {}
        }
    }

    fn failed(&mut self, who: &str, why: AgentFailure) {
        self.known.failures.insert(who.to_owned(), why);
    }

    fn synthesized(&mut self, what: SyntheticDataKind, reply: &ModelReply, step: &mut Step) {
        let text = lines(&reply.text, MAX_DOCUMENT_BYTES);
        if text.is_empty() {
            return self.record_failure(
                ConsultTask::Synthesize(what),
                AgentFailure::of_answer(EMPTY),
                step,
            );
        }
        let text = Some(self.known.marked(text));
        match what {
            SyntheticDataKind::Financials => self.known.financials = text,
            SyntheticDataKind::News => self.known.news = text,
        }
        self.agent_complete(step, 0, what.agent(), vec![what.document().to_owned()]);
    }

    /// Checks the first version of F1 or F2 and requests a rewrite if anything is flagged.
    fn read(
        &mut self,
        id: &EffectId,
        which: EvidenceReading,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let document = match self.checked(which, request, reply) {
            Ok(document) => document,
            Err(why) => return self.read_again(id, which, request, reply, why, step),
        };
        let is_flagged = document.check.is_flagged();
        step.publish.push(claim_checked(id, which.document(), &document.check, is_flagged));
        if is_flagged {
            let found = &document.check.findings;
            let request =
                prompt::rewrite_document(self.known.texts(), request, &document.text, found);
            let attempt = ReadingAttempt::Rewrite(Some(document));
            self.call(step, self.rewrite_id(which), ConsultTask::Read(which, attempt), request);
        } else {
            self.store_reading(which, with_truncation_finding(document, which, reply), step);
        }
    }

    /// Requests a reading once more after an answer without one.
    fn read_again(
        &mut self,
        id: &EffectId,
        which: EvidenceReading,
        request: &ModelRequest,
        reply: &ModelReply,
        why: &str,
        step: &mut Step,
    ) {
        let answer = lines(&reply.text, MAX_REPEATED_BYTES);
        // Providers reject an assistant message without text.
        if self.known.prompts == PromptRevision::V1 || answer.is_empty() {
            let task = ConsultTask::Read(which, ReadingAttempt::First);
            return self.record_failure(task, AgentFailure::of_answer(why), step);
        }
        let fault = OutputFault::Invalid { problems: vec![why.to_owned()] };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let found = RunFinding::new(fault.rule(), FindingSeverity::Escalate, which.agent(), why);
        let request = prompt::rewrite_document(self.known.texts(), request, &answer, &[found]);
        let task = ConsultTask::Read(which, ReadingAttempt::Rewrite(None));
        self.call(step, self.rewrite_id(which), task, request);
    }

    fn rewrite_id(&self, which: EvidenceReading) -> EffectId {
        match which {
            EvidenceReading::F1 => self.ids.f1.again.clone(),
            EvidenceReading::F2 => self.ids.f2.again.clone(),
        }
    }

    /// Keeps the rewrite unless its findings are worse than those of the first version.
    fn accept_rewrite(
        &mut self,
        id: &EffectId,
        which: EvidenceReading,
        first: Option<CheckedDocument>,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let is_worse = |second: &CheckedDocument| {
            first.as_ref().is_some_and(|first| second.check.weight() > first.check.weight())
        };
        let why = match self.checked(which, request, reply) {
            Ok(second) if is_worse(&second) => WORSE,
            Ok(second) => {
                step.publish.push(claim_checked(id, which.document(), &second.check, false));
                let second = with_truncation_finding(second, which, reply);
                return self.store_reading(which, second, step);
            }
            Err(why) => why,
        };
        step.publish.push(rejected(id, why));
        let why = AgentFailure::of_answer(why);
        self.record_failure(ConsultTask::Read(which, ReadingAttempt::Rewrite(first)), why, step);
    }

    /// The text of an answer with its check, or why it is no reading.
    fn checked(
        &self,
        which: EvidenceReading,
        request: &ModelRequest,
        reply: &ModelReply,
    ) -> Result<CheckedDocument, &'static str> {
        let text = lines(&reply.text, MAX_DOCUMENT_BYTES);
        let Some(evidence) = self.known.evidence.as_deref().filter(|_| !text.is_empty()) else {
            return Err(EMPTY);
        };
        let agent = which.agent();
        let check = match self.known.prompts {
            PromptRevision::V1 => TextCheck::of_document(evidence, agent, &text),
            PromptRevision::V2 if is_echo(request, &text) => return Err(ECHO),
            PromptRevision::V2 => TextCheck::of_reading(evidence, agent, &text),
        };
        Ok(CheckedDocument { text, check })
    }

    fn store_reading(
        &mut self,
        which: EvidenceReading,
        document: CheckedDocument,
        step: &mut Step,
    ) {
        let CheckedDocument { text, check } = document;
        let document = Some(CheckedDocument { text: self.known.marked(text), check });
        match which {
            EvidenceReading::F1 => self.known.f1 = document,
            EvidenceReading::F2 => self.known.f2 = document,
        }
        self.agent_complete(step, 1, which.agent(), vec![which.document().to_owned()]);
    }

    fn proposed(
        &mut self,
        id: &EffectId,
        analyst_index: usize,
        attempt: AnalystAttempt,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let Some(AnalystIds { again, moves, .. }) = self.ids.analyst_ids.get(analyst_index) else {
            return;
        };
        let (again, share) = (again.clone(), moves.len());
        let read = match attempt {
            AnalystAttempt::First => proposals::read(self.known.prompts, reply, share),
            AnalystAttempt::Second => {
                proposals::read_usable_moves(self.known.prompts, reply, share)
            }
        };
        match (read, attempt) {
            (Ok(proposals), _) => self.take(id, analyst_index, proposals, request, reply, step),
            (Err(fault), AnalystAttempt::First) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                let answer = lines(&reply.text, MAX_DOCUMENT_BYTES);
                let request = ask_again(request, &answer, &fault);
                let task = ConsultTask::Propose { analyst_index, attempt: AnalystAttempt::Second };
                self.call(step, again, task, request);
            }
            (Err(fault), AnalystAttempt::Second) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                let why = AgentFailure::of_answer(&fault.to_string());
                self.record_failure(ConsultTask::Propose { analyst_index, attempt }, why, step);
            }
        }
    }

    /// Accepts an analyst's moves: checks each and requests a rewrite if anything is flagged.
    fn take(
        &mut self,
        id: &EffectId,
        analyst_index: usize,
        proposals: Vec<Proposal>,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let (Some(analyst), Some(ids)) =
            (self.analyst(analyst_index), self.ids.analyst_ids.get(analyst_index))
        else {
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
            self.failed(&analyst, AgentFailure::of_answer(&why));
        }
        for (place, (proposal, (number, rewrite))) in (1..).zip(proposals.into_iter().zip(rewrites))
        {
            let Some(tried) = self.tried(number, &analyst, proposal) else { continue };
            let is_flagged = tried.check.is_flagged();
            let document = format!("m{number}.md");
            step.publish.push(claim_checked(id, &document, &tried.check, is_flagged));
            if is_flagged {
                let (title, found) = (&tried.proposed.proposal.title, &tried.check.findings);
                let request = prompt::rewrite_move(
                    self.known.texts(),
                    request,
                    &reply.text,
                    place,
                    title,
                    found,
                );
                self.call(step, rewrite, ConsultTask::Rewrite { analyst_index, number }, request);
            }
            self.known.moves.insert(number, tried);
        }
        self.settle(analyst_index, step);
    }

    pub(crate) fn tried(
        &self,
        number: u32,
        analyst: &str,
        proposal: Proposal,
    ) -> Option<MoveRecord> {
        let evidence = self.known.evidence.as_deref()?;
        let move_id = format!("m{number}");
        let proposed = Move { move_id, analyst: analyst.to_owned(), proposal };
        let check = TextCheck::of_move(evidence, &proposed);
        Some(MoveRecord { proposed, check, similar_to: BTreeSet::new(), said: None, debate: None })
    }

    /// Keeps the rewritten move unless its findings are worse than those of the first version.
    fn rewritten(
        &mut self,
        id: &EffectId,
        analyst_index: usize,
        number: u32,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let again = proposals::read_usable_moves(self.known.prompts, reply, 1);
        let again = again.and_then(|mut moves| {
            let problems = vec!["there is no move".to_owned()];
            moves.pop().ok_or(OutputFault::Invalid { problems })
        });
        let analyst = self.analyst(analyst_index).unwrap_or_default();
        let first = self.known.moves.get(&number).map(|tried| tried.check.weight());
        match again.map(|proposal| self.tried(number, &analyst, proposal)) {
            Ok(Some(second)) if first.is_some_and(|first| second.check.weight() <= first) => {
                let document = format!("m{number}.md");
                step.publish.push(claim_checked(id, &document, &second.check, false));
                self.known.moves.insert(number, second);
            }
            Ok(_) => {
                step.publish.push(rejected(id, WORSE));
                self.failed(id.as_str(), AgentFailure::of_answer(WORSE));
            }
            Err(fault) => {
                step.publish.push(RunEvent::output_rejected(id, &fault));
                self.failed(id.as_str(), AgentFailure::of_answer(&fault.to_string()));
            }
        }
        self.settle(analyst_index, step);
    }

    /// Marks an analyst as complete once none of its calls is pending.
    fn settle(&mut self, analyst_index: usize, step: &mut Step) {
        let is_of_analyst = |open: &PendingConsultEffect| match open {
            PendingConsultEffect::Call(call) => call.task.analyst_index() == Some(analyst_index),
            PendingConsultEffect::Gather
            | PendingConsultEffect::Review
            | PendingConsultEffect::Debate(_) => false,
        };
        if self.open.values().any(is_of_analyst) {
            return;
        }
        let (Some(agent), Some(ids)) =
            (self.analyst(analyst_index), self.ids.analyst_ids.get(analyst_index))
        else {
            return;
        };
        let numbers = ids.moves.iter().map(|ids| ids.number);
        let made = numbers.filter(|number| self.known.moves.contains_key(number));
        let outputs = made.map(|number| format!("m{number}.md")).collect();
        self.agent_complete(step, 2, &agent, outputs);
    }

    fn analyst(&self, analyst_index: usize) -> Option<String> {
        let seat = self.ids.analyst_ids.get(analyst_index)?.seat;
        Some(self.input.committee.analysts.get(seat)?.id.clone())
    }

    /// Records the result and isolation of a finished debate, and sends it to the panel.
    pub(crate) fn debated(
        &mut self,
        id: &EffectId,
        key: &DebateKey,
        end: ChildEnd,
        step: &mut Step,
    ) {
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
            Conclusion::Debated(debated) => {
                validate_debate(*debated, id, self.input.committee.top_score())
            }
            Conclusion::NotDebated { why } => Err(AgentFailure::of_answer(&why).why),
            _ => Err("it ended as something else than a debate".to_owned()),
        };
        let record = DebateRecord { result, findings: outcome.findings, isolation };
        let mut moves = self.known.moves.values_mut();
        match moves.find(|tried| tried.proposed.move_id == key.move_id) {
            Some(tried) if key.is_first() => tried.debate = Some(record),
            _ => {
                self.known.panel.debates.insert(key.case_id(), record);
            }
        }
        self.score_debate(step, key);
    }
}

/// Rejects a debate that is about another move or whose scores do not add up.
fn validate_debate(debated: DebateResult, id: &EffectId, top: u32) -> Result<DebateResult, String> {
    let sum: u32 = debated.scorecards.values().map(|card| card.sum()).sum();
    if debated.move_id != id.as_str() {
        Err("its debate is about another move".to_owned())
    } else if debated.total_score != sum || sum > top || debated.top_score != top {
        Err("its scores do not add up".to_owned())
    } else {
        Ok(debated)
    }
}

/// A document that hit the token limit is still kept, with a warning.
fn with_truncation_finding(
    mut document: CheckedDocument,
    which: EvidenceReading,
    reply: &ModelReply,
) -> CheckedDocument {
    if reply.stop == StopReason::MaxTokens {
        let fault = OutputFault::CutOff;
        let found =
            RunFinding::new(fault.rule(), FindingSeverity::Warn, which.agent(), fault.to_string());
        document.check.findings.push(found);
    }
    document
}

pub(crate) fn claim_checked(
    id: &EffectId,
    document: &str,
    check: &TextCheck,
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
