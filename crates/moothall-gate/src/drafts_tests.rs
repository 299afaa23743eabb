use proptest::prelude::*;

use super::*;
use crate::Sha256Hex;
use crate::gate::{GateAction, GateRule};

const DAY: u64 = 24 * 60 * 60 * 1000;

fn limits() -> DraftLimits {
    DraftLimits {
        open_per_task: 16,
        per_submission: 20,
        rejections: 2,
        draft_ttl_ms: 7 * DAY,
        escalation_ttl_ms: 14 * DAY,
    }
}

fn id(number: u8) -> DraftId {
    DraftId::new([number; 16])
}

fn file(text: &str) -> FileState {
    FileState { sha256: Sha256Hex::of(text.as_bytes()), executable: false }
}

fn content(text: &str) -> ProposedChange {
    ProposedChange { file: Some(file(text)), rename_to: None }
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn task() -> TaskId {
    TaskId::parse("t1").unwrap()
}

/// Drafts and a clock, driven by commands.
struct World {
    drafts: DraftSet,
    now: u64,
    reviewers: ApprovalRules,
}

impl World {
    fn new() -> Self {
        Self { drafts: DraftSet::default(), now: 1, reviewers: ApprovalRules::default() }
    }

    fn tell(
        &mut self,
        who: &Principal,
        command: DraftOperation,
    ) -> Result<Vec<DraftEvent>, DraftRefusal> {
        let events = decide(&self.drafts, who, command, &limits(), &self.reviewers, self.now)?;
        for event in &events {
            let record = AuditRecord {
                ts: self.now,
                actor: who.clone(),
                client: None,
                event: event.clone(),
            };
            self.drafts.evolve(&record);
        }
        Ok(events)
    }

    fn requested(&mut self, number: u8, name: &str) -> DraftId {
        let command = DraftOperation::Request {
            id: id(number),
            task: task(),
            path: path(name),
            base: Some(file("old")),
        };
        self.tell(&worker(), command).unwrap();
        id(number)
    }

    fn written(&mut self, number: u8, name: &str) -> DraftId {
        let draft = self.requested(number, name);
        self.tell(&worker(), write(draft, "new")).unwrap();
        draft
    }

    fn submitted(&mut self, drafts: &[DraftId]) {
        self.tell(&worker(), submit(drafts)).unwrap();
    }

    fn judged(&mut self, drafts: &[DraftId], action: GateAction) {
        self.tell(&Principal::gate(), judge(drafts, action)).unwrap();
    }

    fn state(&self, draft: DraftId) -> DraftState {
        self.drafts.of(&Principal::gate(), draft).unwrap().state
    }
}

fn worker() -> Principal {
    Principal::worker("ada/one")
}

fn write(draft: DraftId, text: &str) -> DraftOperation {
    DraftOperation::Write { draft, change: content(text), bytes: text.len() as u64, if_match: None }
}

fn submit(drafts: &[DraftId]) -> DraftOperation {
    DraftOperation::Submit { drafts: drafts.to_vec(), summary: "why".to_owned() }
}

fn policy() -> Sha256Hex {
    Sha256Hex::of(b"policy")
}

fn judge(drafts: &[DraftId], action: GateAction) -> DraftOperation {
    DraftOperation::Judge {
        drafts: drafts.to_vec(),
        policy: policy(),
        action,
        findings: Vec::new(),
    }
}

fn review(draft: DraftId, seal: Sha256Hex, say: ReviewDecision) -> DraftOperation {
    DraftOperation::Review { draft, seal, policy: policy(), say, reason: String::new() }
}

fn amended(draft: DraftId, proposed: ProposedChange, change: ProposedChange) -> AmendedFile {
    AmendedFile { draft, proposed, change, edited: false }
}

fn amend(
    draft: DraftId,
    seal: Sha256Hex,
    action: GateAction,
    files: Vec<AmendedFile>,
) -> DraftOperation {
    let (findings, hunks, reason) = (Vec::new(), None, String::new());
    DraftOperation::Amend { draft, seal, policy: policy(), action, findings, hunks, files, reason }
}

#[test]
fn malformed_draft_ids_are_not_parsed() {
    for text in
        ["", "drf_", "../../x", "drf_0g", &"d".repeat(5000), "DRF_00000000000000000000000000000000"]
    {
        assert_eq!(DraftId::parse(text), None, "{text:.40}");
    }
    let one = id(7);
    assert_eq!(DraftId::parse(&one.to_string()), Some(one));
}

#[test]
fn a_task_is_a_label_and_never_a_path() {
    for text in ["", "a/b", "..\\x", "a b", &"t".repeat(129), "a\n"] {
        assert_eq!(TaskId::parse(text), None, "{text:.40}");
    }
    assert!(TaskId::parse("phase10_version_flag").is_some());
}

#[test]
fn the_same_file_of_a_task_has_one_open_draft() {
    let mut world = World::new();
    world.requested(1, "a/foo.py");
    world.requested(2, "a/foo.py");
    world.requested(3, "b/foo.py");
    let ids: Vec<_> = world.drafts.all().map(|draft| draft.id).collect();
    assert_eq!(ids, [id(1), id(3)]);
}

#[test]
fn a_task_has_no_more_than_sixteen_open_drafts() {
    let mut world = World::new();
    for number in 0..16 {
        world.requested(number, &format!("f{number}"));
    }
    let command =
        DraftOperation::Request { id: id(99), task: task(), path: path("one-more"), base: None };
    let refused = DraftRefusal::Limit { what: "open drafts in the task", limit: 16 };
    assert_eq!(world.tell(&worker(), command), Err(refused));
}

/// Workers choose their own task names, so a limit per task alone bounds nothing.
#[test]
fn the_open_drafts_of_a_worker_are_limited_across_tasks() {
    let mut world = World::new();
    let request = |number: u16| DraftOperation::Request {
        id: DraftId::new(
            [number.to_be_bytes()[0], number.to_be_bytes()[1]].repeat(8).try_into().unwrap(),
        ),
        task: TaskId::parse(&format!("t{number}")).unwrap(),
        path: path("a"),
        base: None,
    };
    for number in 0..256 {
        world.tell(&worker(), request(number)).unwrap();
    }
    let refused = DraftRefusal::Limit { what: "open drafts for the worker", limit: 256 };
    assert_eq!(world.tell(&worker(), request(256)), Err(refused));
    world.tell(&Principal::worker("ada/two"), request(256)).unwrap();
}

#[test]
fn a_draft_of_another_worker_is_reported_as_unknown() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    let stranger = Principal::worker("ada/two");
    assert_eq!(world.tell(&stranger, write(draft, "x")), Err(DraftRefusal::Unknown));
    assert_eq!(world.tell(&stranger, write(id(77), "x")), Err(DraftRefusal::Unknown));
    assert_eq!(world.tell(&stranger, submit(&[draft])), Err(DraftRefusal::Unknown));
    assert_eq!(world.drafts.of(&stranger, draft), None);
}

