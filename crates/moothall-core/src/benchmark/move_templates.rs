//! The eight kinds of moves of a benchmark, each with a closed formula for its value.
//!
//! A move is made backwards: from the value that it should have follows the one input that is not
//! fixed. That input is rounded as it is printed, and the true value is computed from the printed
//! inputs: a careful reader can compute it, too.

use serde::{Deserialize, Serialize};

/// A kind of move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveTemplate {
    /// Raises prices and loses volume.
    Price,
    /// Sells a business and gives up its cash.
    Exit,
    /// Builds a line that sells from the second year on.
    Capacity,
    /// Replaces loans, for a fee.
    Refinancing,
    /// Buys a firm and can sell it again.
    Acquisition,
    /// Licenses patents for a share of sales.
    Licence,
    /// Frees stocks until the end of the plan.
    WorkingCapital,
    /// Pays for three years and may earn in the fourth and fifth.
    Research,
}

impl MoveTemplate {
    /// All templates.
    pub const ALL: [Self; 8] = [
        Self::Price,
        Self::Exit,
        Self::Capacity,
        Self::Refinancing,
        Self::Acquisition,
        Self::Licence,
        Self::WorkingCapital,
        Self::Research,
    ];
}

/// The yearly discount rate of every plan, and its length in years.
const RATE: f64 = 0.1;
const YEARS: u32 = 5;

/// Today's value of 1 in a year.
fn discount(year: u32) -> f64 {
    (0..year).fold(1.0, |value, _| value / (1.0 + RATE))
}

/// Today's value of 1 in each of the years.
fn annuity(first: u32, last: u32) -> f64 {
    (first..=last).map(discount).sum()
}

/// An amount of money in units of 10,000 dollars: as exact as texts print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PlanAmount(pub(crate) i64);

impl PlanAmount {
    pub(crate) fn of(value: f64) -> Self {
        Self(value.round() as i64)
    }

    fn value(self) -> f64 {
        self.0 as f64
    }

    /// `$12.34 million [A1: plan]`.
    fn text(self) -> String {
        format!("${}.{:02} million [A1: plan]", self.0 / 100, self.0 % 100)
    }
}

/// A share in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PlanShare(pub(crate) i64);

impl PlanShare {
    fn of(value: f64) -> Self {
        Self((value * 10_000.0).round() as i64)
    }

    fn value(self) -> f64 {
        self.0 as f64 / 10_000.0
    }

    /// `4.25% [A1: plan]`.
    fn text(self) -> String {
        format!("{}.{:02}% [A1: plan]", self.0 / 100, self.0 % 100)
    }
}

/// What the text of a move states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "template", rename_all = "kebab-case")]
pub(crate) enum MoveInputs {
    Price {
        sales: PlanAmount,
        rise: PlanShare,
        lost: PlanShare,
        margin: PlanShare,
        cost: PlanAmount,
    },
    Exit {
        proceeds: PlanAmount,
        cost: PlanAmount,
        cash: PlanAmount,
    },
    Capacity {
        cost: PlanAmount,
        sales: PlanAmount,
        margin: PlanShare,
        resale: PlanAmount,
    },
    Refinancing {
        debt: PlanAmount,
        old_rate: PlanShare,
        new_rate: PlanShare,
        fee: PlanAmount,
    },
    Acquisition {
        price: PlanAmount,
        cash: PlanAmount,
        resale: PlanAmount,
    },
    Licence {
        upfront: PlanAmount,
        royalty: PlanShare,
        sales: PlanAmount,
        support: PlanAmount,
    },
    WorkingCapital {
        freed: PlanAmount,
        loss: PlanAmount,
    },
    Research {
        cost: PlanAmount,
        chance: PlanShare,
        gain: PlanAmount,
    },
}

/// How large a plan is, relative to the usual one: a factor for its fixed inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanScale {
    /// Yearly revenue of the company in units of 10,000 dollars.
    pub(crate) revenue: f64,
    /// Around 1.
    pub(crate) factor: f64,
}

