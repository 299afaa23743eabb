use super::*;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn question() -> AnnouncementQuestion {
    let moves = [("m2", "Sell the idle plant".to_owned())];
    AnnouncementQuestion::of_moves(moves, 15, day("2025-03-01")).remove(0)
}

fn event(filed: &str) -> FilingEvent {
    FilingEvent {
        accession: "0000000001-25-000001".to_owned(),
        form: "8-K".to_owned(),
        filed: day(filed),
        report_date: None,
        items: Vec::new(),
    }
}

#[test]
fn a_question_names_the_move_and_its_last_day() {
    let question = question();
    assert_eq!((question.id.as_str(), question.move_id.as_str()), ("q16", "m2"));
    assert_eq!(
        question.text(),
        "the company will announce this move in an 8-K or 6-K by 2026-03-01: Sell the idle plant"
    );
}

#[test]
fn an_answer_needs_the_end_of_the_window_and_a_note_or_silence() {
    let check = |as_of: &str, note: Option<MoveNote>, events: &[&str], expected: Option<bool>| {
        let events: Vec<FilingEvent> = events.iter().map(|filed| event(filed)).collect();
        let asked = day("2025-03-01");
        let found = resolve_announcement(&question(), asked, day(as_of), note, &events);
        assert_eq!(found.map(|found| found.happened), expected, "{as_of} {note:?} {events:?}");
    };
    let taken = |text: &str| Some(MoveNote::Taken(day(text)));
    let not_taken = |text: &str| Some(MoveNote::NotTaken(day(text)));
    // Counting announced moves early would make them look frequent.
    check("2026-03-01", taken("2025-06-01"), &[], None);
    check("2026-03-02", taken("2025-06-01"), &[], Some(true));
    check("2027-01-01", taken("2026-03-02"), &[], Some(false));
    check("2027-01-01", taken("2025-02-01"), &[], None);
    check("2027-01-01", not_taken("2025-12-31"), &["2025-04-01"], None);
    check("2027-01-01", not_taken("2026-03-02"), &["2025-04-01"], Some(false));
    // Filings without a note: only silence is an answer, and only if the list reaches back.
    check("2027-01-01", None, &["2025-04-01", "2025-01-01"], None);
    check("2027-01-01", None, &["2026-04-01", "2025-01-01"], Some(false));
    check("2027-01-01", None, &["2026-04-01"], None);
    check("2027-01-01", None, &[], None);
}
