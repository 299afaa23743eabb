//! Any bytes from a provider are decoded without a panic, and the result does not depend on how a
//! stream is split.
//!
//! Input: a digit that selects protocol and delivery, a byte that selects where the stream is
//! split, then the provider's bytes.

use moothall_core::model::ModelFailure;
use moothall_models::settings::WireFormat;
use moothall_models::wire::{RawReply, RawStopReason, StreamDecoder, decode};

pub fn wire_decode(data: &[u8]) {
    let [choice, cut, bytes @ ..] = data else { return };
    let wire = match choice % 3 {
        0 => WireFormat::OpenAiChat,
        1 => WireFormat::AnthropicMessages,
        _ => WireFormat::OllamaChat,
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
    // The text of a refusal is not passed to the callback.
    if let (text, Ok(answer)) = whole
        && answer.stop != RawStopReason::Refusal
    {
        assert_eq!(answer.text, text);
    }
}

fn hear<'a>(
    wire: WireFormat,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (String, Result<RawReply, ModelFailure>) {
    let mut decoder = StreamDecoder::new(wire);
    let mut text = String::new();
    for piece in pieces {
        if let Err(failure) = decoder.push(piece, &mut |piece| text.push_str(piece)) {
            return (text, Err(failure));
        }
    }
    (text, decoder.finish())
}
