use proptest::prelude::*;

use super::*;
use crate::text::fill;

fn built_in(kind: TextKind, name: &str) -> BuiltInText {
    built_in_texts().into_iter().find(|one| one.kind == kind && one.name == name).unwrap()
}

fn refused(kind: TextKind, name: &str, text: &str) -> String {
    let fault = OwnTexts::default().add(kind, name, text).unwrap_err();
    format!("{}: {fault}", fault.line)
}

#[test]
fn every_built_in_text_passes_its_own_check() {
    let all = built_in_texts();
    for one in &all {
        assert_eq!(one.check(one.text), Ok(()), "{}", one.file());
        assert_eq!(one.normalized(one.text), one.text, "{}", one.file());
        assert!(!one.purpose.is_empty(), "{}", one.file());
        let mut own = OwnTexts::default();
        own.add(one.kind, one.name, one.text).unwrap();
        assert!(own.is_empty(), "{}", one.file());
    }
    let files: BTreeSet<String> = all.iter().map(BuiltInText::file).collect();
    assert_eq!(files.len(), all.len());
}

#[test]
fn a_text_is_refused_with_the_line_of_its_first_mistake() {
    let prompt = |text: &str| refused(TextKind::Prompt, "propose", text);
    let memo = |text: &str| refused(TextKind::Memo, "marks", text);
    let said = [
        refused(TextKind::Prompt, "../propose", "x"),
        prompt(" \n"),
        prompt("{{share}}\n{{company}}\n{{lens}}"),
        prompt("Propose\n{{share}}\n\n"),
        prompt("{{share}}\n{{company}} {{"),
        prompt("{{share}} {{company}}\n{{ share }}"),
        prompt("{{{share}}} {{company}}"),
        prompt("{{share}}\n{{company}}\u{202e}"),
        prompt(&"x".repeat(MAX_TEXT_BYTES + 1)),
        memo("# Marks"),
        memo("# Marks\nHere: {{content}}"),
        memo("{{content}}\n\n{{content}}"),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_text_keeps_the_outer_line_breaks_of_the_built_in_one() {
    let mut own = OwnTexts::default();
    own.add(TextKind::Prompt, "brief", "\u{feff}Serve:\r\n{{brief}}").unwrap();
    assert_eq!(own.get("brief"), Some("\n\nServe:\n{{brief}}\n"));
}

#[test]
fn a_debate_gets_only_its_own_texts() {
    let mut own = OwnTexts::default();
    own.add(TextKind::Prompt, "brief", "Serve {{brief}}").unwrap();
    own.add(TextKind::Prompt, "case", "{{move}} {{who}}").unwrap();
    let names: Vec<String> = own.of_debate().iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["case"]);
}

proptest! {
    /// Texts come from files of other people.
    #[test]
    fn any_text_is_refused_or_filled_completely(text in "([a-z{}\\n ]|\\{\\{[a-z_]{0,3}\\}\\}|\\{\\{share\\}\\}|\\{\\{company\\}\\}|\\PC){0,40}") {
        let propose = built_in(TextKind::Prompt, "propose");
        match propose.check(&text) {
            Ok(()) => {
                let filled = fill(&text, &[("share", "<S>"), ("company", "<C>")]);
                prop_assert!(!filled.contains("{{"), "{filled}");
                prop_assert!(filled.contains("<S>") && filled.contains("<C>"), "{filled}");
            }
            Err(fault) => {
                prop_assert!((1..=text.split('\n').count()).contains(&fault.line), "{fault:?}");
                prop_assert!(!fault.problem.hint().is_empty());
            }
        }
    }

    #[test]
    fn placeholders_are_those_that_are_filled(text in "([ab\\n]|\\{|\\}|\\{\\{[ab]\\}\\}){0,30}") {
        if let Ok(found) = placeholders(&text) {
            let values = [("a", "1"), ("b", "2")];
            let is_known = found.iter().all(|(_, name)| ["a", "b"].contains(name));
            prop_assume!(is_known);
            let filled = fill(&text, &values);
            let digits = filled.chars().filter(char::is_ascii_digit).count();
            prop_assert_eq!(digits, found.len());
        }
    }

    #[test]
    fn any_stored_texts_are_checked_without_a_panic(name in "\\PC{0,8}", text in "\\PC{0,30}") {
        let own: OwnTexts = serde_json::from_value(serde_json::json!({ name: text })).unwrap();
        let _ = own.check(TextKind::Prompt, PromptRevision::V1);
        let _ = own.check(TextKind::Memo, PromptRevision::V2);
    }
}
