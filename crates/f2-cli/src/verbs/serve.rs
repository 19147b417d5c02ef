//! `f2 serve`: models behind an HTTP API and a page.

use std::io;
use std::net::ToSocketAddrs as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, ScopedJoinHandle, scope};

use clap::Args;
use f2_engine::Device;
use f2_lm::run::SavedModel;
use f2_serve::{Ended, Error, Jobs, Limits, Model, Settings, run, work};

use crate::failure::{CHECK_NAME, FREE_THREADS, Failure, Kind, Outcome};
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::flags::{CheckpointChoice, DecodingChoice, from_one};
use crate::{interrupt, output};

/// Serve models: an API for clients of OpenAI's completions, and a page to try them on.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 serve runs/f2
  f2 serve runs/mle runs/f2 --port 9000
  f2 serve small=runs/a/best large=runs/b/best
  f2 serve runs/f2 --host 0.0.0.0 --api-key-file key.txt
  curl http://127.0.0.1:8080/v1/completions -d '{\"prompt\": \"In the beginning\", \"seed\": 1}'

A model's name is that of its folder, or the one given before `=`. The server can be reached from
this machine alone unless --host names another address; then every request must carry the key. The
same seed gives the same text as `f2 generate`, whatever else the server is doing. Settings that a
request leaves out are those of the model's decoding.toml, if it has one. On Ctrl-C or SIGTERM the
server takes no new requests and finishes the running ones.")]
pub(crate) struct Serve {
    /// Run folders, checkpoints or models' folders, each optionally with a name before it.
    #[arg(value_name = "[NAME=]MODEL", required = true)]
    models: Vec<String>,
    #[command(flatten)]
    choice: CheckpointChoice,
    #[command(flatten)]
    decoding: DecodingChoice,
    /// The name or address to listen on.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 takes any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Texts generated at a time, for each model; affects only speed [default: chosen for the
    /// device].
    #[arg(long, value_name = "N", value_parser = from_one)]
    max_batch: Option<NonZeroUsize>,
    /// Texts that may wait for a model before further requests are refused (429).
    #[arg(long, value_name = "N", default_value_t = Limits::default().waiting)]
    max_waiting: usize,
    /// Tokens of one text, at most.
    #[arg(long, value_name = "N", default_value_t = Limits::default().new_tokens)]
    max_tokens: usize,
    /// Seconds a request may take.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().seconds)]
    time_limit: u64,
    /// Seconds a client may take to send a request, or to take the next part of an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().patience_seconds)]
    patience: u64,
    /// A file whose first line every request must carry as `Authorization: Bearer KEY`.
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
}

/// The work of one model's thread.
struct Serving {
    jobs: Jobs,
    batch: Option<usize>,
    ready: Sender<usize>,
}

impl DeviceTask for Serving {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Outcome {
        let Self { jobs, batch, ready } = self;
        // The receiver is gone if another model has failed.
        Ok(work(device, jobs, batch, |slots| {
            let _ = ready.send(slots);
        })?)
    }
}

