//! The verdict on one number of a sentence.

use super::about::speaks_of;
use super::candidates::{Candidate, Formula};
use super::clause;
use super::context::Context;
use super::diagnose::{diagnose, shown, would_support};
use super::known::SheetIndex;
use super::moment::{can_be, compares};
use super::passages::{Said, say};
use super::periods::calendar_years;
use super::printed_number::PrintedNumber;
use super::tolerance::{Agreement, Closeness, agreement};
use super::units::PrintedUnit;
use super::verdict::ClaimVerdict;

/// What all numbers of a sentence share.
#[derive(Debug)]
pub(super) struct Surroundings<'s, 'a> {
    pub(super) context: &'s Context<'a>,
    pub(super) sheet: Option<&'s SheetIndex<'a>>,
    pub(super) sentence: &'s str,
    /// The sentence's own words in lower case.
    pub(super) lower: &'s str,
    /// Whether the sentence speaks of the future.
    pub(super) is_forward: bool,
}

/// Judges a number by what its sentence cites.
pub(super) fn judge(
    number: &PrintedNumber,
    around: &Surroundings<'_, '_>,
) -> (ClaimVerdict, String) {
    if number.unit == PrintedUnit::Unreadable {
        return (ClaimVerdict::Unsupported, "these digits are not read".to_owned());
    }
    let best = around.sheet.and_then(|sheet| best(number, around, sheet));
    if let Some(found) = best
        && found.agreement.sign_is_right
        && found.period_is_right
    {
        return (supported_by(&found), shown(number, found.candidate));
    }
    let said = say(&around.context.passages, number);
    if said == Said::Yes || say(&around.context.headlines, number) == Said::Yes {
        return (ClaimVerdict::Evidence, "the cited text says it".to_owned());
    }
    if let Some(found) = best {
        let verdict = if found.agreement.sign_is_right {
            ClaimVerdict::WrongPeriod
        } else {
            ClaimVerdict::WrongSign
        };
        return (verdict, shown(number, found.candidate));
    }
    if said == Said::OtherDirection {
        let why = "the cited text says it in the other direction";
        return (ClaimVerdict::WrongSign, why.to_owned());
    }
    without_support(number, around)
}

/// A candidate that the number agrees with.
#[derive(Debug, Clone, Copy)]
struct Found<'c, 'a> {
    agreement: Agreement,
    /// Whether the words beside the number can mean the candidate's period.
    period_is_right: bool,
    candidate: &'c Candidate<'a>,
}

impl Found<'_, '_> {
    /// The right sign and period before wrong ones, a fact before arithmetic, the closer one first.
    fn rank(&self) -> (bool, bool, bool, Closeness) {
        let is_fact = !self.candidate.is_computed();
        (self.agreement.sign_is_right, self.period_is_right, is_fact, self.agreement.closeness)
    }
}

fn supported_by(found: &Found<'_, '_>) -> ClaimVerdict {
    match found.agreement.closeness {
        Closeness::LastDigit => ClaimVerdict::Rounding,
        Closeness::Printed if found.candidate.is_computed() => ClaimVerdict::OkDerived,
        Closeness::Printed => ClaimVerdict::Ok,
    }
}

fn best<'c, 'a>(
    number: &PrintedNumber,
    around: &Surroundings<'c, 'a>,
    sheet: &SheetIndex<'_>,
) -> Option<Found<'c, 'a>> {
    let mut best: Option<Found<'_, '_>> = None;
    for (at, candidate) in around.context.candidates.iter().enumerate() {
        let Some(agreement) = agreement(number, candidate, sheet.currency) else { continue };
        let is_behind = at >= around.context.cited_candidates;
        let period_is_right = period_is_right(number, candidate, is_behind, around, sheet);
        let found = Found { agreement, period_is_right, candidate };
        if best.is_none_or(|known| found.rank() > known.rank()) {
            best = Some(found);
        }
    }
    best
}

/// A sentence may know a metric in several periods. The words beside the number must allow the one
/// that it agrees with; and a fact that is not cited itself, but lies behind a growth that is, can be
/// an older one only in a sentence that looks back.
fn period_is_right(
    number: &PrintedNumber,
    candidate: &Candidate<'_>,
    is_behind: bool,
    around: &Surroundings<'_, '_>,
    sheet: &SheetIndex<'_>,
) -> bool {
    let Formula::Fact(id) = candidate.formula else { return true };
    let others = around.context.other_periods(id);
    if others.is_empty() {
        return true;
    }
    let is_older = others.iter().any(|other| other.fiscal_year() > id.period.fiscal_year());
    if is_behind && is_older && !compares(around.lower) {
        return false;
    }
    let calendar = sheet.fact(id).map(|fact| calendar_years(fact, sheet)).unwrap_or_default();
    can_be(number.moment, id.period, &others, &calendar)
}

fn without_support(
    number: &PrintedNumber,
    around: &Surroundings<'_, '_>,
) -> (ClaimVerdict, String) {
    let context = around.context;
    if let Some(sheet) = around.sheet
        && !context.facts.is_empty()
    {
        return against_facts(number, around, sheet);
    }
    if context.is_assumed {
        return (ClaimVerdict::Assumption, String::new());
    }
    if !context.passages.is_empty() {
        return (ClaimVerdict::WrongValue, "the cited passage does not say it".to_owned());
    }
    if let Some(id) = around.sheet.and_then(|sheet| would_support(sheet, number, around.lower))
        && !context.has_bad_citation()
    {
        return (ClaimVerdict::Uncited, format!("[F0:{id}] would support it"));
    }
    if context.has_bad_citation() {
        return (ClaimVerdict::Unsupported, "its citation names nothing that exists".to_owned());
    }
    if around.is_forward {
        let why = "a number about the future needs an assumption, [A1: basis]";
        return (ClaimVerdict::Projection, why.to_owned());
    }
    let why = if !context.headlines.is_empty() {
        "the cited headline does not say it"
    } else if !context.events.is_empty() {
        // An event is known by its days and items. What the filing says about amounts stands in its
        // text, which is cited as T0, or in the facts.
        "a filing event has days and items, no amounts"
    } else {
        "nothing is cited"
    };
    (ClaimVerdict::Unsupported, why.to_owned())
}

fn against_facts(
    number: &PrintedNumber,
    around: &Surroundings<'_, '_>,
    sheet: &SheetIndex<'_>,
) -> (ClaimVerdict, String) {
    let context = around.context;
    let (verdict, detail) = diagnose(sheet, number, &context.facts, &context.candidates);
    let is_explained = matches!(
        verdict,
        ClaimVerdict::WrongScale | ClaimVerdict::WrongPeriod | ClaimVerdict::Miscited
    );
    if context.is_assumed {
        // An assumption may stand beside a fact, and may well be a thousandth of it. A number that
        // is called by the name of the fact, and is the wrong one to the digit, is no assumption.
        let before = around.sentence.get(..number.start).unwrap_or_default();
        let reach = clause::reach_of(before).to_lowercase();
        let is_named = context.facts.iter().any(|fact| speaks_of(&fact.id.metric, &reach));
        let is_a_slip = is_explained && number.is_precise() && is_named;
        return if is_a_slip {
            (verdict, detail)
        } else {
            (ClaimVerdict::Assumption, String::new())
        };
    }
    if around.is_forward && !is_explained && !context.has_bad_citation() {
        let why = "a number about the future needs an assumption, [A1: basis]";
        return (ClaimVerdict::Projection, why.to_owned());
    }
    (verdict, detail)
}
