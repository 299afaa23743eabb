//! Metrics that follow from filed ones: amounts, ratios, returns and growth.
//!
//! Each is computed from facts of the sheet alone and names them. Over a base that is zero or
//! negative nothing is computed: such a ratio has a sign but no meaning.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::arithmetic::{average, growth_rate, quotient};
use super::book::{Book, ids};
use super::data_check::{Gap, GapReason};
use super::fact::{FactId, Unit};
use super::period::Period;

/// Adds every derived metric; gives back the ratios of years that mean nothing.
pub(super) fn add(book: &mut Book) -> BTreeSet<Gap> {
    let filer = if is_bank(book) { Filer::Bank } else { Filer::Company };
    let periods = book.periods();
    let mut deriver = Deriver { book, not_meaningful: BTreeSet::new() };
    for &period in &periods {
        if filer == Filer::Company {
            deriver.total_debt(period);
        }
        for amount in AMOUNTS.iter().filter(|amount| amount.suits(filer, period)) {
            deriver.amount(amount, period);
        }
    }
    for &period in &periods {
        for ratio in RATIOS.iter().filter(|ratio| filer == Filer::Company || !ratio.not_for_banks) {
            deriver.ratio(ratio, period);
        }
        deriver.debt_burden(period);
        if let Period::Year(year) = period {
            deriver.returns(year);
            deriver.turnover(year);
            deriver.long_growth(year);
        }
    }
    for &period in &periods {
        if !matches!(period, Period::YearToDate(..)) {
            deriver.growth(period);
        }
    }
    deriver.not_meaningful
}

