//! Tests the server on a real socket with a real store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod access;
mod connections;
mod drafts;
mod run_service;
mod scene;
mod streams;
