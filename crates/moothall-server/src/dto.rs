//! Request and response types. The web UI uses the same types (`web/src/gen/api.ts`).

mod access;
mod company;
mod drafts;
mod machine;
mod review_link;
mod runs;
mod start;

pub use self::access::{
    CreateTokenRequest, CreateTokenResponse, SessionInfo, TokenList, TokenState, TokenSummary,
};
pub use self::company::{
    CheckTextRequest, CommitteeList, CommitteeRow, FactsQuery, MemberRow, TickerList, TickerRow,
};
pub use self::drafts::{
    AuditPage, AuditRow, DraftAmendmentRequest, DraftChangeKind, DraftCommentRequest,
    DraftCommentRow, DraftCommentSide, DraftContent, DraftDetail, DraftFile, DraftFileChange,
    DraftFileChangeKind, DraftHunk, DraftLine, DraftList, DraftPart, DraftReviewRequest,
    DraftReviewResponse, DraftReviewRow, DraftRow, DraftSide, DraftUndecided, FindingRow,
    TornFileRow, WorkspaceRow,
};
pub use self::machine::{
    DoctorResponse, DraftBypassRow, EngineRow, KeyRow, NotifyTargetRow, RunStorageInfo,
    ServerSettings,
};
pub use self::review_link::{ReviewLinkDecision, ReviewLinkDetail, ReviewLinkRequest};
pub use self::runs::{
    ArtifactList, ArtifactRef, BestMove, ComparedRun, ConsultSummary, DebateThread, EventPage,
    ForecastRow, MoveProgress, PanelSummary, RunComparison, RunForecasts, RunList, RunSummary,
    ThreadTurn,
};
pub use self::start::{
    ApproveMoveRequest, ApproveMoveResponse, ConsultSource, EditMovesRequest, ForkMoveEdit,
    ForkRunRequest, RequestFile, ResumeRunRequest, RunControlResponse, StartConsultRequest,
    StartProgramRequest, StartRunRequest, StartRunResponse,
};
