//! The page at `/`: one file, which asks nobody but this server.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};

/// Nothing is loaded from elsewhere, and nothing the page did not come with runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// `GET /`.
pub(crate) async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, include_str!("page.html")).into_response()
}
