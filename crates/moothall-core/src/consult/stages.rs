//! Starts each stage of a consultation and reports its end.

use std::collections::{BTreeMap, BTreeSet};

use super::dossier;
use super::ids::{AnalystIds, MoveIds};
use super::panel::DebateKey;
use super::prompt;
use super::workflow::{
    AnalystAttempt, Consult, ConsultStage, ConsultTask, EvidenceReading, PendingConsultEffect,
    ReadingAttempt, SyntheticDataKind,
};
use crate::child::ChildRequest;
use crate::debate::{DebateInput, DebateScoring};
use crate::model::{CallPurpose, FailureKind, PromptText};
use crate::text::one_line;
use crate::{
    Conclusion, Effect, EvidenceSummary, FindingSeverity, RunEvent, RunEventBody, RunFinding,
    StageStatus, Step,
};

/// Maximum length of a title in events.
const MAX_TITLE: usize = 160;

impl SyntheticDataKind {
    pub(crate) fn purpose(self) -> CallPurpose {
        match self {
            Self::Financials => CallPurpose::SynthesizeFinancials,
            Self::News => CallPurpose::SynthesizeNews,
        }
    }

    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Financials => "synthesize_financials",
            Self::News => "synthesize_news",
        }
    }

    pub(crate) fn document(self) -> &'static str {
        match self {
            Self::Financials => "financials.md",
            Self::News => "news.md",
        }
    }

    fn persona(self) -> &'static str {
        match self {
            Self::Financials => "Financial data generator",
            Self::News => "News generator",
        }
    }
}

impl EvidenceReading {
    pub(crate) fn purpose(self) -> CallPurpose {
        match self {
            Self::F1 => CallPurpose::InferFinancial,
            Self::F2 => CallPurpose::InferTrend,
        }
    }

    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::F1 => "F1",
            Self::F2 => "F2",
        }
    }

    pub(crate) fn document(self) -> &'static str {
        match self {
            Self::F1 => "F1.md",
            Self::F2 => "F2.md",
        }
    }

    fn persona(self) -> &'static str {
        match self {
            Self::F1 => "Financial inference",
            Self::F2 => "Trend inference",
        }
    }
}

impl Consult {
    pub(crate) fn start_synthesizing(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Synthesizing;
        let tasks = [
            (SyntheticDataKind::Financials, self.ids.financials.clone()),
            (SyntheticDataKind::News, self.ids.news.clone()),
        ];
        for (what, id) in tasks {
            self.agent_start(step, 0, what.agent(), what.persona());
            let request = prompt::synthesize(&self.input, &self.known, what.purpose());
            self.call(step, id, ConsultTask::Synthesize(what), request);
        }
    }

