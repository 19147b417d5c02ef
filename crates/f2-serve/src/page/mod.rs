//! The page at `/`: a single file that loads nothing from other servers.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};

/// Nothing is loaded from other servers, and only inline scripts run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The page with its style sheet and its script inlined.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let [style, script] = [include_str!("page.css"), include_str!("page.js")];
    include_str!("page.html").replacen("{style}", style, 1).replacen("{script}", script, 1)
});

/// `GET /`.
pub(crate) async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, PAGE.as_str()).into_response()
}