#[test]
fn an_applied_draft_cannot_be_written_or_submitted() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Allow);
    let gate = Principal::gate();
    world.tell(&gate, DraftOperation::Apply { drafts: vec![draft], steps: Vec::new() }).unwrap();
    world
        .tell(&gate, DraftOperation::End { drafts: vec![draft], end: ApplyOutcome::Done })
        .unwrap();
    assert_eq!(world.state(draft), DraftState::Applied);
    let refused = |what| Err(DraftRefusal::State { state: DraftState::Applied, what });
    assert_eq!(world.tell(&worker(), write(draft, "x")), refused("written"));
    assert_eq!(world.tell(&worker(), submit(&[draft])), refused("submitted"));
}

#[test]
fn a_write_for_an_older_revision_is_refused() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    let stale = DraftOperation::Write {
        draft,
        change: content("newer"),
        bytes: 5,
        if_match: Some(Sha256Hex::of(b"old")),
    };
    let head = Sha256Hex::of(b"new").to_string();
    assert_eq!(world.tell(&worker(), stale), Err(DraftRefusal::Stale { head }));
}

#[test]
fn writing_an_expired_draft_reports_that_it_is_expired() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.now += 7 * DAY;
    assert_eq!(world.tell(&Principal::gate(), DraftOperation::Expire), Ok(Vec::new()));
    world.now += 1;
    world.tell(&Principal::gate(), DraftOperation::Expire).unwrap();
    let refused = DraftRefusal::State { state: DraftState::Expired, what: "written" };
    assert_eq!(world.tell(&worker(), write(draft, "x")), Err(refused.clone()));
    assert_eq!(refused.to_string(), "draft is expired and cannot be written");
}