    pub(crate) fn start_inferring(&mut self, step: &mut Step) {
        let known = &self.known;
        if known.is_synthetic() && known.financials.is_none() && known.news.is_none() {
            let failures = known.failures.values();
            let kind = failures.clone().find_map(|failure| failure.kind);
            let why: Vec<&str> = failures.map(|failure| failure.why.as_str()).collect();
            let detail = format!("no evidence could be made up: {}", why.join("; "));
            let found = RunFinding::new(
                "consult.synthesis-failed",
                FindingSeverity::Block,
                "synthesize",
                &detail,
            );
            let conclusion = Conclusion::Failed { kind: kind.unwrap_or(FailureKind::EmptyReply) };
            let publish = std::mem::take(&mut step.publish);
            *step = self.fail(publish, found, conclusion, detail);
            return;
        }
        let made = [
            (known.evidence.as_ref().is_some_and(|evidence| evidence.sheet.is_some()), "F0.json"),
            (known.financials.is_some(), SyntheticDataKind::Financials.document()),
            (known.news.is_some(), SyntheticDataKind::News.document()),
        ];
        let made = made.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned());
        self.layer_complete(step, 0, made.collect(), None);
        self.stage = ConsultStage::Inferring;
        self.layer_start(step, 1);
        let tasks = [
            (EvidenceReading::F1, self.ids.f1.ask.clone()),
            (EvidenceReading::F2, self.ids.f2.ask.clone()),
        ];
        for (which, id) in tasks {
            self.agent_start(step, 1, which.agent(), which.persona());
            let request = prompt::infer(&self.input, &self.known, which.purpose());
            self.call(step, id, ConsultTask::Read(which, ReadingAttempt::First), request);
        }
    }

    pub(crate) fn start_analysing(&mut self, step: &mut Step) {
        let made = [EvidenceReading::F1, EvidenceReading::F2].into_iter();
        let made = made.filter(|which| self.known.document(which.agent()).is_some());
        let made = made.map(|which| which.document().to_owned()).collect();
        self.layer_complete(step, 1, made, None);
        self.known.dossier = Some(dossier::dossier(&self.known, self.input.calls.window_tokens));
        self.stage = ConsultStage::Analysing;
        self.layer_start(step, 2);
        for analyst_index in 0..self.ids.analyst_ids.len() {
            self.ask_analyst(step, analyst_index);
        }
        self.take_own_moves(step);
    }

    fn ask_analyst(&mut self, step: &mut Step, analyst_index: usize) {
        let Some(AnalystIds { seat, ask, moves, .. }) = self.ids.analyst_ids.get(analyst_index)
        else {
            return;
        };
        let Some(seat) = self.input.committee.analysts.get(*seat) else { return };
        let share = u32::try_from(moves.len()).unwrap_or(u32::MAX);
        let request = prompt::propose(&self.input, &self.known, seat, share);
        let (id, agent, persona) = (ask.clone(), seat.id.clone(), seat.name.clone());
        self.agent_start(step, 2, &agent, &persona);
        self.call(
            step,
            id,
            ConsultTask::Propose { analyst_index, attempt: AnalystAttempt::First },
            request,
        );
    }

    pub(crate) fn start_debating(&mut self, step: &mut Step) {
        self.mark_similar();
        let made = self.known.moves.keys().map(|number| format!("m{number}.md")).collect();
        self.layer_complete(step, 2, made, None);
        self.stage = ConsultStage::Debating;
        self.layer_start(step, 3);
        let debates: Vec<_> = self
            .known
            .debated_moves()
            .filter_map(|number| {
                let MoveIds { debate, .. } = MoveIds::of(number).ok()?;
                Some((debate, self.debate(number)?))
            })
            .collect();
        for (id, input) in debates {
            let key = DebateKey::first(id.as_str());
            let effect = Effect::StartChild(ChildRequest::Debate(Box::new(input)));
            self.perform(step, id, effect, PendingConsultEffect::Debate(key));
        }
        self.start_scoring_alone(step);
        self.start_panel_debates(step);
    }

    /// Input of a move's debate.
    pub(crate) fn debate(&self, number: u32) -> Option<DebateInput> {
        let tried = self.known.moves.get(&number)?;
        let markdown = self.known.marked(tried.proposed.markdown());
        let dossier = self.known.dossier.clone()?;
        let input = self.debate_about(&tried.proposed.move_id, dossier, markdown.into());
        Some(DebateInput { machine_findings: tried.machine_findings(), ..input })
    }

    pub(crate) fn debate_about(
        &self,
        move_id: &str,
        dossier: PromptText,
        move_markdown: PromptText,
    ) -> DebateInput {
        let committee = &self.input.committee;
        DebateInput {
            move_id: move_id.to_owned(),
            company: self.known.company(),
            dossier,
            move_markdown,
            machine_findings: Vec::new(),
            rounds: committee.rounds,
            critic: committee.critic.clone(),
            decision_makers: committee.decision_makers.clone(),
            metrics: committee.metrics.clone(),
            critic_model: self.input.critic_model().clone(),
            decision_maker_model: self.input.models.decision_maker().clone(),
            calls: self.input.calls.clone(),
            prompts: committee.prompts.of_debate(),
            scoring: match committee.verdict {
                Some(_) => DebateScoring::DefendersAndPanel,
                None => DebateScoring::Defenders,
            },
            calculations: self.input.terms.calculations.then(|| self.known.calculation_facts()),
        }
    }

    pub(crate) fn start_ranking(&mut self, step: &mut Step) {
        let is_scored = |number: &&u32| {
            let tried = self.known.moves.get(number);
            let debate = tried.and_then(|tried| tried.debate.as_ref());
            debate.is_some_and(|debate| debate.result.is_ok())
        };
        let scored: Vec<u32> = self.known.moves.keys().filter(is_scored).copied().collect();
        let threads = self.input.committee.decision_makers.len();
        let logs = scored.iter().flat_map(|number| {
            (1..=threads).map(move |thread| format!("m{number}.i{thread}.json"))
        });
        let made = logs.chain(["scores.json".to_owned()]).collect();
        let given = scored.iter().filter(|number| {
            let tried = self.known.moves.get(number);
            tried.is_some_and(|tried| tried.unranked().is_scored())
        });
        let count = u32::try_from(given.count()).unwrap_or(u32::MAX);
        self.layer_complete(step, 3, made, Some(count));
        self.layer_start(step, 4);
        self.finish(step);
    }

    pub(crate) fn layer_start(&self, step: &mut Step, layer: u8) {
        let body = RunEventBody::LayerStart { layer, status: StageStatus::Running };
        step.publish.push(RunEvent::of_run(body));
    }

    pub(crate) fn layer_complete(
        &self,
        step: &mut Step,
        layer: u8,
        artifacts: Vec<String>,
        total_policies_scored: Option<u32>,
    ) {
        let status = StageStatus::Done;
        let evidence = self.known.evidence.as_deref().filter(|_| layer == 0);
        let gathered = evidence.map(|evidence| Box::new(EvidenceSummary::of(evidence)));
        let body = RunEventBody::LayerComplete {
            layer,
            status,
            artifacts,
            total_policies_scored,
            gathered,
        };
        step.publish.push(RunEvent::of_run(body));
    }

    pub(crate) fn agent_start(&self, step: &mut Step, layer: u8, agent: &str, persona: &str) {
        let (agent_id, persona) = (agent.to_owned(), persona.to_owned());
        let body = RunEventBody::AgentStart { layer, agent_id, persona };
        step.publish.push(RunEvent::of_run(body));
    }

    pub(crate) fn agent_complete(
        &self,
        step: &mut Step,
        layer: u8,
        agent: &str,
        outputs: Vec<String>,
    ) {
        let (agent_id, output) = (agent.to_owned(), outputs.first().cloned());
        let titles =
            self.titles(outputs.iter().filter_map(|document| document.strip_suffix(".md")));
        let body = RunEventBody::AgentComplete { layer, agent_id, output, outputs, titles };
        step.publish.push(RunEvent::of_run(body));
    }

    /// Titles by move id.
    pub(crate) fn titles<'a, S: AsRef<str> + ?Sized + 'a>(
        &self,
        moves: impl IntoIterator<Item = &'a S>,
    ) -> BTreeMap<String, String> {
        let wanted: BTreeSet<&str> = moves.into_iter().map(AsRef::as_ref).collect();
        let all = self.known.moves.values().map(|tried| &tried.proposed);
        let named = all.filter(|one| wanted.contains(one.move_id.as_str()));
        named.map(|one| (one.move_id.clone(), one_line(&one.proposal.title, MAX_TITLE))).collect()
    }
}
