//! Access control: refuses requests from pages of other sites, requests that name another host, and
//! requests without the key.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::Refusal;
use super::router::Shared;

/// Lets a request pass or refuses it.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    match check(&shared, request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn check(shared: &Shared, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let forbidden = |message: &str| Err(Refusal::new(StatusCode::FORBIDDEN, message));
    let host = text(headers, &header::HOST).unwrap_or_default();
    // A page may resolve its own name to this machine (DNS rebinding); the Host header shows that.
    if shared.local_only && !is_local(host) {
        return forbidden("this server answers to localhost only; the Host header names another");
    }
    if let Some(origin) = text(headers, &header::ORIGIN)
        && origin.split_once("://").is_none_or(|(_, authority)| authority != host)
    {
        return forbidden("requests from pages of other sites are refused");
    }
    let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
    let is_visit = *method == Method::GET && path == "/";
    if !is_visit && matches!(site, Some("cross-site" | "same-site")) {
        return forbidden("requests from pages of other sites are refused");
    }
    // The page contains no secrets, and asks the user for the key.
    let Some(key) = shared.key.as_ref().filter(|_| !matches!(path, "/" | "/health")) else {
        return Ok(());
    };
    let given = text(headers, &header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if given.is_some_and(|(_, given)| equal(given.trim().as_bytes(), key.as_bytes())) {
        return Ok(());
    }
    let message = "the key is missing or wrong; send the header `Authorization: Bearer KEY`";
    Err(Refusal::new(StatusCode::UNAUTHORIZED, message).code("invalid_api_key"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Whether a Host header names the loopback interface.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that does not depend on how much is equal.
fn equal(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_names_are_local() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "127.1.2.3", "[::1]:8080"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org", "10.0.0.1", "[fe80::1]", "0.0.0.0"]
        {
            assert!(!is_local(host), "{host}");
        }
    }
}
