//! Restate as its clients see it: over HTTP, on a network that nobody else can reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moothall_core::RunId;
use moothall_models::Budget;
use reqwest::{Client, Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::build::Build;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Nothing that is asked here takes long: runs are started, not waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A Restate server or cluster, where it takes requests.
#[derive(Debug, Clone)]
pub struct Cluster(Address);

/// A Restate server or cluster, where it is administered.
#[derive(Debug, Clone)]
pub struct Admin(Address);

/// What drives a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Consultations.
    Consultation,
    /// Runs that write a program, which may take long.
    CodeRun,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Self::Consultation => "Consultation",
            Self::CodeRun => "CodeRun",
        }
    }
}

#[derive(Debug, Clone)]
struct Address {
    client: Client,
    /// Where its nodes are; each answers for all.
    urls: Vec<String>,
    /// The node that answered last.
    answers: Arc<AtomicUsize>,
}

/// Restate did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Nobody answered.
    #[error("Restate cannot be reached at {address}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// It said no.
    #[error("Restate answered {status}: {words}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it said, cut to a bearable length.
        words: String,
    },
    /// It knows workers of another build there.
    #[error("Restate knows another build at {address}")]
    OtherBuild {
        /// Where both listen.
        address: String,
    },
    /// It answered something else than it should.
    #[error("Restate's answer cannot be understood")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ClusterError {
    /// Whether what was asked for was surely not done. A request that nobody answered may have been.
    pub fn nothing_happened(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.is_connect(),
            Self::Refused { status, .. } => (400..500).contains(status),
            Self::OtherBuild { .. } => true,
            Self::Unreadable(_) => false,
        }
    }
}

impl Cluster {
    /// One at this address, such as `http://127.0.0.1:8080`; or at the addresses of its nodes, with
    /// commas between them.
    pub fn new(ingress: &str) -> Result<Self, ClusterError> {
        Address::new(ingress).map(Self)
    }

    /// Starts a run that the store knows. To start it twice is to start it once.
    pub async fn start(&self, service: Service, run_id: &RunId) -> Result<(), ClusterError> {
        let path = format!("{}/{run_id}/run/send", service.name());
        self.0.ask(Method::POST, &path, None::<&()>).await.map(drop)
    }

    /// Lets a run go on after its pause, counted from 1; what is absent of the budget stays. It is fine
    /// if somebody else did.
    pub async fn go_on(
        &self,
        service: Service,
        run_id: &RunId,
        pause: u32,
        budget: Budget,
    ) -> Result<(), ClusterError> {
        let path = format!("{}/{run_id}/go_on", service.name());
        self.0.ask(Method::POST, &path, Some(&(pause, budget))).await.map(drop)
    }

    /// Whether somebody takes requests there.
    pub async fn health(&self) -> Result<(), ClusterError> {
        self.0.ask(Method::GET, "restate/health", None::<&()>).await.map(drop)
    }
}

impl Admin {
    /// One at this address, such as `http://127.0.0.1:9070`.
    pub fn new(admin: &str) -> Result<Self, ClusterError> {
        Address::new(admin).map(Self)
    }

    /// Makes workers of this build known at this address: runs that begin from now on go to them, and
    /// runs under way stay where they are. To do it twice is to do it once.
    pub async fn register(&self, url: &str, build: &Build) -> Result<(), ClusterError> {
        let body = json!({ "uri": url, "force": false });
        match self.0.ask(Method::POST, "deployments", Some(&body)).await {
            Ok(_) => {}
            Err(ClusterError::Refused { status, .. }) if status == StatusCode::CONFLICT => {}
            Err(error) => return Err(error),
        }
        // What is known at an address is not asked for again.
        let path = format!("services/{}", build.debate());
        match self.0.ask(Method::GET, &path, None::<&()>).await {
            Err(ClusterError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
                Err(ClusterError::OtherBuild { address: url.to_owned() })
            }
            known => known.map(drop),
        }
    }

    /// Whether work is done: every partition has somebody who leads it. In a cluster that just
    /// started this takes longer than health does.
    pub async fn ready(&self) -> Result<(), ClusterError> {
        // Reading any table asks the leaders of all partitions, and fails where one has none.
        let body = json!({ "query": "SELECT count(*) FROM sys_invocation_status" });
        self.0.ask(Method::POST, "query", Some(&body)).await.map(drop)
    }
}

impl Address {
    fn new(url: &str) -> Result<Self, ClusterError> {
        // The first caller in the process decides; any provider will do, so a refusal is not an error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|source| ClusterError::Unreachable { address: url.to_owned(), source })?;
        let urls = url.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        Ok(Self { client, urls, answers: Arc::default() })
    }

    /// Asks one node after the other, until one answers. Whatever is asked here may be asked twice.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, ClusterError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| ClusterError::Unreadable(error.into()))?;
        let (first, nodes) = (self.answers.load(Ordering::Relaxed), self.urls.len());
        let mut failed = ClusterError::Unreadable("there is no address to ask".into());
        for at in (first..first + nodes).map(|at| at % nodes) {
            let Some(url) = self.urls.get(at) else { continue };
            match self.ask_node(url, method.clone(), path, body.clone()).await {
                // One that may have heard it counts more than those that surely did not.
                Err(error @ ClusterError::Unreachable { .. }) => {
                    if !matches!(failed, ClusterError::Unreachable { .. })
                        || failed.nothing_happened()
                    {
                        failed = error;
                    }
                }
                answer => {
                    self.answers.store(at, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(failed)
    }

    async fn ask_node(
        &self,
        url: &str,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<reqwest::Response, ClusterError> {
        let mut request = self.client.request(method, format!("{url}/{path}"));
        request = request.header("accept", "application/json");
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let unreachable = |source| ClusterError::Unreachable { address: url.to_owned(), source };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let words = response.text().await.unwrap_or_default();
        let words = words.chars().take(300).collect();
        Err(ClusterError::Refused { status: status.as_u16(), words })
    }
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
