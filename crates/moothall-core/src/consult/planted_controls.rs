//! Planted controls: cases whose order is known, to test the panel.
//!
//! A known-bad move is refuted by the company's own numbers. It has the form, the style and the
//! length of a real move, so only the numbers give it away. A weakened copy is a real move at three
//! times the cost and twice the time, without evidence and without conditions to stop it.

use rust_decimal::Decimal;

use super::moves::{Move, Proposal};
use super::state::ConsultState;
use crate::claims::{numbers, sentences};
use crate::evidence::{FactId, FactSheet, FiscalPeriod};

/// Research is large enough to be missed above this share of revenue, in percent.
const MIN_RESEARCH_PERCENT: u32 = 5;

/// Author of a planted move, as of doing nothing.
const CODE: &str = "code";

/// How much a weakened copy costs more, and takes longer.
const COST_FACTOR: u32 = 3;
const TIME_FACTOR: u32 = 2;

/// The id of a planted move: `control-1`.
pub(crate) fn control_id(number: u32) -> String {
    format!("control-{number}")
}

/// Up to `count` moves that the facts refute; fewer if facts are missing.
pub(crate) fn known_bad_moves(known: &ConsultState, count: u32) -> Vec<Move> {
    let sheet = known.evidence.as_deref().and_then(|evidence| evidence.sheet.as_ref());
    let Some(figures) = sheet.and_then(CompanyFigures::of) else { return Vec::new() };
    let templates = [
        CompanyFigures::spend_everything,
        CompanyFigures::stop_research,
        CompanyFigures::borrow_dividend,
    ];
    let proposals = templates.iter().filter_map(|template| template(&figures));
    let proposals = proposals.take(usize::try_from(count).unwrap_or(usize::MAX));
    let control = |(number, proposal)| Move {
        move_id: control_id(number),
        analyst: CODE.to_owned(),
        proposal,
    };
    (1..).zip(proposals).map(control).collect()
}

/// Figures of the newest fiscal year, with their evidence ids.
struct CompanyFigures<'a> {
    sheet: &'a FactSheet,
    year: i32,
    revenue: Decimal,
}

/// A figure as a sentence shows it.
struct CitedFigure {
    value: Decimal,
    shown: String,
    id: String,
}

impl<'a> CompanyFigures<'a> {
    fn of(sheet: &'a FactSheet) -> Option<Self> {
        let year = sheet.newest_year()?;
        let revenue = sheet.value("Revenue", FiscalPeriod::Year(year))?;
        (revenue > Decimal::ZERO).then_some(Self { sheet, year, revenue })
    }

    fn figure(&self, metric: &str) -> Option<CitedFigure> {
        let id = FactId::new(metric, FiscalPeriod::Year(self.year));
        let value = self.sheet.fact(&id)?.value;
        let shown = self.sheet.display_value(&id)?;
        (value > Decimal::ZERO).then(|| CitedFigure { value, shown, id: format!("F0:{id}") })
    }

    fn money(&self, value: Decimal) -> String {
        self.sheet.display_money(value)
    }