impl MoveInputs {
    /// Inputs with which a move of this kind is worth about `value`, in units of 10,000 dollars.
    /// Values between -5 % and 7 % of revenue can be reached.
    pub(crate) fn solve(template: MoveTemplate, value: f64, scale: PlanScale) -> Self {
        let PlanScale { revenue, factor } = scale;
        let part = |share: f64| PlanAmount::of(revenue * share * factor);
        let all = annuity(1, YEARS);
        match template {
            MoveTemplate::Price => {
                let (sales, cost) = (part(0.45), part(0.01));
                let (rise, margin) = (PlanShare(900), PlanShare(4_000));
                let gain = (value + cost.value()) / all / sales.value();
                let lost = (rise.value() - gain) / (rise.value() + margin.value());
                Self::Price { sales, rise, lost: PlanShare::of(lost), margin, cost }
            }
            MoveTemplate::Exit => {
                let (proceeds, cost) = (part(0.14), part(0.02));
                let cash = (proceeds.value() - cost.value() - value) / all;
                Self::Exit { proceeds, cost, cash: PlanAmount::of(cash) }
            }
            MoveTemplate::Capacity => {
                let (cost, resale, margin) = (part(0.10), part(0.02), PlanShare(2_500));
                let open = value + cost.value() - resale.value() * discount(YEARS);
                let sales = open / margin.value() / annuity(2, YEARS);
                Self::Capacity { cost, sales: PlanAmount::of(sales), margin, resale }
            }
            MoveTemplate::Refinancing => {
                let debt = part(0.60);
                let (old_rate, new_rate) = (PlanShare(950), PlanShare(475));
                let saved = debt.value() * (old_rate.value() - new_rate.value()) * all;
                Self::Refinancing { debt, old_rate, new_rate, fee: PlanAmount::of(saved - value) }
            }
            MoveTemplate::Acquisition => {
                let (price, resale) = (part(0.20), part(0.12));
                let cash = (value + price.value() - resale.value() * discount(YEARS)) / all;
                Self::Acquisition { price, cash: PlanAmount::of(cash), resale }
            }
            MoveTemplate::Licence => {
                let (upfront, sales, royalty) = (part(0.03), part(0.50), PlanShare(500));
                let support = (upfront.value() - value) / all + royalty.value() * sales.value();
                Self::Licence { upfront, royalty, sales, support: PlanAmount::of(support) }
            }
            MoveTemplate::WorkingCapital => {
                let freed = part(0.25);
                let loss = (freed.value() * (1.0 - discount(YEARS)) - value) / all;
                Self::WorkingCapital { freed, loss: PlanAmount::of(loss) }
            }
            MoveTemplate::Research => {
                let (cost, chance) = (part(0.03), PlanShare(4_000));
                let open = value + cost.value() * annuity(1, 3);
                let gain = open / chance.value() / annuity(4, YEARS);
                Self::Research { cost, chance, gain: PlanAmount::of(gain) }
            }
        }
    }

    /// The net present value of the stated inputs, in units of 10,000 dollars.
    pub(crate) fn net_present_value(&self) -> f64 {
        let all = annuity(1, YEARS);
        match self {
            Self::Price { sales, rise, lost, margin, cost } => {
                let gained = rise.value() * sales.value() * (1.0 - lost.value());
                let given_up = lost.value() * margin.value() * sales.value();
                (gained - given_up) * all - cost.value()
            }
            Self::Exit { proceeds, cost, cash } => {
                proceeds.value() - cost.value() - cash.value() * all
            }
            Self::Capacity { cost, sales, margin, resale } => {
                let earned = sales.value() * margin.value() * annuity(2, YEARS);
                earned + resale.value() * discount(YEARS) - cost.value()
            }
            Self::Refinancing { debt, old_rate, new_rate, fee } => {
                debt.value() * (old_rate.value() - new_rate.value()) * all - fee.value()
            }
            Self::Acquisition { price, cash, resale } => {
                cash.value() * all + resale.value() * discount(YEARS) - price.value()
            }
            Self::Licence { upfront, royalty, sales, support } => {
                upfront.value() + (royalty.value() * sales.value() - support.value()) * all
            }
            Self::WorkingCapital { freed, loss } => {
                freed.value() * (1.0 - discount(YEARS)) - loss.value() * all
            }
            Self::Research { cost, chance, gain } => {
                gain.value() * chance.value() * annuity(4, YEARS) - cost.value() * annuity(1, 3)
            }
        }
    }

