use proptest::prelude::*;

use super::*;

fn annotation(span: Range<usize>) -> FileAnnotation {
    FileAnnotation {
        rule: "claims.unsupported".to_owned(),
        level: AnnotationLevel::Error,
        message: "\"4,321\": nothing is cited".to_owned(),
        span,
    }
}

#[test]
fn positions_count_lines_and_characters_from_one() {
    let text = "ä b\ncd";
    let of = |byte| {
        let TextPosition { line, column } = TextPosition::of(text, byte);
        (line, column)
    };
    assert_eq!([of(0), of(2), of(5), of(7), of(99)], [(1, 1), (1, 2), (2, 1), (2, 3), (2, 3)]);
}

#[test]
fn a_code_frame_marks_the_number_in_its_line() {
    let text = "First.\nIt has 4,321 employees.\nLast.\n";
    let annotations = [annotation(14..19)];
    let file =
        AnnotatedFile { path: "memo.md", text, first_line: Some(1), annotations: &annotations };
    let plain = anstream::adapter::strip_str(&file.code_frames(80)).to_string();
    let frame = "\
error: \"4,321\": nothing is cited
 --> memo.md:2:8
  |
2 | It has 4,321 employees.
  |        ^^^^^

";
    assert_eq!(plain, frame);
}

#[test]
fn a_message_cannot_start_another_workflow_command() {
    let annotations =
        [FileAnnotation { message: "50%\n::error::made up".to_owned(), ..annotation(0..1) }];
    let file = AnnotatedFile {
        path: "a,b:c.md",
        text: "x",
        first_line: Some(1),
        annotations: &annotations,
    };
    assert_eq!(
        github_commands(&[file]),
        "::error file=a%2Cb%3Ac.md,line=1,col=1,endLine=1,endColumn=2,title=claims.unsupported::50%25%0A::error::made up\n"
    );
}

#[test]
fn sarif_has_every_finding_with_its_region_and_each_rule_once() {
    let annotations = [annotation(0..1), annotation(2..3)];
    let file = AnnotatedFile {
        path: "a b.md",
        text: "x\ny",
        first_line: Some(1),
        annotations: &annotations,
    };
    let report = sarif(&[file]);
    let run = &report["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"], json!([{ "id": "claims.unsupported" }]));
    let places: Vec<&Value> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["locations"][0]["physicalLocation"])
        .collect();
    let place = |line| {
        json!({
            "artifactLocation": { "uri": "a%20b.md" },
            "region": { "startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2 },
        })
    };
    assert_eq!(places, [&place(1), &place(2)]);
}

proptest! {
    /// Untrusted text with any span is rendered without hidden characters.
    #[test]
    fn any_text_and_span_is_rendered(text in any::<String>(), from in 0..40_usize, length in 0..40_usize) {
        let annotations = [annotation(from..from + length)];
        let file = AnnotatedFile { path: "memo.md", text: &text, first_line: Some(1), annotations: &annotations };
        let plain = anstream::adapter::strip_str(&file.code_frames(80)).to_string();
        prop_assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain:?}");
        let _ = sarif(&[file]);
        prop_assert_eq!(github_commands(&[file]).lines().count(), 1);
    }
}
