//! Detects source text that addresses a model instead of a human reader.
//!
//! Filings, headlines and sandbox guests are data. This does not make such text harmless; it
//! reports it, so a person knows and the passage can be left out.

use super::MAX_TEXT_BYTES;
use super::claim_regex::ClaimRegex;
use super::clause::first_bytes;
use super::flagged_phrase::{FlaggedPhrase, phrases};
use crate::FindingSeverity;
use crate::text::is_unseen;

pub(crate) static INSTRUCTION: ClaimRegex = ClaimRegex::new(concat!(
    r"(?im)",
    // Orders to ignore the real instructions.
    r"\b(?:ignore|disregard|forget|override|bypass|do not (?:follow|obey))\s+(?:\w+\s+){0,3}?",
    r"(?:previous|prior|above|earlier|preceding|foregoing|other|system|existing|original)\s+",
    r"(?:\w+\s+){0,2}?(?:instructions?|prompts?|directions?|rules?|guidelines?|messages?|context",
    r"|orders?|guardrails?)",
    r"|\b(?:ignore|disregard|forget|override|bypass)\s+(?:all\s+|any\s+)?(?:of\s+)?your\s+",
    r"(?:\w+\s+){0,2}?(?:instructions?|prompts?|directions?|rules?|guidelines?|training",
    r"|guardrails?|programming)",
    r"|\b(?:ignore|disregard|forget)\s+everything\s+(?:above|before|you|that)",
    r"|\bnew (?:system )?instructions?\s*:",
    r"|\b(?:begin|end|start) (?:of )?(?:system )?(?:prompt|instructions)\b",
    // Vocabulary of prompts and jailbreaks.
    r"|\b(?:system|developer|hidden) (?:prompt|message)s?\b|\bprompt injection\b|\bjailbreak",
    r"|\b(?:dan|developer|debug|god) mode\b",
    // Role tags.
    r"|<\s*/?\s*(?:system|assistant|user|human|instructions?|prompt|tool_call|function_call)\s*>",
    r"|<\|[a-z_]{2,20}\|>|\[/?(?:inst|sys|system|assistant)\]|<<\s*/?sys\s*>>",
    r"|^\s*(?:#{1,4}\s*)?(?:system|assistant|human)\s*:",
    r"|^#{1,4}\s*(?:instructions?|system|response)\b",
    // Text that addresses a model.
    r"|\byou are (?:now )?(?:an? |the )?(?:\w+ )?",
    r"(?:ai|a\.i\.|llm|language model|chatbot|chatgpt|assistant)\b|\bas an ai\b",
    r"|\b(?:act|behave|respond|pretend)\s+(?:as|like|to be)\s+",
    r"(?:if you|an? (?:ai|assistant|language model|unrestricted))",
    r"|\b(?:note|message|instructions?|attention|memo) (?:to|for) (?:the |any |all )?",
    r"(?:ai|llms?|language models?|models?|assistants?|agents?|chatbots?|automated)\b",
    r"|\b(?:ai|llms?|language models?|automated (?:systems?|agents?|readers?)|assistants?) ",
    r"(?:that |who |which )?(?:reads?|reading|process|processes|processing|summari[sz]ing",
    r"|evaluating|reviewing|analy[sz]ing)\b",
    r"|\b(?:if|when) you are (?:an? )?(?:ai|llm|language model|assistant|model|agent)\b",
    // What an injection asks for.
    r"|\b(?:respond|reply|answer|output|print) (?:only|exactly|solely) (?:with|the)\b",
    r"|\b(?:rate|score|rank|grade) (?:this|the|our|that) (?:\w+ ){0,3}?(?:as )?",
    r"(?:10|120|ten|highest|first|top|maximum|perfect|full marks)",
    r"|\b(?:assign|give|award) (?:this|the|our|it|that) (?:\w+ ){0,3}?(?:the )?(?:a )?",
    r"(?:maximum|highest|perfect|full|top) (?:score|rating|marks|rank)",
    r"|\bdo not (?:mention|flag|report|reveal|disclose|tell)\b.{0,40}\b",
    r"(?:this (?:text|passage|note|instruction|message|paragraph)|these instructions|the user",
    r"|the reader|anyone)",
    r"|\b(?:reveal|print|send|leak|exfiltrate|post)\b.{0,30}\b",
    r"(?:api[- ]?keys?|credentials|passwords?|secrets?|system prompt|environment variables)",
    r"|\b(?:you|the (?:model|assistant|agent|reviewer)) must (?:now )?",
    r"(?:recommend|approve|conclude|score|rank|rate|say|output|state|endorse|treat)\b",
));

/// Characters invisible to people but not to models: tags, direction overrides, zero-width
/// characters.
pub(crate) static INVISIBLE: ClaimRegex = ClaimRegex::new(
    r"[\u{e0000}-\u{e007f}\u{202a}-\u{202e}\u{2066}-\u{2069}]+|[\u{200b}\u{2060}]{3,}",
);

/// Finds text written to steer a model. Use it on sources (passages, headlines, guests), which have
/// no reason to contain such text.
pub fn injected_instructions(text: &str) -> Vec<FlaggedPhrase> {
    let why = "the source speaks to a model";
    let rule = "claims.injection";
    // Remove invisible characters so they cannot hide a phrase.
    let searched = first_bytes(text, MAX_TEXT_BYTES);
    let visible: String = searched.chars().filter(|c| !is_unseen(*c)).collect();
    let mut found = phrases(&visible, &INSTRUCTION, rule, FindingSeverity::Escalate, why);
    let why = "the source holds characters that nobody can see";
    found.extend(phrases(text, &INVISIBLE, rule, FindingSeverity::Escalate, why));
    found
}

#[cfg(test)]
#[path = "injection_tests.rs"]
mod tests;
