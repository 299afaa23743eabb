use proptest::prelude::*;

use super::*;
use crate::sandbox::SandboxFailure;

fn calculation(code: &str) -> CalculationResult {
    let request = CalculationRequest {
        purpose: "What it shows.\nIn one line.".to_owned(),
        code: code.to_owned(),
    };
    CalculationResult::new("X0:m7-D2-1".to_owned(), "D2", "D2", 3, request)
}

fn execution(exit: ExecutionExit, stdout: &str, class: IsolationClass) -> EffectResult {
    let mut ran = crate::program::support::execution(exit, stdout, "");
    ran.attestation.class = class;
    EffectResult::Executed(Box::new(ran))
}

fn finished(code: &str, stdout: &str) -> CalculationResult {
    let mut one = calculation(code);
    let result = execution(ExecutionExit::Exited { code: 0 }, stdout, IsolationClass::UserKernel);
    assert_eq!(one.finish(&result), Some(()));
    one
}

const VALUES: &str = r#"{"error":null,"facts":["Revenue:FY2025"],"literals":["100"],"values":[{"name":"margin","unit":"%","value":"14.2"}]}"#;

#[test]
fn a_result_has_the_values_facts_and_constants_of_its_program() {
    let one = finished("result('margin', facts['Revenue:FY2025'] * 0.08, '%')", VALUES);
    assert_eq!(one.facts, ["Revenue:FY2025"]);
    assert_eq!(one.constants, ["0.08"]);
    assert_eq!(one.outcome_text(), "margin 14.2%");
    assert!(one.is_assumed());
    assert_eq!(
        one.basis_text(),
        "facts read: Revenue:FY2025; assumed constants: 0.08; counts as an assumption"
    );
    assert_eq!(one.purpose, "What it shows. In one line.");
    assert_eq!(one.code_sha256, Sha256Hex::of(one.code.as_bytes()));
    let plain = finished("result('margin', facts['Revenue:FY2025'] / 100, '%')", VALUES);
    assert!(!plain.is_assumed(), "it follows from facts alone");
    let none = VALUES.replace("\"Revenue:FY2025\"", "");
    assert!(finished("result('margin', 12 + 2, '%')", &none).is_assumed(), "it reads no fact");
}

#[test]
fn every_literal_number_except_plain_ones_is_an_assumed_constant() {
    let check = |code: &str, expected: &[&str]| {
        assert_eq!(assumed_constants(code), expected, "{code}");
    };
    check("x = 0 + 1 - 2 * 4 / 12 % 100 // 365", &[]);
    check("x = 10 ** 1000 + 0.1 + 0.001 + 1e6 + 1e-6 + 1_000_000", &[]);
    check("x = 3 + 0.08 + .5 + 7. + 1.5e-3 + 2.5E+2", &["3", "0.08", "0.5", "7", "0.0015", "250"]);
    check("x = 0x1f + 0o17 + 0b11 + 1_234", &["31", "15", "3", "1234"]);
    check("x = Decimal('0.08') + Decimal(\" 3 \") + int('1' '7')", &["0.08", "3", "17"]);
    check("x = facts['Revenue:FY2025']  # 37 in a comment\nname = 'year 2025'", &[]);
    check("x = f'{facts[k] * 1.08:.2f}' + f\"{3}\"", &["1.08", "3"]);
    check("x = 5 + 5 + 5.0", &["5"]);
    check(
        "x = 99999999999999999999999999999999999999",
        &["99999999999999999999999999999999999999"],
    );
    check("x = 3j", &["3"]);
}

#[test]
fn numbers_that_only_the_loader_sees_are_listed_too() {
    let printed = VALUES.replace("\"100\"", "\"37\",\"4\"");
    assert_eq!(finished("x = 1", &printed).constants, ["37"]);
}

#[test]
fn a_program_beyond_the_limits_is_not_run() {
    for (code, why) in [
        (String::new(), "it has no code"),
        ("x = 1\n".repeat(61), "it has more than 60 lines"),
        ("#".repeat(5_000), "it is longer than 4 KiB"),
    ] {
        let one = calculation(&code);
        assert!(!one.is_runnable(), "{why}");
        assert_eq!(one.outcome_text(), format!("not run: {why}"));
        assert!(one.code.len() <= MAX_CODE_BYTES);
    }
    assert!(calculation(&"x = 1\n".repeat(60)).is_runnable());
}

