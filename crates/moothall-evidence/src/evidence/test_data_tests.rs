//! Real filings for tests.

use std::path::PathBuf;
use std::sync::LazyLock;

use crate::evidence::{CalendarDay, CompanyFacts, FactSheet};

/// The folder with recorded responses of the SEC's service.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../moothall-testkit/filings"))
}

/// Reads a file of that folder.
#[track_caller]
pub(crate) fn read(name: &str) -> Vec<u8> {
    fs_err::read(folder().join(name)).unwrap()
}

/// A company whose facts are in the folder.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) facts: LazyLock<CompanyFacts>,
    /// Built from all filings.
    pub(crate) sheet: LazyLock<FactSheet>,
}

macro_rules! samples {
    ($($name:ident = $file:literal, $title:literal;)+) => {
        $(
            pub(crate) static $name: Sample = Sample {
                name: $title,
                facts: LazyLock::new(|| {
                    let bytes = read(concat!("companyfacts/", $file, ".json"));
                    CompanyFacts::parse(&bytes).unwrap()
                }),
                sheet: LazyLock::new(|| FactSheet::build(&$name.facts, CalendarDay::MAX).unwrap()),
            };
        )+
        pub(crate) static ALL: &[&Sample] = &[$(&$name),+];
    };
}

samples! {
    APPLE = "CIK0000320193", "apple";
    NVIDIA = "CIK0001045810", "nvidia";
    ALPHABET = "CIK0001652044", "alphabet";
    MARVELL = "CIK0001835632", "marvell";
    SNOWFLAKE = "CIK0001640147", "snowflake";
    MICROSOFT = "CIK0000789019", "microsoft";
    WALMART = "CIK0000104169", "walmart";
    JPMORGAN = "CIK0000019617", "jpmorgan";
    LOGISTIC_PROPERTIES = "CIK0001997711", "logistic_properties";
}
