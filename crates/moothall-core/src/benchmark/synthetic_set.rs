//! The set `synthetic-1`: 40 fictional companies with 15 moves each.

use serde::Serialize;

use super::company_filings::company_facts_json;
use super::hash_noise::HashNoise;
use super::move_templates::{MoveInputs, MoveTemplate, PlanScale};
use crate::consult::Proposal;
use crate::verdict::{CaseFile, HiddenNames, normal_quantile};
use crate::{CanonicalJsonError, Sha256Hex, canonical_json};

const SEED: u64 = 1;
const COMPANIES: usize = 40;
const MOVES: usize = 15;

/// Mean value of a company's moves, and the deviation that they are made with, as shares of revenue.
const MEAN_VALUE: f64 = 0.01;
const VALUE_DEVIATION: f64 = 0.02;

/// Texts have one of so many lengths.
const LENGTHS: usize = 5;
/// Texts begin with one of so many phrases.
pub(crate) const STYLES: usize = 5;

const NAME_STARTS: [&str; 8] = ["Or", "Bel", "Cas", "Dun", "Fer", "Hal", "Kel", "Mar"];
const NAME_ENDS: [&str; 5] = ["vane", "dric", "tova", "wick", "lune"];
const KINDS: [&str; 5] = ["Industries", "Works", "Systems", "Engineering", "Products"];
const GOODS: [&str; 24] = [
    "pumps",
    "valves",
    "sensors",
    "filters",
    "motors",
    "cables",
    "panels",
    "bearings",
    "lenses",
    "coatings",
    "gauges",
    "pipes",
    "sealants",
    "blades",
    "scales",
    "printers",
    "chillers",
    "burners",
    "mixers",
    "presses",
    "lathes",
    "lamps",
    "batteries",
    "drives",
];
const OPENINGS: [&str; STYLES] = [
    "In plain terms, this is what happens.",
    "The plan is short.",
    "Seen from the side of customers, the change is small.",
    "The figures come first.",
    "The steps follow from one another.",
];

/// A benchmark: companies, their moves and what each move is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkSet {
    /// Its name in commands: `synthetic-1`.
    pub name: &'static str,
    /// The companies, by number.
    pub companies: Vec<BenchmarkCompany>,
}

/// A company that does not exist.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkCompany {
    /// Starting at 1.
    pub number: u32,
    /// The name, marked as fictional.
    pub name: String,
    /// Revenue of the last year in units of 10,000 dollars.
    pub(crate) revenue: i64,
    /// The moves, in the order in which analysts propose them.
    pub moves: Vec<BenchmarkMove>,
}

/// A move with a known value.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkMove {
    /// The text that analysts propose.
    pub proposal: Proposal,
    /// The kind of move.
    pub template: MoveTemplate,
    /// The index of the phrase that its text begins with: judges may prefer one.
    pub style: usize,
    /// Net present value at 10 % over five years, as a share of yearly revenue.
    pub value: f64,
    /// Length of the text in words, as the panel reads it.
    pub words: usize,
    pub(crate) inputs: MoveInputs,
}

impl BenchmarkSet {
    /// Names of all sets.
    pub const NAMES: [&str; 1] = ["synthetic-1"];

    /// A set by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMES.contains(&name).then(Self::synthetic_1)
    }

    /// 40 companies with 15 moves each.
    pub fn synthetic_1() -> Self {
        let companies = (1..).take(COMPANIES).map(BenchmarkCompany::new).collect();
        Self { name: "synthetic-1", companies }
    }

    /// The hash of all filings, texts and values.
    pub fn sha256(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        let forms: Vec<String> =
            self.companies.iter().map(canonical_company).collect::<Result<_, _>>()?;
        Ok(Sha256Hex::of(forms.join("\n").as_bytes()))
    }

    /// The company with a ticker of this set.
    pub fn company(&self, ticker: &str) -> Option<&BenchmarkCompany> {
        self.companies.iter().find(|company| company.ticker() == ticker)
    }
}

