//! `cargo xtask bench secrets`: compares what the gate's credential scan finds in the generated
//! corpus with two published scanners in their default configuration.

#[path = "../../../crates/moothall-gate/src/gate/secrets_corpus.rs"]
mod corpus;

use std::io::Write as _;

use anyhow::{Result, bail};
use moothall_core::gate::{FingerprintKey, scan_secrets};

use self::corpus::SecretCorpus;

/// The promises of SPECIFICATION.md, in percent.
const AT_LEAST: usize = 97;
/// The same number as in the test `the_generated_corpus_is_told_apart`.
const SEEDS: u64 = 6;

/// Whether a file with this name and content contains a credential.
type Finds<'a> = Box<dyn Fn(&str, &[u8]) -> Result<bool> + 'a>;

/// The files of all seeds.
#[derive(Default)]
struct Files {
    credentials: Vec<Vec<u8>>,
    disguises: Vec<Vec<u8>>,
    harmless: Vec<Vec<u8>>,
}

impl Files {
    fn new() -> Self {
        let mut all = Self::default();
        for one in (0..SEEDS).map(SecretCorpus::of) {
            all.credentials.extend(one.credentials.into_iter().map(|(_, bytes)| bytes));
            all.disguises.extend(one.disguises.into_iter().map(|(_, bytes)| bytes));
            all.harmless.extend(one.harmless);
        }
        all
    }
}

struct Score {
    name: &'static str,
    found: usize,
    alarms: usize,
    disguised: usize,
}

impl Score {
    fn of(name: &'static str, finds: Finds<'_>, files: &Files) -> Result<Self> {
        let count = |texts: &[Vec<u8>]| -> Result<usize> {
            let mut found = 0;
            for text in texts {
                found += usize::from(finds("settings.py", text)?);
            }
            Ok(found)
        };
        Ok(Self {
            name,
            found: count(&files.credentials)?,
            alarms: count(&files.harmless)?,
            disguised: count(&files.disguises)?,
        })
    }

    fn recall(&self, files: &Files) -> f64 {
        self.found as f64 / files.credentials.len() as f64
    }

    fn precision(&self) -> f64 {
        self.found as f64 / (self.found + self.alarms).max(1) as f64
    }
}

fn main() -> Result<()> {
    let files = Files::new();
    let key = FingerprintKey::new([7; 32]);
    let keyspoor = keyspoor::Engine::new(keyspoor::EngineConfig::default())?;
    let scanner = secrets_scanner::Scanner::from_bundled()?;
    let ours: Finds<'_> = Box::new(|_, bytes| Ok(!scan_secrets(bytes, &key).is_clean()));
    let scores = [
        Score::of("moothall", ours, &files)?,
        Score::of(
            "keyspoor 0.1.4",
            Box::new(|path, bytes| Ok(!keyspoor.scan_bytes(path, bytes)?.is_empty())),
            &files,
        )?,
        Score::of(
            "secrets_scanner 0.2.3",
            Box::new(|path, bytes| Ok(!scanner.scan_bytes(path, bytes).is_empty())),
            &files,
        )?,
    ];
    let (all, lines, tricks) =
        (files.credentials.len(), files.harmless.len(), files.disguises.len());
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{SEEDS} seeds: {all} credentials, {lines} harmless lines, {tricks} disguises; each scanner as it comes"
    )?;
    for one in &scores {
        writeln!(
            out,
            "{:<22} recall {:.3} ({}/{all})  precision {:.3} ({} false alarms)  disguises {}/{tricks}",
            one.name,
            one.recall(&files),
            one.found,
            one.precision(),
            one.alarms,
            one.disguised,
        )?;
    }
    let [ours, others @ ..] = &scores;
    if ours.found * 100 < all * AT_LEAST
        || ours.found * 100 < (ours.found + ours.alarms) * AT_LEAST
        || ours.disguised < tricks
    {
        bail!("the promise is broken");
    }
    for other in others {
        if ours.found <= other.found
            || ours.precision() <= other.precision()
            || ours.disguised <= other.disguised
        {
            bail!("{} is not worse", other.name);
        }
    }
    Ok(())
}
