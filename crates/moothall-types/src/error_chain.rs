//! Formatting of error chains.

use std::error::Error;

/// The causes of an error, outermost first, without the error itself.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// An error and its causes on one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(&format!(": {cause}"));
    }
    text
}
