use super::speaks_of;

#[test]
fn a_sentence_speaks_of_a_metric_by_its_words() {
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
        assert_eq!(speaks_of(metric, sentence), expected, "{metric}: {sentence}");
    }
}
