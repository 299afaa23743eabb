//! Words of models and filings, made fit for prompts, files and events of ours.

/// The text on one line, without what could drive a terminal or hide words, at most `longest`
/// characters.
pub fn one_line(text: &str, longest: usize) -> String {
    let visible = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line = String::new();
    let mut length = 0;
    for sign in visible.filter(|c| !is_hidden(*c)) {
        if sign != ' ' || !(line.is_empty() || line.ends_with(' ')) {
            line.push(sign);
            length += 1;
            // What follows is cut off.
            if length > longest && sign != ' ' {
                break;
            }
        }
    }
    cut(line.trim_end(), longest)
}

/// The beginning of a text, with a sign that there was more.
fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => {
            let shorter = longest.saturating_sub(1);
            let end = text.char_indices().nth(shorter).map_or(text.len(), |(at, _)| at);
            format!("{}…", text[..end].trim_end())
        }
    }
}

/// Text that nobody vouches for, behind a fence that it cannot close.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// A template with `{{name}}` replaced, in one pass: what is filled in is never searched for places,
/// whoever wrote it. The file's last line end is not a part of the prompt.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template.strip_suffix('\n').unwrap_or(template);
    while let Some((before, behind)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((name, after)) = behind.split_once("}}") else {
            text.push_str("{{");
            rest = behind;
            continue;
        };
        let value = values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Control characters, marks of no width, and marks that turn the direction of writing.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
