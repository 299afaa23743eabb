use proptest::prelude::*;

use super::*;

fn day(text: &str) -> Option<CalendarDay> {
    CalendarDay::parse(text)
}

fn found(title: &str, url: &str, published: Option<CalendarDay>) -> FeedHeadline {
    FeedHeadline {
        title: title.to_owned(),
        url: url.to_owned(),
        source: "Example Times".to_owned(),
        published,
    }
}

const ANSWER: &str = r#"{"articles": [
  {"url": "https://news.example/a", "url_mobile": "", "title": "Acme opens  a plant",
   "seendate": "20260131T120000Z", "socialimage": "", "domain": "news.example",
   "language": "English", "sourcecountry": "United States"},
  {"url": "https://news.example/b", "title": "Acme names a chief", "seendate": "20260202T080000Z",
   "domain": "news.example"},
  {"url": "javascript:alert(1)", "title": "Not a link", "seendate": "20260202T080000Z"}
]}"#;

#[test]
fn a_gdelt_answer_gives_numbered_headlines_newest_first() {
    let headline = |number, text: &str, url: &str, on| NewsHeadline {
        number,
        text: text.to_owned(),
        url: url.to_owned(),
        source: "news.example".to_owned(),
        published: day(on),
    };
    assert_eq!(
        headlines(gdelt(ANSWER.as_bytes()).unwrap(), None),
        [
            headline(1, "Acme names a chief", "https://news.example/b", "2026-02-02"),
            headline(2, "Acme opens a plant", "https://news.example/a", "2026-01-31"),
        ]
    );
}

#[test]
fn headlines_as_of_a_day_exclude_newer_and_undated_ones() {
    let all = vec![
        found("Old", "https://a.example/1", day("2026-01-01")),
        found("New", "https://a.example/2", day("2026-03-01")),
        found("Undated", "https://a.example/3", None),
    ];
    let texts = |as_of| -> Vec<String> {
        headlines(all.clone(), as_of).into_iter().map(|one| one.text).collect()
    };
    assert_eq!(texts(day("2026-02-01")), ["Old"]);
    assert_eq!(texts(None), ["New", "Old", "Undated"]);
}

#[test]
fn headlines_with_the_same_text_are_deduplicated() {
    let twice = vec![
        found("Acme opens", "https://a.example/1", None),
        found("ACME opens", "https://b.example/1", None),
    ];
    assert_eq!(headlines(twice, None).len(), 1);
}

#[test]
fn a_plain_text_refusal_of_the_news_service_is_reported() {
    let refused = gdelt(b"Please limit requests to one every 5 seconds.\n").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "invalid list of articles: Please limit requests to one every 5 seconds."
    );
}

proptest! {
    #[test]
    fn any_bytes_from_the_news_service_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = gdelt(&bytes);
    }

    #[test]
    fn headlines_of_any_feed_are_limited_and_plain(
        titles in prop::collection::vec("(?s).{0,300}", 0..60),
        url in "(?s).{0,60}",
    ) {
        let all = titles.iter().map(|title| found(title, &url, None)).collect();
        prop_assert!(headlines(all, None).len() <= MAX_HEADLINES);
        let all = titles.iter().map(|title| found(title, "https://a.example/", None)).collect();
        for one in headlines(all, None) {
            prop_assert!(!one.text.is_empty() && one.text.chars().count() <= 240);
            prop_assert!(!one.text.contains(crate::text::is_hidden));
        }
    }
}