#[test]
fn a_rejected_draft_can_be_edited_until_the_rejection_limit() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    for state in [DraftState::Editing, DraftState::Rejected] {
        world.submitted(&[draft]);
        world.judged(&[draft], GateAction::Reject);
        assert_eq!(world.state(draft), state);
    }
}

#[test]
fn an_approval_is_valid_only_for_the_version_that_was_shown() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Escalate);
    let shown = world.drafts.seal(&[draft]);
    world.tell(&worker(), write(draft, "swapped")).unwrap();
    let ada = Principal::human("ada");
    let refused = Err(DraftRefusal::State { state: DraftState::Editing, what: "reviewed" });
    assert_eq!(world.tell(&ada, review(draft, shown, ReviewDecision::Approve)), refused);
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Escalate);
    let now = world.drafts.seal(&[draft]);
    let refused = Err(DraftRefusal::Seal { seal: now });
    assert_eq!(world.tell(&ada, review(draft, shown, ReviewDecision::Approve)), refused);
    world.tell(&ada, review(draft, now, ReviewDecision::Approve)).unwrap();
    assert_eq!(world.state(draft), DraftState::Accepted);
    let again = Err(DraftRefusal::State { state: DraftState::Accepted, what: "reviewed" });
    assert_eq!(world.tell(&ada, review(draft, now, ReviewDecision::Approve)), again);
}

#[test]
fn only_listed_approvers_can_approve_and_never_their_own_drafts() {
    let mut world = World::new();
    world.reviewers.approvers = vec!["uid:1000".to_owned(), "token:0123456789ab".to_owned()];
    let ada = Principal::human("ada").with_account(PrincipalAccount::User(1000));
    let own = DraftOperation::Request { id: id(1), task: task(), path: path("a"), base: None };
    world.tell(&ada, own).unwrap();
    world.tell(&ada, write(id(1), "new")).unwrap();
    world.tell(&ada, submit(&[id(1)])).unwrap();
    world.judged(&[id(1)], GateAction::Escalate);
    let seal = world.drafts.seal(&[id(1)]);
    let approve = review(id(1), seal, ReviewDecision::Approve);
    assert_eq!(world.tell(&worker(), approve.clone()), Err(DraftRefusal::NotHuman));
    assert_eq!(
        world.tell(&worker(), judge(&[id(1)], GateAction::Allow)),
        Err(DraftRefusal::NotGate)
    );
    // Neither a name nor another kind of account proves an identity.
    let ada_by_name = Principal::human("ada");
    let others = [
        ada_by_name.clone(),
        ada_by_name.clone().with_account(PrincipalAccount::User(1001)),
        ada_by_name.with_account(PrincipalAccount::Elicitation(1000)),
        Principal::human("uid:1000"),
    ];
    for who in others {
        let refused = DraftRefusal::NotApprover { who: Box::new(who.clone()) };
        assert_eq!(world.tell(&who, approve.clone()), Err(refused));
    }
    assert_eq!(world.tell(&ada, approve.clone()), Err(DraftRefusal::Author));
    let renamed = Principal::human("bob").with_account(PrincipalAccount::User(1000));
    assert_eq!(world.tell(&renamed, approve.clone()), Err(DraftRefusal::Author));
    world.reviewers.author_may_approve = true;
    assert!(world.tell(&ada, approve).is_ok());
}