/// A company as the hash of its set sees it.
#[derive(Serialize)]
struct CompanyForm<'a> {
    facts: String,
    moves: Vec<(&'a Proposal, i64)>,
}

fn canonical_company(company: &BenchmarkCompany) -> Result<String, CanonicalJsonError> {
    let moves = company.moves.iter();
    // Billionths: far below what rounding of the inputs changes.
    let moves = moves.map(|one| (&one.proposal, (one.value * 1e9).round() as i64));
    canonical_json(&CompanyForm { facts: company_facts_json(company), moves: moves.collect() })
}

impl BenchmarkCompany {
    /// Prefix of the tickers; no listed company has one like this.
    pub const TICKER_PREFIX: &str = "EVAL-";

    fn new(number: u32) -> Self {
        let noise = HashNoise::new(SEED);
        let index = usize::try_from(number).unwrap_or(0).saturating_sub(1);
        let place = number.to_string();
        let brand = format!(
            "{}{}",
            NAME_STARTS[index % NAME_STARTS.len()],
            NAME_ENDS[index / NAME_STARTS.len() % NAME_ENDS.len()]
        );
        let kind = KINDS[noise.below(&["kind", &place], KINDS.len())];
        // From 200 million to 2 billion dollars.
        let revenue = 20_000 + (noise.uniform(&["revenue", &place]) * 180_000.0) as i64;
        let mut company = Self {
            number,
            name: format!("{brand} {kind}, Inc. (fictional)"),
            revenue,
            moves: Vec::new(),
        };
        company.moves = company.make_moves(&brand, noise, &place);
        company
    }

    /// The ticker: `EVAL-07`.
    pub fn ticker(&self) -> String {
        format!("{}{:02}", Self::TICKER_PREFIX, self.number)
    }

    fn make_moves(&self, brand: &str, noise: HashNoise, place: &str) -> Vec<BenchmarkMove> {
        let units = true_units(noise, place);
        let lengths = lengths_by_rank(noise, place);
        let templates = noise.shuffled(&["templates", place], 2 * MoveTemplate::ALL.len());
        let goods = noise.shuffled(&["goods", place], GOODS.len());
        let ranks = noise.shuffled(&["ranks", place], MOVES);
        let made = ranks.iter().zip(templates).zip(goods);
        made.map(|((rank, template), goods)| {
            let template = MoveTemplate::ALL[template % MoveTemplate::ALL.len()];
            let products = format!("{brand} {}", GOODS[goods]);
            let factor = 0.95 + 0.1 * noise.uniform(&["size", &products]);
            let revenue = self.revenue as f64;
            let value = (MEAN_VALUE + VALUE_DEVIATION * units[*rank]) * revenue;
            let inputs = MoveInputs::solve(template, value, PlanScale { revenue, factor });
            let style = noise.below(&["style", &products], STYLES);
            let writer = MoveWriter { products: &products, style, length: lengths[*rank], noise };
            let proposal = writer.proposal(&inputs);
            let value = inputs.net_present_value() / revenue;
            let words = words_of_case(&CaseFile::of(&proposal, None, &HiddenNames::default()).text);
            BenchmarkMove { proposal, template, style, value, words, inputs }
        })
        .collect()
    }

    /// True values of the moves in units of their standard deviation, around zero.
    pub fn true_units(&self) -> Vec<f64> {
        let (mean, deviation) = self.moments();
        self.moves.iter().map(|one| (one.value - mean) / deviation).collect()
    }

    /// The true value of doing nothing in the same units.
    pub fn do_nothing_units(&self) -> f64 {
        let (mean, deviation) = self.moments();
        -mean / deviation
    }

    fn moments(&self) -> (f64, f64) {
        let count = self.moves.len() as f64;
        let mean = self.moves.iter().map(|one| one.value).sum::<f64>() / count;
        let squares = self.moves.iter().map(|one| (one.value - mean) * (one.value - mean));
        (mean, (squares.sum::<f64>() / (count - 1.0)).sqrt())
    }

