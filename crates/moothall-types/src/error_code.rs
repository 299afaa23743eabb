//! Names of errors for programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong, for programs. A code never changes its meaning; new ones may be added.
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
    /// The request is not understood.
    BadRequest,
    /// The address is not understood.
    BadAddress,
    /// The query of the address is not understood.
    BadQuery,
    /// The body does not fit the schema.
    BadBody,
    /// The body is not declared as JSON.
    NotJson,
    /// The body is larger than allowed.
    TooLarge,
    /// The address does not know this method.
    MethodNotAllowed,
    /// There is nothing at this address, or nothing that the caller may see.
    NotFound,
    /// An `Idempotency-Key` was used before with another request.
    IdempotencyKeyReused,
    /// A cursor of a stream is not the number of an event.
    BadCursor,
    /// A cursor of a stream is beyond the last event.
    CursorBeyondHead,

    // Who asks
    /// The server is not called by the host name of the request.
    HostRefused,
    /// The request comes from a page of another site.
    OriginRefused,
    /// A request of a browser lacks the page word.
    PageWordMissing,
    /// Nobody is signed in.
    SignInFirst,
    /// The token is not known.
    UnknownCredential,
    /// The token has expired.
    ExpiredCredential,
    /// The token was revoked.
    RevokedCredential,
    /// The token does not cover this.
    ScopeMissing,
    /// There is no such token.
    TokenNotFound,

    // Limits
    /// The server has too much to do. The same request may succeed in a moment.
    Busy,
    /// The server is starting or stopping.
    NotReady,
    /// The caller asks too often.
    TooManyRequests,
    /// The token has too many open event streams.
    TooManyStreams,
    /// The token has too many runs in progress.
    TooManyRuns,
    /// The token may not spend more.
    SpendLimit,

    // Starting a run
    /// The ticker is not well-formed.
    BadTicker,
    /// The SEC lists no company with this ticker.
    UnknownTicker,
    /// Several companies have this ticker.
    AmbiguousTicker,
    /// The company has filed nothing for too long.
    StaleCompany,
    /// The filings have no figures.
    NoFacts,
    /// The SEC asks for a contact, and none is configured.
    NoContact,
    /// The sources of evidence cannot be read.
    EvidenceUnavailable,
    /// The request has no task.
    NoTask,
    /// The model's name is not understood.
    BadModel,
    /// The budget is not an amount.
    BadBudget,
    /// There is no such isolation.
    BadIsolation,
    /// There is no such committee.
    UnknownCommittee,
    /// A number is outside its range.
    OutOfRange,
    /// The key of a model's provider is missing.
    KeyMissing,
    /// This machine cannot start a sandbox of the wanted class.
    NoSandbox,

    // Runs
    /// There is no such run.
    RunNotFound,
    /// Several runs begin with this id.
    RunAmbiguous,
    /// The run is in progress already.
    RunBusy,
    /// The run has ended.
    RunOver,
    /// The run has not ended yet.
    RunNotOver,
    /// The run is in progress outside of this server.
    ResumeElsewhere,
    /// The run is not a consultation.
    NoConsultation,
    /// The run has no moves.
    NoMoves,
    /// The move changed since it was read.
    MoveChanged,
    /// The move was approved before.
    ApprovedAlready,
    /// The move is not held back.
    NotHeld,

    // Drafts
    /// There is no such draft.
    DraftNotFound,
    /// The draft changed since it was read.
    SealDiffers,
    /// The policy changed since the draft was judged.
    PolicyChanged,
    /// The draft's state does not allow it.
    DraftState,
    /// The caller may not review this draft.
    NotAReviewer,
    /// The policy does not allow approvals over this channel.
    ChannelClosed,
    /// The path is not allowed in a workspace.
    PathRefused,
    /// The file does not exist.
    FileNotFound,
    /// The file exists already.
    FileExists,
    /// The file cannot be drafted: not text, too large, not a plain file, or denied by the policy.
    FileUnusable,
    /// The text to replace is empty, missing, or there more than once.
    OldText,
    /// A stored content is gone.
    ContentGone,

    // Everything else
    /// The request is understood and refused; `detail` says why.
    Refused,
    /// Something that the request needs failed; `detail` says what.
    Failed,
    /// The server failed. Its log says more.
    Internal,
}
