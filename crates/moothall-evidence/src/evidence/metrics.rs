//! Metrics and their XBRL tags.
//!
//! The tags of a metric are ordered by preference and equivalent. A narrower tag (depreciation for
//! depreciation and amortization, domestic for all pre-tax income) is never listed: if only such a
//! tag is filed, the sheet has a gap.

use super::fact::FactUnit;

/// Whether a value covers a period or is measured on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Over a period, such as revenue.
    Flow,
    /// On the last day of the period, such as cash.
    Balance,
}

/// A metric reported in filings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricDefinition {
    /// Name in fact ids.
    pub name: &'static str,
    /// Display name.
    pub label: &'static str,
    /// Whether it is a flow or a balance.
    pub kind: MetricKind,
    /// The unit of its values.
    pub unit: FactUnit,
    /// Tags; for each period the first one with a value is used.
    pub concepts: &'static [&'static str],
}

/// Looks up a filed metric by name; derived metrics are not listed.
pub fn metric(name: &str) -> Option<&'static MetricDefinition> {
    METRICS.iter().find(|metric| metric.name == name)
}

const fn new(
    name: &'static str,
    label: &'static str,
    kind: MetricKind,
    unit: FactUnit,
    concepts: &'static [&'static str],
) -> MetricDefinition {
    MetricDefinition { name, label, kind, unit, concepts }
}

type Tags = &'static [&'static str];

const fn flow(name: &'static str, label: &'static str, concepts: Tags) -> MetricDefinition {
    new(name, label, MetricKind::Flow, FactUnit::Money, concepts)
}

const fn balance(name: &'static str, label: &'static str, concepts: Tags) -> MetricDefinition {
    new(name, label, MetricKind::Balance, FactUnit::Money, concepts)
}

const fn per_share(name: &'static str, label: &'static str, concepts: Tags) -> MetricDefinition {
    new(name, label, MetricKind::Flow, FactUnit::PerShare, concepts)
}

const fn average_shares(
    name: &'static str,
    label: &'static str,
    concepts: Tags,
) -> MetricDefinition {
    new(name, label, MetricKind::Flow, FactUnit::Shares, concepts)
}

const fn shares(name: &'static str, label: &'static str, concepts: Tags) -> MetricDefinition {
    new(name, label, MetricKind::Balance, FactUnit::Shares, concepts)
}