impl Serve {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        let settings = self.settings()?;
        let mut models: Vec<Model> = Vec::new();
        let mut all_jobs = Vec::new();
        for given in &self.models {
            let (name, path) = named(given);
            if models.iter().any(|model| model.served().name == name) {
                return Err(Failure::usage(format!("two models are named `{name}`"))
                    .advise(format!("give one another name, such as `other={}`", path.display())));
            }
            let saved = SavedModel::open(&path, self.choice.checkpoint)?;
            let decoding = self.decoding.of(&saved)?;
            let (model, jobs) = f2_serve::model(name, saved, decoding);
            models.push(model);
            all_jobs.push(jobs);
        }
        raise_open_files();
        scope(|scope| {
            let start = |jobs| {
                let (ready, is_ready) = channel();
                let batch = self.max_batch.map(NonZeroUsize::get);
                let serving = Serving { jobs, batch, ready };
                let device = self.device;
                let worker = Builder::new().spawn_scoped(scope, move || device.run(serving))?;
                Ok((worker, is_ready))
            };
            let workers: io::Result<Vec<(ScopedJoinHandle<'_, Outcome>, Receiver<usize>)>> =
                all_jobs.into_iter().map(start).collect();
            let workers = workers.map_err(|error| {
                // Without the models, the threads that were started end.
                models.clear();
                Failure::without_thread("for each model", &error)
            })?;
            let names: Vec<String> =
                models.iter().map(|model| model.served().name.clone()).collect();
            for (name, (worker, is_ready)) in names.iter().zip(workers) {
                let Ok(slots) = is_ready.recv() else {
                    drop(models);
                    let failed = worker.join().unwrap_or(Ok(()));
                    return failed.and(Err(Failure::new(Kind::Device, "a model did not start")));
                };
                remark!("{name}: loaded, {slots} texts at a time");
            }
            serve(settings, models)
        })
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let key = self.api_key_file.as_deref().map(read_key).transpose()?;
        if key.is_none() && !is_local(&self.host, self.port) {
            return Err(Failure::usage(format!(
                "{} can be reached from other machines, and no key is required",
                self.host
            ))
            .advise(
                "give `--api-key-file FILE`, or leave `--host` out to serve this machine alone",
            ));
        }
        let limits = Limits {
            waiting: self.max_waiting,
            new_tokens: self.max_tokens,
            seconds: self.time_limit,
            patience_seconds: self.patience.max(1),
            ..Limits::default()
        };
        Ok(Settings { host: self.host.clone(), port: self.port, key, limits })
    }
}

fn serve(settings: Settings, models: Vec<Model>) -> Outcome {
    let names: Vec<String> = models.iter().map(|model| model.served().name.clone()).collect();
    let ready = |address: std::net::SocketAddr| {
        // The server serves even if standard output is closed.
        let _ = output::print(&format!("serving {} at http://{address}\n", names.join(", ")));
    };
    match run(settings, models, ready, interrupt::asked) {
        Ok(Ended::Drained) => {
            remark!("ended; every running request was answered");
            Ok(())
        }
        Ok(Ended::CutOff) => {
            Err(Failure::new(Kind::Interrupted, "ended; some requests were cut off unanswered"))
        }
        Err(error @ Error::Listen { .. }) => Err(Failure::new(Kind::Device, error)
            .advise("another program may use the port: choose one with `--port`, or 0 for any")),
        Err(error @ Error::Start(_)) => Err(Failure::new(Kind::Device, error).advise(FREE_THREADS)),
    }
}

/// A model's name and folder: `NAME=FOLDER`, or a folder by its own name.
fn named(given: &str) -> (String, PathBuf) {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
    };
    if let Some((name, path)) = given.split_once('=').filter(|(name, _)| is_name(name))
        && !Path::new(given).exists()
    {
        return (name.to_owned(), path.into());
    }
    let path = PathBuf::from(given);
    let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
    let name = whole.file_name().map_or(given.into(), |name| name.to_string_lossy());
    (name.into_owned(), path)
}

fn read_key(path: &Path) -> Result<String, Failure> {
    let text =
        f2_files::read_text(path).map_err(|error| Failure::usage(error).advise(CHECK_NAME))?;
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Failure::usage(format!("{} holds no key in its first line", path.display()))
            .advise("write one of letters and digits, such as `openssl rand -hex 32` prints"));
    }
    Ok(key.to_owned())
}

/// Whether all addresses of a host are loopback addresses.
fn is_local(host: &str, port: u16) -> bool {
    let addresses = (host, port).to_socket_addrs();
    addresses.is_ok_and(|mut addresses| addresses.all(|address| address.ip().is_loopback()))
}

/// Lets the process open as many files as the system allows it: each connection is one.
fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // On failure fewer connections are served at a time.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
