//! `f2 generate --interactive` and `--stop`.

mod support;

#[cfg(unix)]
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::OnceLock;

use serde_json::Value;
use support::workshop::Workshop;

/// A model trained for a few steps.
fn workshop() -> &'static Workshop {
    static WORKSHOP: OnceLock<Workshop> = OnceLock::new();
    WORKSHOP.get_or_init(|| {
        let workshop = Workshop::new();
        let trained = workshop.train(&["--objective", "f2", "--steps", "20", "--out", "f2"]);
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        workshop
    })
}

fn generate(arguments: &[&str]) -> String {
    let run = workshop().0.f2(&[&["generate", "f2"], arguments].concat());
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run.stdout
}

fn records(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_of_standard_input_are_answered_as_if_given_at_once() {
    let at_once = ["vor", "tu re", "vor"].map(|prompt| ["--prompt", prompt]).concat();
    let common = ["--new-tokens", "15", "--seed", "3"];
    let expected = generate(&[&common[..], &at_once].concat());
    let command = [&["generate", "f2", "--interactive"], &common[..]].concat();
    // Empty lines are skipped.
    let input = "vor\n\ntu re\r\nvor";
    let run = workshop().0.f2_with_input(&command, input);
    assert_eq!((run.code, run.stdout.trim_end()), (0, expected.trim_end()), "{}", run.stderr);
    // A byte order mark is not part of the first prompt.
    let marked = workshop().0.f2_with_input(&command, &format!("\u{feff}{input}"));
    assert_eq!(marked.stdout, run.stdout, "{}", marked.stderr);
    let expected = generate(&[&common[..], &at_once, &["--json"]].concat());
    let run = workshop().0.f2_with_input(&[&command[..], &["--json"]].concat(), input);
    for (found, expected) in records(&run.stdout).iter().zip(&records(&expected)) {
        assert_eq!(found["text"], expected["text"]);
    }
    assert_eq!(run.stdout.lines().count(), 3);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_wait_for_a_line() {
    for name in ["INT", "TERM"] {
        let arguments = ["generate", "f2", "--interactive", "--greedy", "--new-tokens", "1"];
        let mut child = workshop().0.start(&arguments);
        let mut keys = child.stdin.take().unwrap();
        keys.write_all(b"vor\n").unwrap();
        let mut answer = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(answer.next().unwrap().starts_with("vor"));
        // After the answer and an empty line the program waits for input.
        assert_eq!(answer.next().as_deref(), Some(""));
        support::signal(&child, name);
        support::wait_for(|| child.try_wait().unwrap().is_some());
        let run = support::Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, 130, "{}", run.stderr);
        assert!(run.stderr.contains("before the end of standard input"), "{}", run.stderr);
        drop(keys);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_has_answers_history_and_a_key_to_stop_and_to_end() {
    use support::terminal::Session;
    let more = ["--new-tokens", "15", "--seed", "3"];
    let prompts = ["--prompt", "vor", "--prompt", "vor", "--json"];
    let expected = records(&generate(&[&more[..], &prompts].concat()));
    let texts: Vec<&str> = expected.iter().map(|each| each["text"].as_str().unwrap()).collect();
    assert_ne!(texts[0], texts[1], "a prompt that is given again gets another answer");

    let arguments = ["generate", "f2", "--interactive", "--no-stop"];
    let mut session = Session::start(&workshop().0, &[&arguments[..], &more].concat());
    let answered = |shown: &str, text: &str| shown.contains(&format!("vor{text}"));
    session.wait_until(|shown| shown.ends_with("> "));
    assert!(session.raw().contains("\x1b[1;31mvery rare\x1b[0m"), "the legend");
    session.press("vor\r");
    let text = &record_without_end(&more, 0);
    session.wait_until(|shown| answered(shown, text));
    // Ctrl-C discards the line; the arrow key recalls the prompt.
    session.press("nonsense\x03");
    session.wait_until(|shown| shown.ends_with("nonsense\n> "));
    session.press("\x1b[A\r");
    let text = &record_without_end(&more, 1);
    session.wait_until(|shown| answered(shown, text));
    session.press("\x04");
    let (code, shown) = session.end();
    assert_eq!(code, 0, "{shown}");
}

/// The text of a sample that ignores the end-of-text token.
#[cfg(target_os = "linux")]
fn record_without_end(more: &[&str], sample: usize) -> String {
    let prompts = ["--prompt", "vor", "--prompt", "vor", "--json", "--no-stop"];
    let record = &records(&generate(&[more, &prompts].concat()))[sample];
    record["text"].as_str().unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_stops_the_answer_and_not_the_conversation() {
    use support::terminal::Session;
    let arguments = ["generate", "f2", "--interactive", "--no-stop", "--new-tokens", "1000000"];
    let mut session = Session::start(&workshop().0, &arguments);
    session.wait_until(|shown| shown.ends_with("> "));
    for prompt in ["vor\r", "tu\r"] {
        let before = session.shown().len();
        session.press(prompt);
        session.wait_until(|shown| shown.len() > before + 200);
        session.interrupt();
        session.wait_until(|shown| shown.ends_with("\n> "));
    }
    session.press("\x04");
    assert_eq!(session.end().0, 0);
}

/// A beam search ignores stop sequences, but its text is cut at them, on the screen as in JSON.
#[test]
fn a_stop_sequence_ends_the_text_of_a_beam() {
    let beam = ["--prompt", "vor", "--new-tokens", "40", "--beam", "4", "--no-stop"];
    let json = |stops: &[&str]| {
        let record = &records(&generate(&[&beam[..], stops, &["--json"]].concat()))[0];
        record["text"].as_str().unwrap().to_owned()
    };
    let full = json(&[]);
    let part = |from: usize, to: usize| full.chars().take(to).skip(from).collect::<String>();
    // The short one is complete before the long one that contains it.
    let [long, short] = [part(0, 30), part(2, 4)];
    for stops in [vec!["--stop", &short], vec!["--stop", &long, "--stop", &short]] {
        let text = json(&stops);
        assert_eq!(text, full[..full.find(&short).unwrap()], "{full:?}");
        assert!(full.len() > text.len() + 20, "nothing follows the stop: {full:?}");
        assert_eq!(generate(&[&beam[..], &stops].concat()), format!("vor{text}\n"), "{stops:?}");
    }
}

#[test]
fn a_stop_sequence_ends_a_text_and_is_not_part_of_it() {
    let common = ["--new-tokens", "60", "--seed", "1", "-n", "8", "--prompt", "vor"];
    let full = records(&generate(&[&common[..], &["--json"]].concat()));
    let stops = ["--stop", "en ", "--stop", "ka"];
    let cut = records(&generate(&[&common[..], &stops, &["--json"]].concat()));
    let mut stopped = 0;
    for (full, cut) in full.iter().zip(&cut) {
        let [full_text, cut_text] = [full, cut].map(|record| record["text"].as_str().unwrap());
        let place = [full_text.find("en "), full_text.find("ka")].into_iter().flatten().min();
        assert_eq!(cut_text, &full_text[..place.unwrap_or(full_text.len())]);
        let [all, kept] = [full, cut].map(|record| record["ids"].as_array().unwrap());
        assert!(all.starts_with(kept));
        let numbers = |key: &str| cut[key].as_array().unwrap().len();
        assert_eq!([numbers("log_probabilities"), numbers("classes")], [kept.len(); 2]);
        stopped += usize::from(place.is_some());
    }
    assert!(stopped > 0, "no text met a stop sequence");
    // The same on the screen, where a single text is streamed token by token.
    for seed in ["1", "2", "3", "4"] {
        let one = ["--prompt", "vor", "--new-tokens", "60", "--seed", seed];
        let record = &records(&generate(&[&one[..], &stops, &["--json"]].concat()))[0];
        let shown = generate(&[&one[..], &stops].concat());
        assert_eq!(shown, format!("vor{}\n", record["text"].as_str().unwrap()));
    }
}
