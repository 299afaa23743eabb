//! `cargo xtask bench secrets`: what the gate's search for credentials finds in the generated corpus,
//! beside two published scanners, each as it is when nobody configures it.

#[path = "../../../crates/moothall-core/src/gate/secrets_corpus.rs"]
mod corpus;

use std::io::Write as _;

use anyhow::{Result, bail};
use moothall_core::gate::{FingerprintKey, scan_secrets};

use self::corpus::{Dice, assigned, evasions, negatives, placed, tokens};

/// The promises of SPECIFICATION.md, in hundredths.
const AT_LEAST: usize = 97;
const SEEDS: u64 = 6;

/// Says whether there is a credential in a file of this name.
type Finds<'a> = Box<dyn Fn(&str, &[u8]) -> Result<bool> + 'a>;

struct Corpus {
    credentials: Vec<Vec<u8>>,
    disguises: Vec<Vec<u8>>,
    harmless: Vec<Vec<u8>>,
}

impl Corpus {
    fn new() -> Self {
        let line = |line: &str| format!("a = 1\n{line}\nb = 2\n").into_bytes();
        let mut all = Self { credentials: vec![], disguises: vec![], harmless: vec![] };
        for seed in 0..SEEDS {
            let mut dice = Dice(seed);
            let tokens = tokens(&mut dice).into_iter().enumerate();
            let placed = tokens.map(|(at, (_, token))| placed(at + seed as usize, &token));
            all.credentials.extend(placed.map(String::into_bytes));
            let assigned = assigned(&mut dice).into_iter();
            all.credentials.extend(assigned.map(|(_, text)| line(&text)));
            all.disguises.extend(evasions(&mut dice).into_iter().map(|(_, bytes)| bytes));
            all.harmless.extend(negatives(&mut dice).iter().map(|text| line(text)));
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
    fn of(name: &'static str, finds: Finds<'_>, corpus: &Corpus) -> Result<Self> {
        let count = |texts: &[Vec<u8>]| -> Result<usize> {
            let mut found = 0;
            for text in texts {
                found += usize::from(finds("settings.py", text)?);
            }
            Ok(found)
        };
        Ok(Self {
            name,
            found: count(&corpus.credentials)?,
            alarms: count(&corpus.harmless)?,
            disguised: count(&corpus.disguises)?,
        })
    }

    fn recall(&self, corpus: &Corpus) -> f64 {
        self.found as f64 / corpus.credentials.len() as f64
    }

    fn precision(&self) -> f64 {
        self.found as f64 / (self.found + self.alarms).max(1) as f64
    }

    /// The harmonic mean of both.
    fn f1(&self, corpus: &Corpus) -> f64 {
        let (recall, precision) = (self.recall(corpus), self.precision());
        2.0 * recall * precision / (recall + precision)
    }
}

fn main() -> Result<()> {
    let corpus = Corpus::new();
    let key = FingerprintKey::new([7; 32]);
    let keyspoor = keyspoor::Engine::new(keyspoor::EngineConfig::default())?;
    let scanner = secrets_scanner::Scanner::from_bundled()?;
    let ours: Finds<'_> = Box::new(|_, bytes| Ok(!scan_secrets(bytes, &key).is_empty()));
    let scores = [
        Score::of("moothall", ours, &corpus)?,
        Score::of(
            "keyspoor 0.1.4",
            Box::new(|path, bytes| Ok(!keyspoor.scan_bytes(path, bytes)?.is_empty())),
            &corpus,
        )?,
        Score::of(
            "secrets_scanner 0.2.3",
            Box::new(|path, bytes| Ok(!scanner.scan_bytes(path, bytes).is_empty())),
            &corpus,
        )?,
    ];
    let (all, lines, tricks) =
        (corpus.credentials.len(), corpus.harmless.len(), corpus.disguises.len());
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{SEEDS} seeds: {all} credentials, {lines} harmless lines, {tricks} disguises; each scanner as it comes"
    )?;
    for one in &scores {
        writeln!(
            out,
            "{:<22} recall {:.3} ({}/{all})  precision {:.3} ({} false alarms)  F1 {:.3}  disguises {}/{tricks}",
            one.name,
            one.recall(&corpus),
            one.found,
            one.precision(),
            one.alarms,
            one.f1(&corpus),
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
        if ours.f1(&corpus) <= other.f1(&corpus) || ours.disguised <= other.disguised {
            bail!("{} is not worse", other.name);
        }
    }
    Ok(())
}
