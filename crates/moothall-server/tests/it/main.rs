//! The server on a real socket, over a real store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod access;
mod connections;
mod desk;
mod drafts;
mod scene;
mod streams;
