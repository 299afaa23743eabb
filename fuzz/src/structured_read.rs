//! Any text from a model is parsed without a panic, and JSON is accepted only if it is the whole
//! text or the only fenced block.

use moothall_core::fenced::fenced_blocks;
use moothall_core::model::{ModelReply, ModelRequest, StopReason, TokenUsage, UsageBasis};
use moothall_core::structured::{OutputFault, ask_again, read_json};
use serde_json::Value;

pub fn structured_read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_fences(&text);
    let no_objects = |value: &Value| match value {
        Value::Object(_) => vec!["an object".to_owned(); 20],
        _ => Vec::new(),
    };
    let reply = |stop| ModelReply {
        fallback: None,
        text: text.clone().into_owned(),
        stop,
        model: "m".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    };
    assert_eq!(read_json(&reply(StopReason::MaxTokens), &no_objects), Err(OutputFault::CutOff));
    match read_json(&reply(StopReason::End), &no_objects) {
        Ok(value) => assert_eq!(Some(value), only_json(&text)),
        Err(fault) => {
            assert!(fault.problems().len() <= 8);
            let request = ModelRequest::ask("demo".parse().unwrap(), "Why?", 10);
            let again = ask_again(&request, &text, &fault);
            assert_eq!(again.turns[..1], request.turns[..]);
        }
    }
}

/// Checks that the blocks are parts of the text, in order and without overlap.
fn check_fences(text: &str) {
    let mut end = text.as_ptr().addr();
    let blocks = fenced_blocks(text);
    for (index, block) in blocks.iter().enumerate() {
        let start = block.text.as_ptr().addr();
        assert!(start >= end);
        end = start + block.text.len();
        assert!(end <= text.as_ptr().addr() + text.len());
        assert!(block.closed || index + 1 == blocks.len(), "only the last block can be open");
        assert!(!block.closed || block.text.is_empty() || block.text.ends_with('\n'));
    }
}

fn only_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| match fenced_blocks(text).as_slice() {
        [only] if only.closed => serde_json::from_str(only.text).ok(),
        _ => None,
    })
}
