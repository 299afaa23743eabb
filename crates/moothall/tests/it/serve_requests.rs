//! `POST /api/runs` can start everything that `moothall consult` can, with the same run spec.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::RunSpec;
use moothall_store::Store as _;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::chaos;
use crate::serve::{Server, runtime};
use crate::world::World;

const PLAN: &str = "# Acme Pumps\n\nAcme Pumps makes pumps for breweries in one plant.\n\n\
                    ## Prices\n\nWe raised list prices by 4% in May and lost two dealers.\n";
const SALES: &str = "Year,Revenue\n2024,\"$12,900,000\"\n2025,\"$14,100,000\"\n";
const MOVES: &str = "title = \"Sell the idle plant\"\nthesis = \"It costs more than it earns.\"\n";
const FEED: &str = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Times</title>\
    <link>https://times.example/</link><description>News</description><item>\
    <title>Acme Pumps opens a plant</title><link>https://times.example/1</link>\
    <pubDate>Fri, 30 Jan 2026 12:00:00 GMT</pubDate></item></channel></rss>";

/// A directory with everything that the command line reads from files.
fn prepared() -> World {
    let world = World::new();
    fs_err::create_dir(world.path("documents")).unwrap();
    world.write("documents/plan.md", PLAN);
    world.write("documents/sales.csv", SALES);
    world.write("moves.toml", MOVES);
    world.write("feed.xml", FEED);
    assert_eq!(world.run(&["committee", "new", "mine.toml"]).code, Some(0));
    let committee = world.read("mine.toml").replacen("name = \"board\"", "name = \"mine\"", 1);
    world.write("mine.toml", &committee);
    world
}

fn documents() -> Value {
    json!([
        {"name": "sales.csv", "base64": STANDARD.encode(SALES)},
        {"name": "plan.md", "text": PLAN},
    ])
}

async fn spec(world: &World, run: &str) -> RunSpec {
    let store = chaos::store(world).await.unwrap();
    let row = store.run(&run.parse().unwrap()).await.unwrap().unwrap();
    row.spec.read().unwrap().clone()
}

#[test]
fn a_private_company_has_the_same_spec_over_http_as_on_the_command_line() {
    let world = prepared();
    let ran = world.run(&[
        "consult",
        "--name",
        "Acme Pumps",
        "--source",
        "files",
        "documents",
        "--model",
        "demo",
        "--committee",
        "mine.toml",
        "--moves",
        "3",
        "--rounds",
        "2",
        "--parallel-moves",
        "2",
        "--brief",
        "Shall we grow abroad?",
        "--add-moves",
        "moves.toml",
        "--baseline",
        "--accept-findings",
        "--as-of",
        "2026-03-31",
        "--news",
        "feed.xml",
        "--model-for",
        "critic=demo",
        "--isolation",
        "none",
        "--budget",
        "2.50",
        "--budget-tokens",
        "9000000",
        "--yes",
        "--json",
    ]);
    assert!(matches!(ran.code, Some(0 | 1 | 3)), "{ran}");
    let by_cli = world.run(&["runs", "--json"]).json()["runs"][0]["run_id"].clone();
    let by_cli = by_cli.as_str().unwrap();
    let committee = world.read("mine.toml");
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let by_http = server
            .begin(&json!({
                "workflow": "consult", "name": "Acme Pumps", "source": "files",
                "documents": documents(), "model": "demo", "committee_file": committee,
                "moves": 3, "rounds": 2, "parallel_moves": 2, "brief": "Shall we grow abroad?",
                "add_moves": MOVES, "baseline": true, "accept_findings": true,
                "as_of": "2026-03-31", "news_file": {"name": "feed.xml", "text": FEED},
                "models": {"critic": "demo"}, "isolation": "none", "budget_usd": "2.50",
                "budget_tokens": 9_000_000,
            }))
            .await;
        let (mut cli, mut http) = (spec(&world, by_cli).await, spec(&world, &by_http).await);
        // Only the place of the files differs: a directory, or the store.
        let uploads = std::mem::take(&mut http.settings_mut().uploads);
        assert_eq!(uploads.keys().collect::<Vec<_>>(), ["plan.md", "sales.csv"]);
        assert!(cli.settings_mut().documents.take().is_some());
        for spec in [&mut cli, &mut http] {
            assert!(spec.settings_mut().news.take().is_some());
        }
        assert_eq!(http, cli);

        // Both end with the same evidence, and the files are stored with the run.
        let view = server.over(&by_http).await;
        assert_eq!(view["status"]["state"], "complete", "{view:#}");
        let of_cli = server.json(&format!("/api/runs/{by_cli}")).await;
        assert_eq!(view["consult"]["gathered"], of_cli["consult"]["gathered"]);
        assert_eq!(view["about"]["committee"]["name"], "mine");
        let cited = server.json(&format!("/api/runs/{by_http}/facts/U0:plan:1")).await;
        assert_eq!(cited, server.json(&format!("/api/runs/{by_cli}/facts/U0:plan:1")).await);
        let store = chaos::store(&world).await.unwrap();
        let plan = &uploads["plan.md"].sha256;
        let kept = store.artifact(&by_http.parse().unwrap(), plan).await.unwrap();
        assert_eq!(kept.unwrap(), PLAN.as_bytes());
    });
}

