//! One side of one thread, as its model sees it: what it was asked and what it said, appended and
//! never rewritten, so that the provider serves all but the newest turn from its cache.

use super::input::Calls;
use crate::model::{
    Block, CacheFor, Effort, ModelName, ModelRequest, OutputSchema, PromptText, Purpose, Turn,
};

/// How much of the window a prompt with its answer may fill, in per cent: the size of a prompt is
/// an estimate.
const FULL_PERCENT: u64 = 85;

/// How many rounds stay beside the first, the most first; fewer only where that is still too much.
const ROUNDS_KEPT: [usize; 3] = [3, 2, 1];

/// What stays the same in every request of a chain.
#[derive(Debug)]
pub(super) struct Voice {
    pub(super) model: ModelName,
    pub(super) system: Vec<Block>,
    pub(super) schema: OutputSchema,
    pub(super) calls: Calls,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Chain {
    exchanges: Vec<Exchange>,
    cut: Option<Cut>,
}

#[derive(Debug)]
struct Exchange {
    asked: PromptText,
    said: PromptText,
}

/// What stands for exchanges that were left out, from the second on.
#[derive(Debug)]
struct Cut {
    /// The first exchange that stays.
    kept: usize,
    /// What was asked in it, behind the summary.
    asked: PromptText,
}

impl Chain {
    /// Adds a question and its answer.
    pub(super) fn push(&mut self, asked: PromptText, said: PromptText) {
        self.exchanges.push(Exchange { asked, said });
    }

    /// Whether rounds were left out.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The next request. Where it would not fit the window, rounds between the first and the last
    /// few are replaced by `summary` of the first and last round that is left out; what was
    /// replaced stays so, because every change here is paid for.
    pub(super) fn ask(
        &mut self,
        voice: &Voice,
        purpose: Purpose,
        asked: &PromptText,
        summary: impl Fn(usize, usize) -> String,
    ) -> ModelRequest {
        let mut request = self.request(voice, purpose, asked);
        for keep in ROUNDS_KEPT {
            if fits(&request, voice.calls.window_tokens) {
                break;
            }
            let kept = self.exchanges.len().saturating_sub(keep);
            let left_out = self.cut.as_ref().map_or(1, |cut| cut.kept);
            let Some(first) = self.exchanges.get(kept).filter(|_| kept > left_out) else {
                continue;
            };
            let asked_then = format!("{}{}", summary(2, kept), first.asked).into();
            self.cut = Some(Cut { kept, asked: asked_then });
            request = self.request(voice, purpose, asked);
        }
        request
    }

    fn request(&self, voice: &Voice, purpose: Purpose, asked: &PromptText) -> ModelRequest {
        let mut turns = Vec::with_capacity(2 * self.exchanges.len() + 1);
        for (index, Exchange { asked, said }) in self.exchanges.iter().enumerate() {
            let asked = match &self.cut {
                Some(cut) if (1..cut.kept).contains(&index) => continue,
                Some(cut) if index == cut.kept => &cut.asked,
                _ => asked,
            };
            turns.extend([Turn::user(asked.clone()), Turn::assistant(said.clone())]);
        }
        let mut newest = Turn::user(asked.clone());
        newest.block = newest.block.cached(CacheFor::FiveMinutes);
        turns.push(newest);
        ModelRequest {
            model: voice.model.clone(),
            purpose,
            system: voice.system.clone(),
            turns,
            max_tokens: voice.calls.message_tokens,
            temperature: voice.calls.temperature,
            // Thinking counts as answer, and would be most of the bill.
            effort: Some(Effort::Low),
            schema: Some(voice.schema.clone()),
            timeout_ms: voice.calls.timeout_ms,
        }
    }
}

/// The window is the smallest among the models, so it is in the calls' settings.
fn fits(request: &ModelRequest, window_tokens: u32) -> bool {
    let needed = request.prompt_tokens_expected() + u64::from(request.max_tokens);
    needed * 100 <= u64::from(window_tokens) * FULL_PERCENT
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
