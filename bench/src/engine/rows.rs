//! Writes the rows of a step without our store: one transaction with as few statements as possible.

use anyhow::{Context as _, Result};
use moothall_core::{EffectId, EffectResult, Outcome, RunEvent, Sha256Hex};
use moothall_store::RunState;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

/// The rows of one step.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) events: Vec<RunEvent>,
    pub(crate) answers: Vec<(EffectId, Sha256Hex, EffectResult)>,
    pub(crate) artifacts: Vec<Vec<u8>>,
    pub(crate) outcome: Option<Outcome>,
}

/// A connection pool with the settings of our store.
pub(crate) fn pool(address: &str, connections: u32) -> Result<PgPool> {
    let options: PgConnectOptions = address.parse()?;
    let options =
        options.options([("search_path", "moothall"), ("plan_cache_mode", "force_custom_plan")]);
    Ok(PgPoolOptions::new().max_connections(connections).connect_lazy_with(options))
}

/// Writes the rows atomically. Concurrent writers of the same run wait for the lock on its row.
pub(crate) async fn write(pool: &PgPool, run: &str, rows: Rows) -> Result<()> {
    let run: sqlx::types::Uuid = run.parse().context("the key is not a run id")?;
    let mut transaction = pool.begin().await?;
    let head: i64 = sqlx::query_scalar("SELECT head FROM runs WHERE run_id = $1 FOR NO KEY UPDATE")
        .bind(run)
        .fetch_one(&mut *transaction)
        .await?;
    write_events(&mut transaction, run, head, &rows.events).await?;
    write_answers(&mut transaction, run, &rows.answers).await?;
    for content in &rows.artifacts {
        sqlx::query(
            "INSERT INTO artifacts (run_id, sha256, content) VALUES ($1, decode($2, 'hex'), $3)
             ON CONFLICT DO NOTHING",
        )
        .bind(run)
        .bind(Sha256Hex::of(content).to_string())
        .bind(content)
        .execute(&mut *transaction)
        .await?;
    }
    let outcome = rows.outcome.as_ref().map(serde_json::to_string).transpose()?;
    let state = outcome.as_ref().map(|_| RunState::Finished.as_str());
    sqlx::query(
        "UPDATE runs SET head = $2, outcome = $3, state = coalesce($4, state) WHERE run_id = $1",
    )
    .bind(run)
    .bind(head + i64::try_from(rows.events.len())?)
    .bind(outcome)
    .bind(state)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

async fn write_events(
    connection: &mut PgConnection,
    run: sqlx::types::Uuid,
    head: i64,
    events: &[RunEvent],
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = events.iter().map(|event| event.key.as_str()).collect();
    let bodies = events.iter().map(|event| serde_json::to_string(&event.body));
    sqlx::query(
        "INSERT INTO events (run_id, seq, key, at_ms, body)
         SELECT $1, $2 + place, key, 1, body
         FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS offered (key, body, place)
         ON CONFLICT DO NOTHING",
    )
    .bind(run)
    .bind(head)
    .bind(keys)
    .bind(bodies.collect::<Result<Vec<String>, _>>()?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_answers(
    connection: &mut PgConnection,
    run: sqlx::types::Uuid,
    answers: &[(EffectId, Sha256Hex, EffectResult)],
) -> Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = answers.iter().map(|(id, ..)| id.as_str()).collect();
    let hashes: Vec<String> = answers.iter().map(|(_, hash, _)| hash.to_string()).collect();
    let results = answers.iter().map(|(.., result)| serde_json::to_string(result));
    sqlx::query(
        "INSERT INTO journal (run_id, effect_id, request_sha256, latency_ms, tries, result)
         SELECT $1, effect_id, decode(request, 'hex'), 5, 1, result
         FROM unnest($2::text[], $3::text[], $4::text[]) AS offered (effect_id, request, result)
         ON CONFLICT DO NOTHING",
    )
    .bind(run)
    .bind(ids)
    .bind(hashes)
    .bind(results.collect::<Result<Vec<String>, _>>()?)
    .execute(connection)
    .await?;
    Ok(())
}