/// Whether the filer is a bank. For one, debt, free cash flow, EBITDA and working capital mean
/// nothing: deposits are its raw material. Net interest income alone does not make one, because
/// others use that tag for interest on their cash.
pub(super) fn is_bank(book: &Book) -> bool {
    book.has("Deposits") || (book.has("NetInterestIncome") && book.has("NoninterestExpense"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Filer {
    Company,
    Bank,
}

/// A sum of metrics of one period.
struct Amount {
    name: &'static str,
    terms: &'static [Term],
    for_banks: bool,
    years_only: bool,
}

enum Term {
    /// Without it there is no amount.
    Plus(&'static str),
    /// Filers do not tag what they do not have. Of a sum that has only such terms, one must be
    /// there.
    PlusIfFiled(&'static str),
    /// Without it there is no amount.
    Minus(&'static str),
}

use Term::{Minus, Plus, PlusIfFiled};

const fn amount(name: &'static str, terms: &'static [Term]) -> Amount {
    Amount { name, terms, for_banks: true, years_only: false }
}

const fn not_for_banks(name: &'static str, terms: &'static [Term]) -> Amount {
    Amount { name, terms, for_banks: false, years_only: false }
}

impl Amount {
    fn suits(&self, filer: Filer, period: Period) -> bool {
        (self.for_banks || filer == Filer::Company)
            && (!self.years_only || matches!(period, Period::Year(_)))
    }
}

/// Debt as reported; else current debt as reported, or its parts, and what is due later. Adding
/// matters: a tag for long-term debt alone leaves commercial paper out.
static REPORTED_DEBT: Amount = not_for_banks("TotalDebt", &[Plus("DebtReported")]);
static SUMMED_DEBT: &[Amount] = &[
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

/// In order: later ones use earlier ones, and of two with one name the first that can be computed
/// counts.
static AMOUNTS: &[Amount] = &[
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
    Amount {
        name: "ShareholderReturns",
        terms: &[Plus("Buybacks"), PlusIfFiled("Dividends")],
        for_banks: true,
        years_only: true,
    },
];

/// One metric over another of the same period.
struct Ratio {
    name: &'static str,
    above: &'static str,
    below: &'static str,
    unit: Unit,
    not_for_banks: bool,
}

const fn ratio(name: &'static str, above: &'static str, below: &'static str, unit: Unit) -> Ratio {
    Ratio { name, above, below, unit, not_for_banks: false }
}

static RATIOS: &[Ratio] = &[
    ratio("GrossMargin", "GrossProfit", "Revenue", Unit::Ratio),
    ratio("OperatingMargin", "OperatingIncome", "Revenue", Unit::Ratio),
    ratio("NetMargin", "NetIncome", "Revenue", Unit::Ratio),
    ratio("RDIntensity", "ResearchDevelopment", "Revenue", Unit::Ratio),
    ratio("SGAIntensity", "SellingGeneralAdmin", "Revenue", Unit::Ratio),
    ratio("FCFMargin", "FreeCashFlow", "Revenue", Unit::Ratio),
    ratio("CapexIntensity", "Capex", "Revenue", Unit::Ratio),
    ratio("SBCIntensity", "StockComp", "Revenue", Unit::Ratio),
    ratio("EBITDAMargin", "EBITDA", "Revenue", Unit::Ratio),
    ratio("EffectiveTaxRate", "IncomeTax", "PretaxIncome", Unit::Ratio),
    ratio("CashConversion", "CFO", "NetIncome", Unit::Multiple),
    ratio("InterestCover", "OperatingIncome", "InterestExpense", Unit::Multiple),
    ratio("CostIncomeRatio", "NoninterestExpense", "Revenue", Unit::Ratio),
    ratio("DebtToEquity", "TotalDebt", "Equity", Unit::Multiple),
    Ratio {
        name: "CurrentRatio",
        above: "CurrentAssets",
        below: "CurrentLiabilities",
        unit: Unit::Multiple,
        not_for_banks: true,
    },
];

/// Balances as days of a year's flow.
static TURNOVERS: &[(&str, &str, &str)] = &[
    ("DSO", "Receivables", "Revenue"),
    ("DIO", "Inventory", "CostOfRevenue"),
    ("DPO", "AccountsPayable", "CostOfRevenue"),
];

const GROWING: &[&str] = &[
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
const GROWING_LONG: &[&str] =
    &["Revenue", "OperatingIncome", "NetIncome", "EPSDiluted", "FreeCashFlow"];
const LONG_YEARS: &[u8] = &[3, 5];
const CHANGING: &[&str] =
    &["GrossMargin", "OperatingMargin", "NetMargin", "FCFMargin", "RDIntensity"];

/// A computed amount before it has a name.
struct Sum {
    value: Decimal,
    formula: String,
    inputs: Vec<FactId>,
}

struct Deriver<'a> {
    book: &'a mut Book,
    not_meaningful: BTreeSet<Gap>,
}

impl Deriver<'_> {
    fn value(&self, metric: &str, period: Period) -> Option<Decimal> {
        self.book.value(metric, period)
    }

    fn amount(&mut self, amount: &Amount, period: Period) {
        if let Some(sum) = self.sum(amount, period) {
            self.put_amount(amount, period, sum);
        }
    }

    /// The reported total, unless parts that are filed beside it come to more: some filers leave
    /// short-term borrowings out of the total.
    fn total_debt(&mut self, period: Period) {
        let reported = self.sum(&REPORTED_DEBT, period);
        let summed = SUMMED_DEBT.iter().find_map(|amount| self.sum(amount, period));
        let debt = match (reported, summed) {
            (Some(reported), Some(summed)) if summed.value <= reported.value => Some(reported),
            (Some(reported), None) => Some(reported),
            (_, summed) => summed,
        };
        if let Some(debt) = debt {
            self.put_amount(&REPORTED_DEBT, period, debt);
        }
    }

    fn put_amount(&mut self, amount: &Amount, period: Period, sum: Sum) {
        let id = FactId::new(amount.name, period);
        self.book.derive(id, Some(sum.value), Unit::Money, sum.formula, sum.inputs);
    }

    fn sum(&self, amount: &Amount, period: Period) -> Option<Sum> {
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
        (!inputs.is_empty()).then_some(Sum { value: sum, formula, inputs })
    }

    fn ratio(&mut self, ratio: &Ratio, period: Period) {
        let Some(above) = self.value(ratio.above, period) else { return };
        let Some(below) = self.value(ratio.below, period) else { return };
        let id = FactId::new(ratio.name, period);
        if !self.is_meaningful(&id, below) {
            return;
        }
        self.book.derive(
            id,
            quotient(above, below),
            ratio.unit,
            format!("{} / {}", ratio.above, ratio.below),
            ids([(ratio.above, period), (ratio.below, period)]),
        );
    }

    /// Net debt over EBITDA, for four quarters and the balance sheet that closes them.
    fn debt_burden(&mut self, period: Period) {
        if !matches!(period, Period::Year(_) | Period::TrailingYear(..)) {
            return;
        }
        let Some(net_cash) = self.value("NetCash", period.closing()) else { return };
        let Some(ebitda) = self.value("EBITDA", period) else { return };
        let id = FactId::new("NetDebtToEBITDA", period);
        if self.is_meaningful(&id, ebitda) {
            self.book.derive(
                id,
                quotient(-net_cash, ebitda),
                Unit::Multiple,
                "-NetCash / EBITDA",
                ids([("NetCash", period.closing()), ("EBITDA", period)]),
            );
        }
    }

    /// Returns on the average of a year's first and last balance.
    fn returns(&mut self, year: i32) {
        let (this, before) = (Period::Year(year), Period::Year(year - 1));
        for (name, balance) in [("ROE", "Equity"), ("ROA", "Assets")] {
            let Some(income) = self.value("NetIncome", this) else { continue };
            let balances = self.value(balance, this).zip(self.value(balance, before));
            let Some(base) = balances.and_then(|(new, old)| average(new, old)) else { continue };
            let id = FactId::new(name, this);
            if self.is_meaningful(&id, base) {
                self.book.derive(
                    id,
                    quotient(income, base),
                    Unit::Ratio,
                    format!("NetIncome / average {balance}"),
                    ids([("NetIncome", this), (balance, this), (balance, before)]),
                );
            }
        }
        self.return_on_invested_capital(this, before);
    }

    fn return_on_invested_capital(&mut self, this: Period, before: Period) {
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
        self.book.derive(
            id,
            after_tax.and_then(|income| quotient(income, capital)),
            Unit::Ratio,
            "OperatingIncome x (1 - EffectiveTaxRate) / average(Equity + TotalDebt - Cash - ShortTermInvestments)",
            inputs,
        );
    }

    /// Equity and debt without what lies in the bank, and what it was computed from.
    fn invested_capital(&self, period: Period) -> Option<(Decimal, Vec<FactId>)> {
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
        let period = Period::Year(year);
        for &(name, balance, flow) in TURNOVERS {
            let Some(balance_value) = self.value(balance, period) else { continue };
            let Some(flow_value) = self.value(flow, period) else { continue };
            let id = FactId::new(name, period);
            if self.is_meaningful(&id, flow_value) {
                let days = quotient(balance_value, flow_value)
                    .and_then(|part| part.checked_mul(Decimal::from(365)));
                self.book.derive(
                    id,
                    days,
                    Unit::Days,
                    format!("{balance} / {flow} x 365"),
                    ids([(balance, period), (flow, period)]),
                );
            }
        }
    }

    /// Growth a year over three and five years.
    fn long_growth(&mut self, year: i32) {
        let this = Period::Year(year);
        for &metric in GROWING_LONG {
            for &years in LONG_YEARS {
                let base = Period::Year(year - i32::from(years));
                let Some(new) = self.value(metric, this) else { continue };
                let Some(old) = self.value(metric, base) else { continue };
                let id = FactId::new(format!("{metric}.cagr{years}"), this);
                if self.is_meaningful(&id, old.min(new)) {
                    self.book.derive(
                        id,
                        growth_rate(old, new, u32::from(years)),
                        Unit::Ratio,
                        format!("({metric} / {metric} {years} years before)^(1/{years}) - 1"),
                        ids([(metric, this), (metric, base)]),
                    );
                }
            }
        }
    }

    fn growth(&mut self, period: Period) {
        let before = period.year_before();
        for &metric in GROWING {
            let Some(new) = self.value(metric, period) else { continue };
            let Some(old) = self.value(metric, before) else { continue };
            let id = FactId::new(format!("{metric}.yoy"), period);
            if self.is_meaningful(&id, old) {
                self.book.derive(
                    id,
                    new.checked_sub(old).and_then(|change| quotient(change, old)),
                    Unit::Ratio,
                    format!("({metric} - {metric} a year before) / {metric} a year before"),
                    ids([(metric, period), (metric, before)]),
                );
            }
        }
        for &metric in CHANGING {
            let Some(new) = self.value(metric, period) else { continue };
            let Some(old) = self.value(metric, before) else { continue };
            self.book.derive(
                FactId::new(format!("{metric}.delta"), period),
                new.checked_sub(old),
                Unit::Ratio,
                format!("{metric} - {metric} a year before"),
                ids([(metric, period), (metric, before)]),
            );
        }
    }

    /// Whether a ratio over `base` means something; one of a year that does not is a gap.
    fn is_meaningful(&mut self, id: &FactId, base: Decimal) -> bool {
        let is_meaningful = base > Decimal::ZERO;
        if !is_meaningful && matches!(id.period, Period::Year(_)) {
            let gap = Gap { id: id.clone(), reason: GapReason::NotMeaningful };
            self.not_meaningful.insert(gap);
        }
        is_meaningful
    }
}