    /// The title of a move about these products.
    pub(crate) fn title(&self, products: &str) -> String {
        match self {
            Self::Price { .. } => format!("Raise the prices of {products}"),
            Self::Exit { .. } => format!("Sell the business with {products}"),
            Self::Capacity { .. } => format!("Build a second line for {products}"),
            Self::Refinancing { .. } => format!("Replace the loans on the works for {products}"),
            Self::Acquisition { .. } => format!("Buy a maker of {products}"),
            Self::Licence { .. } => format!("License the patents for {products}"),
            Self::WorkingCapital { .. } => format!("Cut the stocks of {products}"),
            Self::Research { .. } => format!("Develop a new generation of {products}"),
        }
    }

    /// The inputs in sentences. They state everything that the formula needs, and not its result.
    pub(crate) fn sentences(&self, products: &str) -> String {
        match self {
            Self::Price { sales, rise, lost, margin, cost } => format!(
                "Prices of {products} rise by {} on yearly sales of {}. Customers cancel {} of the \
                 volume, which earns a cash margin of {}. New price lists and contracts cost {} once. \
                 The effects last for the whole plan.",
                rise.text(),
                sales.text(),
                lost.text(),
                margin.text(),
                cost.text(),
            ),
            Self::Exit { proceeds, cost, cash } => format!(
                "A buyer pays {} for the business with {products}. Closing the deal costs {} once. The \
                 business brings in cash of {} in each year, which the company gives up for the whole \
                 plan.",
                proceeds.text(),
                cost.text(),
                cash.text(),
            ),
            Self::Capacity { cost, sales, margin, resale } => format!(
                "The line for {products} costs {} at the start and runs from the second year on. It adds \
                 sales of {} in each year at a cash margin of {}. At the end of the plan it is sold for \
                 {}.",
                cost.text(),
                sales.text(),
                margin.text(),
                resale.text(),
            ),
            Self::Refinancing { debt, old_rate, new_rate, fee } => format!(
                "Loans of {} on the works for {products} carry interest of {}. A bond at {} replaces \
                 them. The banks charge {} once for early repayment. The interest is saved in each year \
                 of the plan.",
                debt.text(),
                old_rate.text(),
                new_rate.text(),
                fee.text(),
            ),
            Self::Acquisition { price, cash, resale } => format!(
                "The maker of {products} costs {}. It brings in cash of {} in each year. At the end of \
                 the plan it is sold again for {}.",
                price.text(),
                cash.text(),
                resale.text(),
            ),
            Self::Licence { upfront, royalty, sales, support } => format!(
                "A partner pays {} at the start for the patents on {products}, and {} of its sales of {} \
                 in each year. Support for the partner and lost own sales cost {} in each year of the \
                 plan.",
                upfront.text(),
                royalty.text(),
                sales.text(),
                support.text(),
            ),
            Self::WorkingCapital { freed, loss } => format!(
                "Smaller stocks of {products} free {} at once. The same amount is built up again at the \
                 end of the plan. Until then, late deliveries cost {} in each year.",
                freed.text(),
                loss.text(),
            ),
            Self::Research { cost, chance, gain } => format!(
                "The development of {products} costs {} in each of the first three years. It succeeds \
                 with a probability of {} and then brings in {} in the fourth and again in the fifth \
                 year. Otherwise it brings in nothing.",
                cost.text(),
                chance.text(),
                gain.text(),
            ),
        }
    }

    /// What has to be paid first.
    pub(crate) fn cost_sentence(&self) -> String {
        match self {
            Self::Price { cost, .. } | Self::Exit { cost, .. } => format!("{} once.", cost.text()),
            Self::Capacity { cost, .. } => format!("{} at the start.", cost.text()),
            Self::Refinancing { fee, .. } => format!("{} once, for early repayment.", fee.text()),
            Self::Acquisition { price, .. } => format!("{} at the start.", price.text()),
            Self::Licence { support, .. } => format!("{} in each year.", support.text()),
            Self::WorkingCapital { loss, .. } => format!("{} in each year.", loss.text()),
            Self::Research { cost, .. } => format!("{} in each of three years.", cost.text()),
        }
    }
}

#[cfg(test)]
#[path = "move_templates_tests.rs"]
mod tests;
