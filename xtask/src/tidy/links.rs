//! Checks that relative links and `#anchors` in Markdown resolve.
//!
//! Implemented here because mdbook-linkcheck is not maintained for mdBook 0.5, and lychee brings
//! hundreds of crates, most of them for web links, which an offline gate cannot check.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{ProblemLevel, TidyProblem, line_of};
use crate::tree::{SourceTree, is_test_file};

pub(crate) const ID: &str = "links";

/// Pages of the book may link only to pages of the book: other files are not on its site.
const BOOK: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";

/// The anchors of a page, and its links with their lines.
struct MarkdownPage {
    anchors: BTreeSet<String>,
    links: Vec<(String, usize)>,
}

pub(crate) fn check(tree: &SourceTree) -> Vec<TidyProblem> {
    let is_page = |path: &str| path.ends_with(".md") && !is_test_file(path);
    let pages: BTreeMap<&str, MarkdownPage> = tree
        .texts()
        .filter(|(path, _)| is_page(path))
        .map(|(path, text)| (path, read(text)))
        .collect();
    let mut problems = Vec::new();
    for (path, page) in &pages {
        for (link, line) in &page.links {
            if let Err(message) = follow(tree, &pages, path, link) {
                problems.push(problem(path, Some(*line), message));
            }
        }
    }
    problems.extend(orphans(&pages));
    problems
}

/// Pages of the book that are missing from its table of contents: mdBook would leave them out.
fn orphans(pages: &BTreeMap<&str, MarkdownPage>) -> Vec<TidyProblem> {
    let listed: BTreeSet<String> = pages
        .get(SUMMARY)
        .into_iter()
        .flat_map(|summary| &summary.links)
        .filter_map(|(link, _)| resolve(SUMMARY, without_anchor(link)))
        .collect();
    let in_book = pages.keys().filter(|path| path.starts_with(BOOK) && **path != SUMMARY);
    in_book
        .filter(|path| !listed.contains(**path))
        .map(|path| problem(path, None, format!("is not listed in {SUMMARY}")))
        .collect()
}

fn follow(
    tree: &SourceTree,
    pages: &BTreeMap<&str, MarkdownPage>,
    from: &str,
    link: &str,
) -> Result<(), String> {
    if link.is_empty() {
        return Err("empty link".to_owned());
    }
    if has_scheme(link) {
        return Ok(());
    }
    if link.starts_with('/') {
        return Err(format!("`{link}` is absolute"));
    }
    let file = without_anchor(link);
    let target = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(target) = target.filter(|target| tree.has(target)) else {
        return Err(format!("`{link}` does not exist"));
    };
    if from.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Err(format!("`{link}` points outside the book"));
    }
    // Anchors into other files, such as `lib.rs#L10`, depend on the hosting site and are not
    // checked.
    match (link.split_once('#'), pages.get(target.as_str())) {
        (Some((_, anchor)), Some(page)) if !page.anchors.contains(anchor) => {
            Err(format!("`{link}`: `{target}` has no heading `#{anchor}`"))
        }
        _ => Ok(()),
    }
}

fn has_scheme(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

fn without_anchor(link: &str) -> &str {
    link.split('#').next().unwrap_or_default()
}

/// The target of `link` on page `from`, relative to the root; `None` if it is outside the tree.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn read(text: &str) -> MarkdownPage {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut page = MarkdownPage { anchors: BTreeSet::new(), links: Vec::new() };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for (event, Range { start, .. }) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                page.anchors.extend(id.map(|id| id.to_string()));
                heading = Some(String::new());
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some(title) = heading.take() {
                    page.anchors.insert(unique(&mut seen, slug(&title)));
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(title) = &mut heading {
                    title.push_str(&text);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push((dest_url.to_string(), line_of(text, start)));
            }
            Event::Html(html) | Event::InlineHtml(html) => page.anchors.extend(html_id(&html)),
            _ => {}
        }
    }
    page
}

/// The anchor that GitHub and mdBook generate for a heading.
fn slug(title: &str) -> String {
    let keep = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    };
    title.trim().to_lowercase().chars().filter_map(keep).collect()
}

/// The second heading with the same name gets `-1`, the third `-2`.
fn unique(seen: &mut BTreeMap<String, usize>, slug: String) -> String {
    let count = seen.entry(slug.clone()).or_default();
    *count += 1;
    if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
}

/// `<a id="x">`.
fn html_id(html: &str) -> Option<String> {
    let (_, after) = html.split_once(" id=\"")?;
    after.split_once('"').map(|(id, _)| id.to_owned())
}

fn problem(path: &str, line: Option<usize>, message: String) -> TidyProblem {
    TidyProblem {
        path: path.to_owned(),
        line,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: "links are relative to the page; an anchor is the heading in lower case with `-` for spaces".to_owned(),
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
