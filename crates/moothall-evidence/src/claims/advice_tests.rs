use super::advice_language;

#[test]
fn advice_about_shares_is_found() {
    for text in [
        "We set a price target of $250.",
        "Our target price is unchanged.",
        "The stock is a strong buy.",
        "Analysts keep a Buy rating on it.",
        "We rate the shares as Overweight.",
        "Investors should sell before the report.",
        "Buy the stock now.",
        "We recommend buying on weakness.",
        "The shares are undervalued.",
        "The share price could double.",
        "Take a long position in the company.",
        "A fair value per share of $90 follows.",
    ] {
        assert_ne!(advice_language(text), Vec::new(), "{text}");
    }
}

#[test]
fn buybacks_and_other_company_actions_are_not_investment_advice() {
    for text in [
        "The company bought back shares for $90 billion.",
        "It should sell its cloud unit and buy a rival.",
        "Hold prices steady and sell through partners.",
        "Customers buy more and own the hardware longer.",
        "The board may repurchase shares when cash allows.",
        "Sell new shares to fund the plant.",
        "The target is a price of $9.99 a month.",
    ] {
        assert_eq!(advice_language(text), Vec::new(), "{text}");
    }
}
