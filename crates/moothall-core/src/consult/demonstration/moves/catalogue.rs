//! Fifteen ideas that suit nearly any company.

/// Template of a demo move.
pub(crate) struct DemoIdea {
    pub(crate) title: &'static str,
    /// Contains no number.
    pub(crate) why: &'static str,
    /// Metrics that support the move, most informative first.
    pub(crate) rests_on: &'static [&'static str],
    /// Metric that shows whether the move works.
    pub(crate) watched: &'static str,
    pub(crate) actions: &'static [&'static str],
    pub(crate) must_be_true: &'static [&'static str],
    pub(crate) risks: &'static [&'static str],
    pub(crate) cost: &'static str,
    pub(crate) horizon: &'static str,
    pub(crate) kill_criteria: &'static [&'static str],
    pub(crate) slip: DemoFlaw,
}

/// A deliberate error that shows the checks at work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DemoFlaw {
    None,
    /// A wrong number in the first version; the rewrite corrects it.
    WrongNumber,
    /// A projection not marked as an assumption, in both versions.
    Projection,
}

pub(crate) const ANALYSTS: [(&str, [DemoIdea; 3]); 5] = [
    ("Market Expander", [DIRECT, NEGLECTED, PARTNER]),
    ("Cost Surgeon", [OVERHEAD, TIED_UP, CONTRACTS]),
    ("Product Futurist", [SUCCESSOR, RECURRING, PLATFORM]),
    ("Capital Allocator", [RULE, REFINANCE, SKILL]),
    ("Risk Officer", [SECOND_SOURCE, RESERVE, REGULATION]),
];

const DIRECT: DemoIdea = DemoIdea {
    title: "Open a direct channel where demand already shows",
    why: "Customers in the fastest growing region are reached through intermediaries, who keep the relationship and a part of the price.",
    rests_on: &["Revenue.yoy", "GrossMargin", "Revenue", "NoninterestIncome"],
    watched: "Revenue",
    actions: &[
        "The head of sales picks one region and names a small team for it.",
        "The team signs its first direct accounts while intermediaries keep the rest.",
        "Finance reports price and margin of direct accounts apart, each quarter.",
    ],
    must_be_true: &[
        "Buyers in that region want to deal with the maker.",
        "Intermediaries do not drop the remaining range.",
    ],
    risks: &["Intermediaries promote a rival instead.", "The team costs more than it brings in."],
    cost: "About 1% of revenue in the first year [A1: the size of a regional sales team, not a plan of the company].",
    horizon: "Two years until the channel carries itself.",
    kill_criteria: &["Fewer than ten direct accounts after four quarters."],
    slip: DemoFlaw::None,
};

const NEGLECTED: DemoIdea = DemoIdea {
    title: "Serve the small accounts that rivals turn away",
    why: "Large accounts are fought over, while small ones are left with poor terms and change supplier gladly when someone answers the phone.",
    rests_on: &["Revenue", "SellingMarketing", "SellingGeneralAdmin", "Deposits", "NetMargin"],
    watched: "NetIncome",
    actions: &[
        "Product management cuts the offer down to one standard package.",
        "Marketing sells it online only, without visits.",
        "Support answers within a working day or the fee is returned.",
    ],
    must_be_true: &[
        "The standard package covers what small buyers need.",
        "Serving one costs less than it pays.",
    ],
    risks: &[
        "Existing accounts move down to the cheaper package.",
        "Bad debts rise with small buyers.",
    ],
    cost: "Mostly people who are already there; new software for about 0.2% of revenue [A1: an ordinary web shop].",
    horizon: "First profit in the third half-year.",
    kill_criteria: &[
        "Most sign-ups are former large accounts.",
        "Returned fees exceed the margin of a quarter.",
    ],
    slip: DemoFlaw::None,
};

