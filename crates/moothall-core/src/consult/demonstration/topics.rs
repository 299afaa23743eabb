//! Objections of the demo critic and the replies to them.

use crate::debate::ObjectionSeverity;

/// A line of attack. Its name starts the objection's text, so that later turns can look up the
/// topic.
pub(crate) struct ObjectionTopic {
    pub(crate) name: &'static str,
    pub(crate) severity: ObjectionSeverity,
    pub(crate) raised: &'static str,
    /// Used if the objection was not answered.
    pub(crate) pressed: &'static str,
    /// Used if the objection was answered.
    pub(crate) settled: &'static str,
    /// Reply that defends the move.
    pub(crate) answered: &'static str,
    /// Reply that concedes the point.
    pub(crate) granted: &'static str,
    /// Related rows of the fact table.
    pub(crate) rows: &'static [&'static str],
}

use ObjectionSeverity::{Fatal, Major, Minor};

pub(crate) const TOPICS: [ObjectionTopic; 8] = [
    ObjectionTopic {
        name: "Demand",
        severity: Major,
        raised: "nothing in the dossier shows that buyers asked for this.",
        pressed: "You describe what buyers might like, and I asked who has paid for anything like it.",
        settled: "That the first step is small enough to find out is a fair answer.",
        answered: "The first step is a test with paying buyers, so demand is measured before money is committed.",
        granted: "The filings show no direct sign of demand, and I grant that.",
        rows: &["Revenue.yoy", "Revenue", "NetInterestIncome"],
    },
    ObjectionTopic {
        name: "Capacity",
        severity: Major,
        raised: "the people who would do this are busy with what earns the profit.",
        pressed: "Naming a team does not free anyone; say what these people stop doing.",
        settled: "You named what is stopped to make room, which I accept.",
        answered: "The work is given to a small team with its own goals, and what it drops is listed in the actions.",
        granted: "The plan does not say whose time it takes, and that is a gap.",
        rows: &["OperatingIncome", "SellingGeneralAdmin", "NoninterestExpense", "GeneralAdmin"],
    },
    ObjectionTopic {
        name: "Timing",
        severity: Major,
        raised: "the case would be the same a year from now, when more is known.",
        pressed: "You say why it is good, not why it is good now.",
        settled: "That waiting costs a budget cycle is a reason I had missed.",
        answered: "Waiting does not make the question easier, and the first step fits into one budget.",
        granted: "Another quarter of figures would help, and nothing forces a start this month.",
        rows: &["NetIncome", "NetMargin", "Revenue"],
    },
    ObjectionTopic {
        name: "Cost",
        severity: Minor,
        raised: "the price is an assumption, and the true one shows only when it is spent.",
        pressed: "An assumption that is marked is still an assumption; where is the ceiling?",
        settled: "A ceiling with kill criteria is enough for a first step.",
        answered: "The cost is marked as an assumption and capped, and the kill criteria end it before it grows.",
        granted: "The size of the cost is not supported by any figure we have.",
        rows: &["CFO", "FreeCashFlow", "Capex", "Cash"],
    },
    ObjectionTopic {
        name: "Rivals",
        severity: Major,
        raised: "a competitor can copy this within a year, and then it is a cost for all.",
        pressed: "You answer as if competitors did not react.",
        settled: "That a copy would still leave the lower cost base is a point for you.",
        answered: "What is learned on the way stays here, and a copy would begin where we were a year before.",
        granted: "Nothing in it keeps others from doing the same.",
        rows: &["GrossMargin", "OperatingMargin", "ROE"],
    },
    ObjectionTopic {
        name: "Regulation",
        severity: Minor,
        raised: "authorities may look at this before customers do.",
        pressed: "You have not said which rule applies and who checks.",
        settled: "An early word with the authority removes most of it.",
        answered: "The plan asks counsel first, and a step that is not allowed is not taken.",
        granted: "The legal side is not worked out yet.",
        rows: &["EffectiveTaxRate", "Equity", "Assets"],
    },
    ObjectionTopic {
        name: "Measurement",
        severity: Minor,
        raised: "success would show in a line that moves for many other reasons.",
        pressed: "A target that everyone can claim is not a target.",
        settled: "Reporting it apart, as you propose, settles this.",
        answered: "It is reported apart from the rest, so its effect can be told from the tide.",
        granted: "The line that is watched moves with much else.",
        rows: &["OperatingMargin", "NetMargin", "CostIncomeRatio"],
    },
    ObjectionTopic {
        name: "Reversal",
        severity: Fatal,
        raised: "once begun it cannot be undone without loss of trust.",
        pressed: "You speak of stopping as if it would go unnoticed.",
        settled: "A pilot that ends by itself answers the worst of it.",
        answered: "It begins as a pilot that ends by itself, and nothing is promised beyond it.",
        granted: "Stopping late would cost trust, and that cannot be priced.",
        rows: &["TotalDebt", "Equity", "Deposits", "Cash"],
    },
];

/// The topic whose name starts a text.
pub(crate) fn topic_of(text: &str) -> Option<&'static ObjectionTopic> {
    let (name, _) = text.split_once(':')?;
    TOPICS.iter().find(|topic| topic.name == name.trim())
}
