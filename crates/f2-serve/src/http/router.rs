//! The routes, and the state shared by all requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post};

use super::error::Refusal;
use super::guard::guard;
use crate::{Limits, Model, completions, endpoints, page};

/// The state shared by all requests.
pub(crate) struct Shared {
    pub(crate) models: Vec<Model>,
    pub(crate) key: Option<String>,
    pub(crate) limits: Limits,
    /// Whether the server listens on a loopback address only.
    pub(crate) local_only: bool,
    /// Set when the server is shutting down.
    pub(crate) ending: AtomicBool,
    /// When the server started, in seconds since 1970.
    pub(crate) began: u64,
}

impl Shared {
    /// The model a request names; the first if it names none.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<&Model, Refusal> {
        let found = match name {
            Some(name) => self.models.iter().find(|model| model.served.name == name),
            None => self.models.first(),
        };
        found.ok_or_else(|| {
            let names: Vec<String> =
                self.models.iter().map(|model| format!("`{}`", model.served.name)).collect();
            let message = format!(
                "the model `{}` does not exist; there is {}",
                name.unwrap_or_default(),
                names.join(", ")
            );
            Refusal::new(StatusCode::NOT_FOUND, message).code("model_not_found")
        })
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page::page))
        .route("/health", get(endpoints::health))
        .route("/metrics", get(endpoints::metrics))
        .route("/v1/models", get(endpoints::models))
        .route("/v1/models/{name}", get(endpoints::model))
        .route("/v1/completions", post(completions::completions))
        .route("/tokenizer_info", get(endpoints::tokenizer_info))
        .route("/tokenize", post(endpoints::tokenize))
        .route("/detokenize", post(endpoints::detokenize))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(shared.clone(), guard))
        .layer(map_response(harden))
        .with_state(shared)
}

async fn not_found(method: Method, uri: Uri) -> Refusal {
    let message = format!("there is no {method} {}", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, message)
}

async fn not_allowed(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Adds headers against content sniffing, framing and caching.
async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
