#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chaos;
mod children;
mod drafts;
mod drafts_audit;
mod drafts_crash;
mod drafts_files;
mod drafts_race;
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
mod waves;
