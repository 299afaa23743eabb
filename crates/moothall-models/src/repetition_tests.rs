use super::*;

#[test]
fn repeated_text_is_truncated_after_its_first_occurrence() {
    for (head, phrase) in [
        ("The margin fell. ", "It fell because it fell. "),
        ("", "0"),
        ("{\"message\": \"", "Größe und Größe, "),
        ("Start. ", &"A sentence that is repeated again and again by a small model. ".repeat(4)),
    ] {
        let text = format!("{head}{}", phrase.repeat(2_000 / phrase.len() + 8));
        let start = loop_start(&text).unwrap_or_else(|| panic!("{head}{phrase}"));
        assert!(start <= head.len() + phrase.len() + 1, "{start} in {head}{phrase}");
    }
}

#[test]
fn ordinary_texts_do_not_loop() {
    let table: String = (2015..2026)
        .map(|year| format!("| FY{year} | {} | {} % |\n", year * 17, year % 13))
        .collect();
    let code = "    assert_eq!(sum(&[1, 2, 3]), 6);\n".repeat(4);
    let prose = "The margin fell because prices fell. Customers waited for the new product. ";
    for text in ["", "short", &table, &code, &prose.repeat(3)] {
        assert_eq!(loop_start(text), None, "{text}");
    }
    // A loop that the model left is not at the end.
    assert_eq!(
        loop_start(&format!("{}Then it ended well, with a conclusion.", "no ".repeat(400))),
        None
    );
}
