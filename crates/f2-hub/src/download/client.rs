//! Requests to the hub: the files of a repository, the hash of a file, and its bytes.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::blob::Blob;
use crate::cache::is_commit;
use crate::repository::Kind;
use crate::{Environment, Error, Repository};

/// How long to wait for the hub before the connection counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// The maximum size of a list of files, in bytes.
const LONGEST_LIST: u64 = 64 << 20;

/// A connection to the hub, for one repository.
pub(super) struct Client<'a> {
    agent: Agent,
    environment: &'a Environment,
    repository: &'a Repository,
}

/// The hub's list of the files of a repository.
#[derive(Deserialize)]
struct Listing {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        environment: &'a Environment,
        repository: &'a Repository,
    ) -> Result<Self, Error> {
        let tls = TlsConfig::builder().root_certs(root_certificates()?).build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .user_agent(concat!("f2/", env!("CARGO_PKG_VERSION")))
            // A compressed response would have another length than the file.
            .accept_encoding("identity")
            .tls_config(tls)
            .build();
        Ok(Self { agent: config.new_agent(), environment, repository })
    }

    /// The commit of the revision, and the names of its files.
    pub(super) fn list(&self) -> Result<(String, Vec<String>), Error> {
        let kind = match self.repository.kind {
            Kind::Model => "models",
            Kind::Dataset => "datasets",
        };
        let Repository { id, revision, .. } = self.repository;
        let url = format!("{}/api/{kind}/{id}/revision/{revision}", self.environment.endpoint);
        let mut answer = self.checked(self.get(&url, None)?)?;
        let text = answer.body_mut().with_config().limit(LONGEST_LIST).read_to_string();
        let text = text.map_err(|error| self.unreachable(&error))?;
        let listing: Listing = serde_json::from_str(&text)
            .map_err(|error| odd(&url, format!("no list of files: {error}")))?;
        if !is_commit(&listing.sha) {
            return Err(odd(&url, "no commit".to_owned()));
        }
        let names = listing.siblings.into_iter().map(|file| file.rfilename).collect();
        Ok((listing.sha, names))
    }

    /// The hash and the length of a file, from the headers of the first response, which may
    /// redirect to the storage of large files.
    pub(super) fn head(&self, commit: &str, file: &str) -> Result<Blob, Error> {
        let mut url = self.address(commit, file);
        for _ in 0..5 {
            let request = self.agent.head(&url).config().max_redirects(0);
            let request = request.max_redirects_will_error(false).build();
            let answer = self.identified(request).call().map_err(|e| self.unreachable(&e))?;
            let header = |name: &str| answer.headers().get(name)?.to_str().ok();
            let moved = header("location").filter(|_| answer.status().is_redirection());
            // The repository was renamed on the same hub.
            if let Some(path) =
                moved.filter(|path| path.starts_with('/') && !path.starts_with("//"))
            {
                url = format!("{}{path}", origin(&self.environment.endpoint));
                continue;
            }
            let tag = header("x-linked-etag").or_else(|| header("etag"));
            let bytes = header("x-linked-size").or_else(|| header("content-length"));
            let (tag, bytes) = (tag.map(str::to_owned), bytes.and_then(|text| text.parse().ok()));
            if moved.is_none() {
                self.checked(answer)?;
            }
            let (Some(tag), Some(bytes)) = (tag, bytes) else {
                return Err(odd(&url, "neither hash nor length of the file".to_owned()));
            };
            let hash = tag.trim_start_matches("W/").trim_matches('"').to_owned();
            return Blob::new(hash, bytes)
                .ok_or_else(|| odd(&url, "a hash that cannot be checked".to_owned()));
        }
        Err(odd(&url, "too many redirects".to_owned()))
    }

    /// Whether the response begins at byte `from` rather than at the start, and its body.
    pub(super) fn read(
        &self,
        commit: &str,
        file: &str,
        from: u64,
    ) -> Result<(bool, impl Read + use<>), Error> {
        let answer = self.get(&self.address(commit, file), (from > 0).then_some(from))?;
        let answer = self.checked(answer)?;
        let continued = answer.status() == StatusCode::PARTIAL_CONTENT;
        Ok((continued, answer.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn address(&self, commit: &str, file: &str) -> String {
        let kind = match self.repository.kind {
            Kind::Model => "",
            Kind::Dataset => "datasets/",
        };
        let (endpoint, id) = (&self.environment.endpoint, &self.repository.id);
        format!("{endpoint}/{kind}{id}/resolve/{commit}/{}", encoded(file))
    }

    fn get(&self, url: &str, from: Option<u64>) -> Result<Response<Body>, Error> {
        let mut request = self.identified(self.agent.get(url));
        if let Some(from) = from {
            request = request.header("range", format!("bytes={from}-"));
        }
        request.call().map_err(|error| self.unreachable(&error))
    }

    /// Adds the token. It is for the hub alone: the agent does not send it along redirects.
    fn identified<T>(&self, request: ureq::RequestBuilder<T>) -> ureq::RequestBuilder<T> {
        match &self.environment.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn checked(&self, answer: Response<Body>) -> Result<Response<Body>, Error> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let reason = match status.as_u16() {
            401 if self.environment.token.is_some() => "the token is not valid",
            401 | 404 => "there is none of this name, or it is not public",
            403 => "its owners must grant access first",
            429 => "too many requests",
            500.. => {
                return Err(Error::Unreachable {
                    endpoint: self.environment.endpoint.clone(),
                    reason: format!("it answers with status {}", status.as_u16()),
                });
            }
            _ => "it refuses",
        };
        Err(Error::Refused {
            endpoint: self.environment.endpoint.clone(),
            repository: self.repository.to_string(),
            reason,
            status: status.as_u16(),
        })
    }

    pub(super) fn unreachable(&self, error: &dyn std::fmt::Display) -> Error {
        let endpoint = self.environment.endpoint.clone();
        Error::Unreachable { endpoint, reason: error.to_string() }
    }
}

fn odd(url: &str, reason: String) -> Error {
    Error::Answer { url: url.to_owned(), reason }
}

/// The root certificates named by the environment, or the public ones.
fn root_certificates() -> Result<RootCerts, Error> {
    let names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"];
    let Some(path) = names.iter().find_map(std::env::var_os) else { return Ok(RootCerts::WebPki) };
    let path = std::path::PathBuf::from(path);
    let text = std::fs::read(&path).map_err(f2_files::ReadError::of(&path))?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    let found: Vec<Certificate<'static>> = parse_pem(&text).filter_map(certificate).collect();
    Ok(RootCerts::new_with_certs(&found))
}

/// The `https://host:port` of a URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

/// A path, percent-encoded for a URL.
fn encoded(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    path.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_and_put_together() {
        assert_eq!(origin("http://127.0.0.1:80/hub"), "http://127.0.0.1:80");
        assert_eq!(origin("https://huggingface.co"), "https://huggingface.co");
        assert_eq!(encoded("data/a b?#ä.txt"), "data/a%20b%3F%23%C3%A4.txt");
    }
}