#[test]
fn documents_are_read_in_addition_to_filings() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({"documents": documents(), "moves": 1})).await;
        let view = server.over(&run).await;
        assert_eq!(view["status"]["state"], "complete", "{view:#}");
        let cited = server.json(&format!("/api/runs/{run}/facts/U0:plan:1")).await;
        assert!(cited.to_string().contains("breweries"), "{cited}");
    });
}

#[test]
fn invalid_start_requests_are_refused_with_the_code_of_their_field() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    runtime().block_on(async {
        let base = json!({"workflow": "consult", "model": "demo", "isolation": "none"});
        let acme = json!({"name": "Acme", "source": "files", "documents": documents()});
        let cases = [
            (json!({"ticker": "HLXI", "isolatoin": "none"}), 400, "unknown-field"),
            (json!({"workflow": "reflexion", "task": "x", "network": true}), 400, "unknown-field"),
            (json!({"name": "Acme", "source": "files"}), 422, "bad-file"),
            (json!({"name": "Acme", "documents": documents()}), 422, "bad-name"),
            (json!({"name": "Acme", "ticker": "HLXI", "source": "files"}), 422, "bad-name"),
            (json!({"source": "files", "documents": documents()}), 422, "bad-name"),
            (json!({"ticker": "HLXI", "source": "synthetic", "documents": documents()}), 422, "bad-file"),
            (json!({"ticker": "HLXI", "documents": [{"name": "a.exe", "text": "x"}]}), 422, "bad-file"),
            (json!({"ticker": "HLXI", "documents": [{"name": "../a.md", "text": "x"}]}), 422, "bad-file"),
            // Files of other runs cannot be named: a request contains its files.
            (json!({"ticker": "HLXI", "documents": [{"name": "a.md", "sha256": "00"}]}), 400, "unknown-field"),
            (json!({"ticker": "HLXI", "committee_file": "name = 1"}), 422, "bad-committee"),
            (json!({"ticker": "HLXI", "add_moves": "title = 1"}), 422, "bad-moves"),
            (json!({"ticker": "HLXI", "news": "somewhere"}), 422, "bad-news"),
            (json!({"ticker": "HLXI", "models": {"janitor": "demo"}}), 422, "bad-model"),
            (json!({"workflow": "reflexion", "task": "x", "expect_regex": "a", "expect_text": "a"}), 422, "bad-expectation"),
            (json!({"workflow": "reflexion", "task": "x", "memory_mib": 1}), 422, "out-of-range"),
        ];
        for (more, status, code) in cases {
            let mut wanted = base.clone();
            wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let is_program = wanted["workflow"] == "reflexion";
            if is_program {
                wanted.as_object_mut().unwrap().remove("isolation");
            }
            let answer = server.post("/api/runs", &wanted).await;
            let found = answer.status().as_u16();
            let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{more} {problem}");
            if code == "unknown-field" {
                assert!(problem["hint"].as_str().unwrap().starts_with("known fields: "), "{problem}");
            }
        }
        // An estimate needs no documents.
        let mut wanted = acme;
        wanted.as_object_mut().unwrap().remove("documents");
        let estimate = server.post("/api/estimate", &wanted).await;
        assert_eq!(estimate.status(), StatusCode::OK);
        // Nothing was created, and a body over the limit is refused.
        assert_eq!(server.json("/api/runs").await["runs"], json!([]));
        let large = json!({"workflow": "consult", "brief": "x".repeat(45 << 20)});
        assert!(server.is_too_large("/api/runs", &large).await);
        let large = json!({"ticker": "HLXI", "brief": "x".repeat(2 << 20)});
        assert!(server.is_too_large("/api/estimate", &large).await);
        assert_eq!(server.json("/api/runs").await["runs"], json!([]));
    });
}