    /// Spends far more than the company has and earns, with nothing in return.
    fn spend_everything(&self) -> Option<Proposal> {
        let (cash, flow) = (self.figure("Cash")?, self.figure("FreeCashFlow")?);
        let years = Decimal::from(3);
        let available = cash.value.checked_add(flow.value.checked_mul(years)?)?;
        let cost = self.money(available.checked_mul(Decimal::from(COST_FACTOR))?);
        let year = self.year;
        Some(Proposal {
            title: "Build a flagship campus and brand center in every region".to_owned(),
            thesis: format!(
                "The company should be visible wherever its customers are. In FY{year} it held cash of \
                 {cash} [{cash_id}] and generated free cash flow of {flow} [{flow_id}]. A program of \
                 {cost} [A1: planned budget] puts a campus, a showroom and an event space into every \
                 region at once. The buildings are owned, finished to one standard and kept open to \
                 the public. The program earns no revenue of its own and is not expected to pay back; \
                 its purpose is presence.",
                cash = cash.shown,
                cash_id = cash.id,
                flow = flow.shown,
                flow_id = flow.id,
            ),
            actions: vec![
                "The chief executive names a program office that buys sites in all regions.".into(),
                format!(
                    "The chief financial officer commits {cost} [A1: planned budget] at the start."
                ),
                "Regional managers move their teams into the new buildings as they open.".into(),
            ],
            what_must_be_true: vec![
                "Sites of one standard can be bought in every region in the same year.".into(),
                format!(
                    "The company can fund the program beyond its cash of {} [{}].",
                    cash.shown, cash.id
                ),
            ],
            evidence: vec![cash.id, flow.id],
            risks: vec![
                "Construction costs rise after the sites have been bought.".into(),
                "Other investments wait until the program is complete.".into(),
            ],
            cost: format!("{cost} [A1: planned budget], committed in the first year."),
            horizon: "Open-ended: the program has no payback.".to_owned(),
            kill_criteria: vec!["The board withdraws its support for the program.".into()],
        })
    }

    /// Ends research in a company that lives by it, to buy back shares.
    fn stop_research(&self) -> Option<Proposal> {
        let research = self.figure("ResearchDevelopment")?;
        let limit = self.revenue.checked_mul(Decimal::new(i64::from(MIN_RESEARCH_PERCENT), 2))?;
        if research.value <= limit {
            return None;
        }
        let (year, shown, id) = (self.year, &research.shown, &research.id);
        Some(Proposal {
            title: "End all research and development and buy back shares instead".to_owned(),
            thesis: format!(
                "Research is the largest cost that the company can end by its own decision. In FY{year} \
                 it spent {shown} [{id}] on research and development. All projects stop within one \
                 quarter, including those close to launch, and the laboratories are closed. The full \
                 amount buys back shares in the same year. Present products are sold for as long as \
                 customers want them, and no successor is planned. The savings cannot pay back the \
                 products that are lost."
            ),
            actions: vec![
                "The chief technology officer stops every project within one quarter.".into(),
                "The chief people officer dismisses the research staff and closes the laboratories.".into(),
                format!("The chief financial officer buys back shares for {shown} [{id}]."),
            ],
            what_must_be_true: vec![
                "Customers keep buying products that are not developed any further.".into(),
                "Competitors do not use the years in which nothing new appears.".into(),
            ],
            evidence: vec![research.id.clone(), format!("F0:Revenue:FY{year}")],
            risks: vec![
                "The present products lose their customers without a successor.".into(),
                "The people who could start research again are gone.".into(),
            ],
            cost: format!("{shown} [{id}] for the buyback, taken from research."),
            horizon: "One year for the buyback; there is no payback after it.".to_owned(),
            kill_criteria: vec!["The share price falls during the buyback.".into()],
        })
    }

    /// Borrows three years of free cash flow to pay it out.
    fn borrow_dividend(&self) -> Option<Proposal> {
        let flow = self.figure("FreeCashFlow")?;
        let amount = self.money(flow.value.checked_mul(Decimal::from(3))?);
        let debt = self.figure("TotalDebt");
        let year = self.year;
        let before = debt.as_ref().map_or_else(String::new, |debt| {
            format!(" The new debt comes on top of {} [{}].", debt.shown, debt.id)
        });
        Some(Proposal {
            title: "Borrow to pay a special dividend now".to_owned(),
            thesis: format!(
                "Shareholders should not wait for money that the company will earn later. In FY{year} free \
                 cash flow was {shown} [{id}]. A special dividend of three years of it, {amount} [A1: \
                 three times the last year], is paid at once and financed by new loans in full.{before} \
                 Nothing is invested, and the interest lowers free cash flow in every later year. The \
                 loans have no payback from the business: they are extended when they fall due.",
                shown = flow.shown,
                id = flow.id,
            ),
            actions: vec![
                format!(
                    "The treasurer borrows {amount} [A1: three times the last year] from banks."
                ),
                "The board declares the special dividend in the same quarter.".into(),
                "The chief financial officer extends the loans whenever they fall due.".into(),
            ],
            what_must_be_true: vec![
                "Banks lend the full amount without a claim on the business.".into(),
                "Interest rates stay low for as long as the loans are extended.".into(),
            ],
            evidence: [Some(flow.id), debt.map(|debt| debt.id)].into_iter().flatten().collect(),
            risks: vec![
                "One weak year makes the interest larger than the free cash flow.".into(),
                "Suppliers and customers doubt that the company stays solvent.".into(),
            ],
            cost: format!("{amount} [A1: three times the last year] of new debt, plus interest."),
            horizon: "Immediate for shareholders; there is no payback for the company.".to_owned(),
            kill_criteria: vec!["Banks refuse to extend the loans.".into()],
        })
    }
}

