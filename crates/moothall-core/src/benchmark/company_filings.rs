//! Filings of the companies of a benchmark, in the form in which the SEC publishes them, so that
//! they are gathered and checked like those of any other company.

use serde_json::{Map, Value, json};

use super::hash_noise::HashNoise;
use super::synthetic_set::{BenchmarkCompany, BenchmarkSet};

/// Fiscal years with an annual report.
const YEARS: std::ops::RangeInclusive<i32> = 2022..=2025;

/// The SEC does not use these numbers.
const FIRST_CIK: u32 = 9_991_000;

/// Dollars in a unit of a company's revenue.
const UNIT: f64 = 10_000.0;

impl BenchmarkCompany {
    /// The number of the filer.
    pub fn cik(&self) -> u32 {
        FIRST_CIK + self.number
    }
}

/// The SEC's list of companies, with those of a set.
pub fn ticker_table_json(set: &BenchmarkSet) -> String {
    let row = |company: &BenchmarkCompany| {
        let row =
            json!({ "cik_str": company.cik(), "ticker": company.ticker(), "title": company.name });
        (company.number.to_string(), row)
    };
    Value::Object(set.companies.iter().map(row).collect::<Map<_, _>>()).to_string()
}

/// A metric: its tag, whether it is a balance at the end of the year, and its share of revenue.
struct FiledMetric {
    tag: &'static str,
    is_balance: bool,
    share: f64,
}

/// The facts document of a company: four annual reports.
pub fn company_facts_json(company: &BenchmarkCompany) -> String {
    let noise = HashNoise::new(u64::from(company.number));
    let between = |what: &str, low: f64, high: f64| low + (high - low) * noise.uniform(&[what]);
    let growth = between("growth", 0.01, 0.08);
    let cost = between("cost", 0.50, 0.60);
    let research = between("research", 0.06, 0.09);
    let selling = between("selling", 0.15, 0.20);
    let operating = 1.0 - cost - research - selling;
    let debt = between("debt", 0.62, 0.70);
    let interest = debt * 0.095;
    let tax = (operating - interest) * 0.21;
    let net = operating - interest - tax;
    let capex = between("capex", 0.03, 0.05);
    let flow = |tag, share| FiledMetric { tag, is_balance: false, share };
    let balance = |tag, share| FiledMetric { tag, is_balance: true, share };
    let metrics = [
        flow("Revenues", 1.0),
        flow("CostOfRevenue", cost),
        flow("GrossProfit", 1.0 - cost),
        flow("ResearchAndDevelopmentExpense", research),
        flow("SellingGeneralAndAdministrativeExpense", selling),
        flow("OperatingIncomeLoss", operating),
        flow("InterestExpense", interest),
        flow("IncomeTaxExpenseBenefit", tax),
        flow("NetIncomeLoss", net),
        flow("NetCashProvidedByUsedInOperatingActivities", net + 0.04),
        flow("PaymentsToAcquirePropertyPlantAndEquipment", capex),
        balance("CashAndCashEquivalentsAtCarryingValue", between("cash", 0.12, 0.25)),
        balance("AccountsReceivableNetCurrent", 0.16),
        balance("InventoryNet", between("stocks", 0.30, 0.36)),
        balance("LongTermDebtNoncurrent", debt),
        balance("Assets", 1.45),
        balance("Liabilities", 0.95),
        balance("StockholdersEquity", 0.50),
    ];
    let mut tags = Map::new();
    for FiledMetric { tag, is_balance, share } in metrics {
        let rows: Vec<Value> = YEARS
            .map(|year| {
                let back = (year..*YEARS.end()).fold(1.0, |value, _| value / (1.0 + growth));
                // Thousands, as most companies report.
                let value =
                    (company.revenue as f64 * UNIT * back * share / 1_000.0).round() * 1_000.0;
                let mut row = json!({
                    "end": format!("{year}-12-31"),
                    "val": value as i64,
                    "accn": format!("{:010}-{:02}-000001", company.cik(), (year + 1) % 100),
                    "fy": year,
                    "fp": "FY",
                    "form": "10-K",
                    "filed": format!("{}-02-20", year + 1),
                });
                if let (Some(row), false) = (row.as_object_mut(), is_balance) {
                    row.insert("start".to_owned(), json!(format!("{year}-01-01")));
                }
                row
            })
            .collect();
        tags.insert(
            tag.to_owned(),
            json!({ "label": tag, "description": null, "units": { "USD": rows } }),
        );
    }
    json!({
        "cik": company.cik(),
        "entityName": company.name,
        "facts": { "us-gaap": Value::Object(tags) },
    })
    .to_string()
}

#[cfg(test)]
#[path = "company_filings_tests.rs"]
mod tests;
