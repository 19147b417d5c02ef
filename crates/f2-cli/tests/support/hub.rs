//! A local stand-in for the Hugging Face hub: it lists files, announces hashes, redirects requests
//! for large files, resumes downloads, and misbehaves on request.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The commit of its repository.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How the hub misbehaves.
#[derive(Clone, Default)]
pub struct Manners {
    /// The token it requires, if any.
    pub token: Option<&'static str>,
    /// For each of the next connections, the number of bytes of a file after which it is closed.
    pub cuts: Vec<usize>,
    /// Whether files it sends differ from their announced hashes.
    pub damages: bool,
    /// Whether it ignores requested ranges and begins at the first byte.
    pub knows_no_ranges: bool,
    /// Whether it sends half of the next large file at once and the rest slowly, byte by byte.
    pub crawls: bool,
}

/// Sent with every response: each connection serves a single request.
const CLOSE: &str = "connection: close\r\n";

/// A hub with one repository.
pub struct LoopbackHub {
    pub endpoint: String,
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: String,
    /// `models/gpt2` or `datasets/owner/name`.
    repository: String,
    files: BTreeMap<String, Vec<u8>>,
    manners: Mutex<Manners>,
    /// The requests so far: method, path, range and authorization.
    asked: Mutex<Vec<String>>,
}

impl LoopbackHub {
    /// Serves the files of a folder while the test runs.
    pub fn serve(repository: &str, folder: &Path, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            repository: repository.to_owned(),
            files: files(folder, ""),
            manners: Mutex::new(manners),
            asked: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client may disconnect at any time.
                let _ = serving.answer(connection);
            }
        });
        Self { endpoint, shared }
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap())
    }

    /// The hash a file is announced with.
    pub fn hash(&self, file: &str) -> String {
        hash(file, &self.shared.files[file])
    }
}

fn files(folder: &Path, before: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{before}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            found.extend(files(&path, &format!("{name}/")));
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Whether a file is one of the large ones, which are stored elsewhere under SHA-256.
fn is_large(name: &str) -> bool {
    [".safetensors", ".txt"].iter().any(|end| name.ends_with(end))
}

fn hash(name: &str, content: &[u8]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if is_large(name) {
        return hex(&Sha256::digest(content));
    }
    let mut git = Sha1::new_with_prefix(format!("blob {}\0", content.len()));
    git.update(content);
    hex(&git.finalize())
}

impl Shared {
    fn answer(&self, connection: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(connection.try_clone()?).lines();
        let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
        let headers: Vec<String> =
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            headers.iter().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let mut words = request.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (range, token) = (header("range"), header("authorization"));
        let headers = [range.as_deref(), token.as_deref()].into_iter().flatten();
        let request: Vec<&str> = [method, path].into_iter().chain(headers).collect();
        self.asked.lock().unwrap().push(request.join(" "));
        self.respond(connection, method, path, range.as_deref(), token.as_deref())
    }

    fn respond(
        &self,
        mut to: TcpStream,
        method: &str,
        path: &str,
        range: Option<&str>,
        token: Option<&str>,
    ) -> std::io::Result<()> {
        let manners = self.manners.lock().unwrap().clone();
        if let Some(content) = path.strip_prefix("/elsewhere/") {
            return self.send(to, content, range);
        }
        let wanted = manners.token.map(|token| format!("Bearer {token}"));
        let named = self.repository.strip_prefix("models/").unwrap_or(&self.repository);
        let resolve = format!("/{named}/resolve/{COMMIT}/");
        if wanted.is_some_and(|wanted| token != Some(wanted.as_str())) {
            return write!(to, "HTTP/1.1 401 Unauthorized\r\n{CLOSE}content-length: 0\r\n\r\n");
        }
        if path == format!("/api/{}/revision/main", self.repository) {
            let names = self.files.keys().map(|name| format!("{{\"rfilename\": {name:?}}}"));
            let names = names.collect::<Vec<_>>().join(", ");
            let text = format!("{{\"sha\": \"{COMMIT}\", \"siblings\": [{names}]}}");
            return write!(
                to,
                "HTTP/1.1 200 OK\r\n{CLOSE}content-length: {}\r\n\r\n{text}",
                text.len()
            );
        }
        let file = path.strip_prefix(&resolve).and_then(|name| self.files.get_key_value(name));
        let Some((name, content)) = file else {
            return write!(to, "HTTP/1.1 404 Not Found\r\n{CLOSE}content-length: 0\r\n\r\n");
        };
        let (hash, length) = (hash(name, content), content.len());
        match (method, is_large(name)) {
            (_, true) => write!(
                to,
                "HTTP/1.1 302 Found\r\n{CLOSE}location: {}/elsewhere/{name}\r\nx-linked-etag: \
                 \"{hash}\"\r\nx-linked-size: {length}\r\netag: \"other\"\r\ncontent-length: \
                 0\r\n\r\n",
                self.endpoint
            ),
            ("HEAD", false) => {
                write!(
                    to,
                    "HTTP/1.1 200 OK\r\n{CLOSE}etag: \"{hash}\"\r\ncontent-length: {length}\r\n\r\n"
                )
            }
            _ => self.send(to, name, range),
        }
    }

    /// Sends a file, from the requested byte on.
    fn send(&self, mut to: TcpStream, name: &str, range: Option<&str>) -> std::io::Result<()> {
        let (mut content, cut, from, crawls) = {
            let mut manners = self.manners.lock().unwrap();
            let from = range
                .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
            let from: usize = from.filter(|_| !manners.knows_no_ranges).unwrap_or(0);
            let cut = (!manners.cuts.is_empty()).then(|| manners.cuts.remove(0));
            let mut content = self.files[name].clone();
            if manners.damages {
                content[0] ^= 1;
            }
            (content, cut, from, is_large(name) && std::mem::take(&mut manners.crawls))
        };
        let content = content.split_off(from);
        let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
        write!(to, "HTTP/1.1 {status}\r\n{CLOSE}content-length: {}\r\n\r\n", content.len())?;
        let content = &content[..cut.unwrap_or(content.len()).min(content.len())];
        if !crawls {
            return to.write_all(content);
        }
        let (half, rest) = content.split_at(content.len() / 2);
        to.write_all(half)?;
        // Slower than any test waits: the client disconnects first.
        for byte in rest.chunks(1) {
            to.write_all(byte)?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }
}