const PARTNER: DemoIdea = DemoIdea {
    title: "Enter the next country through a partner's licence",
    why: "Building abroad ties up money for years before anyone knows whether the offer travels; a licence finds out in months.",
    rests_on: &["Capex", "Assets", "ROE", "CFO"],
    watched: "CFO",
    actions: &[
        "Legal drafts a licence that ends by itself unless volumes are met.",
        "Two candidates are trained, one of them signs.",
        "The board decides on own premises only after the second renewal.",
    ],
    must_be_true: &[
        "A partner with access to buyers can be found.",
        "Know-how can be shown without being given away.",
    ],
    risks: &["The partner learns and leaves.", "Quality abroad harms the name at home."],
    cost: "Training and legal work, below 0.1% of revenue [A1: a few specialists for a year].",
    horizon: "Eighteen months to a decision.",
    kill_criteria: &["Volumes of the first period are missed by half."],
    slip: DemoFlaw::None,
};

const OVERHEAD: DemoIdea = DemoIdea {
    title: "Hold overhead flat until growth catches up",
    why: "Support functions were staffed for a growth that came later than planned, and they were never reduced.",
    rests_on: &[
        "OperatingMargin",
        "NetMargin",
        "CostIncomeRatio",
        "SellingGeneralAdmin",
        "GeneralAdmin",
        "NoninterestExpense",
    ],
    watched: "OperatingIncome",
    actions: &[
        "The finance chief freezes overhead budgets in absolute terms.",
        "Vacant posts in support functions are filled from inside.",
        "Every quarter the three largest overhead lines are explained to the board.",
    ],
    must_be_true: &["Controls and compliance do not suffer.", "Growth returns within the freeze."],
    risks: &[
        "Good people leave functions that do not grow.",
        "Work moves to consultants and costs more.",
    ],
    cost: "None in cash; the price is slower internal service.",
    horizon: "Visible after two quarters.",
    kill_criteria: &["An audit finds a control that lapsed because of the freeze."],
    slip: DemoFlaw::WrongNumber,
};

const TIED_UP: DemoIdea = DemoIdea {
    title: "Release cash that is tied up in stock and invoices",
    why: "Days of stock and of unpaid invoices have no owner, so both creep up between audits.",
    rests_on: &["Inventory", "Receivables", "WorkingCapital", "CurrentRatio", "Cash"],
    watched: "Cash",
    actions: &[
        "Operations sets a ceiling of days for each warehouse.",
        "Sales is paid on collection, not on signature.",
        "Slow items are sold off once and not reordered.",
    ],
    must_be_true: &["Delivery times hold with less stock.", "Customers accept firmer terms."],
    risks: &["A shortage costs an important order.", "Discounts for early payment eat the gain."],
    cost: "A one-time write-down of slow items.",
    horizon: "One year.",
    kill_criteria: &["On-time delivery drops for two quarters in a row."],
    slip: DemoFlaw::None,
};

const CONTRACTS: DemoIdea = DemoIdea {
    title: "Reopen the largest purchase contracts together",
    why: "Contracts were signed one by one by different units, so volume discounts that the whole could claim are left on the table.",
    rests_on: &["CostOfRevenue", "GrossProfit", "GrossMargin", "NoninterestExpense"],
    watched: "GrossProfit",
    actions: &[
        "Procurement lists every contract with its end date and volume.",
        "Units give up the right to sign alone above a limit.",
        "Request one joint offer from the ten largest suppliers.",
    ],
    must_be_true: &["Suppliers value volume more than price lists.", "Units cooperate."],
    risks: &["A supplier cuts allocation in revenge.", "Joint terms fit no supplier well."],
    cost: "A project team of a few people for a year.",
    horizon: "As contracts come up, over two years.",
    kill_criteria: &["The first three offers bring no saving."],
    slip: DemoFlaw::None,
};

