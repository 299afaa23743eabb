//! The built-in recording of a fictional company, Helix Instruments, Inc.
//!
//! `recordings/make_hlxi.py` generates the files.

/// Not the ticker of any listed company.
pub(crate) const TICKER: &str = "HLXI";

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../recordings/hlxi/", $path)).as_slice())),+]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "archives/9990001/000999000126000008/hlxi-20251231.htm",
    "companyfacts/CIK0009990001.json",
    "reference/company_tickers.json",
    "submissions/CIK0009990001.json",
];

pub(crate) fn read(file: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(path, _)| *path == file).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
#[path = "bundled_tests.rs"]
mod tests;
