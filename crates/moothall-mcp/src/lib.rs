//! Model Context Protocol server: drafts as tools for MCP agents.
//!
//! ```text
//! client ─► frontend (frontend.rs, http.rs)   speaks MCP, sandboxed: no files, no programs, no network
//!             ├─ ipc.rs ─► gate (draft_tools.rs)   separate process: owns the store, the journal, all writes
//!             └─ ipc.rs ─► runner                  separate process: runs moothall commands, if enabled
//! ```
//!
//! The frontend parses untrusted input, so it is the process most likely to be compromised. It has
//! no files and no permissions: it forwards calls, and the gate parses their arguments, determines
//! the caller itself and decides. No string from a caller is used as a path for writing.

mod command_schemas;
mod draft_schemas;
mod draft_tools;
mod draft_watcher;
mod elicitation;
mod frontend;
mod http;
mod ipc;
mod tools;

pub use self::command_schemas::{
    CheckTextOut, CheckTextToolArgs, ClaimOut, ConsultToolArgs, FactsOut, FactsToolArgs,
    RunStatusOut, RunStatusToolArgs, SandboxRunOut, SandboxRunToolArgs,
};
pub use self::draft_tools::{DraftGate, DraftGateSettings};
pub use self::frontend::{McpFrontend, serve_streams};
pub use self::http::{BearerToken, McpHttpLimits, serve_http};
pub use self::ipc::{IpcClient, IpcError, IpcRequest, IpcResponse, answer_all, wait_until_ready};
pub use self::tools::{ToolName, ToolNames, ToolSet};
