//! Problems of the data: missing and inconsistent numbers.

use std::fmt;

use rust_decimal::Decimal;

use super::day::CalendarDay;
use super::fact::FactId;
use super::period::FiscalPeriod;

/// A missing number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataGap {
    /// The id it would have.
    pub id: FactId,
    /// Why the number is missing.
    pub reason: GapReason,
}

/// Why a number is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    /// No filing has it under an equivalent tag.
    NotFiled,
    /// A growth rate or ratio over a base that is zero or negative.
    NotMeaningful,
}

/// A problem of the data that a reader should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataCheck {
    /// Two equivalent tags have different values; the first in our order is used.
    Candidates {
        /// The affected fact.
        id: FactId,
        /// The unused tag.
        concept: String,
        /// Its value.
        value: Decimal,
        /// The value used.
        used: Decimal,
    },
    /// Shares were split; older per-share values were converted to the new basis.
    Split {
        /// New shares per old share.
        factor: u32,
        /// The first filing on the new basis.
        first_filed: CalendarDay,
    },
    /// Two values that should be equal differ.
    Identity {
        /// The violated equation.
        identity: AccountingIdentity,
        /// The affected period.
        period: FiscalPeriod,
        /// The left side.
        left: Decimal,
        /// The right side.
        right: Decimal,
    },
    /// A later filing changed the value.
    Restated {
        /// The affected fact.
        id: FactId,
        /// Value in the first filing.
        from: Decimal,
        /// Value in the newest filing.
        to: Decimal,
    },
    /// Rows of the filer's data that could not be read.
    UnreadableRows {
        /// Number of rows.
        count: usize,
    },
}

/// Equations that financial statements should satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountingIdentity {
    /// Assets = liabilities and equity.
    BalanceSheet,
    /// Gross profit = revenue - cost of revenue.
    GrossProfit,
    /// Revenue of a year = sum of its quarters.
    Quarters,
    /// Debt as reported = current + noncurrent debt.
    Debt,
    /// Net income = pre-tax income - income tax; minority interests and discontinued operations are
    /// ignored.
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
                write!(f, "{id} was first filed as {from}, later restated as {to}")
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
            Self::NotFiled => "no filing has it under an equivalent tag",
            Self::NotMeaningful => "not meaningful: its base is zero or negative",
        })
    }
}

impl fmt::Display for AccountingIdentity {
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
