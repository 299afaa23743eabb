//! The fake provider over real TCP, driven by the smallest client that can see every byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bills;
mod broken;
mod client;
mod errors;
mod healthy;
mod plan;
mod replies;
mod server;