#[test]
fn plain_names_in_the_approver_list_match_no_account() {
    let mut world = World::new();
    world.reviewers.approvers = vec!["ada".to_owned(), "uid:01000".to_owned()];
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Escalate);
    let approve = review(draft, world.drafts.seal(&[draft]), ReviewDecision::Approve);
    let account = |number| Principal::human("ada").with_account(PrincipalAccount::User(number));
    for who in [Principal::human("ada"), account(0), account(1000)] {
        let refused = DraftRefusal::NotApprover { who: Box::new(who.clone()) };
        assert_eq!(world.tell(&who, approve.clone()), Err(refused));
    }
    assert_eq!(world.reviewers.plain_names().collect::<Vec<_>>(), ["ada", "uid:01000"]);
}

#[test]
fn a_reviewer_with_the_name_of_a_worker_is_refused() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Escalate);
    let seal = world.drafts.seal(&[draft]);
    let who = Principal::human(worker().id).with_account(PrincipalAccount::User(1000));
    for say in [ReviewDecision::Approve, ReviewDecision::Reject, ReviewDecision::SendBack] {
        let refused = DraftRefusal::WorkerName { id: worker().id };
        assert_eq!(world.tell(&who, review(draft, seal, say)), Err(refused));
    }
    assert!(
        world.tell(&Principal::human("ada"), review(draft, seal, ReviewDecision::Approve)).is_ok()
    );
}

#[test]
fn accounts_have_one_canonical_form() {
    for text in ["uid:0", "uid:4294967295", "token:0123456789ab", "elicitation:uid:1000"] {
        let account = PrincipalAccount::parse(text).unwrap();
        assert_eq!(account.to_string(), text);
        let principal = Principal::human("ada").with_account(account);
        let written = serde_json::to_string(&principal).unwrap();
        assert_eq!(serde_json::from_str::<Principal>(&written).unwrap(), principal);
    }
    for text in
        ["ada", "", "uid:", "uid:+1", "uid:01", "uid:4294967296", "UID:1", "token:ada", "1000"]
    {
        assert_eq!(PrincipalAccount::parse(text), None, "{text}");
    }
    // A record of a version without accounts.
    let older = r#"{"kind":"human","id":"ada"}"#;
    assert_eq!(serde_json::from_str::<Principal>(older).unwrap(), Principal::human("ada"));
    assert_eq!(serde_json::to_string(&Principal::human("ada")).unwrap(), older);
}

#[test]
fn an_approval_under_another_policy_is_refused() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    world.judged(&[draft], GateAction::Escalate);
    let seal = world.drafts.seal(&[draft]);
    let command = DraftOperation::Review {
        draft,
        seal,
        policy: Sha256Hex::of(b"another"),
        say: ReviewDecision::Approve,
        reason: String::new(),
    };
    assert_eq!(world.tell(&Principal::human("ada"), command), Err(DraftRefusal::Policy));
}

#[test]
fn writing_one_draft_resets_its_whole_submission() {
    let mut world = World::new();
    let (one, two) = (world.written(1, "a"), world.written(2, "b"));
    world.submitted(&[one, two]);
    world.judged(&[one, two], GateAction::Escalate);
    world.tell(&worker(), write(one, "other")).unwrap();
    assert_eq!([world.state(one), world.state(two)], [DraftState::Editing, DraftState::Editing]);
}

