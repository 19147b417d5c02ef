//! `f2 serve` as clients use it: the real program, over loopback.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use support::server::{Server, answer, done, workshop};
use support::wait_for;

/// A server shared by the tests that do not disturb it.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER
        .get_or_init(|| Server::start(workshop(), &["f2", "mle", "--max-batch", "5"]).until_exit())
}

fn generated(arguments: &[&str]) -> Vec<Value> {
    let lines = done(workshop(), &[&["generate"], arguments, &["--json"]].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(completion: &Value) -> &str {
    completion["choices"][0]["text"].as_str().unwrap()
}

fn floats(values: &Value) -> Vec<Option<f64>> {
    values.as_array().unwrap().iter().map(Value::as_f64).collect()
}

#[test]
fn a_deterministic_text_is_that_of_generate_whatever_the_seed() {
    let flags = ["f2", "--prompt", "vor", "--prompt", "misen", "--deterministic", "--top-k", "5"];
    let expected = generated(&[&flags[..], &["--new-tokens", "30", "-n", "2"]].concat());
    for seed in [None, Some(3)] {
        let body = json!({ "prompt": ["vor", "misen"], "n": 2, "max_tokens": 30, "top_k": 5,
            "deterministic": true, "seed": seed });
        let completion = server().complete(&body);
        let choices = completion["choices"].as_array().unwrap();
        assert_eq!(choices.len(), 4);
        for (choice, expected) in choices.iter().zip(&expected) {
            assert_eq!(choice["text"], expected["text"], "{body}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_text_as_generate_whatever_the_load() {
    let cases: [(&[&str], Value); 10] = [
        (&["f2", "--top-k", "3"], json!({ "top_k": 3 })),
        (
            &["f2", "--top-k", "2", "--top-k-growth", "0.6"],
            json!({ "top_k": 2, "top_k_growth": 0.6 }),
        ),
        (&["f2", "--greedy"], json!({ "temperature": 0 })),
        (
            &["f2", "--top-p", "0.8", "--class-temperature", "0.7", "--repetition-penalty", "1.2"],
            json!({ "top_p": 0.8, "class_temperature": 0.7, "repetition_penalty": 1.2 }),
        ),
        (&["f2", "--joint", "--min-p", "0.05"], json!({ "joint": true, "min_p": 0.05 })),
        (&["mle", "--typical", "0.7"], json!({ "model": "mle", "typical_p": 0.7 })),
        (
            &["f2", "--mirostat-tau", "3", "--mirostat-eta", "0.2"],
            json!({ "mirostat_mode": 2, "mirostat_tau": 3, "mirostat_eta": 0.2 }),
        ),
        (
            &["f2", "--xtc-probability", "0.5", "--dry-multiplier", "0.8", "--dry-breaker", "s"],
            json!({
                "xtc_probability": 0.5, "dry_multiplier": 0.8, "dry_sequence_breakers": ["s"],
            }),
        ),
        (
            &["mle", "--top-n-sigma", "1.5", "--dry-multiplier", "2", "--dry-allowed-length", "1"],
            json!({
                "model": "mle", "top_n_sigma": 1.5, "dry_multiplier": 2, "dry_allowed_length": 1,
            }),
        ),
        (
            &["f2", "--joint", "--epsilon-cutoff", "0.01", "--eta-cutoff", "0.02"],
            json!({ "joint": true, "epsilon_cutoff": 0.01, "eta_cutoff": 0.02 }),
        ),
    ];
    let prompts = ["misen", "tu re sen", "vor"];
    let mut expected = Vec::new();
    for (arguments, fields) in &cases {
        let common = ["--new-tokens", "40", "--seed", "7", "-n", "2"];
        let prompts = prompts.iter().flat_map(|prompt| ["--prompt", prompt]).collect::<Vec<_>>();
        let records = generated(&[arguments, &common[..], &prompts].concat());
        let texts = records.into_iter().map(|record| record["text"].clone());
        expected.push((fields, texts.collect::<Vec<_>>()));
    }
    // Thirty requests of six texts share five places, in different orders and lengths.
    std::thread::scope(|scope| {
        for number in 0..30 {
            let (fields, texts) = &expected[number * 7 % expected.len()];
            scope.spawn(move || {
                let mut body = json!({ "prompt": prompts, "n": 2, "max_tokens": 40, "seed": 7 });
                for (name, value) in fields.as_object().unwrap() {
                    body[name] = value.clone();
                }
                if number % 3 == 1 {
                    body["logprobs"] = json!(2);
                }
                let completion = server().complete(&body);
                let choices = completion["choices"].as_array().unwrap();
                let found: Vec<&Value> = choices.iter().map(|choice| &choice["text"]).collect();
                assert_eq!(found, texts.iter().collect::<Vec<_>>(), "{body}");
            });
        }
    });
    let searches: [(&[&str], Value); 3] = [
        (&["mle", "--beam", "4"], json!({ "model": "mle", "num_beams": 4 })),
        (
            &["mle", "--beam", "2", "--beam-iterations", "2"],
            json!({ "model": "mle", "num_beams": 2, "num_beam_iterations": 2 }),
        ),
        (
            &["f2", "--penalty-alpha", "0.5", "--top-k", "3", "--class-temperature", "1"],
            json!({ "penalty_alpha": 0.5, "top_k": 3, "class_temperature": 1 }),
        ),
    ];
    for (arguments, mut body) in searches {
        let common = ["--prompt", "vor", "-n", "3", "--new-tokens", "9", "--seed", "7"];
        let records = generated(&[arguments, &common].concat());
        (body["prompt"], body["n"]) = (json!("vor"), json!(3));
        (body["max_tokens"], body["seed"]) = (json!(9), json!(7));
        let completion = server().complete(&body);
        let choices = completion["choices"].as_array().unwrap();
        assert_eq!((records.len(), choices.len()), (3, 3));
        for (record, choice) in records.iter().zip(choices) {
            assert_eq!(record["text"], choice["text"], "{body}");
        }
    }
}

/// The response that lm-evaluation-harness reads: the prompt's tokens and one more, the first
/// without a log-probability. A token is greedy if its log-probability is the largest of its
/// alternatives.
#[test]
fn echoed_prompts_have_the_log_probabilities_of_the_model() {
    for model in ["f2", "mle"] {
        let arguments = [model, "--prompt", "vor tu", "--new-tokens", "30", "--temperature", "1"];
        let record = &generated(&[&arguments[..], &["--no-stop"]].concat())[0];
        let start =
            server().post("/tokenize", &json!({ "prompt": "vor tu", "model": model })).json();
        let mut ids = start["tokens"].as_array().unwrap().clone();
        let before = ids.len();
        ids.extend(record["ids"].as_array().unwrap().iter().cloned());
        let body = json!({
            "model": model, "prompt": [ids], "max_tokens": 1, "temperature": 0, "logprobs": 1,
            "echo": true, "seed": 1234,
        });
        let completion = server().complete(&body);
        let logprobs = &completion["choices"][0]["logprobs"];
        let own = floats(&logprobs["token_logprobs"]);
        let offsets = logprobs["text_offset"].as_array().unwrap();
        let tops = logprobs["top_logprobs"].as_array().unwrap();
        let lengths =
            [own.len(), offsets.len(), tops.len(), logprobs["tokens"].as_array().unwrap().len()];
        assert_eq!(lengths, [ids.len() + 1; 4]);
        assert!(own[0].is_none() && tops[0].is_null());
        let mut greedy = 0;
        for (own, top) in own.iter().zip(tops).skip(1) {
            let values = top.as_object().unwrap().values();
            let best = values.map(|value| value.as_f64().unwrap()).fold(f64::MIN, f64::max);
            assert!(own.unwrap() <= best);
            greedy += usize::from(own.unwrap() == best);
        }
        assert!(0 < greedy && greedy < own.len() - 1, "{greedy} of {}", own.len());
        let expected = floats(&record["log_probabilities"]);
        for (found, expected) in own[before..ids.len()].iter().zip(expected) {
            assert!((found.unwrap() - expected.unwrap()).abs() < 1e-5, "{found:?} {expected:?}");
        }
        // The offset of a token is the place of its text.
        let whole: Vec<char> = text(&completion).chars().collect();
        for (token, offset) in logprobs["tokens"].as_array().unwrap().iter().zip(offsets) {
            let token = token.as_str().unwrap();
            if !token.starts_with("token_id:") && token != "<|endoftext|>" {
                let place = offset.as_u64().unwrap() as usize;
                // Tokens around an incomplete character are shown together, from its beginning.
                if whole[place] == char::REPLACEMENT_CHARACTER {
                    continue;
                }
                let there: String = whole[place..].iter().take(token.chars().count()).collect();
                assert_eq!(there, token);
            }
        }
    }
    let body = json!({ "prompt": "vor tu", "max_tokens": 0, "logprobs": 0, "echo": true });
    let completion = server().complete(&body);
    assert_eq!(text(&completion), "vor tu");
    assert_eq!(completion["usage"]["completion_tokens"], 0);
}

#[test]
fn a_stream_is_the_whole_in_parts() {
    let mut body = json!({
        "prompt": ["vor", "tu re"], "n": 2, "max_tokens": 60, "seed": 3, "logprobs": 2,
        "stop": ["sen ", "\n"],
    });
    let whole = server().complete(&body);
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let stream = server().post("/v1/completions", &body);
    assert!(stream.headers.contains("content-type: text/event-stream"), "{}", stream.headers);
    let events = stream.events();
    assert_eq!(*events.last().unwrap(), "[DONE]");
    let mut found: Vec<(String, Vec<Value>, Value)> = vec![Default::default(); 4];
    for event in &events[..events.len() - 1] {
        let event: Value = serde_json::from_str(event).unwrap();
        for choice in event["choices"].as_array().unwrap() {
            let (text, tokens, finish) = &mut found[choice["index"].as_u64().unwrap() as usize];
            assert!(finish.is_null(), "a part after the end");
            text.push_str(choice["text"].as_str().unwrap());
            tokens.extend(choice["logprobs"]["tokens"].as_array().unwrap().iter().cloned());
            finish.clone_from(&choice["finish_reason"]);
        }
        if event["choices"].as_array().unwrap().is_empty() {
            assert_eq!(event["usage"], whole["usage"]);
        }
    }
    let mut stopped = 0;
    for ((text, tokens, finish), choice) in found.iter().zip(whole["choices"].as_array().unwrap()) {
        assert_eq!(*text, choice["text"]);
        assert_eq!(*tokens, *choice["logprobs"]["tokens"].as_array().unwrap());
        assert_eq!(*finish, choice["finish_reason"]);
        assert!(!text.contains("sen ") && !text.contains('\n'));
        stopped += usize::from(*finish == "stop");
    }
    assert!(stopped > 0, "no text met a stop sequence");
}

#[test]
fn bad_requests_are_refused_as_clients_expect() {
    let long: String = "vor ".repeat(500);
    let cases = [
        (json!({}), 400, "prompt"),
        (json!({ "prompt": "" }), 400, "prompt"),
        (json!({ "prompt": [] }), 400, "prompt"),
        (json!({ "prompt": 3 }), 400, "prompt"),
        (json!({ "prompt": [1, "vor"] }), 400, "prompt"),
        (json!({ "prompt": [1, 999_999] }), 400, "prompt"),
        (json!({ "prompt": [-1] }), 400, "prompt"),
        (json!({ "prompt": long }), 400, "prompt"),
        (json!({ "prompt": "vor", "model": "gpt-5" }), 404, ""),
        (json!({ "prompt": "vor", "model": 5 }), 400, "model"),
        (json!({ "prompt": "vor", "logprobs": 21 }), 400, "logprobs"),
        (json!({ "prompt": "vor", "max_tokens": -1 }), 400, "max_tokens"),
        (json!({ "prompt": "vor", "max_tokens": 1_000_000 }), 400, "max_tokens"),
        (json!({ "prompt": "vor", "temperature": "hot" }), 400, "temperature"),
        (json!({ "prompt": "vor", "temperature": -1 }), 400, "temperature"),
        (json!({ "prompt": "vor", "top_p": 2 }), 400, "top_p"),
        (json!({ "prompt": "vor", "deterministic": true, "num_beams": 2 }), 400, "deterministic"),
        (json!({ "prompt": "vor", "top_k": 1_000_000 }), 400, "top_k"),
        (json!({ "prompt": "vor", "n": 0 }), 400, "n"),
        (json!({ "prompt": "vor", "n": 100_000 }), 400, "n"),
        (json!({ "prompt": "vor", "stop": 3 }), 400, "stop"),
        (json!({ "prompt": "vor", "suffix": "end" }), 400, "suffix"),
        (json!({ "prompt": "vor", "frequency_penalty": 1 }), 400, "frequency_penalty"),
        (json!({ "prompt": "vor", "model": "mle", "class_top_k": 1 }), 400, "class_top_k"),
        (json!({ "prompt": "vor", "model": "mle", "top_k_growth": 0.5 }), 400, "top_k_growth"),
        (json!({ "prompt": "vor", "top_k_growth": 0.5 }), 400, "top_k_growth"),
        (json!({ "prompt": "vor", "top_k": 3, "top_k_growth": -1 }), 400, "top_k_growth"),
        (
            json!({ "prompt": "vor", "top_k": 3, "top_k_growth": 0.5, "joint": true }),
            400,
            "top_k_growth",
        ),
        (json!({ "prompt": "vor", "num_beams": 2, "n": 3 }), 400, "n"),
        (json!({ "prompt": "vor", "mirostat_mode": 1 }), 400, "mirostat_mode"),
        (json!({ "prompt": "vor", "mirostat_mode": 2, "top_k": 3 }), 400, "mirostat_mode"),
        (json!({ "prompt": "vor", "mirostat_mode": 2, "mirostat_tau": -1 }), 400, "mirostat_tau"),
        (json!({ "prompt": "vor", "xtc_probability": 3 }), 400, "xtc_probability"),
        (json!({ "prompt": "vor", "dry_multiplier": 1, "dry_base": 0 }), 400, "dry_base"),
        (json!({ "prompt": "vor", "epsilon_cutoff": 2 }), 400, "epsilon_cutoff"),
        (json!({ "prompt": "vor", "penalty_alpha": 0.6, "top_p": 0.9 }), 400, "penalty_alpha"),
        (json!({ "prompt": "vor", "penalty_alpha": 0.6, "logprobs": 1 }), 400, "logprobs"),
    ];
    for (body, status, param) in cases {
        let answer = server().post("/v1/completions", &body);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, error["param"].as_str().unwrap_or("")),
            (status, param),
            "{body}"
        );
        assert!(error["message"].is_string() && error["type"] == "invalid_request_error");
    }
    for (body, status) in [("{\"prompt\": ", 400), ("[1]", 400), ("\u{fffd}", 400)] {
        assert_eq!(server().ask("POST", "/v1/completions", &[], body).status, status, "{body}");
    }
    for (method, path, status) in [
        ("GET", "/v1/completions", 405),
        ("POST", "/v1/chat/completions", 404),
        ("GET", "/../../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/v1/models/nobody", 404),
    ] {
        let answer = server().ask(method, path, &[], "");
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    // Unknown keys are ignored.
    server().complete(&json!({ "prompt": "vor", "user": "me", "no_such_key": [1] }));
}

#[test]
fn pages_of_other_sites_get_nowhere() {
    let body = json!({ "prompt": "vor" }).to_string();
    let ask = |headers: &[&str]| server().ask("POST", "/v1/completions", headers, &body).status;
    assert_eq!(ask(&["Origin: https://example.org"]), 403);
    assert_eq!(ask(&["Origin: null"]), 403);
    assert_eq!(ask(&["Host: example.org", "Origin: http://example.org"]), 403);
    assert_eq!(ask(&["Sec-Fetch-Site: cross-site"]), 403);
    let own = format!("Origin: http://{}", server().address);
    assert_eq!(ask(&[&own, "Sec-Fetch-Site: same-origin"]), 200);
    let page = server().get("/");
    assert!(page.status == 200 && page.headers.contains("content-security-policy"));
    assert!(!page.headers.contains("access-control"));
}

#[test]
fn models_health_counters_and_the_tokenizer_are_told() {
    assert_eq!(server().get("/health").json()["status"], "ok");
    let models = server().get("/v1/models").json();
    let names: Vec<&Value> =
        models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["f2", "mle"]);
    assert_eq!(server().get("/v1/models/mle").json()["id"], "mle");
    let info = server().get("/tokenizer_info").json();
    assert_eq!(info["eos_token"], "<|endoftext|>");
    let sentence = "vor näh 🐈 <|endoftext|>";
    let tokens = server().post("/tokenize", &json!({ "prompt": sentence })).json();
    let back = server().post("/detokenize", &json!({ "tokens": tokens["tokens"] })).json();
    assert_eq!(back["prompt"], "vor näh 🐈 <|endoftext|>");
    server().complete(&json!({ "prompt": "vor" }));
    let counters = server().get("/metrics").body;
    assert!(counters.contains("f2_requests_total{model=\"f2\"} "), "{counters}");
    assert!(counters.contains("f2_first_token_seconds_count{model=\"mle\"} "), "{counters}");
}

#[test]
fn a_thousand_silent_connections_are_left() {
    support::server::raise_open_files();
    let server = Server::start(workshop(), &["f2", "--patience", "2"]);
    let mut silent: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    // Other connections are served meanwhile.
    server.complete(&json!({ "prompt": "vor" }));
    for stream in &mut silent {
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    }
    server.complete(&json!({ "prompt": "vor" }));
}

/// Sends bytes one by one until the server responds or closes the connection, and returns the
/// response.
fn trickle(mut stream: TcpStream, bytes: &str) -> String {
    for byte in bytes.bytes().cycle() {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        // A response means that the server has stopped waiting.
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        if stream.peek(&mut [0]).is_ok() {
            break;
        }
    }
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn clients_that_send_byte_by_byte_are_left() {
    let server = Server::start(workshop(), &["f2", "--patience", "1"]);
    std::thread::scope(|scope| {
        let body = scope.spawn(|| {
            let head = server.send("POST", "/v1/completions", &["Content-Length: 100000000"], "");
            trickle(head, " ")
        });
        let body_of_size = scope.spawn(|| {
            let head = server.send("POST", "/v1/completions", &["Content-Length: 100000"], "{");
            trickle(head, " ")
        });
        let head = scope.spawn(|| trickle(server.connect(), "GET / HTTP/1.1 and so on "));
        server.complete(&json!({ "prompt": "vor" }));
        assert!(body.join().unwrap().starts_with("HTTP/1.1 413"), "too large before it begins");
        assert!(body_of_size.join().unwrap().starts_with("HTTP/1.1 408"));
        let answer = head.join().unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    });
    server.complete(&json!({ "prompt": "vor" }));
}

#[test]
fn a_body_of_a_gigabyte_is_refused_before_it_is_read() {
    let server = server();
    let huge = format!("Content-Length: {}", 1_u64 << 30);
    let told = server.send("POST", "/v1/completions", &[&huge], "{");
    assert_eq!(answer(told).status, 413);
    // The same without a length in the header.
    let mut untold = server.connect();
    let head = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    untold.write_all(head.as_bytes()).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    let sent = (0..1024).take_while(|_| untold.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    server.complete(&json!({ "prompt": "vor" }));
}

#[test]
fn a_stream_that_nobody_takes_ends() {
    // Far more than can be generated while the server waits.
    let (texts, length) = (16, 1_000_000);
    let limits = ["--patience", "1", "--max-tokens", &length.to_string()];
    let server = Server::start(workshop(), &[&["f2"], &limits[..]].concat());
    let endless = json!({
        "prompt": "vor", "n": texts, "max_tokens": length, "ignore_eos": true, "stream": true,
        "logprobs": 20,
    });
    let reader = server.send("POST", "/v1/completions", &[], &endless.to_string());
    wait_for(|| gauge(&server, "f2_running") > 0);
    // Nothing is read: once the system's buffers are full, the server waits, then gives up.
    wait_for(|| gauge(&server, "f2_running") == 0);
    let tokens = gauge(&server, "f2_tokens_total");
    assert!(tokens < texts * length, "it was written to the end");
    drop(reader);
    server.complete(&json!({ "prompt": "vor" }));
}

fn gauge(server: &Server, name: &str) -> u64 {
    let counters = server.get("/metrics").body;
    let line = counters.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn too_many_wait_and_those_who_leave_make_room() {
    let server = Server::start(workshop(), &["f2", "--max-batch", "1", "--max-waiting", "1"]);
    let gauge = |name: &str| gauge(&server, name);
    let endless =
        json!({ "prompt": "vor", "max_tokens": 4096, "ignore_eos": true, "stream": true });
    let first = server.send("POST", "/v1/completions", &[], &endless.to_string());
    wait_for(|| gauge("f2_running") == 1);
    let second = server.send("POST", "/v1/completions", &[], &endless.to_string());
    wait_for(|| gauge("f2_waiting") == 1);
    let refused = server.post("/v1/completions", &json!({ "prompt": "vor" }));
    assert_eq!(refused.status, 429);
    assert!(refused.headers.contains("retry-after: "), "{}", refused.headers);
    assert_eq!(refused.json()["error"]["type"], "rate_limit_error");
    drop((first, second));
    wait_for(|| gauge("f2_waiting") == 0 && gauge("f2_running") == 0);
    server.complete(&json!({ "prompt": "vor" }));
}

#[test]
fn a_signal_finishes_what_runs() {
    let server = Server::start(workshop(), &["f2"]);
    let body = json!({ "prompt": "vor", "max_tokens": 1500, "ignore_eos": true, "seed": 2 });
    let running = server.send("POST", "/v1/completions", &[], &body.to_string());
    wait_for(|| server.get("/metrics").body.contains("f2_running{model=\"f2\"} 1"));
    server.signal("TERM");
    let answer = answer(running);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["usage"]["completion_tokens"], 1500);
    let run = server.wait();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_key_is_demanded_when_others_can_reach_it() {
    let folder = workshop();
    let open = folder.f2(&["serve", "f2", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(open.code, 2, "{}", open.stderr);
    assert!(open.stderr.contains("--api-key-file"), "{}", open.stderr);
    let twice = folder.f2(&["serve", "f2", "f2"]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);
    folder.write("key.txt", "s3cret\n");
    let server = Server::start(folder, &["f2", "--host", "0.0.0.0", "--api-key-file", "key.txt"]);
    let ask = |headers: &[&str]| server.ask("GET", "/v1/models", headers, "").status;
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&["Authorization: Bearer wrong"]), 401);
    assert_eq!(ask(&["Authorization: Bearer s3cret"]), 200);
    assert_eq!((server.get("/health").status, server.get("/").status), (200, 200));
    assert_eq!(server.end("INT").code, 0);
}
