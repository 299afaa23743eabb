//! HTTP clients for Restate's ingress and admin APIs. Both must be on a private network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moothall_core::RunId;
use moothall_models::{Budget, build_http_client};
use reqwest::{Client, Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::build::WorkerBuild;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// All requests are short: runs are started, not awaited.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The ingress API of a Restate server or cluster.
#[derive(Debug, Clone)]
pub struct RestateIngress(NodeClient);

/// The admin API of a Restate server or cluster.
#[derive(Debug, Clone)]
pub struct RestateAdmin(NodeClient);

/// The Restate service that drives a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestateService {
    /// Consultations.
    Consultation,
    /// Runs that write a program, which may take hours.
    CodeRun,
}

impl RestateService {
    fn name(self) -> &'static str {
        match self {
            Self::Consultation => "Consultation",
            Self::CodeRun => "CodeRun",
        }
    }
}

#[derive(Debug, Clone)]
struct NodeClient {
    client: Client,
    /// The URLs of its nodes. Each node can serve every request.
    urls: Vec<String>,
    /// Index of the node that responded last.
    last_node: Arc<AtomicUsize>,
}

/// A request to Restate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No node responded.
    #[error("cannot reach Restate at {address}")]
    Unreachable {
        /// The URL of the node.
        address: String,
        /// The underlying error.
        #[source]
        source: reqwest::Error,
    },
    /// Restate rejected the request.
    #[error("Restate answered {status}: {words}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The response body, cut to 300 characters.
        words: String,
    },
    /// Workers of another build are registered at this address.
    #[error("another build of the worker is registered at {address}")]
    OtherBuild {
        /// The address of the workers.
        address: String,
    },
    /// The response is not as expected.
    #[error("invalid response from Restate")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ClusterError {
    /// Whether the request definitely had no effect. A request without a response may have had one.
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.is_connect(),
            Self::Refused { status, .. } => (400..500).contains(status),
            Self::OtherBuild { .. } => true,
            Self::Unreadable(_) => false,
        }
    }
}

impl RestateIngress {
    /// Connects to an address such as `http://127.0.0.1:8080`, or to several nodes separated by
    /// commas.
    pub fn new(ingress: &str) -> Result<Self, ClusterError> {
        NodeClient::new(ingress).map(Self)
    }

    /// Starts a run that is in the store. Idempotent.
    pub async fn start(&self, service: RestateService, run_id: &RunId) -> Result<(), ClusterError> {
        let path = format!("{}/{run_id}/run/send", service.name());
        self.0.send(Method::POST, &path, None::<&()>).await.map(drop)
    }

    /// Resumes a run after this pause (numbered from 1). Absent budget limits stay unchanged.
    /// Succeeds if the run was already resumed.
    pub async fn resume(
        &self,
        service: RestateService,
        run_id: &RunId,
        pause: u32,
        budget: Budget,
    ) -> Result<(), ClusterError> {
        let path = format!("{}/{run_id}/go_on", service.name());
        self.0.send(Method::POST, &path, Some(&(pause, budget))).await.map(drop)
    }

    /// Checks that the ingress accepts requests.
    pub async fn health(&self) -> Result<(), ClusterError> {
        self.0.send(Method::GET, "restate/health", None::<&()>).await.map(drop)
    }
}

impl RestateAdmin {
    /// Connects to an address such as `http://127.0.0.1:9070`.
    pub fn new(admin: &str) -> Result<Self, ClusterError> {
        NodeClient::new(admin).map(Self)
    }

    /// Registers workers of this build at this address. New runs go to them; runs in progress stay
    /// where they are. Idempotent.
    pub async fn register(&self, url: &str, build: &WorkerBuild) -> Result<(), ClusterError> {
        let body = json!({ "uri": url, "force": false });
        match self.0.send(Method::POST, "deployments", Some(&body)).await {
            Ok(_) => {}
            Err(ClusterError::Refused { status, .. }) if status == StatusCode::CONFLICT => {}
            Err(error) => return Err(error),
        }
        // Restate does not query an address again that it already knows, so check which build it
        // has there.
        let path = format!("services/{}", build.debate());
        match self.0.send(Method::GET, &path, None::<&()>).await {
            Err(ClusterError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
                Err(ClusterError::OtherBuild { address: url.to_owned() })
            }
            known => known.map(drop),
        }
    }

    /// Checks that work can be done: every partition has a leader. In a cluster that has just
    /// started this takes longer than [`RestateIngress::health`].
    pub async fn ready(&self) -> Result<(), ClusterError> {
        // Reading any table queries the leaders of all partitions and fails if one has none.
        let body = json!({ "query": "SELECT count(*) FROM sys_invocation_status" });
        self.0.send(Method::POST, "query", Some(&body)).await.map(drop)
    }
}

impl NodeClient {
    fn new(url: &str) -> Result<Self, ClusterError> {
        let client = build_http_client(|builder| {
            builder
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(TIMEOUT)
                .tcp_nodelay(true)
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
        })
        .map_err(|source| ClusterError::Unreachable { address: url.to_owned(), source })?;
        let urls = url.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        Ok(Self { client, urls, last_node: Arc::default() })
    }

    /// Tries each node until one responds. All requests sent here are idempotent.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, ClusterError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| ClusterError::Unreadable(error.into()))?;
        let (first, nodes) = (self.last_node.load(Ordering::Relaxed), self.urls.len());
        let mut failed = ClusterError::Unreadable("no Restate address given".into());
        for at in (first..first + nodes).map(|at| at % nodes) {
            let Some(url) = self.urls.get(at) else { continue };
            match self.send_to_node(url, method.clone(), path, body.clone()).await {
                // Prefer the error of a node that may have processed the request over errors of
                // nodes that certainly did not.
                Err(error @ ClusterError::Unreachable { .. }) => {
                    if !matches!(failed, ClusterError::Unreachable { .. }) || failed.had_no_effect()
                    {
                        failed = error;
                    }
                }
                response => {
                    self.last_node.store(at, Ordering::Relaxed);
                    return response;
                }
            }
        }
        Err(failed)
    }

    async fn send_to_node(
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
