//! Derives metrics from filed ones: amounts, ratios, returns and growth.
//!
//! Each derived metric is computed only from facts of the sheet and lists them as inputs. Nothing
//! is computed over a base that is zero or negative, because such a ratio is not meaningful.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::arithmetic::{average, growth_rate, quotient};
use super::data_check::{DataGap, GapReason};
use super::fact::{FactId, FactUnit};
use super::fact_table::{FactTable, ids};
use super::period::FiscalPeriod;

/// Adds every derived metric and returns the annual ratios that are not meaningful.
pub(crate) fn add(table: &mut FactTable) -> BTreeSet<DataGap> {
    let filer = if is_bank(table) { FilerKind::Bank } else { FilerKind::Company };
    let periods = table.periods();
    let mut deriver = MetricDeriver { table, not_meaningful: BTreeSet::new() };
    for &period in &periods {
        if filer == FilerKind::Company {
            deriver.total_debt(period);
        }
        for amount in AMOUNTS.iter().filter(|amount| amount.applies_to(filer, period)) {
            deriver.amount(amount, period);
        }
    }
    for &period in &periods {
        for ratio in
            RATIOS.iter().filter(|ratio| filer == FilerKind::Company || !ratio.not_for_banks)
        {
            deriver.ratio(ratio, period);
        }
        deriver.debt_burden(period);
        if let FiscalPeriod::Year(year) = period {
            deriver.returns(year);
            deriver.turnover(year);
            deriver.long_growth(year);
        }
    }
    for &period in &periods {
        if !matches!(period, FiscalPeriod::YearToDate(..)) {
            deriver.growth(period);
        }
    }
    deriver.not_meaningful
}

