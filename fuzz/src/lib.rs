//! One function per kind of untrusted input: what must be true of any bytes.
//!
//! `cargo test` calls each with the seeds of `seeds/` and with variations of them. `libfuzzer/` calls the same functions from
//! libFuzzer, which needs nightly.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a target reports a failure"
)]

mod claims_check;
mod company_facts;
mod debate_replies;
mod draft_paths;
mod filing_text;
mod gate_patches;
mod gate_policy;
mod git_patches;
mod guest_agent_frames;
mod guest_frames;
mod python_read;
mod receipt_verify;
mod secret_scan;
mod structured_read;
mod wire_decode;

pub use claims_check::claims_check;
pub use company_facts::company_facts;
pub use debate_replies::debate_replies;
pub use draft_paths::draft_paths;
pub use filing_text::filing_text;
pub use gate_patches::gate_patches;
pub use gate_policy::gate_policy;
pub use git_patches::git_patches;
pub use guest_agent_frames::guest_agent_frames;
pub use guest_frames::guest_frames;
pub use python_read::python_read;
pub use receipt_verify::receipt_verify;
pub use secret_scan::secret_scan;
pub use structured_read::structured_read;
pub use wire_decode::wire_decode;