#[test]
fn one_file_is_not_submitted_twice_together() {
    let mut world = World::new();
    let (one, two) = (world.written(1, "a"), world.written(2, "b"));
    assert_eq!(world.tell(&worker(), submit(&[one, one])), Err(DraftRefusal::Set));
    assert_eq!(world.tell(&worker(), submit(&[])), Err(DraftRefusal::Set));
    let onto = ProposedChange { file: Some(file("new")), rename_to: Some(path("b")) };
    let rename = DraftOperation::Write { draft: one, change: onto, bytes: 3, if_match: None };
    world.tell(&worker(), rename).unwrap();
    assert_eq!(world.tell(&worker(), submit(&[one, two])), Err(DraftRefusal::Set));
}

#[test]
fn a_rename_creates_one_file_deletes_another_and_can_be_undone() {
    let mut world = World::new();
    let draft = world.requested(1, "a");
    let onto = ProposedChange { file: Some(file("new")), rename_to: Some(path("b")) };
    world
        .tell(&worker(), DraftOperation::Write { draft, change: onto, bytes: 3, if_match: None })
        .unwrap();
    let there = steps(&world.drafts, &[draft], |at| format!("t{at}"));
    let step = |name: &str, from: Option<&str>, to: Option<&str>, at: usize| FileStep {
        path: path(name),
        from: from.map(file),
        to: to.map(file),
        staged_as: format!("t{at}"),
    };
    assert_eq!(there, [step("b", None, Some("new"), 0), step("a", Some("old"), None, 1)]);
    let back = undo_steps(there);
    assert_eq!(back, [step("a", None, Some("old"), 1), step("b", Some("new"), None, 0)]);
}

#[test]
fn content_with_a_credential_is_removed_and_cannot_be_submitted() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    world.submitted(&[draft]);
    let found = JournalFinding {
        rule: GateRule::SecretSpecific,
        action: GateAction::Reject,
        path: path("a"),
        line: Some(1),
        message: "a credential".to_owned(),
    };
    let verdict = DraftOperation::Judge {
        drafts: vec![draft],
        policy: policy(),
        action: GateAction::Reject,
        findings: vec![found],
    };
    world.tell(&Principal::gate(), verdict).unwrap();
    assert_eq!(world.tell(&worker(), submit(&[draft])), Err(DraftRefusal::ContentRemoved));
    let kept = referenced_blobs(&world.drafts, BlobRetention::default(), world.now);
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [file("old").sha256]);
}

#[test]
fn draft_contents_are_kept_while_the_draft_can_still_be_used() {
    let mut world = World::new();
    let draft = world.written(1, "a");
    let kept = |world: &World, after: u64| {
        referenced_blobs(&world.drafts, BlobRetention::default(), world.now + after).len()
    };
    assert_eq!(kept(&world, 400 * DAY), 2);
    world.tell(&worker(), DraftOperation::Withdraw { draft }).unwrap();
    assert_eq!((kept(&world, 7 * DAY), kept(&world, 7 * DAY + 1)), (2, 0));
}

