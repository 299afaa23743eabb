#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chaos;
mod contract;
mod fallbacks;
mod faults;
mod gateway;
mod local_model;
mod provider_connections;
mod providers;
mod support;