/// Whether the filer is a bank. Debt, free cash flow, EBITDA and working capital are not meaningful
/// for banks, because deposits fund their business. Net interest income alone is not enough,
/// because other companies use that tag for interest on their cash.
pub(crate) fn is_bank(table: &FactTable) -> bool {
    table.has("Deposits") || (table.has("NetInterestIncome") && table.has("NoninterestExpense"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FilerKind {
    Company,
    Bank,
}

/// A sum of metrics of one period.
struct AmountRule {
    name: &'static str,
    terms: &'static [AmountTerm],
    for_banks: bool,
    years_only: bool,
}

enum AmountTerm {
    /// Required.
    Plus(&'static str),
    /// Optional, because filers do not tag what they do not have. A sum of only optional terms
    /// needs at least one.
    PlusIfFiled(&'static str),
    /// Required.
    Minus(&'static str),
}

use AmountTerm::{Minus, Plus, PlusIfFiled};

const fn amount(name: &'static str, terms: &'static [AmountTerm]) -> AmountRule {
    AmountRule { name, terms, for_banks: true, years_only: false }
}

const fn not_for_banks(name: &'static str, terms: &'static [AmountTerm]) -> AmountRule {
    AmountRule { name, terms, for_banks: false, years_only: false }
}

impl AmountRule {
    fn applies_to(&self, filer: FilerKind, period: FiscalPeriod) -> bool {
        (self.for_banks || filer == FilerKind::Company)
            && (!self.years_only || matches!(period, FiscalPeriod::Year(_)))
    }
}

/// Debt as reported; otherwise current debt, as reported or summed from its parts, plus noncurrent
/// debt. The sum matters: a tag for long-term debt alone omits commercial paper.
static REPORTED_DEBT: AmountRule = not_for_banks("TotalDebt", &[Plus("DebtReported")]);
static SUMMED_DEBT: &[AmountRule] = &[
    not_for_banks(
        "TotalDebt",
        &[Plus("DebtCurrentReported"), PlusIfFiled("LongTermDebtNoncurrent")],
    ),
    not_for_banks(
        "TotalDebt",
        &[
            PlusIfFiled("LongTermDebtCurrent"),
            PlusIfFiled("ShortTermDebt"),
            PlusIfFiled("LongTermDebtNoncurrent"),
        ],
    ),
];

/// Order matters: later amounts use earlier ones, and of two with the same name the first
/// computable one is used.
static AMOUNTS: &[AmountRule] = &[
    amount("GrossProfit", &[Plus("Revenue"), Minus("CostOfRevenue")]),
    amount("Liabilities", &[Plus("LiabilitiesAndEquity"), Minus("EquityInclNCI")]),
    amount("Liabilities", &[Plus("LiabilitiesAndEquity"), Minus("Equity")]),
    not_for_banks("FreeCashFlow", &[Plus("CFO"), Minus("Capex")]),
    not_for_banks("EBITDA", &[Plus("OperatingIncome"), Plus("DepreciationAmortization")]),
    not_for_banks(
        "NetCash",
        &[
            Plus("Cash"),
            PlusIfFiled("ShortTermInvestments"),
            PlusIfFiled("LongTermInvestments"),
            Minus("TotalDebt"),
        ],
    ),
    not_for_banks("WorkingCapital", &[Plus("CurrentAssets"), Minus("CurrentLiabilities")]),
    AmountRule {
        name: "ShareholderReturns",
        terms: &[Plus("Buybacks"), PlusIfFiled("Dividends")],
        for_banks: true,
        years_only: true,
    },
];

/// One metric divided by another of the same period.
struct RatioRule {
    name: &'static str,
    above: &'static str,
    below: &'static str,
    unit: FactUnit,
    not_for_banks: bool,
}

const fn ratio(
    name: &'static str,
    above: &'static str,
    below: &'static str,
    unit: FactUnit,
) -> RatioRule {
    RatioRule { name, above, below, unit, not_for_banks: false }
}

static RATIOS: &[RatioRule] = &[
    ratio("GrossMargin", "GrossProfit", "Revenue", FactUnit::Ratio),
    ratio("OperatingMargin", "OperatingIncome", "Revenue", FactUnit::Ratio),
    ratio("NetMargin", "NetIncome", "Revenue", FactUnit::Ratio),
    ratio("RDIntensity", "ResearchDevelopment", "Revenue", FactUnit::Ratio),
    ratio("SGAIntensity", "SellingGeneralAdmin", "Revenue", FactUnit::Ratio),
    ratio("FCFMargin", "FreeCashFlow", "Revenue", FactUnit::Ratio),
    ratio("CapexIntensity", "Capex", "Revenue", FactUnit::Ratio),
    ratio("SBCIntensity", "StockComp", "Revenue", FactUnit::Ratio),
    ratio("EBITDAMargin", "EBITDA", "Revenue", FactUnit::Ratio),
    ratio("EffectiveTaxRate", "IncomeTax", "PretaxIncome", FactUnit::Ratio),
    ratio("CashConversion", "CFO", "NetIncome", FactUnit::Multiple),
    ratio("InterestCover", "OperatingIncome", "InterestExpense", FactUnit::Multiple),
    ratio("CostIncomeRatio", "NoninterestExpense", "Revenue", FactUnit::Ratio),
    ratio("DebtToEquity", "TotalDebt", "Equity", FactUnit::Multiple),
    RatioRule {
        name: "CurrentRatio",
        above: "CurrentAssets",
        below: "CurrentLiabilities",
        unit: FactUnit::Multiple,
        not_for_banks: true,
    },
];

/// Balances expressed as days of a year's flow.
static TURNOVERS: &[(&str, &str, &str)] = &[
    ("DSO", "Receivables", "Revenue"),
    ("DIO", "Inventory", "CostOfRevenue"),
    ("DPO", "AccountsPayable", "CostOfRevenue"),
];

const GROWTH_METRICS: &[&str] = &[
    "Revenue",
    "GrossProfit",
    "OperatingIncome",
    "NetIncome",
    "EPSDiluted",
    "CFO",
    "FreeCashFlow",
    "Capex",
    "ResearchDevelopment",
    "SellingGeneralAdmin",
    "SharesDiluted",
    "Inventory",
    "DeferredRevenue",
    "RPO",
    "NetInterestIncome",
    "Deposits",
];
const LONG_GROWTH_METRICS: &[&str] =
    &["Revenue", "OperatingIncome", "NetIncome", "EPSDiluted", "FreeCashFlow"];
const LONG_YEARS: &[u8] = &[3, 5];
const CHANGE_METRICS: &[&str] =
    &["GrossMargin", "OperatingMargin", "NetMargin", "FCFMargin", "RDIntensity"];

struct AmountSum {
    value: Decimal,
    formula: String,
    inputs: Vec<FactId>,
}

struct MetricDeriver<'a> {
    table: &'a mut FactTable,
    not_meaningful: BTreeSet<DataGap>,
}

impl MetricDeriver<'_> {
    fn value(&self, metric: &str, period: FiscalPeriod) -> Option<Decimal> {
        self.table.value(metric, period)
    }

    fn amount(&mut self, amount: &AmountRule, period: FiscalPeriod) {
        if let Some(sum) = self.sum(amount, period) {
            self.store_amount(amount, period, sum);
        }
    }

    /// Uses the reported total, unless the separately filed parts add up to more: some filers omit
    /// short-term borrowings from the total.
    fn total_debt(&mut self, period: FiscalPeriod) {
        let reported = self.sum(&REPORTED_DEBT, period);
        let summed = SUMMED_DEBT.iter().find_map(|amount| self.sum(amount, period));
        let debt = match (reported, summed) {
            (Some(reported), Some(summed)) if summed.value <= reported.value => Some(reported),
            (Some(reported), None) => Some(reported),
            (_, summed) => summed,
        };
        if let Some(debt) = debt {
            self.store_amount(&REPORTED_DEBT, period, debt);
        }
    }

    fn store_amount(&mut self, amount: &AmountRule, period: FiscalPeriod, sum: AmountSum) {
        let id = FactId::new(amount.name, period);
        self.table.derive(id, Some(sum.value), FactUnit::Money, sum.formula, sum.inputs);
    }

    fn sum(&self, amount: &AmountRule, period: FiscalPeriod) -> Option<AmountSum> {
        let mut sum = Decimal::ZERO;
        let mut formula = String::new();
        let mut inputs = Vec::new();
        for term in amount.terms {
            let (Plus(name) | PlusIfFiled(name) | Minus(name)) = term;
            let (sign, value) = match (term, self.value(name, period)) {
                (Plus(_) | PlusIfFiled(_), Some(value)) => (" + ", value),
                (Minus(_), Some(value)) => (" - ", -value),
                (PlusIfFiled(_), None) => continue,
                (Plus(_) | Minus(_), None) => return None,
            };
            sum = sum.checked_add(value)?;
            if !formula.is_empty() {
                formula.push_str(sign);
            }
            formula.push_str(name);
            inputs.push(FactId::new(*name, period));
        }
        (!inputs.is_empty()).then_some(AmountSum { value: sum, formula, inputs })
    }

    fn ratio(&mut self, ratio: &RatioRule, period: FiscalPeriod) {
        let Some(above) = self.value(ratio.above, period) else { return };
        let Some(below) = self.value(ratio.below, period) else { return };
        let id = FactId::new(ratio.name, period);
        if !self.is_meaningful(&id, below) {
            return;
        }
        self.table.derive(
            id,
            quotient(above, below),
            ratio.unit,
            format!("{} / {}", ratio.above, ratio.below),
            ids([(ratio.above, period), (ratio.below, period)]),
        );
    }

    /// Net debt over EBITDA, for four quarters and the balance sheet at their end.
    fn debt_burden(&mut self, period: FiscalPeriod) {
        if !matches!(period, FiscalPeriod::Year(_) | FiscalPeriod::TrailingYear(..)) {
            return;
        }
        let Some(net_cash) = self.value("NetCash", period.closing()) else { return };
        let Some(ebitda) = self.value("EBITDA", period) else { return };
        let id = FactId::new("NetDebtToEBITDA", period);
        if self.is_meaningful(&id, ebitda) {
            self.table.derive(
                id,
                quotient(-net_cash, ebitda),
                FactUnit::Multiple,
                "-NetCash / EBITDA",
                ids([("NetCash", period.closing()), ("EBITDA", period)]),
            );
        }
    }

    /// Returns on the average of the opening and closing balance of a year.
    fn returns(&mut self, year: i32) {
        let (this, before) = (FiscalPeriod::Year(year), FiscalPeriod::Year(year - 1));
        for (name, balance) in [("ROE", "Equity"), ("ROA", "Assets")] {
            let Some(income) = self.value("NetIncome", this) else { continue };
            let balances = self.value(balance, this).zip(self.value(balance, before));
            let Some(base) = balances.and_then(|(new, old)| average(new, old)) else { continue };
            let id = FactId::new(name, this);
            if self.is_meaningful(&id, base) {
                self.table.derive(
                    id,
                    quotient(income, base),
                    FactUnit::Ratio,
                    format!("NetIncome / average {balance}"),
                    ids([("NetIncome", this), (balance, this), (balance, before)]),
                );
            }
        }
        self.return_on_invested_capital(this, before);
    }

    fn return_on_invested_capital(&mut self, this: FiscalPeriod, before: FiscalPeriod) {
        let Some(income) = self.value("OperatingIncome", this) else { return };
        let Some(tax_rate) = self.value("EffectiveTaxRate", this) else { return };
        let capitals = self.invested_capital(this).zip(self.invested_capital(before));
        let Some(((new, mut inputs), (old, inputs_before))) = capitals else { return };
        let Some(capital) = average(new, old) else { return };
        let id = FactId::new("ROIC", this);
        if !self.is_meaningful(&id, capital) {
            return;
        }
        let after_tax =
            Decimal::ONE.checked_sub(tax_rate).and_then(|kept| income.checked_mul(kept));
        inputs.splice(0..0, ids([("OperatingIncome", this), ("EffectiveTaxRate", this)]));
        inputs.extend(inputs_before);
        self.table.derive(
            id,
            after_tax.and_then(|income| quotient(income, capital)),
            FactUnit::Ratio,
            "OperatingIncome x (1 - EffectiveTaxRate) / average(Equity + TotalDebt - Cash - ShortTermInvestments)",
            inputs,
        );
    }

    /// Equity plus debt minus cash and short-term investments, with the inputs.
    fn invested_capital(&self, period: FiscalPeriod) -> Option<(Decimal, Vec<FactId>)> {
        let mut capital = self.value("Equity", period)?;
        capital = capital.checked_add(self.value("TotalDebt", period)?)?;
        capital = capital.checked_sub(self.value("Cash", period)?)?;
        let mut inputs = ids([("Equity", period), ("TotalDebt", period), ("Cash", period)]);
        if let Some(investments) = self.value("ShortTermInvestments", period) {
            capital = capital.checked_sub(investments)?;
            inputs.push(FactId::new("ShortTermInvestments", period));
        }
        Some((capital, inputs))
    }

    fn turnover(&mut self, year: i32) {
        let period = FiscalPeriod::Year(year);
        for &(name, balance, flow) in TURNOVERS {
            let Some(balance_value) = self.value(balance, period) else { continue };
            let Some(flow_value) = self.value(flow, period) else { continue };
            let id = FactId::new(name, period);
            if self.is_meaningful(&id, flow_value) {
                let days = quotient(balance_value, flow_value)
                    .and_then(|part| part.checked_mul(Decimal::from(365)));
                self.table.derive(
                    id,
                    days,
                    FactUnit::Days,
                    format!("{balance} / {flow} x 365"),
                    ids([(balance, period), (flow, period)]),
                );
            }
        }
    }

    /// Annual growth over three and five years.
    fn long_growth(&mut self, year: i32) {
        let this = FiscalPeriod::Year(year);
        for &metric in LONG_GROWTH_METRICS {
            for &years in LONG_YEARS {
                let base = FiscalPeriod::Year(year - i32::from(years));
                let Some(new) = self.value(metric, this) else { continue };
                let Some(old) = self.value(metric, base) else { continue };
                let id = FactId::new(format!("{metric}.cagr{years}"), this);
                if self.is_meaningful(&id, old.min(new)) {
                    self.table.derive(
                        id,
                        growth_rate(old, new, u32::from(years)),
                        FactUnit::Ratio,
                        format!("({metric} / {metric} {years} years before)^(1/{years}) - 1"),
                        ids([(metric, this), (metric, base)]),
                    );
                }
            }
        }
    }

    fn growth(&mut self, period: FiscalPeriod) {
        let before = period.year_before();
        for &metric in GROWTH_METRICS {
            let Some(new) = self.value(metric, period) else { continue };
            let Some(old) = self.value(metric, before) else { continue };
            let id = FactId::new(format!("{metric}.yoy"), period);
            if self.is_meaningful(&id, old) {
                self.table.derive(
                    id,
                    new.checked_sub(old).and_then(|change| quotient(change, old)),
                    FactUnit::Ratio,
                    format!("({metric} - {metric} a year before) / {metric} a year before"),
                    ids([(metric, period), (metric, before)]),
                );
            }
        }
        for &metric in CHANGE_METRICS {
            let Some(new) = self.value(metric, period) else { continue };
            let Some(old) = self.value(metric, before) else { continue };
            self.table.derive(
                FactId::new(format!("{metric}.delta"), period),
                new.checked_sub(old),
                FactUnit::Ratio,
                format!("{metric} - {metric} a year before"),
                ids([(metric, period), (metric, before)]),
            );
        }
    }

    /// Whether a ratio over `base` is meaningful; if not, an annual one is recorded as a gap.
    fn is_meaningful(&mut self, id: &FactId, base: Decimal) -> bool {
        let is_meaningful = base > Decimal::ZERO;
        if !is_meaningful && matches!(id.period, FiscalPeriod::Year(_)) {
            let gap = DataGap { id: id.clone(), reason: GapReason::NotMeaningful };
            self.not_meaningful.insert(gap);
        }
        is_meaningful
    }
}
