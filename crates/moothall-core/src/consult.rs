//! A consultation: evidence in, ranked and tried moves out.
//!
//! ```text
//! 0 gather ─► 1 infer F1, F2 ─► 2 five analysts, three moves each ─► 3 a debate for each move ─► 4 rank
//!                                 and the user's own, which a person may review
//! ```
//!
//! Code checks every number and citation of an agent's text against the evidence. The author may
//! write it again once; what remains is marked, told to the critic, and, where the text contradicts
//! its own sources, keeps the move out of the ranking until a person has looked. A part that fails
//! is missing, and the run goes on with the others.

mod alone;
mod answers;
mod approval;
mod board;
mod checking;
pub mod committee;
pub mod demonstration;
mod dossier;
mod estimate;
mod ids;
mod input;
mod layers;
mod moves;
mod nothing;
mod outcome;
mod proceedings;
mod prompt;
mod proposals;
mod rank;
mod ranked;
mod review;
mod reviewing;
mod similar;
#[cfg(test)]
#[path = "consult/support_tests.rs"]
mod support;
mod terms;
mod words;
mod workflow;
mod written;

pub use self::approval::{Approval, NotHeld, settle};
pub use self::board::board;
pub use self::checking::Check;
pub use self::committee::Committee;
pub use self::dossier::dossier_tokens;
pub use self::estimate::{Estimate, RoleEstimate, calls, estimate};
pub use self::input::{
    ConsultInput, EvidenceSource, GatherFailure, GatherFailureKind, GatherRequest, InvalidConsult,
    RoleModels,
};
pub use self::moves::{Move, Proposal};
pub use self::nothing::NOTHING;
pub use self::outcome::outcome_of;
pub use self::proceedings::{
    DebateEnd, Document, Failure, Proceedings, SYNTHETIC_MARK, Tried, Unseen,
};
pub use self::rank::{Accepted, Ranking, approve, rank};
pub use self::ranked::{RECOMMENDED, Ranked, RankedMove, SupportCount};
pub use self::review::{Change, LastWord, MAX_CHANGES, Question, Review, What};
pub use self::reviewing::YOU;
pub use self::similar::{ALIKE_PERCENT, likeness, similar};
pub use self::terms::{InvalidTerms, MAX_ADDED_MOVES, MAX_BRIEF_CHARS, Terms};
pub use self::workflow::Consult;
pub use self::written::{InvalidMove, WrittenMove};