    /// The best of the moves with these titles.
    pub fn best_of<'a>(
        &self,
        titles: impl Iterator<Item = &'a String> + Clone,
    ) -> Option<&BenchmarkMove> {
        let is_asked =
            |one: &&BenchmarkMove| titles.clone().any(|title| *title == one.proposal.title);
        let moves = self.moves.iter().filter(is_asked);
        moves.max_by(|one, other| one.value.total_cmp(&other.value))
    }
}

/// Values by rank, best first: normal quantiles with a little noise, and a best move that is clearly
/// the best.
fn true_units(noise: HashNoise, place: &str) -> Vec<f64> {
    let quantile = |rank: usize| {
        let probability = (rank as f64 + 0.5) / MOVES as f64;
        let value = match probability < 0.5 {
            true => normal_quantile(1.0 - probability),
            false => -normal_quantile(probability),
        };
        value + 0.12 * (noise.uniform(&["value", place, &rank.to_string()]) - 0.5)
    };
    let mut units: Vec<f64> = (0..MOVES).map(quantile).collect();
    let second = units.get(1).copied().unwrap_or(0.0);
    if let Some(best) = units.first_mut() {
        *best = second + 0.65 + 0.3 * noise.uniform(&["lead", place]);
    }
    units
}

/// A length for each rank: two of the best five are shortest, two of the worst five longest, and
/// length and rank are not correlated.
fn lengths_by_rank(noise: HashNoise, place: &str) -> Vec<usize> {
    let mut lengths = vec![0; MOVES];
    let planted = |what: &str, first: usize, length: usize| {
        let ranks = noise.shuffled(&[what, place], 3);
        ranks.into_iter().take(2).map(move |rank| (first + rank, length))
    };
    // The second of the best five and of the worst five stay free: they can balance the others.
    let planted: Vec<(usize, usize)> =
        planted("short", 2, 0).chain(planted("long", MOVES - 5, LENGTHS - 1)).collect();
    for (rank, length) in &planted {
        lengths[*rank] = *length;
    }
    // Three texts of each length.
    let mut left: Vec<usize> = (0..MOVES).map(|index| index % LENGTHS).collect();
    for (_, length) in &planted {
        if let Some(at) = left.iter().position(|one| one == length) {
            left.remove(at);
        }
    }
    let free: Vec<usize> =
        (0..MOVES).filter(|rank| planted.iter().all(|(other, _)| other != rank)).collect();
    for (rank, at) in free.iter().zip(noise.shuffled(&["lengths", place], left.len())) {
        lengths[*rank] = left[at];
    }
    // Swaps the pair that balances best, until nothing is gained.
    loop {
        let now = imbalance(&lengths);
        let pairs = free.iter().flat_map(|one| free.iter().map(move |other| (*one, *other)));
        let swapped = pairs.map(|(one, other)| {
            let mut tried = lengths.clone();
            tried.swap(one, other);
            (imbalance(&tried), tried)
        });
        match swapped.min_by_key(|(imbalance, _)| *imbalance) {
            Some((least, tried)) if least < now => lengths = tried,
            _ => return lengths,
        }
    }
}

/// How far length and rank are from being uncorrelated; 91 for a perfect correlation.
fn imbalance(lengths: &[usize]) -> usize {
    let products = lengths.iter().enumerate().map(|(rank, length)| {
        (rank as f64 - (MOVES - 1) as f64 / 2.0) * (*length as f64 - (LENGTHS - 1) as f64 / 2.0)
    });
    products.sum::<f64>().abs() as usize
}

/// Number of words between its heading and its debate record.
pub(crate) fn words_of_case(case: &str) -> usize {
    let text = case.split_once("MOVE\n").map_or(case, |(_, behind)| behind);
    let text = text.split_once("\nDEBATE RECORD").map_or(text, |(before, _)| before);
    text.split_whitespace().filter(|word| !word.starts_with("```")).count()
}

/// Writes the text of a move at one of five lengths.
struct MoveWriter<'a> {
    products: &'a str,
    style: usize,
    length: usize,
    noise: HashNoise,
}

