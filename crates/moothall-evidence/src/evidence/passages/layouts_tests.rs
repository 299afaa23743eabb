//! Annual reports in the layouts that filing software writes. The layouts follow Form 10-K and the
//! EDGAR filer manual; the text is invented.

use proptest::prelude::*;

use super::super::day::CalendarDay;
use super::super::submissions::AccessionNumber;
use super::*;

/// The items of Form 10-K in order: number and title.
const FORM: &[(&str, &str)] = &[
    ("1", "Business"),
    ("1A", "Risk Factors"),
    ("1B", "Unresolved Staff Comments"),
    ("1C", "Cybersecurity"),
    ("2", "Properties"),
    ("3", "Legal Proceedings"),
    ("4", "Mine Safety Disclosures"),
    (
        "5",
        "Market for Registrant’s Common Equity, Related Stockholder Matters and Issuer Purchases of Equity Securities",
    ),
    ("6", "[Reserved]"),
    ("7", "Management’s Discussion and Analysis of Financial Condition and Results of Operations"),
    ("7A", "Quantitative and Qualitative Disclosures About Market Risk"),
    ("8", "Financial Statements and Supplementary Data"),
    ("9", "Changes in and Disagreements with Accountants on Accounting and Financial Disclosure"),
    ("9A", "Controls and Procedures"),
    ("9B", "Other Information"),
    ("10", "Directors, Executive Officers and Corporate Governance"),
    ("11", "Executive Compensation"),
    (
        "12",
        "Security Ownership of Certain Beneficial Owners and Management and Related Stockholder Matters",
    ),
    ("13", "Certain Relationships and Related Transactions, and Director Independence"),
    ("14", "Principal Accountant Fees and Services"),
    ("15", "Exhibits and Financial Statement Schedules"),
    ("16", "Form 10-K Summary"),
];

/// Paragraphs per item.
const PARAGRAPHS: usize = 4;

/// The invented paragraph with this number of an item. Some of them have what misleads a reader:
/// references to other items, and sentences that start like a heading.
fn paragraph(item: &str, number: usize) -> String {
    match number {
        1 => format!(
            "The first thing to know about part {item} is that the workshop in Ostby builds valves, pumps and gauges for breweries."
        ),
        2 => format!(
            "As described under “Item 1A. Risk Factors” and in Item 8 of this report, part {item} depends on the price of copper; see also Item 7."
        ),
        3 => format!(
            "Item 3 of this report says more about the dispute over part {item}, which the company expects to settle for part {item} in the coming year."
        ),
        _ => format!(
            "Orders for part {item} rose by 4.1% in 2025, compared with 3.7% in 2024, because two large customers built new plants near the coast."
        ),
    }
}

/// How a document is written.
#[derive(Clone, Copy)]
struct Layout {
    /// The heading of an item.
    heading: fn(&str, &str) -> String,
    /// A paragraph of text.
    text: fn(&str) -> String,
    /// A line of the table of contents.
    contents: fn(&str, &str, usize) -> String,
    /// What is between two pages; a page ends after every item and in the middle of item 1A.
    page: fn(usize) -> String,
    /// What is around the whole document.
    document: fn(&str) -> String,
    /// Items that the report has not.
    missing: &'static [&'static str],
    /// Items that share one heading.
    combined: &'static [(&'static str, &'static str)],
    /// Whether a page ends in the middle of a sentence of item 1A.
    splits_sentence: bool,
}

const PLAIN: Layout = Layout {
    heading: |number, title| format!("<p>Item {number}. {title}</p>"),
    text: |text| format!("<p>{text}</p>"),
    contents: |number, title, page| format!("<p>Item {number}. {title} {page}</p>"),
    page: |_| String::new(),
    document: |body| format!("<html><body>{body}</body></html>"),
    missing: &[],
    combined: &[],
    splits_sentence: false,
};

fn anchor(number: &str) -> String {
    format!("i{}", number.to_lowercase())
}

fn inline_xbrl_text(text: &str) -> String {
    let tagged = text.replace("4.1", "<ix:nonFraction name=\"x:Growth\" contextRef=\"c-1\" unitRef=\"pure\" decimals=\"3\" scale=\"-2\" id=\"f-9\">4.1</ix:nonFraction>");
    format!(
        "<div style=\"margin-top:9pt\"><ix:continuation id=\"f-1\"><span style=\"font-family:'Times',serif;font-size:10pt\">{tagged}</span></ix:continuation></div>"
    )
}

