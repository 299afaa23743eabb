use super::*;
use crate::evidence::test_data::{
    ALL, ALPHABET, APPLE, JPMORGAN, LOGISTIC_PROPERTIES, MARVELL, NVIDIA, SNOWFLAKE, Sample,
    WALMART, read,
};
use crate::evidence::{
    AccountingIdentity, FactSource, FactUnit, FilingSource, GapReason, OriginalValue,
    SplitAdjustment, fixed,
};

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn id(text: &str) -> FactId {
    text.parse().unwrap()
}

#[track_caller]
fn check(sample: &Sample, fact: &str, expected: &str) {
    let value = sample.sheet.fact(&id(fact)).map(|fact| fact.value.to_string());
    assert_eq!(value.as_deref(), Some(expected), "{} {fact}", sample.name);
}

/// Checks a ratio in percent with one decimal.
#[track_caller]
fn check_percent(sample: &Sample, fact: &str, expected: &str) {
    let ratio = sample.sheet.fact(&id(fact)).map(|fact| fact.value).unwrap();
    assert_eq!(fixed(ratio * Decimal::ONE_HUNDRED, 1), expected, "{} {fact}", sample.name);
}

#[track_caller]
fn check_derived(sample: &Sample, fact: &str, formula: &str, inputs: &[&str]) {
    let expected = FactSource::Derived {
        formula: formula.to_owned(),
        inputs: inputs.iter().map(|input| id(input)).collect(),
    };
    assert_eq!(sample.sheet.fact(&id(fact)).unwrap().source, expected);
}

fn gap(fact: &str, reason: GapReason) -> DataGap {
    DataGap { id: id(fact), reason }
}

#[test]
fn the_fourth_quarter_is_the_year_less_nine_months() {
    check(&APPLE, "Revenue:FY2025Q4", "102466000000");
    check(&APPLE, "NetIncome:FY2025Q4", "27466000000");
    check_derived(
        &APPLE,
        "Revenue:FY2025Q4",
        "year - nine months",
        &["Revenue:FY2025", "Revenue:FY2025Q3YTD"],
    );
}

#[test]
fn cash_flow_quarters_are_derived_from_year_to_date_values() {
    check(&APPLE, "CFO:FY2025Q2", "23952000000");
    check_derived(
        &APPLE,
        "CFO:FY2025Q2",
        "year to date - year to date a quarter before",
        &["CFO:FY2025Q2YTD", "CFO:FY2025Q1YTD"],
    );
}

#[test]
fn the_trailing_year_ends_with_the_newest_quarter() {
    check(&APPLE, "Revenue:FY2026Q1TTM", "435617000000");
    check_derived(
        &APPLE,
        "Revenue:FY2026Q1TTM",
        "year + year to date - year to date a year before",
        &["Revenue:FY2025", "Revenue:FY2026Q1YTD", "Revenue:FY2025Q1YTD"],
    );
}

#[test]
fn total_debt_adds_current_and_noncurrent_debt() {
    // The tag for long-term debt alone is 90.7 billion.
    check(&APPLE, "TotalDebt:FY2025", "98657000000");
    check_derived(
        &APPLE,
        "TotalDebt:FY2025",
        "LongTermDebtCurrent + ShortTermDebt + LongTermDebtNoncurrent",
        &["LongTermDebtCurrent:FY2025", "ShortTermDebt:FY2025", "LongTermDebtNoncurrent:FY2025"],
    );
}

#[test]
fn a_reported_total_that_leaves_debt_out_is_not_used() {
    // Walmart's combined tag omits short-term borrowings.
    check(&WALMART, "DebtReported:FY2026", "38166000000");
    check(&WALMART, "TotalDebt:FY2026", "44762000000");
    let found = WALMART.sheet.checks.contains(&DataCheck::Identity {
        identity: AccountingIdentity::Debt,
        period: FiscalPeriod::Year(2026),
        left: Decimal::from(38_166_000_000_i64),
        right: Decimal::from(44_762_000_000_i64),
    });
    assert!(found);
}

#[test]
fn growth_per_share_does_not_break_at_a_split() {
    // Without the split adjustment these were -7.9, -30.4 and -48.8 percent.
    check_percent(&APPLE, "EPSDiluted.cagr5:FY2022", "21.6");
    check_percent(&ALPHABET, "EPSDiluted.cagr5:FY2024", "26.7");
    check_percent(&NVIDIA, "EPSDiluted.cagr5:FY2023", "7.1");
}

#[test]
fn a_split_adjusted_value_records_the_split() {
    let fact = APPLE.sheet.fact(&id("EPSDiluted:FY2017")).unwrap();
    let expected = FilingSource {
        concept: "us-gaap:EarningsPerShareDiluted".to_owned(),
        accession: "0000320193-19-000119".to_owned(),
        form: "10-K".to_owned(),
        filed: day("2019-10-31"),
        start: Some(day("2016-09-25")),
        end: day("2017-09-30"),
        restated_from: None,
        split: Some(SplitAdjustment { as_filed: Decimal::new(921, 2), factor: 4 }),
    };
    let source = FactSource::Filed(Box::new(expected));
    assert_eq!(fact, &Fact { value: Decimal::new(23_025, 4), unit: FactUnit::PerShare, source });
    let split = DataCheck::Split { factor: 4, first_filed: day("2020-10-30") };
    assert!(APPLE.sheet.checks.contains(&split));
}

