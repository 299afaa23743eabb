//! The Model Context Protocol: drafts as tools for any agent that speaks it.
//!
//! ```text
//! client ─► front (front.rs, http.rs)   speaks the protocol, behind walls: no file, no program, no network
//!             ├─ ipc.rs ─► gate (draft_tools.rs)   another process: owns the store, the journal, every write
//!             └─ ipc.rs ─► runner           another process: runs commands of this program, if asked to
//! ```
//!
//! The front parses what strangers send, so it is the part that may be taken over. It holds no file
//! and no right: it passes calls on, and the gate reads their arguments, knows by itself who the
//! caller is and decides. No string of a caller is a path on the write side.

mod command_schemas;
mod draft_schemas;
mod draft_tools;
mod elicitation;
mod front;
mod http;
mod ipc;
mod tools;
mod watch;

pub use self::command_schemas::{
    CheckTextArgs, CheckTextOut, ClaimOut, FactsArgs, FactsOut, SandboxRunArgs, SandboxRunOut,
};
pub use self::draft_tools::{Gate, Terms};
pub use self::front::{Front, serve_streams};
pub use self::http::{Bearer, HttpLimits, serve_http};
pub use self::ipc::{Answer, Ask, Link, LinkError, answer_all, wait_until_ready};
pub use self::tools::{ToolName, ToolNames, ToolSet};