fn layouts() -> Vec<(&'static str, Layout)> {
    vec![
        ("plain paragraphs", PLAIN),
        (
            "capitals",
            Layout {
                heading: |number, title| format!("<p>ITEM {number}. {}</p>", title.to_uppercase()),
                ..PLAIN
            },
        ),
        (
            "lower case that is displayed as capitals",
            Layout {
                heading: |number, title| {
                    format!(
                        "<p style=\"text-transform:uppercase\">item {}. {}</p>",
                        number.to_lowercase(),
                        title.to_lowercase()
                    )
                },
                ..PLAIN
            },
        ),
        (
            "bold spans and spaces that do not break",
            Layout {
                heading: |number, title| {
                    format!(
                        "<div><span style=\"font-weight:700\">Item&#160;{number}.&nbsp;&nbsp;</span><span style=\"font-weight:700\">{title}</span></div>"
                    )
                },
                text: |text| format!("<div><span>{}</span></div>", text.replace(' ', "&#xA0;")),
                ..PLAIN
            },
        ),
        (
            "small capitals in two fonts",
            Layout {
                heading: |number, title| {
                    let (first, rest) =
                        title.split_at(title.chars().next().map_or(0, char::len_utf8));
                    format!(
                        "<P ALIGN=\"center\"><B><FONT SIZE=\"3\">I</FONT><FONT SIZE=\"2\">TEM</FONT> {number}.<FONT SIZE=\"3\">{first}</FONT><FONT SIZE=\"2\">{}</FONT></B></P>",
                        rest.to_uppercase()
                    )
                },
                ..PLAIN
            },
        ),
        (
            "headings in tables, with a linked table of contents",
            Layout {
                heading: |number, title| {
                    format!(
                        "<table id=\"{}\"><tr><td style=\"width:10%\">Item {number}.</td><td>{title}</td></tr></table>",
                        anchor(number)
                    )
                },
                contents: |number, title, page| {
                    format!(
                        "<tr><td><a href=\"#{0}\">Item {number}.</a></td><td><a href=\"#{0}\">{title}</a></td><td>{page}</td></tr>",
                        anchor(number)
                    )
                },
                ..PLAIN
            },
        ),
        (
            "headings in tables with a block in every cell",
            Layout {
                heading: |number, title| {
                    format!(
                        "<table><tr><td><div>Item&#160;{number}.</div></td><td><div>{title}</div></td></tr></table>"
                    )
                },
                contents: |number, title, page| {
                    format!(
                        "<tr><td><p>Item {number}.</p></td><td><p>{title}</p></td><td><p>{page}</p></td></tr>"
                    )
                },
                ..PLAIN
            },
        ),
        (
            "title in the next paragraph",
            Layout {
                heading: |number, title| format!("<h2>Item {number}.</h2>\n<h3>{title}</h3>"),
                ..PLAIN
            },
        ),
        (
            "inline XBRL with hidden facts",
            Layout {
                text: inline_xbrl_text,
                heading: |number, title| {
                    format!(
                        "<div id=\"{}\"><span style=\"font-weight:700\"><ix:nonNumeric name=\"x:Heading\" contextRef=\"c-1\">Item {number}. {title}</ix:nonNumeric></span></div>",
                        anchor(number)
                    )
                },
                document: |body| {
                    format!(
                        "<?xml version=\"1.0\"?><html xmlns:ix=\"http://www.xbrl.org/2013/inlineXBRL\"><head><title>x</title></head><body><div style=\"display:none\"><ix:header><ix:hidden><ix:nonNumeric name=\"dei:X\">Item 1. Business hides this text, which is long enough to be a paragraph of prose.</ix:nonNumeric></ix:hidden></ix:header></div>{body}</body></html>"
                    )
                },
                ..PLAIN
            },
        ),
        (
            "page headers, footers and numbers",
            Layout {
                page: |page| {
                    format!(
                        "<p>{page}</p><hr style=\"page-break-after:always\"><p><a href=\"#toc\">Table of Contents</a></p><p>The notes on the last pages of this report are a part of these pages; please read them. {page}</p>"
                    )
                },
                ..PLAIN
            },
        ),
        (
            "sentence split over two pages",
            Layout {
                page: |page| {
                    format!(
                        "<div>- {page} -</div><div style=\"page-break-before:always\"></div><div>Ostby Valve Works Form 10-K</div>"
                    )
                },
                splits_sentence: true,
                ..PLAIN
            },
        ),
        (
            "own heading repeated on every page",
            Layout {
                page: |page| format!("<p>F-{page}</p><p>PART I</p>"),
                heading: |number, title| {
                    format!(
                        "<p>PART I, Item {number}. {title}</p><p>PART I, Item {number}. {title} (continued)</p>"
                    )
                },
                ..PLAIN
            },
        ),
        (
            "combined items",
            Layout {
                heading: |number, title| {
                    format!(
                        "<p><b>{} {number}. {title}</b></p>",
                        if number.contains(' ') { "Items" } else { "Item" }
                    )
                },
                combined: &[("1", "1A"), ("7", "7A")],
                ..PLAIN
            },
        ),
        (
            "combined items with a point after every number",
            Layout {
                heading: |number, title| {
                    format!(
                        "<p>ITEMS {}. {}</p>",
                        number.replace(" and ", ". and "),
                        title.to_uppercase()
                    )
                },
                combined: &[("7", "7A")],
                ..PLAIN
            },
        ),
        (
            "small company without items 1A, 6 and 7A",
            Layout { missing: &["1A", "6", "7A"], ..PLAIN },
        ),
        (
            "nested blocks",
            Layout {
                heading: |number, title| {
                    format!(
                        "<div><div><div><p><a name=\"{}\"></a></p><div>Item {number} — {title}</div></div></div></div>",
                        anchor(number)
                    )
                },
                text: |text| format!("<div><div><div>{text}</div></div></div>"),
                ..PLAIN
            },
        ),
        (
            "line breaks instead of paragraphs",
            Layout {
                heading: |number, title| format!("<br><br>Item {number}: {title}<br><br>"),
                text: |text| format!("{text}<br>\n<br>"),
                ..PLAIN
            },
        ),
        (
            "title ends with a point, as in a sentence",
            Layout {
                heading: |number, title| {
                    let (first, rest) =
                        title.split_at(title.chars().next().map_or(0, char::len_utf8));
                    format!("<p>Item {number}. {first}{}.</p>", rest.to_lowercase())
                },
                ..PLAIN
            },
        ),
        (
            "table of contents with leaders and subheadings",
            Layout {
                contents: |number, title, page| {
                    format!(
                        "<p>Item {number}. {title} . . . . . . {page}</p><p>The most important estimates, markets and customers of the company ...... {page}</p>"
                    )
                },
                ..PLAIN
            },
        ),
        (
            "complete submission with exhibits",
            Layout {
                document: |body| {
                    let exhibit: String = (0..30).map(|number| format!("<p>The lender agrees to clause {number} of this contract, which is a long sentence about money.</p>")).collect();
                    format!(
                        "<DOCUMENT>\n<TYPE>10-K\n<SEQUENCE>1\n<TEXT>\n<html>{body}</html>\n</TEXT>\n</DOCUMENT>\n<DOCUMENT>\n<TYPE>EX-10.1\n<TEXT><p>Item 1. Business</p>{exhibit}<p>Item 1A. Risk Factors</p>{exhibit}<p>Item 7. Discussion</p>{exhibit}</TEXT></DOCUMENT>"
                    )
                },
                ..PLAIN
            },
        ),
    ]
}

