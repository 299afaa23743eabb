//! How often each model caught planted controls, over all verdicts in which it judged.
//!
//! Five controls of one run say little about one member: a model that scores at random passes half
//! of the time. Its record over many runs tells it apart from a good one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::panel_record::PanelVerdict;
use crate::verdict::normal_quantile;

/// A model that catches a smaller share is not a reliable judge, in thousandths.
const RELIABLE_FROM: u32 = 800;

/// The probability with which the interval contains the true share.
const INTERVAL: f64 = 0.95;

/// The controls of one model in all runs. Shares are in thousandths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlRecord {
    /// The model.
    pub model: String,
    /// Runs in which it scored a control.
    pub runs: u32,
    /// Controls that its members scored, each counted once per member.
    pub planted: u32,
    /// The controls they caught.
    pub caught: u32,
    /// The share that was caught.
    pub share: u32,
    /// The lower end of the 95 % interval of the share.
    pub low: u32,
    /// The upper end.
    pub high: u32,
}

impl ControlRecord {
    /// Whether the model caught fewer than 80 % of its controls.
    pub fn is_weak(&self) -> bool {
        self.share < RELIABLE_FROM
    }

    /// The record as text: `58 of 60 controls caught (97 %, 95 % interval 89 to 99 %)`.
    pub fn text(&self) -> String {
        let Self { caught, planted, share, low, high, .. } = self;
        let [share, low, high] = [share, low, high].map(|part| (part + 5) / 10);
        format!(
            "{caught} of {planted} controls caught ({share} %, 95 % interval {low} to {high} %)"
        )
    }
}

#[derive(Default)]
struct ControlTally {
    runs: u32,
    planted: u32,
    caught: u32,
}

/// The record of every model that judged, by name. A control that a member gave no usable scores
/// shows nothing about it.
pub fn control_records<'a>(
    verdicts: impl IntoIterator<Item = &'a PanelVerdict>,
) -> Vec<ControlRecord> {
    let mut tallies = BTreeMap::<&str, ControlTally>::new();
    for verdict in verdicts {
        let mut in_run = BTreeMap::<&str, ControlTally>::new();
        for result in &verdict.tiers.controls.results {
            let planted = verdict.record.controls.iter().find(|one| one.id == result.id);
            for judge in &verdict.record.judges {
                let card = planted.and_then(|planted| planted.cards.get(&judge.id));
                if card.is_some_and(|card| card.is_given()) {
                    let tally = in_run.entry(&judge.model).or_default();
                    tally.planted += 1;
                    tally.caught += u32::from(result.caught_by.contains(&judge.id));
                }
            }
        }
        for (model, found) in in_run {
            let tally = tallies.entry(model).or_default();
            tally.runs += 1;
            tally.planted += found.planted;
            tally.caught += found.caught;
        }
    }
    tallies.into_iter().map(|(model, tally)| record(model, &tally)).collect()
}

fn record(model: &str, tally: &ControlTally) -> ControlRecord {
    let ControlTally { runs, planted, caught } = *tally;
    let (count, share) = (f64::from(planted), f64::from(caught) / f64::from(planted.max(1)));
    // Wilson: it stays within 0 and 1, also for a few controls.
    let width = normal_quantile(0.5 + INTERVAL / 2.0);
    let square = width * width;
    let middle = (share + square / (2.0 * count)) / (1.0 + square / count);
    let noise = share * (1.0 - share) / count + square / (4.0 * count * count);
    let reach = width * noise.sqrt() / (1.0 + square / count);
    let in_thousandths = |part: f64| (part.clamp(0.0, 1.0) * 1_000.0).round() as u32;
    ControlRecord {
        model: model.to_owned(),
        runs,
        planted,
        caught,
        share: in_thousandths(share),
        low: in_thousandths(middle - reach),
        high: in_thousandths(middle + reach),
    }
}

#[cfg(test)]
#[path = "control_record_tests.rs"]
mod tests;
