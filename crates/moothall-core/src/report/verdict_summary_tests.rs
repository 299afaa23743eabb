use super::*;

#[test]
fn points_and_percent_are_rounded_to_the_nearest() {
    assert_eq!([744, 745, -4, -5].map(in_points), [74, 75, 0, -1]);
    assert_eq!([0, 4, 5, 994, 1_000].map(in_percent), [0, 0, 1, 99, 100]);
    assert_eq!(
        (tenths(123), thousandths(400), thousandths(1_050)),
        ("12.3".into(), "0.40".into(), "1.05".into())
    );
}

#[test]
fn ids_are_listed_by_number() {
    assert_eq!(listed(&sorted(vec!["m10", "m9", "m2"])), "m2, m9 and m10");
    assert_eq!((listed(&[]), listed(&["m1"])), (String::new(), "m1".to_owned()));
}
