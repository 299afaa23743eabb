//! A benchmark with known answers: fictional companies whose moves have a computed true value, judges
//! with known errors, and the measurement of both.
//!
//! ```text
//! BenchmarkSet ─► runs with real or scripted judges ─► CompanyResult ─► BenchmarkReport ─► JudgeFile
//! ```
//!
//! Everything is computed with + − × ÷ √ and SHA-256, so a set and the scores of scripted judges are
//! the same on every platform.

mod company_filings;
mod debate_script;
mod hash_noise;
mod judge_file;
mod move_templates;
mod report;
mod scripted_judge;
mod synthetic_set;

pub use self::company_filings::{company_facts_json, ticker_table_json};
pub use self::debate_script::DebateScript;
pub use self::judge_file::{JudgeFile, JudgeMeasurement};
pub use self::move_templates::MoveTemplate;
pub use self::report::{
    BenchmarkReport, CompanyResult, ControlTally, JudgeFigures, MeasuredComponents, ReportedChance,
};
pub use self::scripted_judge::{JudgeProfile, JudgeQuestion, JudgeWorld, ScriptedJudges};
pub use self::synthetic_set::{BenchmarkCompany, BenchmarkMove, BenchmarkSet};

#[cfg(test)]
#[path = "benchmark/simulated_eval_tests.rs"]
mod simulated_eval;
