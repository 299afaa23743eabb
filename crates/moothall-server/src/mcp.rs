//! The Model Context Protocol: drafts as tools for any agent that speaks it.
//!
//! ```text
//! client ─► front (front.rs, http.rs)   speaks the protocol, behind walls: no file, no program, no network
//!             ├─ link.rs ─► gate (gate.rs)   another process: owns the store, the journal, every write
//!             └─ link.rs ─► runner           another process: runs commands of this program, if asked to
//! ```
//!
//! The front parses what strangers send, so it is the part that may be taken over. It holds no file
//! and no right: it passes calls on, and the gate reads their arguments, knows by itself who the
//! caller is and decides. No string of a caller is a path on the write side.

mod asking;
mod front;
mod gate;
mod http;
mod link;
mod running;
mod shapes;
mod tools;
mod watch;

pub use self::front::{Front, serve_streams};
pub use self::gate::{Gate, Terms};
pub use self::http::{Bearer, HttpLimits, serve_http};
pub use self::link::{Answer, Ask, Link, LinkError, answer_all, wait_until_ready};
pub use self::running::{
    CheckTextArgs, CheckTextOut, ClaimOut, FactsArgs, FactsOut, SandboxRunArgs, SandboxRunOut,
};
pub use self::tools::{ToolName, ToolNames, ToolSet};