/// The report in this layout, and the paragraphs of each item that is read.
fn report(layout: &Layout) -> (String, Vec<(String, String)>) {
    let mut html =
        String::from("<p>UNITED STATES SECURITIES AND EXCHANGE COMMISSION</p><table id=\"toc\">");
    for (page, (number, title)) in FORM.iter().enumerate() {
        if !layout.missing.contains(number) {
            html.push_str(&(layout.contents)(number, title, page + 3));
        }
    }
    html.push_str("</table>");
    html.push_str(&(layout.text)(
        "This report contains statements about the future; item 1A names what can make them wrong.",
    ));
    let mut expected = Vec::new();
    // Items whose text a reader expects under this number.
    let mut owner = "";
    for (page, (number, title)) in FORM.iter().enumerate() {
        if layout.missing.contains(number) {
            continue;
        }
        let pair = layout.combined.iter().find(|(first, _)| first == number);
        let is_second = layout.combined.iter().any(|(_, second)| second == number);
        if let Some((first, second)) = pair {
            let other = FORM.iter().find(|(number, _)| number == second).unwrap().1;
            html.push_str(&(layout.heading)(
                &format!("{first} and {second}"),
                &format!("{title} and {other}"),
            ));
        } else if !is_second {
            html.push_str(&(layout.heading)(number, title));
        }
        if !is_second {
            owner = number;
        }
        for index in 1..=PARAGRAPHS {
            let text = paragraph(number, index);
            match text.split_once(" which ").filter(|_| layout.splits_sentence && index == 3) {
                Some((before, after)) => {
                    html.push_str(&(layout.text)(before));
                    html.push_str(&(layout.page)(page));
                    html.push_str(&(layout.text)(&format!("which {after}")));
                }
                None => {
                    html.push_str(&(layout.text)(&text));
                    if index == 2 {
                        html.push_str(&(layout.page)(page));
                    }
                }
            }
            if ["1", "1A", "7"].contains(&owner) {
                expected.push((owner.to_owned(), text));
            }
        }
        // The second number of a combined heading is found in the same text.
        if is_second && *number == "1A" {
            let shared: Vec<_> =
                expected.iter().map(|(_, text)| ("1A".to_owned(), text.clone())).collect();
            expected.extend(shared);
        }
        html.push_str(&(layout.page)(page + 40));
    }
    ((layout.document)(&html), expected)
}

