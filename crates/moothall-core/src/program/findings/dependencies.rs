//! Imports and declared packages that the image does not have. Nothing is installed while a program
//! runs.

use std::collections::BTreeSet;

use super::{AttemptContext, listed};
use crate::program::python::is_standard;
use crate::{FindingSeverity, RunFinding};

/// Package names that differ from their import names.
const IMPORT_NAMES: [(&str, &str); 12] = [
    ("attrs", "attr"),
    ("beautifulsoup4", "bs4"),
    ("msgpack-python", "msgpack"),
    ("opencv-python", "cv2"),
    ("pillow", "PIL"),
    ("pycryptodome", "Crypto"),
    ("pyserial", "serial"),
    ("python-dateutil", "dateutil"),
    ("pyyaml", "yaml"),
    ("scikit-image", "skimage"),
    ("scikit-learn", "sklearn"),
    ("typing-extensions", "typing_extensions"),
];

/// Blocks if the program imports a missing package. Only warns if the package is just declared, or
/// imported in a guard, and the program succeeded without it.
pub(crate) fn missing(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let is_there = |module: &str| {
        is_standard(module)
            || module == "main"
            || attempt.packages.iter().any(|package| package == module)
    };
    let imports = attempt.source.imports();
    let (guarded, needed): (Vec<_>, Vec<_>) =
        imports.iter().filter(|import| !is_there(import.top())).partition(|import| import.guarded);
    let declared = attempt.dependencies.iter().map(|name| import_name(name));
    let declared: BTreeSet<String> =
        declared.filter(|name| !name.is_empty() && !is_there(name)).collect();

    let failed = !attempt.execution.exit.is_zero();
    let mut blocking: BTreeSet<&str> = needed.iter().map(|import| import.top()).collect();
    let mut harmless: BTreeSet<&str> = declared.iter().map(String::as_str).collect();
    harmless.extend(guarded.iter().map(|import| import.top()));
    if failed {
        blocking.append(&mut harmless);
    }
    harmless.retain(|name| !blocking.contains(name));

    let mut findings = Vec::new();
    let has = if attempt.packages.is_empty() {
        "has the standard library and nothing else".to_owned()
    } else {
        let packages = listed(attempt.packages.iter().map(String::as_str));
        format!("has the standard library and {packages}")
    };
    if !blocking.is_empty() {
        let message = format!("the image does not have {}; it {has}", listed(blocking));
        findings.push(attempt.finding("dependency.missing", FindingSeverity::Block, &message));
    }
    if !harmless.is_empty() {
        let message =
            format!("the image does not have {}; the program did without", listed(harmless));
        findings.push(attempt.finding("dependency.missing", FindingSeverity::Warn, &message));
    }
    findings
}

/// `Scikit-Learn>=1.2` is imported as `sklearn`.
fn import_name(declared: &str) -> String {
    let end = declared.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let name = &declared[..end.unwrap_or(declared.len())];
    let known = IMPORT_NAMES.iter().find(|(package, _)| package.eq_ignore_ascii_case(name));
    match known {
        Some((_, module)) => (*module).to_owned(),
        None => name.split('.').next().unwrap_or(name).replace('-', "_"),
    }
}
