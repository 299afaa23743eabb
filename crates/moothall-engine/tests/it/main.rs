#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chaos;
mod children;
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