#[test]
fn tags_that_disagree_are_reported_and_the_order_is_kept() {
    check(&WALMART, "Revenue:FY2026", "713163000000");
    let conflict = DataCheck::Candidates {
        id: id("Revenue:FY2026"),
        concept: "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax".to_owned(),
        value: Decimal::from(706_413_000_000_i64),
        used: Decimal::from(713_163_000_000_i64),
    };
    assert!(WALMART.sheet.checks.contains(&conflict));
}

#[test]
fn a_split_between_two_tags_is_not_reported_as_a_disagreement() {
    // The count on Apple's 2019 cover page is from before the split, the balance sheet's from after
    // it.
    let of_2019 = |check: &&DataCheck| match check {
        DataCheck::Candidates { id, .. } => id.to_string() == "SharesOutstanding:FY2019",
        _ => false,
    };
    assert_eq!(APPLE.sheet.checks.iter().find(of_2019), None);
}

#[test]
fn a_narrower_tag_is_never_used() {
    // The tag for domestic income alone is 143.6 billion.
    check(&ALPHABET, "PretaxIncome:FY2025", "158826000000");
    // Depreciation alone is not depreciation and amortization.
    assert_eq!(ALPHABET.sheet.value("DepreciationAmortization", FiscalPeriod::Year(2025)), None);
    assert_eq!(ALPHABET.sheet.value("EBITDA", FiscalPeriod::Year(2025)), None);
}

#[test]
fn the_tag_may_differ_from_year_to_year() {
    let tag = |sample: &Sample, fact: &str| {
        sample.sheet.fact(&id(fact)).and_then(|fact| Some(fact.filed()?.concept.clone())).unwrap()
    };
    assert_eq!(tag(&APPLE, "Revenue:FY2018"), "us-gaap:Revenues");
    let contracts = "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax";
    assert_eq!(tag(&APPLE, "Revenue:FY2025"), contracts);
    assert_eq!(tag(&ALPHABET, "Revenue:FY2022"), contracts);
    assert_eq!(tag(&ALPHABET, "Revenue:FY2025"), "us-gaap:Revenues");
}

#[test]
fn the_first_value_of_a_restated_year_is_kept() {
    let fact = ALPHABET.sheet.fact(&id("OperatingIncome:FY2018")).unwrap();
    let first =
        OriginalValue { value: Decimal::from(26_321_000_000_i64), filed: day("2019-02-05") };
    assert_eq!(fact.value, Decimal::from(27_524_000_000_i64));
    assert_eq!(fact.filed().unwrap().restated_from, Some(first));
    let check = DataCheck::Restated {
        id: id("OperatingIncome:FY2018"),
        from: Decimal::from(26_321_000_000_i64),
        to: Decimal::from(27_524_000_000_i64),
    };
    assert!(ALPHABET.sheet.checks.contains(&check));
}

#[test]
fn a_restatement_by_a_split_alone_is_not_reported_as_one() {
    for sample in [&APPLE, &NVIDIA, &ALPHABET] {
        let of_shares = |check: &&DataCheck| match check {
            DataCheck::Restated { id, .. } => {
                id.metric.starts_with("EPS") || id.metric == "SharesDiluted"
            }
            _ => false,
        };
        assert_eq!(sample.sheet.checks.iter().find(of_shares), None, "{}", sample.name);
    }
}

#[test]
fn a_year_without_a_tag_is_a_gap() {
    let gaps: Vec<&DataGap> =
        APPLE.sheet.gaps.iter().filter(|gap| gap.id.metric == "InterestExpense").collect();
    let expected =
        ["InterestExpense:FY2024", "InterestExpense:FY2025"].map(|id| gap(id, GapReason::NotFiled));
    assert_eq!(gaps, expected.iter().collect::<Vec<_>>());
}

#[test]
fn growth_from_a_loss_is_not_meaningful() {
    check(&SNOWFLAKE, "NetIncome:FY2025", "-1285640000");
    let expected = gap("NetIncome.yoy:FY2025", GapReason::NotMeaningful);
    assert!(SNOWFLAKE.sheet.gaps.contains(&expected));
    assert_eq!(SNOWFLAKE.sheet.value("NetIncome.yoy", FiscalPeriod::Year(2025)), None);
    assert_eq!(SNOWFLAKE.sheet.value("EffectiveTaxRate", FiscalPeriod::Year(2025)), None);
}

#[test]
fn a_bank_has_bank_metrics_and_no_inapplicable_ones() {
    check(&JPMORGAN, "NetInterestIncome:FY2025", "95443000000");
    check(&JPMORGAN, "Deposits:FY2025", "2559320000000");
    check_percent(&JPMORGAN, "CostIncomeRatio:FY2025", "52.4");
    for metric in
        ["TotalDebt", "NetCash", "FreeCashFlow", "EBITDA", "WorkingCapital", "DebtToEquity"]
    {
        assert_eq!(JPMORGAN.sheet.value(metric, FiscalPeriod::Year(2025)), None, "{metric}");
    }
}