impl MoveWriter<'_> {
    fn proposal(&self, inputs: &MoveInputs) -> Proposal {
        let Self { products, length, .. } = *self;
        let mut thesis = format!("{} {}", OPENINGS[self.style], inputs.sentences(products));
        if length == LENGTHS - 1 && thesis.split(' ').count() <= 72 {
            thesis.push_str(" There is no doubt that this is the right step for the company now.");
        }
        Proposal {
            title: inputs.title(products),
            thesis,
            actions: self.list(&ACTIONS, [1, 1, 2, 3, 4]),
            what_must_be_true: self.list(&CONDITIONS, [1, 1, 2, 3, 3]),
            evidence: vec!["F0:Revenue:FY2025".to_owned(), "F0:OperatingIncome:FY2025".to_owned()],
            risks: self.list(&RISKS, [1, 1, 2, 2, 3]),
            cost: inputs.cost_sentence(),
            horizon: "The plan ends after the fifth year.".to_owned(),
            kill_criteria: self.list(&KILL_CRITERIA, [1, 2, 2, 3, 3]),
        }
    }

    /// Entries from a list, starting at a place that the products decide. The shortest texts have
    /// short entries.
    fn list(&self, entries: &[[&str; 2]; 4], counts: [usize; LENGTHS]) -> Vec<String> {
        let from = self.noise.below(&["entries", self.products, entries[0][0]], entries.len());
        let is_long = usize::from(self.length > 0);
        let entries = entries.iter().cycle().skip(from).take(counts[self.length]);
        entries.map(|entry| entry[is_long].replace("{products}", self.products)).collect()
    }
}

/// Short and long entries of the lists.
const ACTIONS: [[&str; 2]; 4] = [
    [
        "Management starts the plan.",
        "The head of the business with {products} names one responsible manager and starts the plan.",
    ],
    [
        "Finance releases the money.",
        "The finance department releases the money in parts and compares each part with the plan.",
    ],
    [
        "Sales informs customers.",
        "The sales teams inform all large customers of {products} before anything is announced in public.",
    ],
    [
        "Lawyers write the contracts.",
        "The legal department writes the contracts, and the board approves them before they are signed.",
    ],
];
const CONDITIONS: [[&str; 2]; 4] = [
    [
        "The stated figures hold.",
        "The figures stated above hold, and no other cost or gain of similar size follows from the move.",
    ],
    [
        "Demand stays as it is.",
        "Demand for {products} stays as it is today, apart from the changes that the plan itself describes.",
    ],
    [
        "Partners keep their word.",
        "All partners keep to the prices and dates that they have stated to the company in writing.",
    ],
    [
        "Rules do not change.",
        "Rules and taxes that concern {products} do not change in a way that the plan leaves out.",
    ],
];
const RISKS: [[&str; 2]; 4] = [
    [
        "It takes longer than planned.",
        "The plan takes longer than stated because the teams for {products} have other urgent work, too.",
    ],
    [
        "Competitors react.",
        "Competitors react faster than expected and take customers who have bought {products} for many years.",
    ],
    [
        "Key people leave.",
        "People who know the business with {products} leave the company before the plan has been completed.",
    ],
    [
        "Costs rise.",
        "Costs rise before the contracts are signed, and the company has to find other suppliers in a hurry.",
    ],
];
const KILL_CRITERIA: [[&str; 2]; 4] = [
    [
        "The stated costs are exceeded.",
        "The stated costs are exceeded, and nobody can show that later years make up for it.",
    ],
    [
        "The partner withdraws.",
        "A partner or large customer withdraws, and no other one agrees to the same terms.",
    ],
    [
        "The first year falls short.",
        "The first year falls short of the plan, and the second does not begin better.",
    ],
    [
        "The board has doubts.",
        "The board doubts the stated figures after its own check of contracts and offers.",
    ],
];

#[cfg(test)]
#[path = "synthetic_set_tests.rs"]
mod tests;
