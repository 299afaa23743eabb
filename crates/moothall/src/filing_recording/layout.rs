//! Maps SEC paths to the files of a recording.
//!
//! Each segment of a path is validated, and the file name is built from the validated segments, so
//! that no path can escape the recording.

use moothall_core::evidence::submissions::is_plain_file_name;

/// The file, relative to the recording; `None` for an unknown path.
pub(crate) fn recording_path(path: &str) -> Option<String> {
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

/// Matches names such as `CIK0000320193.json`.
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
