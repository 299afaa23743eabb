//! Tests of the fake provider over real TCP, with a minimal client that sees every byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bills;
mod broken;
mod client;
mod errors;
mod healthy;
mod plan;
mod replies;
mod server;