/// The same move, made worse: three times the cost, twice the time, no evidence, nothing that would
/// stop it. Fields without a number get a sentence.
pub(crate) fn weakened_copy(proposal: &Proposal) -> Proposal {
    Proposal {
        cost: multiply(&proposal.cost, COST_FACTOR, |text| {
            format!("Three times what a plan like this usually costs. {text}")
        }),
        horizon: multiply(&proposal.horizon, TIME_FACTOR, |text| {
            format!("Twice the usual time. {text}")
        }),
        evidence: Vec::new(),
        kill_criteria: Vec::new(),
        ..proposal.clone()
    }
}

/// Multiplies the amounts and periods of a text, which the claim checker's reader finds; years
/// such as 2027 stay. `otherwise` rewrites a text without any.
fn multiply(text: &str, factor: u32, otherwise: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut at = 0;
    let mut is_changed = false;
    for sentence in sentences(text) {
        let Some(part) = text.get(sentence.clone()) else { continue };
        let read = numbers(part).into_iter().map(|number| number.start..number.end);
        for range in amounts(part, read.collect()) {
            let (start, end) = (sentence.start + range.start, sentence.start + range.end);
            let Some(printed) = text.get(start..end).filter(|_| start >= at) else { continue };
            let Some(larger) = multiplied(printed, factor) else { continue };
            out.push_str(text.get(at..start).unwrap_or_default());
            out.push_str(&larger);
            at = end;
            is_changed = true;
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    if is_changed { out } else { otherwise(text) }
}

/// Numbers that the reader finds, and small whole numbers before a unit of time, which it takes for
/// enumerations; in order.
fn amounts(sentence: &str, mut found: Vec<std::ops::Range<usize>>) -> Vec<std::ops::Range<usize>> {
    const UNITS: [&str; 5] = ["year", "month", "quarter", "week", "day"];
    let mut at = 0;
    for word in sentence.split_inclusive(char::is_whitespace) {
        let digits = word.trim_end();
        let range = at..at + digits.len();
        at += word.len();
        let is_small =
            (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let next = sentence.get(at..).unwrap_or_default().to_lowercase();
        if is_small && UNITS.iter().any(|unit| next.starts_with(unit)) {
            found.push(range);
        }
    }
    found.sort_by_key(|range| range.start);
    found.dedup_by(|later, earlier| later.start < earlier.end);
    found
}

/// The printed number with its digits multiplied: `$1.5 billion` becomes `$4.5 billion`.
fn multiplied(printed: &str, factor: u32) -> Option<String> {
    let start = printed.find(|sign: char| sign.is_ascii_digit())?;
    let rest = printed.get(start..)?;
    let is_part = |sign: char| sign.is_ascii_digit() || matches!(sign, ',' | '.');
    let length = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
    let digits = rest.get(..length)?.trim_end_matches(['.', ',']);
    let value: Decimal = digits.replace(',', "").parse().ok()?;
    let larger = value.checked_mul(Decimal::from(factor))?;
    let behind = rest.get(digits.len()..)?;
    Some(format!("{}{larger}{behind}", printed.get(..start)?))
}

#[cfg(test)]
#[path = "planted_controls_tests.rs"]
mod tests;
