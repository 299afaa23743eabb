#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod accounts;
mod admission;
mod budget;
mod contract;
mod crash;
mod inherited;
mod model;
mod real_postgres;
mod sqlite;
mod support;
