//! Error responses in each provider's format.

use std::borrow::Cow;

use serde::Serialize;

use crate::protocol::{ProviderProtocol, write_json};

/// Why a call gets an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorResponse {
    RateLimited,
    ServerError,
    Overloaded,
    Unauthorized,
    ContextOverflow { prompt: u64, window: u64 },
    NotFound,
    NotJson,
    TooLarge,
    BrokenHttp,
}

impl ErrorResponse {
    pub(crate) fn status(self, wire: ProviderProtocol) -> u16 {
        match self {
            Self::RateLimited => 429,
            Self::ServerError => 500,
            Self::Overloaded if wire == ProviderProtocol::Anthropic => 529,
            Self::Overloaded => 503,
            Self::Unauthorized => 401,
            Self::ContextOverflow { .. } | Self::NotJson | Self::BrokenHttp => 400,
            Self::NotFound => 404,
            Self::TooLarge => 413,
        }
    }

    /// Appends the JSON body of the error.
    pub(crate) fn write(self, wire: ProviderProtocol, request_id: &str, out: &mut Vec<u8>) {
        match wire {
            ProviderProtocol::OpenAi => write_json(out, &OpenAiError { error: self.openai() }),
            ProviderProtocol::Anthropic => {
                write_json(
                    out,
                    &AnthropicError { kind: "error", error: self.anthropic(), request_id },
                );
            }
            ProviderProtocol::Ollama => write_json(out, &OllamaError { error: self.ollama() }),
        }
    }

    fn openai(self) -> OpenAiDetail {
        let (message, kind, param, code) = match self {
            Self::RateLimited => (
                "Rate limit reached for requests. Please try again later.".into(),
                "requests",
                None,
                Some("rate_limit_exceeded"),
            ),
            Self::ServerError => (
                "The server had an error while processing your request. Sorry about that!".into(),
                "server_error",
                None,
                None,
            ),
            Self::Overloaded => (
                "The engine is currently overloaded, please try again later.".into(),
                "server_error",
                None,
                None,
            ),
            Self::Unauthorized => (
                "Incorrect API key provided.".into(),
                "invalid_request_error",
                None,
                Some("invalid_api_key"),
            ),
            Self::ContextOverflow { prompt, window } => (
                Cow::Owned(format!(
                    "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. \
                     Please reduce the length of the messages."
                )),
                "invalid_request_error",
                Some("messages"),
                Some("context_length_exceeded"),
            ),
            Self::NotFound => {
                ("Unknown request URL.".into(), "invalid_request_error", None, Some("unknown_url"))
            }
            Self::NotJson => (
                "We could not parse the JSON body of your request.".into(),
                "invalid_request_error",
                None,
                None,
            ),
            Self::TooLarge => {
                ("Request body is too large.".into(), "invalid_request_error", None, None)
            }
            Self::BrokenHttp => ("Bad request.".into(), "invalid_request_error", None, None),
        };
        OpenAiDetail { message, kind, param, code }
    }

    fn anthropic(self) -> AnthropicDetail {
        let (kind, message) = match self {
            Self::RateLimited => (
                "rate_limit_error",
                "This request would exceed your organization's rate limit.".into(),
            ),
            Self::ServerError => ("api_error", "Internal server error".into()),
            Self::Overloaded => ("overloaded_error", "Overloaded".into()),
            Self::Unauthorized => ("authentication_error", "invalid x-api-key".into()),
            Self::ContextOverflow { prompt, window } => (
                "invalid_request_error",
                Cow::Owned(format!("prompt is too long: {prompt} tokens > {window} maximum")),
            ),
            Self::NotFound => ("not_found_error", "Not found".into()),
            Self::NotJson => ("invalid_request_error", "The request body is not valid JSON".into()),
            Self::TooLarge => ("request_too_large", "Request exceeds the maximum size".into()),
            Self::BrokenHttp => ("invalid_request_error", "Bad request".into()),
        };
        AnthropicDetail { kind, message }
    }

    fn ollama(self) -> Cow<'static, str> {
        match self {
            Self::RateLimited => "too many requests".into(),
            Self::ServerError => "an error was encountered while running the model".into(),
            Self::Overloaded => {
                "server busy, please try again.  maximum pending requests exceeded".into()
            }
            Self::Unauthorized => "unauthorized".into(),
            Self::ContextOverflow { prompt, window } => Cow::Owned(format!(
                "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"
            )),
            Self::NotFound => "404 page not found".into(),
            Self::NotJson => "invalid character in request body".into(),
            Self::TooLarge => "request body too large".into(),
            Self::BrokenHttp => "bad request".into(),
        }
    }
}

#[derive(Serialize)]
struct OpenAiError {
    error: OpenAiDetail,
}

#[derive(Serialize)]
struct OpenAiDetail {
    message: Cow<'static, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: AnthropicDetail,
    request_id: &'a str,
}

#[derive(Serialize)]
struct AnthropicDetail {
    #[serde(rename = "type")]
    kind: &'static str,
    message: Cow<'static, str>,
}

#[derive(Serialize)]
struct OllamaError {
    error: Cow<'static, str>,
}
