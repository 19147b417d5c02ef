//! Accepting connections, serving them with time limits, and shutting down.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use f2_engine::check_threads;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::patience::Patient;
use super::router::{Shared, router};
use crate::{Error, Limits, Model, Settings};

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every running request was completed.
    Drained,
    /// The time limit was reached, and some requests were cut off.
    CutOff,
}

/// How often `stop` is polled.
const BEAT: Duration = Duration::from_millis(50);

/// Serves models until `stop` returns true. `ready` receives the address once it can be reached.
pub fn run(
    settings: Settings,
    models: Vec<Model>,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool,
) -> Result<Ended, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    // Without them tokio panics; one more thread looks up the name of the host.
    check_threads(threads + 1).map_err(Error::Start)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("f2-serve")
        .enable_all()
        .build()
        .map_err(Error::Start)?;
    let ended = runtime.block_on(serve(settings, models, ready, stop));
    // Requests that were cut off must not delay the end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

async fn serve(
    settings: Settings,
    models: Vec<Model>,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool,
) -> Result<Ended, Error> {
    let Settings { host, port, key, limits } = settings;
    let failed = |source| Error::Listen { address: format!("{host}:{port}"), source };
    let listener = TcpListener::bind((host.as_str(), port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let shared = Arc::new(Shared {
        models,
        key,
        limits,
        local_only: address.ip().is_loopback(),
        ending: AtomicBool::new(false),
        began: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
    });
    let router = router(shared.clone());
    let places = Arc::new(Semaphore::new(limits.connections));
    let (ending, ends) = watch::channel(());
    ready(address);
    while !stop() {
        // If all places are taken, new connections wait in the system's queue.
        let Ok(Ok(place)) = timeout(BEAT, places.clone().acquire_owned()).await else { continue };
        let stream = match timeout(BEAT, listener.accept()).await {
            Ok(Ok((stream, _))) => stream,
            // Most likely out of file descriptors; some will soon be free again.
            Ok(Err(_)) => {
                sleep(BEAT).await;
                continue;
            }
            Err(_) => continue,
        };
        let (router, ends) = (router.clone(), ends.clone());
        tokio::spawn(async move {
            converse(stream, router, limits, ends).await;
            drop(place);
        });
    }
    drop(listener);
    shared.ending.store(true, Ordering::SeqCst);
    drop((ends, ending));
    let all = places.acquire_many(limits.connections as u32);
    let drained = timeout(Duration::from_secs(limits.drain_seconds), all).await;
    Ok(if drained.is_ok() { Ended::Drained } else { Ended::CutOff })
}

/// Serves one connection to its end. When the server shuts down, the request in progress is
/// completed and no other accepted.
async fn converse(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    mut ends: watch::Receiver<()>,
) {
    // Tokens are small and must not be delayed.
    let _ = stream.set_nodelay(true);
    let patience = Duration::from_secs(limits.patience_seconds);
    let io = TokioIo::new(Patient::new(stream, patience));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(io, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that closes its connection is not an error.
        _ = connection.as_mut() => {}
        _ = ends.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test runs itself in a process that cannot start threads: no address space has room for
    /// such a stack.
    #[test]
    fn threads_that_cannot_be_had_are_an_error() {
        const STACK: [&str; 2] = ["RUST_MIN_STACK", "281474976710656"];
        if std::env::var(STACK[0]).as_deref() != Ok(STACK[1]) {
            let name = "http::connections::tests::threads_that_cannot_be_had_are_an_error";
            let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
            let output = tests.args(["--exact", name]).env(STACK[0], STACK[1]).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let host = "127.0.0.1".to_owned();
        let settings = Settings { host, port: 0, key: None, limits: Limits::default() };
        let error = run(settings, Vec::new(), |_| (), || true).unwrap_err();
        assert!(matches!(error, Error::Start(_)), "{error}");
    }
}