#[test]
fn failures_are_recorded_with_the_same_words_on_every_host() {
    let check = |result: EffectResult, expected: &str| {
        let mut one = calculation("x = 1");
        assert_eq!(one.finish(&result), Some(()));
        assert_eq!(one.outcome_text(), expected);
        assert!(one.values().is_empty());
    };
    let ended = |exit| execution(exit, "", IsolationClass::UserKernel);
    check(ended(ExecutionExit::TimedOut), "failed: stopped at the time limit");
    check(ended(ExecutionExit::OutOfMemory), "failed: stopped: out of memory");
    check(ended(ExecutionExit::Exited { code: 1 }), "failed: exit code 1");
    let died = ExecutionExit::SandboxDied { detail: "pid 4711".to_owned() };
    check(ended(died), "failed: the sandbox died");
    let lost = |kind| {
        EffectResult::NotExecuted(SandboxFailure { kind, detail: "at /some/path".to_owned() })
    };
    check(lost(SandboxFailureKind::NoEngine), "not run: no sandbox for calculations");
    check(lost(SandboxFailureKind::Lost), "not run: the sandbox could not be started");
    check(
        execution(ExecutionExit::Exited { code: 0 }, VALUES, IsolationClass::None),
        "not run: no sandbox for calculations",
    );
    let mut one = calculation("x = 1");
    assert_eq!(one.finish(&EffectResult::NotPerformed), None);
}

#[test]
fn output_that_the_loader_does_not_write_is_refused() {
    for output in [
        "",
        "[]",
        "{}",
        "margin 14.2%",
        r#"{"error":null,"facts":["../../etc/passwd"],"literals":[],"values":[]}"#,
        r#"{"error":null,"facts":[],"literals":[],"values":[],"more":1}"#,
        r#"{"error":null,"facts":[],"literals":[],"values":[{"name":"","unit":"","value":"1"}]}"#,
        r#"{"error":null,"facts":[],"literals":[],"values":[{"name":"a","unit":"","value":"1e9"}]}"#,
        r#"{"error":null,"facts":[],"literals":[],"values":[{"name":"a","unit":"","value":"NaN"}]}"#,
        &format!("{VALUES}{}", " ".repeat(5_000)),
    ] {
        let one = finished("x = 1", output);
        assert!(matches!(one.outcome, CalculationOutcome::Failed { .. }), "{output}: {one:?}");
    }
}

#[test]
fn the_request_has_the_facts_by_hash_and_tight_limits() {
    let facts = FileRef::of(&calculation_facts(None));
    let request = calculation("x = 1").request(facts);
    assert_eq!(request.image, "python");
    assert_eq!(request.inputs.values().collect::<Vec<_>>(), [&facts]);
    assert_eq!(request.sources.len(), 2);
    let SandboxLimits { wall_ms, cpu_seconds, memory_bytes, pids, output_bytes, .. } =
        request.limits;
    assert_eq!((wall_ms, cpu_seconds, pids, output_bytes), (5_000, 3, 16, 4_096));
    assert_eq!(memory_bytes, 128 << 20);
    assert!(request.env.is_empty(), "a parked interpreter has no variables of its own");
}

proptest! {
    #[test]
    fn any_output_is_read_within_the_limits(text in ".{0,300}", value in "-?[0-9]{0,40}(\\.[0-9]{0,40})?", name in "\\PC{0,200}") {
        let written = serde_json::json!({
            "error": null, "facts": [], "literals": [value, name],
            "values": [{"name": name, "unit": name, "value": value}],
        });
        for output in [text, written.to_string()] {
            let one = finished("x = 1", &output);
            for value in one.values() {
                prop_assert!(value.name.chars().count() <= MAX_NAME_CHARS + 1);
                prop_assert!(value.unit.chars().count() <= MAX_UNIT_CHARS + 1);
            }
            prop_assert!(one.constants.len() <= MAX_CONSTANTS);
        }
    }

    #[test]
    fn constants_of_any_text_are_found_without_a_panic(code in "([ -~\\n]|0x|1e|\\.|\"){0,200}") {
        let found = assumed_constants(&code);
        prop_assert!(found.len() <= MAX_CONSTANTS);
    }
}