#[test]
fn amendment_is_bound_to_the_proposal_the_paths_and_the_gate() {
    let mut world = World::new();
    let drafts = [world.written(1, "a"), world.written(2, "b")];
    world.submitted(&drafts);
    world.judged(&drafts, GateAction::Escalate);
    let [one, two] = drafts;
    let (ada, seal) = (Principal::human("ada"), world.drafts.seal(&drafts));
    let part = || amended(one, content("new"), content("part"));
    let mut refused = |action, files, why| {
        assert_eq!(world.tell(&ada, amend(one, seal, action, files)), Err(why));
    };
    let allow = GateAction::Allow;
    refused(GateAction::Reject, vec![part()], DraftRefusal::ResultRejected);
    let nothing = |draft| amended(draft, content("new"), content("old"));
    refused(allow, vec![nothing(one), nothing(two)], DraftRefusal::EmptyResult);
    refused(allow, vec![amended(id(9), content("new"), content("x"))], DraftRefusal::Unknown);
    // Another proposal, one file twice, and a path that the worker did not propose.
    let other = DraftRefusal::Seal { seal };
    refused(allow, vec![amended(one, content("x"), content("part"))], other.clone());
    refused(allow, vec![part(), part()], other.clone());
    let elsewhere = ProposedChange { rename_to: Some(path("c")), ..content("part") };
    refused(allow, vec![amended(one, content("new"), elsewhere)], other);
    let stale = world.tell(&ada, amend(one, policy(), allow, vec![part()]));
    assert_eq!(stale, Err(DraftRefusal::Seal { seal }));
    assert_eq!(
        world.tell(&worker(), amend(one, seal, allow, vec![part()])),
        Err(DraftRefusal::NotHuman)
    );

    let events = world.tell(&ada, amend(one, seal, allow, vec![part(), nothing(two)])).unwrap();
    let [DraftEvent::Amended { result, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*result, world.drafts.seal(&drafts));
    assert_eq!((world.state(one), world.state(two)), (DraftState::Accepted, DraftState::Rejected));
    let steps = steps(&world.drafts, &drafts, |at| at.to_string());
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].from, steps[0].to), (Some(file("old")), Some(file("part"))));
}

#[test]
fn every_audit_record_keeps_its_serialized_form() {
    let (one, sha) = (id(1), Sha256Hex::of(b"x"));
    let step = FileStep {
        path: path("a"),
        from: Some(file("old")),
        to: None,
        staged_as: ".moothall-1-0".to_owned(),
    };
    let found = JournalFinding {
        rule: GateRule::PathHome,
        action: GateAction::Reject,
        path: path("a"),
        line: Some(3),
        message: "words".to_owned(),
    };
    let renamed = ProposedChange { file: Some(file("new")), rename_to: Some(path("b")) };
    let conflict =
        ApplyOutcome::Conflict { path: path("a"), found: Some(sha), left: vec![path("b")] };
    let events = [
        DraftEvent::Requested {
            draft: one,
            task: task(),
            path: path("a"),
            base: Some(file("old")),
        },
        DraftEvent::Written { draft: one, change: renamed.clone(), bytes: 3 },
        DraftEvent::Submitted { drafts: vec![one], seal: sha, summary: "why".to_owned() },
        DraftEvent::Judged {
            drafts: vec![one],
            seal: sha,
            policy: sha,
            action: GateAction::Reject,
            findings: vec![found.clone()],
            last: false,
        },
        DraftEvent::Reviewed {
            drafts: vec![one],
            seal: sha,
            policy: sha,
            say: ReviewDecision::SendBack,
            reason: "smaller".to_owned(),
        },
        DraftEvent::Amended {
            drafts: vec![one],
            seal: sha,
            result: sha,
            policy: sha,
            action: GateAction::Escalate,
            findings: vec![found],
            hunks: Some(HunkSelection { approved: vec![1, 3], of: 4 }),
            files: vec![
                amended(one, renamed.clone(), content("part")),
                AmendedFile { edited: true, ..amended(one, renamed.clone(), content("own")) },
            ],
            reason: "smaller".to_owned(),
        },
        DraftEvent::Commented {
            drafts: vec![one],
            seal: sha,
            comments: vec![LineComment {
                path: path("a"),
                side: CommentSide::New,
                line: 3,
                text: "why".to_owned(),
            }],
        },
        DraftEvent::Applying { drafts: vec![one], undo: false, steps: vec![step] },
        DraftEvent::Ended { drafts: vec![one], end: ApplyOutcome::Done },
        DraftEvent::Ended { drafts: vec![one], end: conflict },
        DraftEvent::Salvaged { path: path("a"), kept_as: "a.saved".to_owned(), sha256: sha },
        DraftEvent::Rebased { draft: one, base: None, change: renamed, clean: true },
        DraftEvent::Withdrawn { draft: one },
        DraftEvent::Expired { draft: one },
        DraftEvent::Purged { blobs: 4 },
        DraftEvent::PolicyDiffers { policy: sha },
        DraftEvent::PolicyTrusted { text: sha },
        DraftEvent::Rotated { next: 2 },
    ];
    let mut written = String::new();
    for event in events {
        let client = ClientInfo { name: "moothall".to_owned(), version: "1".to_owned() };
        let record = AuditRecord { ts: 5, actor: worker(), client: Some(client), event };
        let line = serde_json::to_string(&record).unwrap();
        // The journal adds its own fields around these.
        let chained = line.replacen('{', "{\"seq\":1,\"prev\":\"0\",", 1);
        let chained = format!("{},\"hash\":\"0\"}}", chained.strip_suffix('}').unwrap());
        assert_eq!(serde_json::from_str::<AuditRecord>(&chained).unwrap(), record);
        written.push_str(&line);
        written.push('\n');
    }
    insta::assert_snapshot!(written);
}