const SUCCESSOR: DemoIdea = DemoIdea {
    title: "Pay for one successor to the main product",
    why: "Development money is spread over many small improvements, and no single one is meant to replace what earns the profit now.",
    rests_on: &["ResearchDevelopment", "RDIntensity", "NetIncome", "OperatingIncome"],
    watched: "NetIncome",
    actions: &[
        "The technology chief stops the weakest third of projects.",
        "One team with its own budget builds the successor.",
        "Five paying users try it before anything is announced.",
    ],
    must_be_true: &[
        "The main product has fewer good years left than planned.",
        "The company can bear to compete with itself.",
    ],
    risks: &[
        "The successor sells instead of the main product, at a lower price.",
        "The team is raided when the core business is under pressure.",
    ],
    cost: "Moved from other projects; nothing on top.",
    horizon: "Three to five years.",
    kill_criteria: &["No paying user after eighteen months."],
    slip: DemoFlaw::None,
};

const RECURRING: DemoIdea = DemoIdea {
    title: "Turn one-off sales into subscriptions",
    why: "What is sold once must be sold again every year; what is subscribed to is there in January.",
    rests_on: &["DeferredRevenue", "Revenue", "NoninterestIncome", "OperatingMargin"],
    watched: "Revenue",
    actions: &[
        "One product line is offered as a subscription beside the old price.",
        "Support and updates move into the subscription.",
        "Renewal is made a target of the people who sell.",
    ],
    must_be_true: &[
        "Buyers prefer a running cost to a purchase.",
        "The balance sheet bears a dip in the year of change.",
    ],
    risks: &["Revenue dips before it recovers.", "Buyers leave at the first renewal."],
    cost: "A year of lower revenue in the line that changes.",
    horizon: "Three years until the dip is made up.",
    kill_criteria: &["Fewer than two thirds renew."],
    slip: DemoFlaw::Projection,
};

const PLATFORM: DemoIdea = DemoIdea {
    title: "Let outsiders build on top of the offer",
    why: "Requests for special functions pile up, and each is too small to build; others would build them if they were allowed to.",
    rests_on: &["GrossMargin", "OperatingIncome", "FreeCashFlow", "Assets"],
    watched: "OperatingIncome",
    actions: &[
        "Interfaces that exist inside are documented and opened.",
        "A handful of outside firms is invited and paid for a first addition.",
        "Additions are sold through the company's own list.",
    ],
    must_be_true: &["Outsiders see enough users to bother.", "Opening does not weaken security."],
    risks: &["A careless addition harms users.", "The best additions are bought by a rival."],
    cost: "A small team for interfaces and review.",
    horizon: "Two years.",
    kill_criteria: &["Fewer than three additions have users after a year."],
    slip: DemoFlaw::None,
};

const RULE: DemoIdea = DemoIdea {
    title: "Write down what stays liquid and what is put to work",
    why: "Money is kept or spent by habit, and each quarter the same discussion starts again; a rule would end it.",
    rests_on: &["Cash", "FreeCashFlow", "CFO", "NetCash"],
    watched: "Cash",
    actions: &[
        "The board fixes a floor of liquid means in months of cost.",
        "What is above the floor goes to projects by expected return, best first.",
        "What finds no project is returned to owners at year end.",
    ],
    must_be_true: &[
        "Returns of projects can be compared honestly.",
        "The floor survives a bad year.",
    ],
    risks: &[
        "A chance comes when the money was just returned.",
        "Projects are painted brighter to win.",
    ],
    cost: "Nothing but attention.",
    horizon: "From the next budget on.",
    kill_criteria: &["The floor is broken in two years in a row."],
    slip: DemoFlaw::None,
};

const REFINANCE: DemoIdea = DemoIdea {
    title: "Spread maturities before the market asks for it",
    why: "Borrowings that fall due close together leave the terms to the lenders of that month.",
    rests_on: &["TotalDebt", "DebtToEquity", "InterestCover", "Deposits", "Equity"],
    watched: "Equity",
    actions: &[
        "Treasury maps every maturity and covenant.",
        "A part is exchanged early for longer terms.",
        "The company pays for a credit line without plans to use it.",
    ],
    must_be_true: &["Lenders offer longer terms at a bearable price.", "Ratings hold."],
    risks: &["Rates drop right after the exchange.", "Fees eat the advantage."],
    cost: "Fees of the exchange and of the unused line.",
    horizon: "Six to twelve months.",
    kill_criteria: &["Quoted terms are worse than those of the present borrowings."],
    slip: DemoFlaw::None,
};

