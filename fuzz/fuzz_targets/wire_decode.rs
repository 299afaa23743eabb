//! Whatever a provider sends is read without a panic, and how a stream was cut makes no difference.
//!
//! Input: a digit that picks wire and delivery, a byte that picks where the stream is cut, then the
//! provider's bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moothall_core::model::ModelFailure;
use moothall_models::settings::Wire;
use moothall_models::wire::{Answer, AnswerStop, StreamDecoder, decode};

fuzz_target!(|data: &[u8]| {
    let [choice, cut, bytes @ ..] = data else { return };
    let wire = match choice % 3 {
        0 => Wire::OpenAiChat,
        1 => Wire::AnthropicMessages,
        _ => Wire::OllamaChat,
    };
    if choice % 6 < 3 {
        for status in [200, 400, 429] {
            let _ = decode(wire, status, Some(u64::from(*cut)), bytes);
        }
        return;
    }
    let whole = hear(wire, [bytes]);
    let length = usize::from(*cut).max(1);
    assert_eq!(hear(wire, bytes.chunks(length)), whole);
    // The words of a refusal are no part of what is heard.
    if let (text, Ok(answer)) = whole
        && answer.stop != AnswerStop::Refusal
    {
        assert_eq!(answer.text, text);
    }
});

fn hear<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (String, Result<Answer, ModelFailure>) {
    let mut decoder = StreamDecoder::new(wire);
    let mut text = String::new();
    for piece in pieces {
        if let Err(failure) = decoder.push(piece, &mut |piece| text.push_str(piece)) {
            return (text, Err(failure));
        }
    }
    (text, decoder.finish())
}
