use super::{PrintedNumber, numbers};
use crate::claims::digits::PrintedSign;
use crate::claims::units::PrintedUnit;

/// Checks each number as its text, sign, magnitude and unit.
#[track_caller]
fn check(sentence: &str, expected: &[&str]) {
    let shown = |number: &PrintedNumber| {
        let sign = match number.sign {
            PrintedSign::Plain => "",
            PrintedSign::Plus => "+",
            PrintedSign::Minus => "-",
            PrintedSign::Bracket => "?",
        };
        let unit = match number.unit {
            PrintedUnit::Money => " money",
            PrintedUnit::PerShare => " a share",
            PrintedUnit::Percent => " %",
            PrintedUnit::Points => " points",
            PrintedUnit::BasisPoints => " bps",
            PrintedUnit::Multiple => " times",
            PrintedUnit::Days => " days",
            PrintedUnit::Count => "",
            PrintedUnit::Unreadable => " unreadable",
        };
        format!("{} = {sign}{}{unit}", number.text, number.value.normalize())
    };
    let found: Vec<String> = numbers(sentence).iter().map(shown).collect();
    assert_eq!(found, expected, "{sentence}");
}

#[test]
fn amounts_are_read_in_every_scale() {
    check(
        "$416.2 billion, $416,161 million, $0.416 trillion, $43.9m, $3M, 45M units and 416bn.",
        &[
            "$416.2 billion = 416200000000 money",
            "$416,161 million = 416161000000 money",
            "$0.416 trillion = 416000000000 money",
            "$43.9m = 43900000 money",
            "$3M = 3000000 money",
            "45M = 45000000",
            "416bn = 416000000000",
        ],
    );
    check("2.5K units and 2.5m units", &["2.5K = 2500", "2.5m = 2500000"]);
    check(
        "US$5 billion, EUR 4.5 million, EUR3m, 7 billion dollars and 8 million USD",
        &[
            "$5 billion = 5000000000 money",
            "4.5 million = 4500000 money",
            "3m = 3000000 money",
            "7 billion dollars = 7000000000 money",
            "8 million USD = 8000000 money",
        ],
    );
}

#[test]
fn an_amount_in_brackets_may_be_negative() {
    check(
        "It lost (1.2 billion), then ($500), and its margin (12%) fell in (2024).",
        &["1.2 billion = ?1200000000", "$500 = ?500 money", "12% = 12 %"],
    );
}

#[test]
fn amounts_per_share_are_distinguished_from_money() {
    check(
        "EPS of $7.46, $1.02 per share, a fee of $9.99 and $5 billion",
        &[
            "$7.46 = 7.46 a share",
            "$1.02 = 1.02 a share",
            "$9.99 = 9.99 money",
            "$5 billion = 5000000000 money",
        ],
    );
}

#[test]
fn negatives_are_read_as_statements_print_them() {
    check("-$17.7 billion", &["$17.7 billion = -17700000000 money"]);
    check("$(4,625) million", &["$(4,625) million = -4625000000 money"]);
    check("a change of (3.2)% or −0.2x", &["3.2)% = -3.2 %", "0.2x = -0.2 times"]);
    check("stood at ($700 million)", &["$700 million = ?700000000 money"]);
    check("(+6.4%)", &["6.4% = +6.4 %"]);
    check("- $5 million\n- 7% of it", &["$5 million = 5000000 money", "7% = 7 %"]);
}

#[test]
fn a_range_shares_its_unit() {
    check("47–48%", &["47 = 47 %", "48% = 48 %"]);
    check("$4.5-5.0 billion", &["$4.5 = 4500000000 money", "5.0 billion = 5000000000 money"]);
    check("between $1 and $2 million", &["$1 = 1000000 money", "$2 million = 2000000 money"]);
    check("10 to 12 percent", &["10 = 10 %", "12 percent = 12 %"]);
    check(
        "5 to 7 billion dollars",
        &["5 = 5000000000 money", "7 billion dollars = 7000000000 money"],
    );
    check("from -5% to -3%", &["5% = -5 %", "3% = -3 %"]);
}

#[test]
fn numbers_written_as_words_are_parsed() {
    check(
        "five percent, twenty-five basis points, two hundred million dollars, half a billion",
        &[
            "five percent = 5 %",
            "twenty-five basis points = 25 bps",
            "two hundred million dollars = 200000000 money",
            "half a billion = 500000000",
        ],
    );
    check(
        "one point two billion dollars, fifty-two point oh five percent, two point five times",
        &[
            "one point two billion dollars = 1200000000 money",
            "fifty-two point oh five percent = 52.05 %",
            "two point five times = 2.5 times",
        ],
    );
    check("The point two analysts made, at one point, million by million", &[]);
    check(
        "It doubled, then halved; a third of sales",
        &["doubled = 2 times", "halved = 0.5 times", "a third of = 33.3 %"],
    );
    check(
        "up by a third, a fifth more, two thirds of it, half a percentage point",
        &[
            "a third = 33.3 %",
            "a fifth = 20 %",
            "two thirds of = 66.6 %",
            "half a percentage point = 0.5 points",
        ],
    );
    check("larger by a factor of 4.5", &["4.5 = 4.5 times"]);
    check("Delay it by one quarter", &[]);
    check("They doubled down in the first half of 2023, twice a year.", &[]);
}

#[test]
fn numbers_in_names_lists_and_formulas_are_not_claims() {
    check("the 3M plant, ticket #5,000 and part x_5,000", &[]);
    check("FY2025, Q3, the iPhone 16, M4, 5G, 10-K, 3M, a 12-month plan and 4 levers", &[]);
    check("On Flight 610, ISO 27001 and the Boeing 777", &[]);
    check("1. Launch in 2 regions", &[]);
    check("(a / b) x 100 and / 365", &[]);
    check("in 2025, from 2023 to 2025", &[]);
    check("within 90 days", &[]);
    check("DSO of 35 days", &["35 days = 35 days"]);
}

#[test]
fn counts_of_100_or_more_are_claims() {
    check("166,000 employees in 500 stores", &["166,000 = 166000", "500 = 500"]);
    check("100+ million users", &["100+ million = 100000000"]);
    check("500-600 employees", &["500 = 500", "600 = 600"]);
}

/// Regression: a currency with an unknown scale was skipped together with its number.
#[test]
fn a_number_after_a_currency_is_always_a_claim() {
    check("$5.0xyz", &["$5.0 = 5 money"]);
}

#[test]
fn unreadable_digits_are_reported_as_claims() {
    check("revenue of ４１６ billion", &["４１６ = 0 unreadable"]);
    check("half: ½ of it", &["½ = 0 unreadable"]);
    let long = "9".repeat(60);
    check(&format!("${long} billion"), &[&format!("{} = 0 unreadable", &long[..40])]);
}