#[test]
fn a_foreign_filer_is_read_by_its_own_taxonomy() {
    check(&LOGISTIC_PROPERTIES, "Revenue:FY2024", "43862372");
    check(&LOGISTIC_PROPERTIES, "NetIncome:FY2024", "-29285428");
    assert_eq!(LOGISTIC_PROPERTIES.sheet.cik.to_string(), "0001997711");
    assert_eq!(LOGISTIC_PROPERTIES.sheet.currency, "USD");
    let form = LOGISTIC_PROPERTIES.sheet.fact(&id("Revenue:FY2024")).unwrap().filed().unwrap();
    assert_eq!(form.form, "20-F");
}

#[test]
fn minority_interests_are_reported_as_a_net_income_difference() {
    let check = DataCheck::Identity {
        identity: AccountingIdentity::NetIncome,
        period: FiscalPeriod::Year(2024),
        left: Decimal::from(-29_285_428),
        right: Decimal::from(-19_426_051),
    };
    assert!(LOGISTIC_PROPERTIES.sheet.checks.contains(&check));
}

#[test]
fn a_count_on_a_cover_page_belongs_to_the_period_of_its_filing() {
    // The service labels two of these filings with the previous year.
    check(&NVIDIA, "SharesOutstanding:FY2021Q1", "24600000000");
    check(&NVIDIA, "SharesOutstanding:FY2020Q1", "24360000000");
    check(&SNOWFLAKE, "SharesOutstanding:FY2023Q1", "318100000");
}

#[test]
fn fiscal_years_have_the_labels_of_the_filer() {
    assert_eq!(APPLE.sheet.fiscal_year_ends[&2025], day("2025-09-27"));
    assert_eq!(NVIDIA.sheet.fiscal_year_ends[&2026], day("2026-01-25"));
    assert_eq!(WALMART.sheet.fiscal_year_ends[&2026], day("2026-01-31"));
    assert_eq!(SNOWFLAKE.sheet.fiscal_year_ends[&2025], day("2025-01-31"));
}

#[test]
fn every_input_of_a_derived_fact_is_a_fact() {
    for sample in ALL {
        let sheet = &*sample.sheet;
        for (id, fact) in &sheet.facts {
            let FactSource::Derived { inputs, .. } = &fact.source else { continue };
            assert!(!inputs.is_empty(), "{id}");
            for input in inputs {
                assert!(sheet.fact(input).is_some(), "{} {id} uses {input}", sample.name);
            }
        }
    }
}

#[test]
fn a_sheet_as_of_a_day_excludes_later_filings() {
    let as_of = day("2024-06-30");
    let sheet = FactSheet::build(&APPLE.facts, as_of).unwrap();
    let filings = sheet.facts.values().filter_map(|fact| fact.filed());
    assert_eq!(filings.map(|filed| filed.filed).max(), Some(day("2024-05-03")));
    assert_eq!(sheet.newest_year(), Some(2023));
    assert_eq!(sheet.value("Revenue", FiscalPeriod::Year(2024)), None);
    assert!(sheet.value("Revenue", FiscalPeriod::TrailingYear(2024, 2)).is_some());
}

#[test]
fn a_sheet_as_of_a_day_equals_the_sheet_built_on_that_day() {
    let later = day("2023-08-01");
    let mut document: serde_json::Value =
        serde_json::from_slice(&read("companyfacts/CIK0001835632.json")).unwrap();
    for concept in document["facts"].as_object_mut().unwrap().values_mut() {
        for tag in concept.as_object_mut().unwrap().values_mut() {
            for rows in tag["units"].as_object_mut().unwrap().values_mut() {
                let known = |row: &serde_json::Value| day(row["filed"].as_str().unwrap()) <= later;
                rows.as_array_mut().unwrap().retain(known);
            }
        }
    }
    let then = CompanyFacts::parse(&serde_json::to_vec(&document).unwrap()).unwrap();
    let replayed = FactSheet::build(&MARVELL.facts, later).unwrap();
    assert_eq!(replayed, FactSheet::build(&then, later).unwrap());
    assert_ne!(replayed.facts, MARVELL.sheet.facts);
}

#[test]
fn a_sheet_needs_an_annual_report() {
    let error = FactSheet::build(&APPLE.facts, day("2010-01-01")).unwrap_err();
    assert_eq!(error.to_string(), "no annual report was filed on or before 2010-01-01");
}

#[test]
fn data_checks_are_displayed_as_sentences() {
    let of_walmart: Vec<String> = WALMART.sheet.checks.iter().map(DataCheck::to_string).collect();
    assert!(
        of_walmart.contains(
            &"Revenue:FY2026: us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax says \
          706413000000; used is 713163000000"
                .to_owned()
        )
    );
    assert!(
        of_walmart.contains(
            &"DebtReported = TotalDebt does not hold in FY2026: 38166000000 against 44762000000"
                .to_owned()
        )
    );
}
