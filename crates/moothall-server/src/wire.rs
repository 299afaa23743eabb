//! What requests and answers look like. The web UI has the same types (`web/src/gen/api.ts`).

mod access;
mod company;
mod drafts;
mod machine;
mod runs;
mod start;

pub use self::access::{MadeToken, MakeToken, Session, TokenList, TokenState, TokenSummary};
pub use self::company::{
    CheckText, CommitteeList, CommitteeRow, FactsQuery, SeatRow, TickerList, TickerRow,
};
pub use self::drafts::{
    AuditPage, AuditRow, DraftChange, DraftDetail, DraftFile, DraftHunk, DraftLine, DraftList,
    DraftPart, DraftRow, DraftSide, FindingRow, ReviewedRow, SaidOnDraft, SayOnDraft, TornRow,
    WorkspaceRow,
};
pub use self::machine::{Doctor, EngineRow, KeyRow, RunsKept, Settings, WayAroundRow};
pub use self::runs::{
    ArtifactList, ArtifactRef, EventPage, RunList, RunSummary, Thread, ThreadTurn,
};
pub use self::start::{
    Accepted, ApproveMove, Approved, ChangeMoves, ResumeRun, Source, StartCode, StartConsult,
    StartRun, Started,
};
