use super::*;
use crate::evidence::{CalendarDay, CompanyFacts, FactSheet, FiscalPeriod, Ticker, TickerTable};

#[test]
fn filings_of_every_company_are_read_like_real_ones() {
    let set = BenchmarkSet::synthetic_1();
    let tickers = TickerTable::parse(ticker_table_json(&set).as_bytes()).unwrap();
    for company in &set.companies {
        let listing = tickers.find(&Ticker::parse(&company.ticker()).unwrap()).unwrap();
        let facts = CompanyFacts::parse(company_facts_json(company).as_bytes()).unwrap();
        let sheet = FactSheet::build(&facts, CalendarDay::MAX).unwrap();
        assert_eq!(sheet.cik, listing.cik);
        assert_eq!(sheet.newest_year(), Some(2025));
        let value = |metric| sheet.value(metric, FiscalPeriod::Year(2025));
        let revenue = value("Revenue").unwrap();
        // What known-bad moves need.
        for metric in ["Cash", "FreeCashFlow", "TotalDebt", "InterestExpense", "OperatingIncome"] {
            assert!(
                value(metric).is_some_and(|value| value > 0.into()),
                "{} {metric}",
                company.name
            );
        }
        assert!(value("ResearchDevelopment").unwrap() * rust_decimal::Decimal::from(20) > revenue);
        assert_eq!(facts.unreadable_rows(), 0);
    }
}
