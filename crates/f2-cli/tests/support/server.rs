//! A server started for a test, and a minimal HTTP client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::{Folder, Run, invented_text, signal, small_settings};

/// A plain and an F² model, trained for a few steps.
pub fn workshop() -> &'static Folder {
    static WORKSHOP: OnceLock<Folder> = OnceLock::new();
    WORKSHOP.get_or_init(|| {
        let folder = Folder::new();
        folder.write("text.txt", invented_text(150).replace("ka", "näh").replace("lo", "🐈"));
        folder.write("small.toml", small_settings(64));
        let prepare = ["prepare", "text.txt", "--out", "corpus", "--documents", "lines"];
        done(&folder, &[&prepare[..], &["--vocab-size", "280", "--end-of-text"]].concat());
        done(&folder, &["classes", "corpus", "--method", "equal-frequency", "--k", "4"]);
        for objective in ["mle", "f2"] {
            let train = ["train", "corpus", "--config", "small.toml", "--steps", "30"];
            done(&folder, &[&train[..], &["--objective", objective, "--out", objective]].concat());
        }
        folder
    })
}

pub fn done(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.f2(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run.stdout
}

/// A running server; it is stopped when the test is over.
pub struct Server {
    child: Option<Child>,
    /// Host and port.
    pub address: String,
}

/// The response to a request.
pub struct Answer {
    pub status: u16,
    /// In lower case, one per line.
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    /// The data of its server-sent events.
    pub fn events(&self) -> Vec<&str> {
        self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect()
    }
}

impl Server {
    /// Serves models on a free port.
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let port = ["--port", "0", "--threads", "1"];
        let mut child = folder.start(&[&["serve"], arguments, &port[..]].concat());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some((_, address)) = line.trim().split_once("http://") else {
            let run: Run = child.wait_with_output().unwrap().into();
            panic!("{line}{}", run.stderr);
        };
        let address = address.replace("0.0.0.0", "127.0.0.1");
        Self { child: Some(child), address }
    }

    /// Stops the server when this process exits: a static is never dropped.
    pub fn until_exit(self) -> Self {
        static SERVER: AtomicU32 = AtomicU32::new(0);
        extern "C" fn stop() {
            // SAFETY: sends a signal to a process that this one started and has not waited for.
            unsafe { libc::kill(SERVER.load(Ordering::SeqCst) as i32, libc::SIGKILL) };
        }
        SERVER.store(self.child.as_ref().map_or(0, Child::id), Ordering::SeqCst);
        // SAFETY: the function uses nothing that has been destroyed at exit.
        assert_eq!(unsafe { libc::atexit(stop) }, 0);
        self
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends a request and returns the connection.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = self.connect();
        let usual = [format!("Host: {}", self.address), format!("Content-Length: {}", body.len())];
        let is_given = |usual: &String| {
            let name = usual.split(':').next().unwrap();
            headers.iter().any(|header| header.starts_with(name))
        };
        let usual = usual.iter().filter(|usual| !is_given(usual)).map(String::as_str);
        let first = format!("{method} {path} HTTP/1.1");
        let lines = [first.as_str(), "Connection: close"].into_iter();
        let head: Vec<&str> = lines.chain(usual).chain(headers.iter().copied()).collect();
        stream.write_all(format!("{}\r\n\r\n{body}", head.join("\r\n")).as_bytes()).unwrap();
        stream
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        answer(self.send(method, path, headers, body))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string())
    }

    pub fn complete(&self, body: &Value) -> Value {
        let answer = self.post("/v1/completions", body);
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        answer.json()
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, name: &str) -> Run {
        let child = self.child.take().unwrap();
        signal(&child, name);
        child.wait_with_output().unwrap().into()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap(), name);
    }

    pub fn wait(mut self) -> Run {
        self.child.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads a response to its end.
pub fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // The connection may be reset after the response.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let headers = head.to_lowercase();
    let body = if headers.contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Answer { status, headers, body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &rest[..length];
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

/// Lets the test open as many connections as the system allows.
pub fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit).unwrap();
    }
}
