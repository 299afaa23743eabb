//! One side of one thread as its model sees it: prompts and answers, appended and never rewritten,
//! so the provider serves all but the newest turn from its cache.

use super::input::CallSettings;
use crate::OwnTexts;
use crate::model::{
    CacheDuration, CallPurpose, ModelList, ModelRequest, OutputSchema, PromptBlock, PromptText,
    PromptTurn, ReasoningEffort,
};
use crate::prompt_revision::PromptTexts;

/// How much of the context window a prompt and its answer may fill, in percent. Prompt sizes are
/// estimates, so this leaves a margin.
const MAX_WINDOW_PERCENT: u64 = 85;

/// How many recent rounds to keep in addition to the first. Smaller values are tried only if the
/// prompt still does not fit.
const ROUNDS_KEPT: [usize; 3] = [3, 2, 1];

/// The parts that are equal in every request of a chain.
#[derive(Debug)]
pub(crate) struct Persona {
    pub(crate) models: ModelList,
    pub(crate) system: Vec<PromptBlock>,
    pub(crate) schema: OutputSchema,
    /// The schema of the request for scores.
    pub(crate) score_schema: OutputSchema,
    pub(crate) calls: CallSettings,
    pub(crate) own_prompts: OwnTexts,
}

impl Persona {
    pub(crate) fn texts(&self) -> PromptTexts<'_> {
        PromptTexts { revision: self.calls.prompts, own: Some(&self.own_prompts) }
    }

    fn schema_for(&self, purpose: CallPurpose) -> &OutputSchema {
        use CallPurpose::{Score, ScoreBaseline, ScoreNothing};
        match purpose {
            Score | ScoreBaseline | ScoreNothing => &self.score_schema,
            _ => &self.schema,
        }
    }
}

/// The history of one side. See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct MessageChain {
    exchanges: Vec<ChainExchange>,
    cut: Option<ChainTruncation>,
}

#[derive(Debug)]
struct ChainExchange {
    user_prompt: PromptText,
    response: PromptText,
}

/// Replaces omitted exchanges, starting with the second.
#[derive(Debug)]
struct ChainTruncation {
    /// Index of the first exchange that is kept after the omitted ones.
    kept: usize,
    /// The prompt of that exchange, prefixed with the summary.
    user_prompt: PromptText,
}

impl MessageChain {
    pub(crate) fn push(&mut self, user_prompt: PromptText, response: PromptText) {
        self.exchanges.push(ChainExchange { user_prompt, response });
    }

    /// Whether rounds were omitted.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Builds the next request. If it would not fit the window, the rounds between the first and
    /// the last few are replaced by `summary(first, last)` of the omitted rounds. Replaced rounds
    /// stay replaced, because every change to earlier turns misses the provider's cache.
    pub(crate) fn ask(
        &mut self,
        persona: &Persona,
        purpose: CallPurpose,
        user_prompt: &PromptText,
        summary: impl Fn(usize, usize) -> String,
    ) -> ModelRequest {
        let mut request = self.request(persona, purpose, user_prompt);
        for keep in ROUNDS_KEPT {
            if fits(&request, persona.calls.window_tokens) {
                break;
            }
            let kept = self.exchanges.len().saturating_sub(keep);
            let left_out = self.cut.as_ref().map_or(1, |cut| cut.kept);
            let Some(first) = self.exchanges.get(kept).filter(|_| kept > left_out) else {
                continue;
            };
            let shortened_prompt = format!("{}{}", summary(2, kept), first.user_prompt).into();
            self.cut = Some(ChainTruncation { kept, user_prompt: shortened_prompt });
            request = self.request(persona, purpose, user_prompt);
        }
        request
    }

    fn request(
        &self,
        persona: &Persona,
        purpose: CallPurpose,
        user_prompt: &PromptText,
    ) -> ModelRequest {
        let mut turns = Vec::with_capacity(2 * self.exchanges.len() + 1);
        for (index, ChainExchange { user_prompt, response }) in self.exchanges.iter().enumerate() {
            let user_prompt = match &self.cut {
                Some(cut) if (1..cut.kept).contains(&index) => continue,
                Some(cut) if index == cut.kept => &cut.user_prompt,
                _ => user_prompt,
            };
            turns.extend([
                PromptTurn::user(user_prompt.clone()),
                PromptTurn::assistant(response.clone()),
            ]);
        }
        let mut newest = PromptTurn::user(user_prompt.clone());
        newest.block = newest.block.cached(CacheDuration::FiveMinutes);
        turns.push(newest);
        ModelRequest {
            model: persona.models.first().clone(),
            fallbacks: persona.models.fallbacks().to_vec(),
            purpose,
            system: persona.system.clone(),
            turns,
            max_tokens: persona.calls.message_tokens,
            temperature: persona.calls.temperature,
            // Thinking tokens are billed as output and would dominate the cost.
            effort: Some(ReasoningEffort::Low),
            schema: Some(persona.schema_for(purpose).clone()),
            timeout_ms: persona.calls.timeout_ms,
        }
    }
}

/// `window_tokens` is the smallest window among the models of the run.
fn fits(request: &ModelRequest, window_tokens: u32) -> bool {
    let needed = request.prompt_tokens_expected() + u64::from(request.max_tokens);
    needed * 100 <= u64::from(window_tokens) * MAX_WINDOW_PERCENT
}

/// The smallest window in which a prompt and its answer of together `tokens` fit.
pub(crate) fn window_for(tokens: u64) -> u64 {
    tokens.saturating_mul(100).div_ceil(MAX_WINDOW_PERCENT)
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