fn read(html: &str) -> Vec<(String, String)> {
    let filing = Filing {
        accession: AccessionNumber::parse("0009990001-26-000007").unwrap(),
        form: "10-K".to_owned(),
        filed: CalendarDay::parse("2026-02-20").unwrap(),
        report_date: None,
        items: Vec::new(),
        primary_document: None,
    };
    let found = passages(html.as_bytes(), &filing).unwrap();
    found.into_iter().map(|passage| (passage.item, passage.text)).collect()
}

#[test]
fn every_item_is_found_with_its_exact_text_in_every_layout() {
    let layouts = layouts();
    assert!(layouts.len() >= 12);
    let mut wrong = Vec::new();
    for (name, layout) in &layouts {
        let (html, expected) = report(layout);
        let found = read(&html);
        if found != expected {
            wrong.push(format!("{name}:\nfound {found:#?}\nexpected {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_table_of_contents_alone_gives_no_passages() {
    for (name, layout) in layouts() {
        let contents: String = FORM
            .iter()
            .enumerate()
            .map(|(page, (number, title))| (layout.contents)(number, title, page + 3))
            .collect();
        assert_eq!(read(&contents), [], "{name}");
    }
}

proptest! {
    /// The parts of two layouts can be combined freely: the heading of one, everything else of
    /// another.
    #[test]
    fn headings_of_one_layout_are_found_in_the_body_of_another(
        heading in 0..layouts().len(),
        body in 0..layouts().len(),
    ) {
        let layouts = layouts();
        let heading = layouts[heading].1.heading;
        let layout = Layout { heading, combined: &[], ..layouts[body].1 };
        let (html, expected) = report(&layout);
        prop_assert_eq!(read(&html), expected);
    }

    #[test]
    fn a_report_that_ends_anywhere_gives_only_text_that_it_has(layout in 0..layouts().len(), part in 0..1000_usize) {
        let (_, layout) = layouts()[layout];
        let (html, expected) = report(&layout);
        let mut end = html.len() * part / 1000;
        while !html.is_char_boundary(end) {
            end -= 1;
        }
        // Half an entity is text that the report does not have.
        if let Some(entity) = html[..end].rfind('&').filter(|start| end - start < 8) {
            end = entity;
        }
        for (item, text) in read(&html[..end]) {
            let whole = expected.iter().any(|(_, whole)| whole.starts_with(&text));
            prop_assert!(whole || html.contains(&text), "{item}: {text}");
        }
    }
}