fn commands() -> impl Strategy<Value = (u8, DraftOperation)> {
    let ids = (0_u8..4).prop_map(id);
    let action =
        prop_oneof![Just(GateAction::Allow), Just(GateAction::Escalate), Just(GateAction::Reject)];
    let end = prop_oneof![
        Just(ApplyOutcome::Done),
        Just(ApplyOutcome::Conflict { path: path("a"), found: None, left: Vec::new() })
    ];
    let command = prop_oneof![
        (0_u8..4, "[ab]").prop_map(|(number, name)| DraftOperation::Request {
            id: id(number),
            task: task(),
            path: path(&name),
            base: None,
        }),
        (ids.clone(), "[xy]").prop_map(|(draft, text)| write(draft, &text)),
        prop::collection::vec(ids.clone(), 0..3).prop_map(|drafts| submit(&drafts)),
        (prop::collection::vec(ids.clone(), 1..3), action)
            .prop_map(|(drafts, action)| judge(&drafts, action)),
        ids.clone().prop_map(|draft| DraftOperation::Withdraw { draft }),
        prop::collection::vec(ids.clone(), 1..3)
            .prop_map(|drafts| DraftOperation::Apply { drafts, steps: Vec::new() }),
        prop::collection::vec(ids.clone(), 1..3)
            .prop_map(|drafts| DraftOperation::Undo { drafts, steps: Vec::new() }),
        (prop::collection::vec(ids, 1..3), end)
            .prop_map(|(drafts, end)| DraftOperation::End { drafts, end }),
        Just(DraftOperation::Expire),
    ];
    (0_u8..4, command)
}

proptest! {
    #[test]
    fn no_sequence_of_operations_applies_an_unaccepted_draft(
        told in prop::collection::vec(commands(), 0..60),
    ) {
        let mut world = World::new();
        let mut accepted = std::collections::BTreeMap::new();
        for (who, command) in told {
            let who = match who {
                0 => worker(),
                1 => Principal::worker("ada/two"),
                2 => Principal::human("ada"),
                _ => Principal::gate(),
            };
            let Ok(events) = world.tell(&who, command) else { continue };
            for event in events {
                match event {
                    DraftEvent::Judged { drafts, action: GateAction::Allow, .. } => {
                        for draft in drafts {
                            accepted.insert(draft, world.drafts.seal(&[draft]));
                        }
                    }
                    DraftEvent::Applying { drafts, .. } => {
                        for draft in drafts {
                            prop_assert_eq!(
                                accepted.get(&draft),
                                Some(&world.drafts.seal(&[draft]))
                            );
                        }
                    }
                    _ => {}
                }
            }
            let mut open: Vec<_> = world
                .drafts
                .all()
                .filter(|draft| draft.state.is_open())
                .map(|draft| (&draft.owner, &draft.path))
                .collect();
            let many = open.len();
            open.sort();
            open.dedup();
            prop_assert_eq!(open.len(), many);
        }
    }
}
