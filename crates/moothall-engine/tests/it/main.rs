#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chaos;
mod children;
mod draft_calls;
mod drafts;
mod drafts_audit;
mod drafts_crash;
mod drafts_figures;
mod drafts_files;
mod drafts_looking;
mod drafts_race;
mod drafts_stress;
mod driver;
mod edgar;
mod edgar_server;
mod execute;
mod gather;
mod lock;
mod panel;
mod person;
mod real_debate;
mod real_pdf;
mod record;
mod reflexion;
mod rooms;
mod sources;
mod support;
