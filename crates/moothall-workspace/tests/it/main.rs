#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod drafts;
mod drafts_audit;
mod drafts_crash;
mod drafts_files;
mod drafts_hunks;
mod drafts_looking;
mod drafts_notices;
mod drafts_race;
mod drafts_room;
mod drafts_snapshot;
mod drafts_stress;
mod drafts_surroundings;
mod drafts_trust;
mod drafts_view;
mod drafts_waiting;
mod git_corpus;
mod world;
