//! Machine-readable error codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine-readable error code. The meaning of a code never changes; new codes may be added.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    ts_rs::TS,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorCode {
    // The request
    /// The request is invalid.
    BadRequest,
    /// The path of the URL is invalid.
    BadAddress,
    /// The query string is invalid.
    BadQuery,
    /// The body does not match the schema.
    BadBody,
    /// The body has a field that does not exist.
    UnknownField,
    /// The content type is not JSON.
    NotJson,
    /// The body is larger than allowed.
    TooLarge,
    /// The path does not support this method.
    MethodNotAllowed,
    /// There is nothing at this path, or the caller may not see it.
    NotFound,
    /// The `Idempotency-Key` was already used with a different request.
    IdempotencyKeyReused,
    /// The cursor of an event stream is not an event number.
    BadCursor,
    /// The cursor of an event stream is beyond the last event.
    CursorBeyondHead,

    // Authentication and origin
    /// The `SandboxHost` header names a host that this server does not serve.
    HostRefused,
    /// The request comes from a page of another site.
    OriginRefused,
    /// A browser request lacks the page token in its `X-Moothall-Page` header.
    PageWordMissing,
    /// The request has no credential.
    SignInFirst,
    /// The token is unknown.
    UnknownCredential,
    /// The token has expired.
    ExpiredCredential,
    /// The token was revoked.
    RevokedCredential,
    /// The token lacks the required scope.
    ScopeMissing,
    /// Unknown token.
    TokenNotFound,
    /// The review link is not valid.
    LinkInvalid,
    /// The review link has expired.
    LinkExpired,
    /// The review link has been used.
    LinkUsed,

    // Limits
    /// The server is overloaded. Retry later.
    Busy,
    /// The server is starting or stopping.
    NotReady,
    /// The caller sends too many requests.
    TooManyRequests,
    /// The token has too many open event streams.
    TooManyStreams,
    /// The token has too many runs in progress.
    TooManyRuns,
    /// The token's spending limit is reached.
    SpendLimit,

    // Starting a run
    /// The ticker is malformed.
    BadTicker,
    /// The SEC lists no company with this ticker.
    UnknownTicker,
    /// Several companies have this ticker.
    AmbiguousTicker,
    /// The company has not filed an annual report for too long.
    StaleCompany,
    /// The filings contain no figures.
    NoFacts,
    /// The SEC requires a contact, and none is configured.
    NoContact,
    /// The evidence cannot be read.
    EvidenceUnavailable,
    /// The request has no task.
    NoTask,
    /// The model name is invalid.
    BadModel,
    /// The budget is not a valid amount.
    BadBudget,
    /// The isolation class is unknown.
    BadIsolation,
    /// The committee is unknown.
    UnknownCommittee,
    /// The committee file is invalid.
    BadCommittee,
    /// The company name is missing or invalid.
    BadName,
    /// A file in the request has an invalid name, type, size or encoding, or is missing.
    BadFile,
    /// The added moves are invalid.
    BadMoves,
    /// The source of news is invalid.
    BadNews,
    /// The expected output of a program is invalid.
    BadExpectation,
    /// A number is outside its range.
    OutOfRange,
    /// The API key of a model provider is missing.
    KeyMissing,
    /// This machine cannot start a sandbox of the requested isolation class.
    NoSandbox,

    // Runs
    /// Unknown run.
    RunNotFound,
    /// Several runs have an id that starts with this prefix.
    RunAmbiguous,
    /// The run is already in progress.
    RunBusy,
    /// The run has already ended.
    RunOver,
    /// The run has not ended yet.
    RunNotOver,
    /// The run is in progress in another process.
    ResumeElsewhere,
    /// The run is not a consultation.
    NoConsultation,
    /// The run has no moves.
    NoMoves,
    /// The move has changed since it was read.
    MoveChanged,
    /// The move was already approved.
    ApprovedAlready,
    /// The move is not waiting for review.
    NotHeld,

    // Drafts
    /// Unknown draft.
    DraftNotFound,
    /// The draft has changed since it was read.
    SealDiffers,
    /// The policy has changed since the draft was checked.
    PolicyChanged,
    /// The draft's state does not allow this.
    DraftState,
    /// The caller may not review this draft.
    NotAReviewer,
    /// The policy does not allow approvals over this channel.
    ChannelClosed,
    /// The path is not allowed in a workspace.
    PathRefused,
    /// The file does not exist.
    FileNotFound,
    /// The file already exists.
    FileExists,
    /// The file cannot be drafted: not text, too large, not a regular file, or denied by the
    /// policy.
    FileUnusable,
    /// The text to replace is empty, was not found, or occurs more than once.
    OldText,
    /// The stored content is missing.
    ContentGone,

    // Other
    /// The request is valid but was refused; `detail` gives the reason.
    Refused,
    /// Something the request depends on failed; `detail` says what.
    Failed,
    /// The server failed. See its log.
    Internal,
}
