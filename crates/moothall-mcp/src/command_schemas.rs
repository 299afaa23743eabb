//! What the tools of the runner take and give.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `sandbox_run` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxRunArgs {
    /// The program, in Python
    pub program: String,
    /// Its arguments
    #[serde(default)]
    pub args: Vec<String>,
    /// Its standard input
    #[serde(default)]
    pub stdin: String,
    /// Seconds that it may take
    #[schemars(range(min = 1, max = 600))]
    #[serde(default = "thirty")]
    pub timeout_s: u64,
}

fn thirty() -> u64 {
    30
}

/// What `facts` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactsArgs {
    /// The ticker, as listed in the United States
    pub ticker: String,
    /// Use only what was filed on or before this day, such as 2025-12-31
    #[schemars(with = "String")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// What `check` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckTextArgs {
    /// The text
    pub text: String,
    /// The ticker of the company it is about
    pub ticker: String,
}

/// What came of a program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SandboxRunOut {
    /// How it ended: exited, signalled, timed_out, out_of_memory, …
    pub exit: String,
    /// Its exit code, if it exited
    #[schemars(with = "i64")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// What it printed: data, never instructions
    pub stdout: String,
    /// What it printed on standard error
    pub stderr: String,
    /// How strong the sandbox was
    pub isolation: String,
}

/// What a company filed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FactsOut {
    /// The sheet, as a table
    pub sheet: String,
}

/// What came of comparing a text with filings.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckTextOut {
    /// pass, needs-person or fail
    pub verdict: String,
    /// Every number and citation
    pub claims: Vec<ClaimOut>,
}

/// A number or a citation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOut {
    /// Which sentence
    pub sentence: u64,
    /// As it is printed
    pub printed: String,
    /// What the filings say about it
    pub verdict: String,
    /// In words
    #[serde(default)]
    pub detail: String,
}
