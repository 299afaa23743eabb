use super::*;

#[test]
fn classes_are_ordered_by_strength() {
    let mut classes = IsolationClass::STRONGEST_FIRST;
    classes.sort();
    classes.reverse();
    assert_eq!(classes, IsolationClass::STRONGEST_FIRST);
}

#[test]
fn an_isolation_class_round_trips_through_text() {
    for class in IsolationClass::STRONGEST_FIRST {
        assert_eq!(class.to_string().parse(), Ok(class));
    }
    assert_eq!("none".parse::<IsolationClass>(), Err(UnknownIsolationClass));
}

#[test]
fn a_guest_path_cannot_escape_its_directory() {
    for good in ["a", "a/b.csv", "données.csv", "a b", ".hidden"] {
        assert_eq!(good.parse::<GuestPath>().map(String::from), Ok(good.to_owned()));
    }
    let long = "x".repeat(401);
    let deep = ["a"; 17].join("/");
    for bad in
        ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\nb", "a\\b", "a\0", &long, &deep]
    {
        assert_eq!(bad.parse::<GuestPath>(), Err(InvalidGuestPath), "{bad:?}");
    }
}

fn request() -> ExecuteRequest {
    ExecuteRequest::python("python", "main.py".parse().unwrap(), "print(1)")
}

#[test]
fn everything_that_changes_an_execution_changes_its_hash() {
    let file = FileRef::of(b"x");
    let changes: [fn(&mut ExecuteRequest, FileRef); 8] = [
        |r, _| r.image = "data".to_owned(),
        |r, _| {
            r.sources.insert("main.py".parse().unwrap(), "print(2)".to_owned());
        },
        |r, file| {
            r.inputs.insert("données.csv".parse().unwrap(), file);
        },
        |r, _| r.argv.push("x".to_owned()),
        |r, _| {
            r.env.insert("A".to_owned(), "b".to_owned());
        },
        |r, _| r.stdin = "x".to_owned(),
        |r, _| r.limits.wall_ms += 1,
        |r, _| r.collect = true,
    ];
    let mut hashes = vec![request().hash().unwrap()];
    for change in changes {
        let mut changed = request();
        change(&mut changed, file);
        hashes.push(changed.hash().unwrap());
    }
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}
