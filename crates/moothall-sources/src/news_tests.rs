use super::*;

fn parsed(text: &str) -> Vec<(String, String, String, Option<String>)> {
    let found = parse(text.as_bytes()).unwrap();
    let plain = |one: FeedHeadline| {
        (one.title, one.url, one.source, one.published.map(|day| day.to_string()))
    };
    found.into_iter().map(plain).collect()
}

const RSS: &str = r#"<?xml version="1.0"?><rss version="2.0"><channel><title>Example Times</title>
<link>https://times.example/</link><description>News</description>
<item><title>Acme opens a plant</title><link>https://times.example/1</link>
<description>SECRET BODY of the article</description>
<pubDate>Fri, 30 Jan 2026 12:00:00 GMT</pubDate></item></channel></rss>"#;

const ATOM: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>Example Times</title>
<id>urn:x</id><updated>2026-01-30T12:00:00Z</updated>
<entry><title>Acme opens a plant</title><id>urn:1</id><updated>2026-01-30T12:00:00Z</updated>
<link href="https://times.example/1"/><content type="xhtml"><div>SECRET BODY</div></content></entry>
</feed>"#;

const JSON: &str = r#"{"version": "https://jsonfeed.org/version/1", "title": "Example Times",
"items": [{"id": "1", "url": "https://times.example/1", "title": "Acme opens a plant",
"content_text": "SECRET BODY", "date_published": "2026-01-30T12:00:00Z"}]}"#;

#[test]
fn every_feed_format_gives_the_same_headline_without_its_text() {
    let expected = [(
        "Acme opens a plant".to_owned(),
        "https://times.example/1".to_owned(),
        "Example Times".to_owned(),
        Some("2026-01-30".to_owned()),
    )];
    for feed in [RSS, ATOM, JSON] {
        assert_eq!(parsed(feed), expected, "{feed}");
    }
}

#[test]
fn a_gdelt_response_is_recognised_and_may_be_empty() {
    let answer =
        r#"{"articles": [{"url": "https://a.example/", "title": "T", "domain": "a.example"}]}"#;
    assert_eq!(parsed(answer).len(), 1);
    assert_eq!(parsed("{}"), []);
    assert_eq!(parse(b"Your query was too short.").unwrap_err().matches("too short").count(), 1);
}

#[test]
fn invalid_or_malicious_feeds_are_handled_without_a_panic() {
    let deep = format!(
        "<rss version=\"2.0\"><channel>{}</channel></rss>",
        "<item><content><a>".repeat(100_000)
    );
    let entities = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                    <rss version=\"2.0\"><channel><title>&b;&b;</title></channel></rss>";
    for text in
        ["", "<", "<html></html>", "<rss", &deep, entities, "\u{feff}<feed", "{\"items\": 1}"]
    {
        // It only has to return: no panic, no overflow, no excessive output.
        let _ = parse(text.as_bytes());
    }
}

#[test]
fn company_names_are_searched_without_their_legal_suffixes() {
    for (name, expected) in [
        ("Apple Inc.", "Apple"),
        ("Marvell Technology, Inc.", "Marvell Technology"),
        ("JPMORGAN CHASE & CO", "JPMORGAN CHASE"),
        ("The \"Quoted\" Company", "The Quoted"),
        ("AG", "AG"),
    ] {
        assert_eq!(without_legal_form(name), expected);
    }
}

#[test]
fn the_label_of_a_news_source_contains_no_path_or_key() {
    let feed = NewsSource::Feed { url: "https://news.example/rss?key=SECRET".to_owned() };
    assert_eq!(
        (feed.label(), format!("{feed:?}")),
        ("rss:news.example".to_owned(), "NewsSource(\"rss:news.example\")".to_owned(),)
    );
    let file = NewsSource::File { path: "/home/ada/feed.xml".into() };
    assert_eq!(file.label(), "file:feed.xml");
}