/// Every filed metric, validated on nine companies of different kinds.
pub static METRICS: &[MetricDefinition] = &[
    flow(
        "Revenue",
        "Revenue",
        &[
            "us-gaap:Revenues",
            "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax",
            "us-gaap:RevenuesNetOfInterestExpense",
            "us-gaap:SalesRevenueNet",
            "us-gaap:RevenueFromContractWithCustomerIncludingAssessedTax",
            "ifrs-full:Revenue",
            "ifrs-full:RevenueFromContractsWithCustomers",
        ],
    ),
    flow(
        "CostOfRevenue",
        "Cost of revenue",
        &[
            "us-gaap:CostOfRevenue",
            "us-gaap:CostOfGoodsAndServicesSold",
            "us-gaap:CostOfGoodsSold",
            "ifrs-full:CostOfSales",
        ],
    ),
    flow("GrossProfit", "Gross profit", &["us-gaap:GrossProfit", "ifrs-full:GrossProfit"]),
    flow(
        "ResearchDevelopment",
        "Research and development",
        &["us-gaap:ResearchAndDevelopmentExpense", "ifrs-full:ResearchAndDevelopmentExpense"],
    ),
    flow(
        "SellingGeneralAdmin",
        "Selling, general and administrative",
        &[
            "us-gaap:SellingGeneralAndAdministrativeExpense",
            "ifrs-full:SellingGeneralAndAdministrativeExpense",
        ],
    ),
    flow("SellingMarketing", "Sales and marketing", &["us-gaap:SellingAndMarketingExpense"]),
    flow(
        "GeneralAdmin",
        "General and administrative",
        &["us-gaap:GeneralAndAdministrativeExpense", "ifrs-full:AdministrativeExpense"],
    ),
    flow(
        "OperatingIncome",
        "Operating income",
        &["us-gaap:OperatingIncomeLoss", "ifrs-full:ProfitLossFromOperatingActivities"],
    ),
    flow(
        "InterestExpense",
        "Interest expense",
        &[
            "us-gaap:InterestExpense",
            "us-gaap:InterestExpenseNonoperating",
            "us-gaap:InterestExpenseOperating",
            "ifrs-full:InterestExpense",
            "ifrs-full:FinanceCosts",
        ],
    ),
    flow(
        "PretaxIncome",
        "Pre-tax income",
        &[
            "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest",
            "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesMinorityInterestAndIncomeLossFromEquityMethodInvestments",
            "ifrs-full:ProfitLossBeforeTax",
        ],
    ),
    flow(
        "IncomeTax",
        "Income tax",
        &["us-gaap:IncomeTaxExpenseBenefit", "ifrs-full:IncomeTaxExpenseContinuingOperations"],
    ),
    flow(
        "NetIncome",
        "Net income (parent)",
        &[
            "us-gaap:NetIncomeLoss",
            "ifrs-full:ProfitLossAttributableToOwnersOfParent",
            "us-gaap:ProfitLoss",
            "ifrs-full:ProfitLoss",
        ],
    ),
    per_share(
        "EPSDiluted",
        "Diluted EPS",
        &[
            "us-gaap:EarningsPerShareDiluted",
            "us-gaap:EarningsPerShareBasicAndDiluted",
            "ifrs-full:DilutedEarningsLossPerShare",
        ],
    ),
    per_share(
        "EPSBasic",
        "Basic EPS",
        &[
            "us-gaap:EarningsPerShareBasic",
            "us-gaap:EarningsPerShareBasicAndDiluted",
            "ifrs-full:BasicEarningsLossPerShare",
        ],
    ),
    average_shares(
        "SharesDiluted",
        "Diluted shares (weighted)",
        &[
            "us-gaap:WeightedAverageNumberOfDilutedSharesOutstanding",
            "us-gaap:WeightedAverageNumberOfShareOutstandingBasicAndDiluted",
            "ifrs-full:AdjustedWeightedAverageShares",
        ],
    ),
    flow(
        "DepreciationAmortization",
        "Depreciation and amortization",
        &[
            "us-gaap:DepreciationDepletionAndAmortization",
            "us-gaap:DepreciationAmortizationAndAccretionNet",
            "us-gaap:DepreciationAndAmortization",
            "ifrs-full:DepreciationAndAmortisationExpense",
        ],
    ),
    flow("StockComp", "Share-based compensation", &["us-gaap:ShareBasedCompensation"]),
    flow(
        "CFO",
        "Operating cash flow",
        &[
            "us-gaap:NetCashProvidedByUsedInOperatingActivities",
            "us-gaap:NetCashProvidedByUsedInOperatingActivitiesContinuingOperations",
            "ifrs-full:CashFlowsFromUsedInOperatingActivities",
        ],
    ),
    flow(
        "Capex",
        "Capital expenditure",
        &[
            "us-gaap:PaymentsToAcquirePropertyPlantAndEquipment",
            "us-gaap:PaymentsToAcquireProductiveAssets",
            "us-gaap:PaymentsForCapitalImprovements",
            "ifrs-full:PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities",
            "ifrs-full:PurchaseOfInvestmentProperty",
        ],
    ),
    flow(
        "Buybacks",
        "Share repurchases",
        &["us-gaap:PaymentsForRepurchaseOfCommonStock", "us-gaap:PaymentsForRepurchaseOfEquity"],
    ),
    flow(
        "Dividends",
        "Dividends paid",
        &[
            "us-gaap:PaymentsOfDividends",
            "us-gaap:PaymentsOfDividendsCommonStock",
            "ifrs-full:DividendsPaidClassifiedAsFinancingActivities",
        ],
    ),
    flow(
        "Acquisitions",
        "Acquisitions, net of cash",
        &["us-gaap:PaymentsToAcquireBusinessesNetOfCashAcquired"],
    ),
    balance(
        "Cash",
        "Cash and equivalents",
        &[
            "us-gaap:CashAndCashEquivalentsAtCarryingValue",
            "ifrs-full:CashAndCashEquivalents",
            "us-gaap:CashAndDueFromBanks",
        ],
    ),
    balance(
        "ShortTermInvestments",
        "Short-term investments",
        &[
            "us-gaap:MarketableSecuritiesCurrent",
            "us-gaap:ShortTermInvestments",
            "us-gaap:AvailableForSaleSecuritiesDebtSecuritiesCurrent",
        ],
    ),
    balance(
        "LongTermInvestments",
        "Long-term marketable securities",
        &["us-gaap:MarketableSecuritiesNoncurrent", "us-gaap:LongTermInvestments"],
    ),
    balance(
        "Receivables",
        "Accounts receivable",
        &[
            "us-gaap:AccountsReceivableNetCurrent",
            "us-gaap:ReceivablesNetCurrent",
            "ifrs-full:TradeAndOtherCurrentReceivables",
        ],
    ),
    balance("Inventory", "Inventory", &["us-gaap:InventoryNet", "ifrs-full:Inventories"]),
    balance(
        "CurrentAssets",
        "Current assets",
        &["us-gaap:AssetsCurrent", "ifrs-full:CurrentAssets"],
    ),
    balance(
        "PPE",
        "Property, plant and equipment, net",
        &[
            "us-gaap:PropertyPlantAndEquipmentNet",
            "us-gaap:PropertyPlantAndEquipmentAndFinanceLeaseRightOfUseAssetAfterAccumulatedDepreciationAndAmortization",
            "ifrs-full:PropertyPlantAndEquipment",
        ],
    ),
    balance("Goodwill", "Goodwill", &["us-gaap:Goodwill", "ifrs-full:Goodwill"]),
    balance("Assets", "Total assets", &["us-gaap:Assets", "ifrs-full:Assets"]),
    balance(
        "AccountsPayable",
        "Accounts payable",
        &["us-gaap:AccountsPayableCurrent", "us-gaap:AccountsPayableTradeCurrent"],
    ),
    balance(
        "DeferredRevenue",
        "Deferred revenue (current)",
        &["us-gaap:ContractWithCustomerLiabilityCurrent", "us-gaap:DeferredRevenueCurrent"],
    ),
    balance(
        "CurrentLiabilities",
        "Current liabilities",
        &["us-gaap:LiabilitiesCurrent", "ifrs-full:CurrentLiabilities"],
    ),
    balance(
        "LongTermDebtNoncurrent",
        "Long-term debt (non-current)",
        &["us-gaap:LongTermDebtNoncurrent", "us-gaap:LongTermDebtAndCapitalLeaseObligations"],
    ),
    balance(
        "LongTermDebtCurrent",
        "Current part of long-term debt",
        &["us-gaap:LongTermDebtCurrent", "us-gaap:LongTermDebtAndCapitalLeaseObligationsCurrent"],
    ),
    balance(
        "ShortTermDebt",
        "Short-term borrowings / commercial paper",
        &["us-gaap:ShortTermBorrowings", "us-gaap:CommercialPaper"],
    ),
    balance(
        "DebtReported",
        "Total debt as reported",
        &["us-gaap:DebtLongtermAndShorttermCombinedAmount"],
    ),
    balance("DebtCurrentReported", "Current debt as reported", &["us-gaap:DebtCurrent"]),
    balance("Liabilities", "Total liabilities", &["us-gaap:Liabilities", "ifrs-full:Liabilities"]),
    balance(
        "Equity",
        "Shareholders' equity (parent)",
        &[
            "us-gaap:StockholdersEquity",
            "ifrs-full:EquityAttributableToOwnersOfParent",
            "ifrs-full:Equity",
        ],
    ),
    balance(
        "EquityInclNCI",
        "Equity incl. non-controlling interest",
        &[
            "us-gaap:StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
            "ifrs-full:Equity",
        ],
    ),
    balance(
        "LiabilitiesAndEquity",
        "Liabilities and equity",
        &["us-gaap:LiabilitiesAndStockholdersEquity", "ifrs-full:EquityAndLiabilities"],
    ),
    balance(
        "RPO",
        "Remaining performance obligation",
        &["us-gaap:RevenueRemainingPerformanceObligation"],
    ),
    shares(
        "SharesOutstanding",
        "Shares outstanding (cover page)",
        &["dei:EntityCommonStockSharesOutstanding", "us-gaap:CommonStockSharesOutstanding"],
    ),
    flow("NetInterestIncome", "Net interest income (bank)", &["us-gaap:InterestIncomeExpenseNet"]),
    flow("NoninterestIncome", "Non-interest income (bank)", &["us-gaap:NoninterestIncome"]),
    flow("NoninterestExpense", "Non-interest expense (bank)", &["us-gaap:NoninterestExpense"]),
    flow(
        "CreditProvision",
        "Provision for credit losses (bank)",
        &["us-gaap:ProvisionForLoanLeaseAndOtherLosses", "us-gaap:ProvisionForCreditLosses"],
    ),
    balance("Deposits", "Deposits (bank)", &["us-gaap:Deposits"]),
];
