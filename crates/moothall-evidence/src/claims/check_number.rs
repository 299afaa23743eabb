//! Decides the verdict on one number of a sentence.

use super::candidates::{CandidateFormula, ValueCandidate};
use super::cited_text::{NumberMention, find_mention};
use super::clause;
use super::context::SentenceContext;
use super::diagnose::{describe_candidate, diagnose, would_support};
use super::fact_index::SheetIndex;
use super::metric_terms::mentions_metric;
use super::period_cues::{allows_period, compares};
use super::periods::calendar_years;
use super::printed_number::PrintedNumber;
use super::tolerance::{CandidateAgreement, NumberCloseness, agreement};
use super::units::PrintedUnit;
use super::verdict::ClaimVerdict;

/// The inputs shared by all numbers of a sentence.
#[derive(Debug)]
pub(crate) struct NumberCheckInput<'s, 'a> {
    pub(crate) context: &'s SentenceContext<'a>,
    pub(crate) sheet: Option<&'s SheetIndex<'a>>,
    pub(crate) sentence: &'s str,
    /// The sentence without citations, in lower case.
    pub(crate) lower: &'s str,
    /// Whether the sentence is about the future.
    pub(crate) is_forward: bool,
}

/// Checks a number against what its sentence cites.
pub(crate) fn judge(
    number: &PrintedNumber,
    around: &NumberCheckInput<'_, '_>,
) -> (ClaimVerdict, String) {
    if number.unit == PrintedUnit::Unreadable {
        return (ClaimVerdict::Unsupported, "these digits are not read".to_owned());
    }
    let best = around.sheet.and_then(|sheet| best_candidate(number, around, sheet));
    if let Some(found) = best
        && found.agreement.sign_is_right
        && found.period_is_right
    {
        return (supported_by(&found), describe_candidate(number, found.candidate));
    }
    let said = find_mention(&around.context.passages, number);
    if said == NumberMention::Yes
        || find_mention(&around.context.headlines, number) == NumberMention::Yes
    {
        return (ClaimVerdict::Evidence, "the cited text says it".to_owned());
    }
    if let Some(found) = best {
        let verdict = if found.agreement.sign_is_right {
            ClaimVerdict::WrongPeriod
        } else {
            ClaimVerdict::WrongSign
        };
        return (verdict, describe_candidate(number, found.candidate));
    }
    if said == NumberMention::OtherDirection {
        let why = "the cited text says it in the other direction";
        return (ClaimVerdict::WrongSign, why.to_owned());
    }
    without_support(number, around)
}

/// A candidate that the number agrees with.
#[derive(Debug, Clone, Copy)]
struct CandidateMatch<'c, 'a> {
    agreement: CandidateAgreement,
    /// Whether the words beside the number allow the candidate's period.
    period_is_right: bool,
    candidate: &'c ValueCandidate<'a>,
}

impl CandidateMatch<'_, '_> {
    /// Correct sign first, then correct period, facts before computed values, then closeness.
    fn rank(&self) -> (bool, bool, bool, NumberCloseness) {
        let is_fact = !self.candidate.is_computed();
        (self.agreement.sign_is_right, self.period_is_right, is_fact, self.agreement.closeness)
    }
}

fn supported_by(found: &CandidateMatch<'_, '_>) -> ClaimVerdict {
    match found.agreement.closeness {
        NumberCloseness::LastDigit => ClaimVerdict::Rounding,
        NumberCloseness::Printed if found.candidate.is_computed() => ClaimVerdict::OkDerived,
        NumberCloseness::Printed => ClaimVerdict::Ok,
    }
}

fn best_candidate<'c, 'a>(
    number: &PrintedNumber,
    around: &NumberCheckInput<'c, 'a>,
    sheet: &SheetIndex<'_>,
) -> Option<CandidateMatch<'c, 'a>> {
    let mut best: Option<CandidateMatch<'_, '_>> = None;
    for (at, candidate) in around.context.candidates.iter().enumerate() {
        let Some(agreement) = agreement(number, candidate, sheet.currency) else { continue };
        let is_behind = at >= around.context.cited_candidates;
        let period_is_right = period_is_right(number, candidate, is_behind, around, sheet);
        let found = CandidateMatch { agreement, period_is_right, candidate };
        if best.is_none_or(|known| found.rank() > known.rank()) {
            best = Some(found);
        }
    }
    best
}

/// A sentence may cite a metric for several periods. The words beside the number must allow the
/// period of the candidate. An uncited input of a cited growth rate may be an older period only in
/// a sentence that makes a comparison.
fn period_is_right(
    number: &PrintedNumber,
    candidate: &ValueCandidate<'_>,
    is_behind: bool,
    around: &NumberCheckInput<'_, '_>,
    sheet: &SheetIndex<'_>,
) -> bool {
    let CandidateFormula::Fact(id) = candidate.formula else { return true };
    let others = around.context.other_periods(id);
    if others.is_empty() {
        return true;
    }
    let is_older = others.iter().any(|other| other.fiscal_year() > id.period.fiscal_year());
    if is_behind && is_older && !compares(around.lower) {
        return false;
    }
    let calendar = sheet.fact(id).map(|fact| calendar_years(fact, sheet)).unwrap_or_default();
    allows_period(number.period_cue, id.period, &others, &calendar)
}

fn without_support(
    number: &PrintedNumber,
    around: &NumberCheckInput<'_, '_>,
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
        // An event has only dates and items. Amounts are in the text of the filing, cited as T0, or
        // in the facts.
        "a filing event has days and items, no amounts"
    } else {
        "nothing is cited"
    };
    (ClaimVerdict::Unsupported, why.to_owned())
}

fn against_facts(
    number: &PrintedNumber,
    around: &NumberCheckInput<'_, '_>,
    sheet: &SheetIndex<'_>,
) -> (ClaimVerdict, String) {
    let context = around.context;
    let (verdict, detail) = diagnose(sheet, number, &context.facts, &context.candidates);
    let is_explained = matches!(
        verdict,
        ClaimVerdict::WrongScale | ClaimVerdict::WrongPeriod | ClaimVerdict::Miscited
    );
    if context.is_assumed {
        // An assumption may appear beside a fact and may be a thousandth of it. But a precise
        // number that is called by the fact's name and matches a known mistake is an error, not an
        // assumption.
        let before = around.sentence.get(..number.start).unwrap_or_default();
        let reach = clause::clause_before(before).to_lowercase();
        let is_named = context.facts.iter().any(|fact| mentions_metric(&fact.id.metric, &reach));
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
