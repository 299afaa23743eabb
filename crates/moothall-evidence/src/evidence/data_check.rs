//! What a careful reader should know about the data: numbers that are missing, and numbers that do not fit together.

use std::fmt;

use rust_decimal::Decimal;

use super::day::Day;
use super::fact::FactId;
use super::period::Period;

/// A number that is not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// The id under which it would stand.
    pub id: FactId,
    /// Why it does not.
    pub reason: GapReason,
}

/// Why a number is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    /// No filing has it under a tag that means the same.
    NotFiled,
    /// It would be a growth or a ratio over a base that is zero or negative.
    NotMeaningful,
}

/// Something a careful reader should know about the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataCheck {
    /// Two tags that should mean the same have different values; the first of our order is used.
    Candidates {
        /// The fact.
        id: FactId,
        /// The tag that was not used.
        concept: String,
        /// Its value.
        value: Decimal,
        /// The value that is used.
        used: Decimal,
    },
    /// Shares were split; older values per share were brought to the new basis.
    Split {
        /// New shares for one old share.
        factor: u32,
        /// The first filing on the new basis.
        first_filed: Day,
    },
    /// Two sides that should be equal are not.
    Identity {
        /// Which equation.
        identity: Identity,
        /// In which period.
        period: Period,
        /// Its left side.
        left: Decimal,
        /// Its right side.
        right: Decimal,
    },
    /// A later filing says something else than the first one.
    Restated {
        /// The fact.
        id: FactId,
        /// What the first filing said.
        from: Decimal,
        /// What the newest one says.
        to: Decimal,
    },
    /// Rows of the filer's data that could not be read.
    UnreadableRows {
        /// How many.
        count: usize,
    },
}

/// Equations that statements obey, some aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// Assets = liabilities and equity.
    BalanceSheet,
    /// Gross profit = revenue - cost of revenue.
    GrossProfit,
    /// Revenue of a year = that of its quarters.
    Quarters,
    /// Debt as reported = what is due soon and what is due later.
    Debt,
    /// Net income = pre-tax income - income tax; minorities and discontinued operations aside.
    NetIncome,
}

impl fmt::Display for DataCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Candidates { id, concept, value, used } => {
                write!(f, "{id}: {concept} says {value}; used is {used}")
            }
            Self::Split { factor, first_filed } => {
                write!(f, "shares were split {factor}:1, first seen in a filing of {first_filed}")
            }
            Self::Identity { identity, period, left, right } => {
                write!(f, "{identity} does not hold in {period}: {left} against {right}")
            }
            Self::Restated { id, from, to } => {
                write!(f, "{id} was first filed as {from} and is now {to}")
            }
            Self::UnreadableRows { count } => {
                write!(f, "{count} rows of the filer's data could not be read and are left out")
            }
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFiled => "no filing has it under a tag that means the same",
            Self::NotMeaningful => "not meaningful: its base is zero or negative",
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BalanceSheet => "Assets = LiabilitiesAndEquity",
            Self::GrossProfit => "GrossProfit = Revenue - CostOfRevenue",
            Self::Quarters => "Revenue = Q1 + Q2 + Q3 + Q4",
            Self::Debt => "DebtReported = TotalDebt",
            Self::NetIncome => {
                "NetIncome = PretaxIncome - IncomeTax (minorities and discontinued operations aside)"
            }
        })
    }
}
