//! End-to-end tests of the real executable, each in its own directory and environment.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod access;
mod ask;
mod backup;
mod chaos;
mod committee;
mod config;
mod consult;
mod deleting;
mod diff;
mod doctor;
mod drafts;
mod edit;
mod evidence;
mod failures;
mod fake;
mod help;
mod image;
mod init;
mod interrupted;
mod json;
mod kept;
mod mcp;
mod mcp_client;
mod mcp_http;
mod models;
mod notices;
mod real_chaos;
mod real_cluster;
mod real_drafts;
mod real_exec;
mod real_mcp;
mod real_postgres;
mod real_restate;
mod real_sandbox;
mod real_telemetry;
mod real_upgrade;

mod report;
mod runs;
mod say;
mod scene;
mod schema;
mod secrecy;
mod serve;
mod serve_access;
mod serve_connections;
mod sources;
mod terminal;
mod trust;
mod verify;
mod web_fixtures;
mod world;
