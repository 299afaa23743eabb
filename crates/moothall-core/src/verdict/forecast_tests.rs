use super::*;
use crate::test_data;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn metrics() -> Vec<String> {
    ["Revenue", "OperatingIncome", "NetIncome", "CFO", "Capex", "Cash", "Equity", "EPSDiluted"]
        .map(str::to_owned)
        .into()
}

/// The sheet of a company as it was known on a day.
fn sheet(sample: &test_data::Sample, as_of: &str) -> FactSheet {
    FactSheet::build(&sample.facts, day(as_of)).unwrap()
}

/// Questions of all companies on a day, with their answers in all later filings.
fn answered(
    as_of: &str,
) -> Vec<(&'static test_data::Sample, ForecastQuestion, Option<ForecastOutcome>)> {
    let mut found = Vec::new();
    for sample in test_data::ALL.iter().copied() {
        let Ok(then) = FactSheet::build(&sample.facts, day(as_of)) else { continue };
        for question in forecast_questions(&then, &metrics()) {
            let outcome = resolve_question(&question, &sample.sheet, day(as_of));
            found.push((sample, question, outcome));
        }
    }
    found
}

/// The answer in the first filing with it: with what was known on the day before, there is none.
/// Later filings repeat a value, so this goes back one filing at a time.
fn first_answer(
    sample: &'static test_data::Sample,
    question: &ForecastQuestion,
    last: ForecastOutcome,
    asked: CalendarDay,
    sheets: &mut BTreeMap<(&'static str, CalendarDay), FactSheet>,
) -> ForecastOutcome {
    let mut first = last;
    loop {
        let eve = first.filed.plus_days(-1);
        let sheet = sheets
            .entry((sample.name, eve))
            .or_insert_with(|| FactSheet::build(&sample.facts, eve).unwrap());
        match resolve_question(question, sheet, asked) {
            Some(earlier) => first = earlier,
            None => return first,
        }
    }
}

fn forecast(question: &str, chance: u32, past_frequency: u32, happened: bool) -> ResolvedForecast {
    ResolvedForecast {
        question: question.to_owned(),
        member: "P1".to_owned(),
        model: "a/model".to_owned(),
        chance,
        past_frequency: Some(past_frequency),
        happened,
        is_possibly_known: false,
    }
}

#[test]
fn scores_equal_a_calculation_by_hand() {
    let forecasts = [
        forecast("q1", 900, 500, true),
        forecast("q2", 200, 400, false),
        forecast("q3", 650, 750, false),
        forecast("q4", 1_000, 800, true),
    ];
    let found = ForecastScore::of(&forecasts).unwrap();
    // (0.01 + 0.04 + 0.4225 + 0) / 4; past: 0.25 + 0.16 + 0.5625 + 0.04 = 1.0125; even: 1.
    assert!((found.brier - 0.118_125).abs() < 1e-6, "{found:?}");
    assert!((found.skill_over_past.unwrap() - (1.0 - 0.4725 / 1.0125)).abs() < 1e-6);
    assert!((found.skill_over_even.unwrap() - 0.5275).abs() < 1e-6);
    let entries = found.calibration.bins.map(|bin| bin.entries);
    assert_eq!(entries, [0, 1, 0, 1, 2]);
    let last = found.calibration.bins[4];
    assert!((last.stated - 0.95).abs() < 1e-6 && (last.happened - 1.0).abs() < 1e-6);
    assert!(found.is_too_small());
    assert_eq!(ForecastScore::of(&[]), None);
}

#[test]
fn questions_are_written_from_filings_until_a_day() {
    let then = sheet(test_data::ALL[0], "2023-06-30");
    let questions = forecast_questions(&then, &metrics());
    assert!(questions.len() <= MAX_QUESTIONS && questions.len() >= 6, "{questions:#?}");
    let year = then.newest_year().unwrap();
    for question in &questions {
        assert_eq!(question.fact.period, FiscalPeriod::Year(year + 1));
        assert!(question.first_day > then.fiscal_year_ends[&year].plus_days(300));
        assert!(question.past_frequency <= 1_000);
        // Nothing that was filed by then answers a question.
        assert_eq!(resolve_question(question, &then, then.as_of), None);
        assert_ne!(question.fact.metric, "EPSDiluted");
    }
    let again = forecast_questions(&then, &["Revenue".to_owned(), "Revenue".to_owned()]);
    assert_eq!(again.len(), 2);
    assert!(again[0].text().starts_with("Revenue of FY"), "{}", again[0].text());
}

#[test]
fn sixty_forecasts_on_recorded_filings_are_resolved_and_scored() {
    let mut resolved = Vec::new();
    let (mut stated, mut past, mut even) = (0.0, 0.0, 0.0);
    let mut sheets = BTreeMap::new();
    for as_of in ["2021-06-30", "2022-06-30", "2023-06-30"] {
        for (sample, question, outcome) in answered(as_of) {
            let (name, Some(outcome)) = (sample.name, outcome) else { continue };
            let first = first_answer(sample, &question, outcome.clone(), day(as_of), &mut sheets);
            for outcome in [&first, &outcome] {
                assert!(outcome.filed > day(as_of), "{name} {outcome:?}");
                assert!(outcome.filed >= question.first_day.plus_days(-7), "{name} {outcome:?}");
            }
            let value: Decimal = outcome.value.parse().unwrap();
            assert_eq!(outcome.happened, value > question.threshold.parse().unwrap());
            let chance = 300 + 137 * u32::try_from(resolved.len() % 5).unwrap();
            let happened = f64::from(u8::from(outcome.happened));
            stated += (f64::from(chance) / 1_000.0 - happened).powi(2);
            past += (f64::from(question.past_frequency) / 1_000.0 - happened).powi(2);
            even += 0.25;
            let id = format!("{name} {as_of} {}", question.id);
            resolved.push(forecast(&id, chance, question.past_frequency, outcome.happened));
        }
    }
    assert!(resolved.len() >= 60, "{}", resolved.len());
    let found = ForecastScore::of(&resolved).unwrap();
    let count = resolved.len() as f64;
    assert!((found.brier - stated / count).abs() < 1e-6);
    assert!((found.skill_over_past.unwrap() - (1.0 - stated / past)).abs() < 1e-6);
    assert!((found.skill_over_even.unwrap() - (1.0 - stated / even)).abs() < 1e-6);
    assert!(!found.is_too_small());
    // Who states the past frequency has no skill beyond it.
    for one in &mut resolved {
        one.chance = one.past_frequency.unwrap();
    }
    let base = ForecastScore::of(&resolved).unwrap();
    assert!(base.skill_over_past.unwrap().abs() < 0.001, "{base:?}");
}

#[test]
fn no_question_is_answered_before_the_end_of_its_year() {
    for as_of in ["2021-06-30", "2022-06-30", "2023-06-30"] {
        for sample in test_data::ALL {
            let Ok(then) = FactSheet::build(&sample.facts, day(as_of)) else { continue };
            let questions = forecast_questions(&then, &metrics());
            let Some(end) = questions.first().map(|question| question.period_end) else { continue };
            let before = FactSheet::build(&sample.facts, end).unwrap();
            for question in &questions {
                assert_eq!(question.period_end, end, "{}", sample.name);
                let found = resolve_question(question, &before, day(as_of));
                assert_eq!(found, None, "{} {as_of} {}", sample.name, question.id);
            }
        }
    }
}

#[test]
fn the_first_filed_value_answers_a_question() {
    let then = sheet(test_data::ALL[0], "2023-06-30");
    let questions = forecast_questions(&then, &metrics());
    for question in &questions[..5] {
        let mut later = test_data::ALL[0].sheet.clone();
        let before = resolve_question(question, &later, then.as_of).unwrap();
        // A later filing restates the value to the other side of the threshold.
        let fact = later.facts.get_mut(&question.fact).unwrap();
        let threshold: Decimal = question.threshold.parse().unwrap();
        let first = fact.value;
        fact.value = threshold + (threshold - first);
        let crate::evidence::FactSource::Filed(filing) = &mut fact.source else { panic!() };
        filing.restated_from =
            Some(crate::evidence::OriginalValue { value: first, filed: before.filed });
        filing.filed = before.filed.plus_days(300);
        let after = resolve_question(question, &later, then.as_of).unwrap();
        assert_eq!(
            (after.happened, &after.value, after.filed),
            (before.happened, &before.value, before.filed)
        );
    }
}

#[test]
fn what_a_model_may_have_known_is_kept_out_of_the_headline() {
    let until = Some(day("2024-06-30"));
    let run_on = day("2026-11-18");
    assert!(is_possibly_known(day("2023-12-31"), until, run_on));
    assert!(!is_possibly_known(day("2024-12-31"), until, run_on));
    // Nobody says what the model has learned: at most what was known on the day of the run.
    assert!(is_possibly_known(day("2026-09-30"), None, run_on));
    assert!(!is_possibly_known(day("2026-12-31"), None, run_on));
    let later = Some(day("2027-06-30"));
    assert!(!is_possibly_known(day("2026-12-31"), later, run_on));
    let mut forecasts: Vec<ResolvedForecast> =
        (0..40).map(|n| forecast(&format!("q{n}"), 1_000, 500, true)).collect();
    for one in &mut forecasts[..30] {
        one.is_possibly_known = true;
    }
    let found = ForecastReport::of(&forecasts);
    assert_eq!(found.headline.as_ref().unwrap().forecasts, 10);
    assert!(found.headline.unwrap().is_too_small());
    assert_eq!(found.possibly_known.unwrap().forecasts, 30);
    assert_eq!(found.by_member["P1"].forecasts, 10);
    assert_eq!(found.by_model["a/model"].forecasts, 10);
}

#[test]
fn announcements_are_scored_apart_and_have_no_past_frequency() {
    let figures = [forecast("q1", 900, 500, true)];
    let announced = [
        ResolvedForecast { past_frequency: None, ..forecast("q2", 100, 0, false) },
        ResolvedForecast { past_frequency: None, ..forecast("q3", 200, 0, true) },
        ResolvedForecast { is_possibly_known: true, ..forecast("q4", 0, 0, true) },
    ];
    let found = ForecastReport::of(&figures).with_moves(&announced, BTreeMap::new());
    assert_eq!(found.headline.unwrap().forecasts, 1);
    let score = found.announcements.unwrap();
    assert_eq!((score.forecasts, score.skill_over_past), (2, None));
    assert!((score.brier - (0.01 + 0.64) / 2.0).abs() < 1e-6, "{score:?}");
    assert_eq!(found.announcements_possibly_known.unwrap().forecasts, 1);
}

#[test]
fn a_question_for_people_has_the_label_of_the_metric_and_a_readable_amount() {
    let question = ForecastQuestion {
        id: "q1".to_owned(),
        fact: FactId::new("SellingGeneralAdmin", FiscalPeriod::Year(2026)),
        comparison: ForecastComparison::UsualGrowth,
        threshold: "335388639".to_owned(),
        last: "311984000".to_owned(),
        period_end: CalendarDay::parse("2026-12-31").unwrap(),
        first_day: CalendarDay::parse("2027-01-01").unwrap(),
        past_frequency: 500,
    };
    assert_eq!(
        question.summary(),
        "Selling, general and administrative of FY2026 above 335,389 thousand \
         (the last value with its usual growth)"
    );
}
