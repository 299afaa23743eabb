//! Forecasts of the panel after its verdict: what later filings will show. Code writes the questions
//! and resolves them, so that members can be scored by what happened.

use serde::{Deserialize, Serialize};

use super::committee::CommitteeMember;
use super::state::ConsultState;
use super::verdict_plan::VerdictPlan;
use super::workflow::{Consult, ConsultStage, ConsultTask};
use crate::evidence::{CalendarDay, FactId};
use crate::model::{
    CacheDuration, CallPurpose, ModelReply, ModelRequest, OutputSchema, PromptBlock, PromptTurn,
    ReasoningEffort,
};
use crate::output_schema::{integer, object};
use crate::structured::read_json;
use crate::verdict::{
    AnnouncementQuestion, CaseKind, ForecastQuestion, MemberForecast, VerdictTier,
    forecast_questions,
};
use crate::{Step, text::one_line};

const RULES: &str = include_str!("prompts/forecast.md");

/// Longer titles are cut: a model wrote them.
const MAX_TITLE_CHARS: usize = 160;

/// Chances are stated in percent and stored in thousandths.
const PERCENT: u32 = 10;

/// Questions of a run, and the chances that members stated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecastRecord {
    /// The day up to which members knew filings.
    pub asked: CalendarDay,
    /// The questions about figures.
    pub questions: Vec<ForecastQuestion>,
    /// Whether the company announces a move of the lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub announcements: Vec<AnnouncementQuestion>,
    /// Stated chances; a member without a usable answer has none.
    pub forecasts: Vec<MemberForecast>,
}

impl ForecastRecord {
    /// The mean of the stated chances, in thousandths; `None` if no member stated one.
    pub fn mean_chance(&self, question: &str) -> Option<u32> {
        let stated = self.forecasts.iter().filter(|one| one.question == question);
        let (sum, count) = stated.fold((0, 0), |(sum, count), one| (sum + one.chance, count + 1));
        u32::checked_div(sum + count / 2, count)
    }

    /// All questions with their ids, in the order of their numbers.
    fn statements(&self) -> Vec<(&str, String)> {
        let figures = self.questions.iter().map(|one| (one.id.as_str(), one.text()));
        let announced = self.announcements.iter().map(|one| (one.id.as_str(), one.text()));
        figures.chain(announced).collect()
    }
}

impl Consult {
    /// Asks every member for its forecasts, or ranks if there is nothing to ask.
    pub(crate) fn start_forecasting(&mut self, step: &mut Step) {
        let is_wanted = self.plan().is_some_and(VerdictPlan::asks_forecasts);
        let record = is_wanted.then(|| self.forecast_record()).flatten();
        let Some(record) = record else { return self.start_ranking(step) };
        self.stage = ConsultStage::Forecasting;
        for member in self.input.committee.panel.clone() {
            let request = self.forecast_request(&member, &record.statements());
            let Ok(id) = format!("forecast/{}", member.id).parse() else { continue };
            self.call(step, id, ConsultTask::Forecast { member: member.id }, request);
        }
        if let Some(verdict) = &mut self.known.panel.verdict {
            verdict.forecasts = Some(Box::new(record));
        }
    }

    /// Questions about the metrics that moves of the lead cite, and about their announcement; `None`
    /// without any.
    fn forecast_record(&self) -> Option<ForecastRecord> {
        let verdict = self.known.panel.verdict.as_ref().filter(|one| !one.is_failed())?;
        let sheet = self.known.evidence.as_deref()?.sheet.as_ref()?;
        let lead = verdict.tiers.tier(VerdictTier::Lead);
        let cited = lead.iter().flat_map(|one| cited_metrics(&self.known, &one.move_id));
        let questions = forecast_questions(sheet, &cited.collect::<Vec<_>>());
        let asks_announcements = self.plan().is_some_and(|plan| plan.announcements);
        let moves = lead.iter().filter(|one| one.kind == CaseKind::Move && asks_announcements);
        let title = |move_id: &str| {
            let found = self.known.moves.values().find(|one| one.proposed.move_id == move_id);
            found.map(|one| one_line(&one.proposed.proposal.title, MAX_TITLE_CHARS))
        };
        let moves = moves.filter_map(|one| Some((one.move_id.as_str(), title(&one.move_id)?)));
        let announcements = AnnouncementQuestion::of_moves(moves, questions.len(), sheet.as_of);
        let record =
            ForecastRecord { asked: sheet.as_of, questions, announcements, forecasts: Vec::new() };
        (!record.statements().is_empty()).then_some(record)
    }

    fn forecast_request(
        &self,
        member: &CommitteeMember,
        statements: &[(&str, String)],
    ) -> ModelRequest {
        let model = self.input.panel_model(member);
        let dossier = self.known.dossier.clone().unwrap_or_default();
        let system = [PromptBlock::new(dossier), PromptBlock::new(RULES.trim_end())];
        let lines: Vec<String> =
            statements.iter().map(|(id, text)| format!("{id}: {text}")).collect();
        let fields = statements.iter().map(|(id, _)| (*id, integer(0..=100)));
        ModelRequest {
            model: model.first().clone(),
            fallbacks: model.fallbacks().to_vec(),
            purpose: CallPurpose::Forecast,
            system: system.map(|block| block.cached(CacheDuration::FiveMinutes)).into(),
            turns: vec![PromptTurn::user(lines.join("\n"))],
            max_tokens: self.input.calls.message_tokens,
            temperature: self.input.calls.temperature,
            effort: Some(ReasoningEffort::Low),
            schema: Some(OutputSchema::of_object("forecasts", object(fields))),
            timeout_ms: self.input.calls.timeout_ms,
        }
    }

    /// Stores the chances of a usable answer. A chance out of range or for an unknown question is
    /// dropped.
    pub(crate) fn forecast_answered(&mut self, member: &str, reply: &ModelReply) {
        let Ok(answer) = read_json(reply, &|_: &serde_json::Value| Vec::new()) else { return };
        let record = self.known.panel.verdict.as_mut().and_then(|one| one.forecasts.as_mut());
        let Some(record) = record else { return };
        let ids: Vec<String> =
            record.statements().into_iter().map(|(id, _)| id.to_owned()).collect();
        for question in ids {
            let stated = answer.get(&question).and_then(serde_json::Value::as_u64);
            let stated = stated.and_then(|percent| u32::try_from(percent).ok());
            let Some(percent) = stated.filter(|percent| *percent <= 100) else { continue };
            record.forecasts.push(MemberForecast {
                question,
                member: member.to_owned(),
                chance: percent * PERCENT,
            });
        }
        record.forecasts.sort_by(|one, other| {
            (&one.member, &one.question).cmp(&(&other.member, &other.question))
        });
    }
}

/// Metrics of the fact sheet that a move cites, in order.
fn cited_metrics(known: &ConsultState, move_id: &str) -> Vec<String> {
    let found = known.moves.values().find(|one| one.proposed.move_id == move_id);
    let ids = found.into_iter().flat_map(|one| &one.proposed.proposal.evidence);
    let facts = ids.filter_map(|id| FactId::parse(one_line(id, 100).strip_prefix("F0:")?));
    facts.map(|fact| fact.metric).collect()
}
