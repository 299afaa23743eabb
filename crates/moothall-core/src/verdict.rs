//! Verdicts of a blind panel: tiers with intervals instead of a ranking.
//!
//! ```text
//! cards ─► CardTable ─► panel means, noise ─► estimates with intervals ─► chances ─► TierList
//!                                                                                      │
//!                    debate the best moves again ◄─ DebateSchedule::next_moves ◄───────┘
//! ```
//!
//! A verdict is a pure function of the cards, the controls and the rules. It decides which calls
//! a run makes next, so it must be the same on every platform: only + − × ÷ √ on `f64` in a fixed
//! order, a table instead of functions of the C library, and rounding to tenths of a point and
//! thousandths of a probability before any comparison. No random numbers are used.

mod announcement;
mod calibration;
mod card_table;
mod case_file;
mod chances;
mod components;
mod controls;
mod estimate;
mod forecast;
mod normal;
mod panel_label;
mod schedule;
mod stability;
mod tiers;

pub use self::announcement::{
    AnnouncementBasis, AnnouncementOutcome, AnnouncementQuestion, MoveNote, TierOutcome,
    count_tiers, resolve_announcement,
};
pub use self::calibration::{BenchmarkCase, measure_shared_error};
pub use self::card_table::{
    CardScale, CardTable, CaseKind, InvalidCard, PanelCard, PanelCase, PanelJudge,
};
pub(crate) use self::case_file::FIELD_LIMITS;
pub use self::case_file::{CaseFile, HiddenNames};
pub(crate) use self::components::PanelMeans;
pub use self::controls::{
    ControlCase, ControlKind, ControlReport, ControlResult, PanelCheck, control_scores,
};
pub use self::estimate::{
    AllowanceSource, MIN_MOVES, NoiseAllowances, NoiseComponent, VarianceComponents,
};
pub use self::forecast::{
    CalibrationBin, CalibrationTable, ForecastComparison, ForecastOutcome, ForecastQuestion,
    ForecastReport, ForecastScore, MAX_QUESTIONS, MIN_RESOLVED, MemberForecast, ResolvedForecast,
    forecast_questions, is_possibly_known, resolve_question,
};
pub(crate) use self::normal::normal_quantile;
pub use self::panel_label::PanelLabel;
pub use self::schedule::DebateSchedule;
pub use self::stability::{StabilityReport, kendall_tau};
pub use self::tiers::{
    MoveEstimate, MovePair, ScoreInterval, TierList, VerdictHeadline, VerdictRules, VerdictTier,
};

#[cfg(test)]
#[path = "verdict/simulated_panels_tests.rs"]
mod simulated_panels;
#[cfg(test)]
#[path = "verdict/simulation_tests.rs"]
mod simulation;
#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "verdict/simulated_world_tests.rs"]
mod world;
