use proptest::prelude::*;

use super::*;
use crate::output_schema::tests::conforming;
use crate::program::support::reply;

fn bare(code: &str) -> GeneratedProgram {
    GeneratedProgram {
        code: code.to_owned(),
        dependencies: Vec::new(),
        reasoning: String::new(),
        confidence_permille: None,
    }
}

#[track_caller]
fn check(text: &str, expected: Result<GeneratedProgram, &str>) {
    let read = read_program(&reply(text)).map_err(|fault| fault.to_string());
    assert_eq!(read, expected.map_err(str::to_owned));
}

#[test]
fn a_structured_answer_is_parsed_with_reasoning_and_confidence() {
    let full =
        r#"{"reasoning":"r","code":"print(1)","dependencies":["numpy"," ",3],"confidence":0.85}"#;
    let program = GeneratedProgram {
        code: "print(1)".to_owned(),
        dependencies: vec!["numpy".to_owned()],
        reasoning: "r".to_owned(),
        confidence_permille: Some(850),
    };
    check(full, Ok(program.clone()));
    check(&format!("Here:\n```json\n{full}\n```\n"), Ok(program));
    check(r#"{"code":"print(1)","confidence":95}"#, Ok(bare("print(1)")));
    check(r#"{"code":"```python\nprint(1)\n```"}"#, Ok(bare("print(1)\n")));
}

#[test]
fn a_single_fenced_block_is_parsed_as_a_program() {
    check("Sure!\n```python\nprint(1)\n```\nDone.", Ok(bare("print(1)\n")));
    check("```\nprint(1)\n```", Ok(bare("print(1)\n")));
    // A small model that stops before the closing fence has still written its program.
    check("```py\nprint(1)", Ok(bare("print(1)")));
    check("```bash\npip install x\n```\n```python\nprint(1)\n```", Ok(bare("print(1)\n")));
}

#[test]
fn any_other_answer_contains_no_program() {
    check("print(1)", Err("there is neither a JSON object nor a fenced block"));
    check("", Err("there is neither a JSON object nor a fenced block"));
    check(
        "```python\na\n```\n```python\nb\n```",
        Err("there is more than one fenced block of Python"),
    );
    check("```bash\nls\n```", Err("there is no fenced block of Python"));
    check(r#"{"program":"x"}"#, Err("`code` must be the program's text"));
    check(r#"{"code":" "}"#, Err("the program is empty"));
    let long = format!("```python\n{}\n```", "#".repeat(MAX_CODE_BYTES));
    check(&long, Err("the program is longer than 64 KiB"));
    let cut = ModelReply { stop: StopReason::MaxTokens, ..reply("```python\nprint(1)\n```") };
    assert_eq!(read_program(&cut), Err(OutputFault::CutOff));
}

#[test]
fn the_program_schema_lists_reasoning_before_code() {
    for revision in [PromptRevision::V1, PromptRevision::V2] {
        let schema: Value = serde_json::from_str(schema(revision).text()).unwrap();
        let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["reasoning", "code", "dependencies", "confidence"]);
        assert_eq!(schema["required"].as_array().unwrap().len(), 4);
        assert_eq!(schema["additionalProperties"], false);
    }
}

proptest! {
    #[test]
    fn every_answer_that_conforms_to_the_program_schema_is_a_program(
        text in conforming(&schema(PromptRevision::V2)),
    ) {
        let program = read_program(&reply(&text)).unwrap();
        prop_assert!(!program.code.is_empty());
    }
}
