use super::*;
use crate::consult::board;

#[track_caller]
fn check(text: &str, expected: Option<[u8; 4]>) {
    let metrics = board().metrics;
    let expected = expected.map(|scores| {
        metrics.iter().map(|metric| metric.id.clone()).zip(scores).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(from_text(text, &metrics), expected, "{text}");
}

#[test]
fn scores_directly_after_their_metric_names_are_read() {
    let expected = Some([8, 7, 6, 10]);
    check("Impact: 8\nFeasibility: 7\nRisk-Adjusted Return: 6\nStrategic Alignment: 10", expected);
    check("impact 8, feasibility 7, risk adjusted return 6, strategic alignment 10.", expected);
    check(
        r#"{"impact": 8, "feasibility":7,"risk_adjusted_return" : 6, "strategic_alignment": 10, "reasoning": "cut o"#,
        expected,
    );
    check(
        "- **Impact**: **8** because it is large\n- Feasibility = 7/10\n| Risk-adjusted return | 6 |\nStrategic_alignment (1-10): 10/10",
        expected,
    );
}

#[test]
fn the_scale_is_not_a_score() {
    check(
        "1. Impact (1-10): How large?\n2. Feasibility (1-10)\n3. Risk-Adjusted Return (1-10)\n4. Strategic Alignment (1-10)",
        None,
    );
    check("Impact (1-10)\nFeasibility: 7\nRisk-Adjusted Return: 6\nStrategic Alignment: 9", None);
    check(
        "Impact: (1-10) 8; Feasibility: 7; Risk-Adjusted Return: 6; Strategic Alignment: 9",
        Some([8, 7, 6, 9]),
    );
}

#[test]
fn a_score_must_be_one_integer_from_1_to_10() {
    for impact in [
        "",
        "0",
        "11",
        "-3",
        "7.5",
        "7,5",
        "7-8",
        "7–8",
        "7 to 8",
        "7 or 8",
        "7 %",
        "7/12",
        "7²",
        "٣",
        "about 7",
        "seven",
        "100000000000000000000",
        "8 (was 6)",
    ] {
        let text = format!(
            "Impact: {impact}\nFeasibility: 7\nRisk-Adjusted Return: 6\nStrategic Alignment: 9"
        );
        check(&text, None);
    }
}

#[test]
fn a_metric_named_twice_or_never_gives_no_scores() {
    let whole = "Feasibility: 7\nRisk-Adjusted Return: 6\nStrategic Alignment: 9";
    check(whole, None);
    check(&format!("Impact: 8\n{whole}\nSo the impact is large."), None);
    check(&format!("Impact: 8\nImpact: 8\n{whole}"), None);
    check(&format!("Impacted: 8\n{whole}"), None);
    check(&format!("Impact: 8\n{whole}\n{}", "x".repeat(20_000)), None);
}
