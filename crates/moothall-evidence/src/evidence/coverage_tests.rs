use std::fmt::Write as _;

use crate::evidence::metric_order::ORDER;
use crate::evidence::test_data::{
    ALL, ALPHABET, APPLE, JPMORGAN, LOGISTIC_PROPERTIES, MARVELL, MICROSOFT, NVIDIA, SNOWFLAKE,
    Sample, WALMART,
};

/// Lists which tag provided which metric, for how many years and quarters.
fn coverage(sample: &Sample) -> String {
    let sheet = &*sample.sheet;
    let mut text = format!("{} ({}), {}\n", sheet.entity, sheet.cik, sheet.currency);
    for (year, end) in &sheet.fiscal_year_ends {
        writeln!(text, "FY{year} ended {end}").unwrap();
    }
    let filed = sheet.facts.values().filter(|fact| fact.filed().is_some()).count();
    writeln!(text, "{filed} filed, {} derived", sheet.facts.len() - filed).unwrap();
    // Growth and change are derived from the others.
    let lines = sheet.coverage().into_iter().filter(|line| !line.metric.contains('.'));
    lines.for_each(|line| writeln!(text, "{line}").unwrap());
    for check in &sheet.checks {
        writeln!(text, "check: {check}").unwrap();
    }
    text
}

macro_rules! snapshots {
    ($($test:ident = $sample:ident;)+) => {
        $(
            #[test]
            fn $test() {
                insta::assert_snapshot!(coverage(&$sample));
            }
        )+
    };
}

snapshots! {
    apple_is_covered = APPLE;
    nvidia_is_covered = NVIDIA;
    alphabet_is_covered = ALPHABET;
    marvell_is_covered = MARVELL;
    snowflake_is_covered = SNOWFLAKE;
    microsoft_is_covered = MICROSOFT;
    walmart_is_covered = WALMART;
    jpmorgan_is_covered = JPMORGAN;
    logistic_properties_is_covered = LOGISTIC_PROPERTIES;
}

#[test]
fn core_lines_of_five_years_are_complete() {
    for sample in [&APPLE, &NVIDIA, &ALPHABET, &MARVELL, &SNOWFLAKE] {
        let coverage = sample.sheet.coverage();
        for metric in [
            "Revenue",
            "GrossProfit",
            "OperatingIncome",
            "NetIncome",
            "EPSDiluted",
            "CFO",
            "Capex",
            "FreeCashFlow",
            "Cash",
            "Assets",
            "Equity",
        ] {
            let found = coverage.iter().find(|covered| covered.metric == metric).unwrap();
            assert_eq!(found.years, 5, "{} {metric}", sample.name);
        }
        let revenue = coverage.iter().find(|covered| covered.metric == "Revenue").unwrap();
        assert_eq!(revenue.quarters, 9, "{}", sample.name);
    }
}

#[test]
fn every_metric_has_a_position_in_the_display_order() {
    for sample in ALL {
        for id in sample.sheet.facts.keys() {
            assert!(ORDER.contains(&id.metric.as_str()), "{id}");
        }
    }
    for metric in crate::evidence::metrics::METRICS {
        assert!(ORDER.contains(&metric.name), "{}", metric.name);
    }
}