const SKILL: DemoIdea = DemoIdea {
    title: "Acquire one small firm for a skill that is missing",
    why: "A skill that takes years to build is for sale in firms that lack the means to use it.",
    rests_on: &["ROE", "ROIC", "FreeCashFlow", "NetIncome", "Assets"],
    watched: "Assets",
    actions: &[
        "Strategy names the one skill and three firms that have it.",
        "Engineers visit before bankers do.",
        "Key people are bound by goals, not by time alone.",
    ],
    must_be_true: &[
        "The skill lies in people who stay.",
        "It can be used in the main business within a year.",
    ],
    risks: &["The price assumes more than the skill.", "Two cultures block each other."],
    cost: "Below 2% of total assets [A1: the usual size of such purchases].",
    horizon: "One year to sign, two to use.",
    kill_criteria: &["Most of the key people leave in the first year."],
    slip: DemoFlaw::None,
};

const SECOND_SOURCE: DemoIdea = DemoIdea {
    title: "Qualify a second source for the most critical input",
    why: "One supplier, site or system stands behind a large part of what is sold, and a failure there would stop everything else.",
    rests_on: &["CostOfRevenue", "OperatingIncome", "NoninterestExpense", "NetIncome"],
    watched: "OperatingIncome",
    actions: &[
        "Operations ranks inputs by the days that a loss would cost.",
        "For the first on the list an alternative is tested under load.",
        "A small part of the volume moves there for good.",
    ],
    must_be_true: &[
        "An alternative of equal quality exists.",
        "The present source accepts a smaller share.",
    ],
    risks: &["Both sources depend on the same third party.", "Splitting volume raises the price."],
    cost: "Tests, approval and a slightly higher unit price.",
    horizon: "One year.",
    kill_criteria: &["The alternative fails its second test."],
    slip: DemoFlaw::None,
};

const RESERVE: DemoIdea = DemoIdea {
    title: "Rehearse a year without growth",
    why: "Plans assume that every year is better than the last, so it is unclear which commitments could be stopped and in what order.",
    rests_on: &["NetIncome", "CurrentRatio", "Equity", "CreditProvision", "Cash"],
    watched: "NetIncome",
    actions: &[
        "Finance works out which costs end within a quarter and which do not.",
        "The board agrees on an order of cuts and keeps it sealed.",
        "Each spring the order is opened, tested on paper and renewed.",
    ],
    must_be_true: &["Managers name honest priorities.", "Commitments can be listed in full."],
    risks: &["The list leaks and frightens staff.", "A rehearsal replaces real prudence."],
    cost: "A few weeks of finance and management time.",
    horizon: "Before the next budget.",
    kill_criteria: &["Two springs pass without a change to the order."],
    slip: DemoFlaw::None,
};

const REGULATION: DemoIdea = DemoIdea {
    title: "Put a price on the gravest legal exposure",
    why: "The exposure is described at length and never as an amount, so it cannot be weighed against anything else.",
    rests_on: &["EffectiveTaxRate", "OperatingIncome", "NetMargin", "Equity", "Assets"],
    watched: "Equity",
    actions: &[
        "Counsel and finance name three outcomes and what each would cost.",
        "The heaviest one is insured, provided for or designed away.",
        "The audit committee reviews the three amounts twice a year.",
    ],
    must_be_true: &[
        "Outcomes can be told apart.",
        "Putting an amount on paper does not weaken a defence.",
    ],
    risks: &["An estimate is taken for an admission.", "The true case is none of the three."],
    cost: "Advice, and a premium if it is insured.",
    horizon: "Six months.",
    kill_criteria: &["Insurers decline to quote and counsel cannot narrow the range."],
    slip: DemoFlaw::None,
};
