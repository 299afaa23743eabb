use super::*;

#[test]
fn the_label_depends_on_models_and_on_who_debates() {
    let check = |models: &[&str], debating: &str, expected: PanelLabel, text: &str| {
        let judge = |(index, model): (usize, &&str)| PanelJudge {
            id: format!("P{index}"),
            model: (*model).to_owned(),
        };
        let judges: Vec<PanelJudge> = models.iter().enumerate().map(judge).collect();
        let label = PanelLabel::of(&judges, &[debating.to_owned()].into());
        assert_eq!((label, label.text()), (expected, text));
    };
    check(&["x", "x", "x"], "z", PanelLabel::SingleModel, "single model");
    check(&["x", "y", "x"], "z", PanelLabel::Mixed, "mixed");
    check(&["x", "y", "z"], "z", PanelLabel::Mixed, "mixed");
    check(&["x", "y", "w"], "z", PanelLabel::Independent, "independent");
}
