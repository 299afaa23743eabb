use super::mentions_metric;

#[test]
fn a_metric_is_recognised_by_its_terms_in_a_sentence() {
    for (metric, sentence, expected) in [
        ("Revenue", "revenue rose", true),
        ("Revenue.yoy", "net sales rose", true),
        ("Revenue", "services revenue rose", false),
        ("Revenue", "services revenue rose with total revenue", true),
        ("Revenue", "deferred revenue rose", false),
        ("DeferredRevenue", "deferred revenue rose", true),
        ("NetIncome", "revenue rose", false),
        ("Unheard", "revenue rose", false),
    ] {
        assert_eq!(mentions_metric(metric, sentence), expected, "{metric}: {sentence}");
    }
}
