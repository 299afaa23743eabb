//! Which file of a recording answers which path of the SEC.
//!
//! A path is taken apart, each part is checked for what it must be, and the name of the file is made
//! anew from the parts. So no path leads anywhere else.

use moothall_core::evidence::submissions::is_plain_file_name;

/// The file, relative to the recording, or nothing for a path that the SEC does not have.
pub(super) fn file_of(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    match parts.as_slice() {
        ["files", name @ ("company_tickers.json" | "company_tickers_exchange.json")] => {
            Some(format!("reference/{name}"))
        }
        ["submissions", name] if is_of_filer(name) => Some(format!("submissions/{name}")),
        ["api", "xbrl", "companyfacts", name] if is_of_filer(name) => {
            Some(format!("companyfacts/{name}"))
        }
        ["Archives", "edgar", "data", cik, filing, name]
            if is_number(cik, 1, 10) && is_number(filing, 18, 18) && is_plain_file_name(name) =>
        {
            Some(format!("archives/{cik}/{filing}/{name}"))
        }
        _ => None,
    }
}

/// `CIK0000320193.json`.
fn is_of_filer(name: &str) -> bool {
    let digits = name.strip_prefix("CIK").and_then(|rest| rest.strip_suffix(".json"));
    digits.is_some_and(|digits| is_number(digits, 10, 10))
}

fn is_number(text: &str, fewest: usize, most: usize) -> bool {
    (fewest..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
